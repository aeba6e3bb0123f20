// Item: what a client has stored, as it lies in the key-value store (docs/formats/server.md).
//
//   key     the client's, but one that is empty or begins with a byte 0 has a byte 0 before it. What begins with 0 1 is the server's own
//   value   | marks | cas, 8 bytes, if the marks say so | what the client gave |
//
// Flags and expiry are the record's own.
//
// cas: an item is told from what it was before, and will be, by a number, the cas unique of memcached: the version of its record, unless
// it has a number of its own, from a client (meta flag E) or because it was rewritten and counts as the same: a touch, a mark.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "kv/store.h"
#include "storage/buffer_pool.h"

namespace server {

inline constexpr size_t kKeyBytesMost = kv::kKeyBytesMax - 1;

// A client's key as the store has it.
class StoreKey {
 public:
  // Refers to `key`, or has a copy in the pool's memory. Errors: EINVAL for one of more than kKeyBytesMost, ENOMEM. Cost: no copy of one
  // that begins with another byte than 0.
  static base::Expected<StoreKey> of(std::string_view key, storage::BufferPool& pool);
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
  storage::Buffer memory_;
};
// The client's key of one of the store's, which it refers to; none: it is the server's own.
std::optional<std::string_view> client_key(std::string_view store_key);

// What memcached's meta commands mark an item with.
struct Marks {
  bool is_stale = false;    // a client has said that it should be fetched again (md with I)
  bool is_claimed = false;  // a client has been told that it is the one to do that (W)
  bool operator==(const Marks&) const = default;
};

// The beginning of a value.
struct ItemHead {
  static constexpr size_t kBytesMost = 9;

  Marks marks = {};
  uint64_t own_cas = 0;  // 0: the version is it

  size_t bytes() const { return own_cas != 0 ? kBytesMost : 1; }
  // Writes bytes() of them.
  void write(std::byte* to) const;
  // Of a value's first bytes, at least kBytesMost or all. None: this is no item's, or one of a later version.
  static std::optional<ItemHead> read(kv::Bytes from);
};

// That a value is none.
base::Error no_item();

// One that was found, or not. It keeps memory of the session, which it must not outlive.
class Item {
 public:
  Item() = default;
  // Errors: EBADMSG for what is no item; as kv::Session::read_value. Cost: of a large value one I/O.
  static base::Expected<Item> of(kv::Session& session, kv::Found found);

  bool found() const { return found_.found(); }
  // A large one is read by read(), a part at a time; any other may be.
  bool is_large() const { return found_.is_large(); }
  uint64_t value_bytes() const { return found() ? found_.value_bytes() - head_.bytes() : 0; }
  // Not copied. REQUIRES: not large.
  kv::Bytes value() const { return found() ? found_.value().subspan(head_.bytes()) : kv::Bytes(); }
  // Copies what there is from `offset` on; how much. Errors, cost: as kv::Session::read_value.
  base::Expected<size_t> read(kv::Session& session, uint64_t offset, std::span<std::byte> to) {
    return session.read_value(found_, head_.bytes() + offset, to);
  }
  // 0, as all that follow, of one that was not found.
  uint64_t cas() const { return head_.own_cas != 0 ? head_.own_cas : version(); }
  uint64_t version() const { return found() ? found_.version() : 0; }
  uint32_t flags() const { return found() ? found_.flags() : 0; }
  uint64_t expires_ms() const { return found() ? found_.expires_ms() : 0; }
  const Marks& marks() const { return head_.marks; }

 private:
  kv::Found found_;
  ItemHead head_;
};

}  // namespace server
