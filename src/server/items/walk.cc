#include "server/items/walk.h"

#include <cerrno>

namespace server {

base::Expected<void> Walk::open(Items& items) {
  const Isolation::Call call(items.shared_->isolation_, items.calls_);
  items.shared_->flush_if_due(items.session_);
  return snapshot_.open(items.session_);
}

base::Expected<bool> Walk::next(Entry& entry) {
  for (kv::Snapshot::Entry found;;) {
    auto more = snapshot_.next(found);
    if (!more || !*more) return more;
    const std::optional<std::string_view> key = client_key(found.key);
    if (!key) continue;
    std::byte first[ItemHead::kMaxBytes];
    kv::Bytes begin = found.value;
    if (found.is_large) {
      auto read = snapshot_.read_value(0, first);
      // A cache has dropped it meanwhile.
      if (!read && read.error().number == ESTALE) continue;
      if (!read) return std::unexpected(read.error());
      begin = std::span(first).first(*read);
    }
    const std::optional<ItemHead> head = ItemHead::read(begin);
    if (!head) return std::unexpected(no_item());
    entry = {.key = *key,
             .value_bytes = found.value_bytes - head->bytes(),
             .cas = head->own_cas != 0 ? head->own_cas : found.version,
             .expires_ms = found.expires_ms,
             .flags = found.flags,
             .marks = head->marks};
    return true;
  }
}

base::Expected<bool> Walk::next_item(Entry& entry) {
  for (;;) {
    auto more = next(entry);
    if (more || more.error().number != EBADMSG) return more;
  }
}

}  // namespace server
