// FlushRecord: what a server keeps of flushes (shared_items.h), in a record of its own of the store (docs/formats/server.md).
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "kv/media/format.h"

namespace server {

// The record's key, to which no client's key maps (item.h).
inline constexpr std::string_view kFlushKey("\0\1flush", 7);
// No item has a lower version.
inline constexpr uint64_t kNoFloor = 1;

struct FlushRecord {
  uint64_t floor = 0;  // items with a lower version are gone; 0: the floor is the version of this record
  uint64_t at_ms = 0;  // 0: no flush is to come

  // None: the value is damaged, or of a later version.
  static std::optional<FlushRecord> read(kv::Bytes value) {
    FlushRecord record;
    if (value.size() != sizeof record) return std::nullopt;
    memcpy(&record, value.data(), sizeof record);
    return record;
  }
  // The record's value.
  kv::Bytes bytes() const { return std::as_bytes(std::span(this, 1)); }
  // What of it still holds in a copy of the store, where items have other versions. None: nothing.
  std::optional<FlushRecord> in_copy() const {
    if (at_ms == 0) return std::nullopt;
    return FlushRecord{.floor = kNoFloor, .at_ms = at_ms};
  }
};
static_assert(sizeof(FlushRecord) == 16);

}  // namespace server
