// Item: what a client has stored, as it lies in the key-value store (docs/formats/server.md).
//
//   key     the client's key, behind a byte 0 if it is empty or begins with a byte 0. Keys that begin with the bytes 0 1 are the server's own
//   value   | marks | cas, 8 bytes, if the marks say so | what the client gave |
//
// Flags and expiry are those of the record.
//
// The cas (memcached's "cas unique") is a number that changes with the item. It is the version of the record, unless the item has a number of its
// own: one that a client gave (meta flag E), or the cas that it had before the record was rewritten for a touch or a mark, which are no changes to
// clients.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "kv/store.h"
#include "storage/buffer_pool.h"

namespace server {

inline constexpr size_t kMaxKeyBytes = kv::kMaxKeyBytes - 1;

// A client's key as it is in the store.
class StoreKey {
 public:
  // Refers to `key`, or, if that is empty or begins with a byte 0, to a copy in the pool's memory. Errors: EINVAL for a key of more than
  // kMaxKeyBytes bytes, ENOMEM.
  static base::Expected<StoreKey> of(std::string_view key, storage::BufferPool& pool);
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
  storage::Buffer memory_;
};
// The client's key for a key of the store, to which the result refers; none: it is a key of the server's own.
std::optional<std::string_view> client_key(std::string_view store_key);

// What memcached's meta commands mark an item with.
struct Marks {
  bool is_stale = false;    // a client has said that it should be fetched again (md with I)
  bool is_claimed = false;  // a client has been told that it is the one to do that (W)
  bool operator==(const Marks&) const = default;
};

// The beginning of a value.
struct ItemHead {
  static constexpr size_t kMaxBytes = 9;

  Marks marks = {};
  uint64_t own_cas = 0;  // 0: the cas is the record's version

  size_t bytes() const { return own_cas != 0 ? kMaxBytes : 1; }
  // Writes bytes() bytes.
  void write(std::byte* to) const;
  // Reads the first bytes of a value: at least kMaxBytes, or all that it has. None: it is no item's value, or one of a later version.
  static std::optional<ItemHead> read(kv::Bytes from);
};

// EBADMSG: a value is no item's.
base::Error no_item();

// An item that was looked for, found or not. It holds memory of the session, and must be destroyed before the session is closed.
class Item {
 public:
  Item() = default;
  // Errors: EBADMSG for a value that is no item's; as kv::Session::read_value. Cost: one I/O for a large value.
  static base::Expected<Item> of(kv::Session& session, kv::Found found);

  bool found() const { return found_.found(); }
  // A large value can only be read by read(), a part at a time.
  bool is_large() const { return found_.is_large(); }
  uint64_t value_bytes() const { return found() ? found_.value_bytes() - head_.bytes() : 0; }
  // Refers to memory of the item. REQUIRES: not large.
  kv::Bytes value() const { return found() ? found_.value().subspan(head_.bytes()) : kv::Bytes(); }
  // Copies the value from `offset` on, up to its end or that of `to`; returns how many bytes. Errors, cost: as kv::Session::read_value.
  base::Expected<size_t> read(kv::Session& session, uint64_t offset, std::span<std::byte> to) {
    return session.read_value(found_, head_.bytes() + offset, to);
  }
  // These are 0, or false, of an item that was not found.
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
