// MultiPut: many puts at once. Their records are written together; one write serves all that are contiguous.
//
//  1 Puts that get their keys' locks without waiting form a group, up to kGroup of them and kMaxBytes. The same key twice makes two groups
//  2 Each gets a sequence and room in the log, in their order. The first one without room and those after it leave the group
//  3 All records are written, and what they replace is read, at the same time. At kSync one flush serves all
//  4 The index learns of each, in their order
// A put that cannot be in a group, such as that of a large value, is made alone.
//
// Thread contract: Session's.
#pragma once
#include <span>

#include "kv/store.h"

namespace kv {

class MultiPut {
 public:
  static constexpr size_t kGroup = 64;
  static constexpr uint64_t kMaxBytes = 1 << 20;  // of a group's records

  struct Put {
    std::string_view key;
    Bytes value;
    uint64_t expires_ms = 0;
    uint32_t flags = 0;
  };
  // Sets results[i] to what session.put() of puts[i] would return, one after the other: of puts of the same key the last one stays. One that fails does
  // not affect others, and other threads may see some made and some not yet. Cost: a write for each contiguous run of records, and a read for each key
  // that is there already. REQUIRES: results.size() == puts.size().
  static void put(Session& session, std::span<const Put> puts, std::span<base::Expected<Changed>> results);

 private:
  struct One;
  struct Group;
  static size_t take(Session& session, Group& group, std::span<const Put> puts);
  static bool take_one(Session& session, One& one, const Put& put);
  static size_t allocate(Session& session, std::span<One> ones);
  static void write(Session& session, Group& group, std::span<One> ones, std::span<std::byte> memory);
  static void write_alone(Session& session, std::span<One> ones);
  static void look(Session& session, Group& group, std::span<One> ones);
  static uint64_t finish(Session& session, std::span<One> ones, std::span<base::Expected<Changed>> results);
};

}  // namespace kv
