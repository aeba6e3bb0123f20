#include "server/items/item.h"

#include <cerrno>
#include <cstring>

namespace server {
namespace {

constexpr char kEscape = 0;  // before a client's key that begins with it, or is empty
constexpr char kOwn = 1;     // behind it: the server's own

constexpr uint8_t kStale = 1 << 0;
constexpr uint8_t kClaimed = 1 << 1;
constexpr uint8_t kHasCas = 1 << 2;
constexpr uint8_t kKnown = kStale | kClaimed | kHasCas;

}  // namespace

base::Expected<StoreKey> StoreKey::of(std::string_view key, storage::BufferPool& pool) {
  if (key.size() > kMaxKeyBytes)
    return base::failure(EINVAL, "a key of ", key.size(), " bytes; give at most ", kMaxKeyBytes);
  StoreKey own;
  own.text_ = key;
  if (!key.empty() && key.front() != kEscape) return own;
  own.memory_ = storage::Buffer(pool, 1 + key.size());
  if (own.memory_.bytes().empty()) return base::failure(ENOMEM, "no memory for a key");
  char* const to = reinterpret_cast<char*>(own.memory_.bytes().data());
  to[0] = kEscape;
  if (!key.empty()) memcpy(to + 1, key.data(), key.size());
  own.text_ = {to, 1 + key.size()};
  return own;
}

std::optional<std::string_view> client_key(std::string_view store_key) {
  if (store_key.empty() || store_key.front() != kEscape) return store_key;
  if (store_key.size() > 1 && store_key[1] == kOwn) return std::nullopt;
  return store_key.substr(1);
}

void ItemHead::write(std::byte* to) const {
  to[0] = static_cast<std::byte>((marks.is_stale ? kStale : 0) | (marks.is_claimed ? kClaimed : 0) |
                                 (own_cas != 0 ? kHasCas : 0));
  if (own_cas != 0) memcpy(to + 1, &own_cas, sizeof own_cas);
}

std::optional<ItemHead> ItemHead::read(kv::Bytes from) {
  if (from.empty()) return std::nullopt;
  const auto marks = static_cast<uint8_t>(from.front());
  if ((marks & ~kKnown) != 0) return std::nullopt;
  ItemHead head = {.marks = {.is_stale = (marks & kStale) != 0, .is_claimed = (marks & kClaimed) != 0}};
  if ((marks & kHasCas) == 0) return head;
  if (from.size() < kMaxBytes) return std::nullopt;
  memcpy(&head.own_cas, from.data() + 1, sizeof head.own_cas);
  if (head.own_cas == 0) return std::nullopt;
  return head;
}

base::Error no_item() {
  return base::Error::of(EBADMSG,
                         "what the key has is not an item of a server, or is one of a later version");
}

base::Expected<Item> Item::of(kv::Session& session, kv::Found found) {
  Item item;
  item.found_ = std::move(found);
  if (!item.found()) return item;
  std::byte first[ItemHead::kMaxBytes];
  auto read = session.read_value(item.found_, 0, first);
  // A cache has dropped it meanwhile: it is not there.
  if (!read && read.error().number == ESTALE) return Item();
  if (!read) return std::unexpected(read.error());
  const std::optional<ItemHead> head = ItemHead::read(std::span(first).first(*read));
  if (!head) return std::unexpected(no_item());
  item.head_ = *head;
  return item;
}

}  // namespace server
