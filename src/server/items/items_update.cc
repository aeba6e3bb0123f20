// Updates: an item is read, what it is to become is decided, and that is written (items.h).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "server/items/items.h"

namespace server {
namespace {

// A value up to this is assembled in memory, and put at once; a longer one is written in parts.
constexpr uint64_t kMaxWholeBytes = 64 << 10;
// How much of a longer one is copied at a time.
constexpr uint64_t kCopyBytes = 64 << 10;

}  // namespace

base::Expected<Done> Items::update(std::string_view key, Decision decide, Item* before, bool marks_used) {
  const Isolation::Call call(shared_->isolation_, calls_);
  auto store_key = begin(key);
  if (!store_key) return std::unexpected(store_key.error());
  const uint64_t hash = hash_of(store_key->text());
  UpdateLocks::Held held(shared_->locks_, hash);
  for (int round = 0; round < kMaxRounds; ++round) {
    if (round > 0) count(Count::kAnew);
    if (round == UpdateLocks::kRoundsAlone) held.fight();
    auto item = read_item(store_key->text(), marks_used);
    if (!item) return std::unexpected(item.error());
    auto change = decide(*item);
    if (!change) return std::unexpected(change.error());
    auto done = apply(store_key->text(), hash, *item, *change);
    if (!done) return std::unexpected(done.error());
    if (!done->has_value()) continue;
    if (before != nullptr) *before = std::move(*item);
    return **done;
  }
  return base::failure(EBUSY, "others change the item all the time; try again");
}

// Returns none if others have changed the item since it was read.
base::Expected<std::optional<Done>> Items::apply(std::string_view store_key, uint64_t hash, Item& item,
                                                 const Change& change) {
  if (change.kind == Change::Kind::kNothing)
    return Done{.outcome = change.outcome,
                .cas = item.cas(),
                .value_bytes = item.value_bytes(),
                .expires_ms = item.expires_ms()};
  if (change.kind == Change::Kind::kRemove) {
    if (!item.found()) return Done{.outcome = Outcome::kAbsent};
    auto removed = session_.remove(store_key, kv::When::kIfVersion, item.version());
    if (!removed) return std::unexpected(removed.error());
    if (removed->outcome != kv::Changed::Outcome::kDone) return std::nullopt;
    return Done{};
  }
  const uint64_t bytes = change.value_bytes();
  // A value from a time when the server took longer ones may keep its length: otherwise its item could be neither touched nor
  // claimed.
  if (bytes > std::max(shared_->options_.value_bytes_max, item.value_bytes()))
    return Done{.outcome = Outcome::kTooLong};
  auto put = write(store_key, item, change,
                   {.when = item.found() ? kv::When::kIfVersion : kv::When::kIfAbsent,
                    .version = item.version(),
                    .expires_ms = change.expires_ms,
                    .flags = change.flags});
  // A cache has meanwhile dropped the part of the value that was to be copied.
  if (!put && put.error().number == ESTALE) return std::nullopt;
  if (!put) return std::unexpected(put.error());
  if (put->outcome != kv::Changed::Outcome::kDone) return std::nullopt;
  if (change.is_new_value) shared_->hot_.stored(hash, now_s());
  return Done{.cas = change.head.own_cas != 0 ? change.head.own_cas : put->version,
              .value_bytes = bytes,
              .expires_ms = change.expires_ms};
}

base::Expected<kv::Changed> Items::write(std::string_view store_key, Item& item, const Change& change,
                                         const kv::PutOptions& options) {
  const uint64_t bytes = change.head.bytes() + change.value_bytes();
  if (bytes > kMaxWholeBytes) return write_in_parts(store_key, item, change, options);
  const storage::Buffer memory(pool_, bytes);
  if (memory.bytes().empty()) return base::failure(ENOMEM, "no memory for a value");
  const std::span value = memory.bytes().first(bytes);
  change.head.write(value.data());
  size_t at = change.head.bytes();
  for (size_t i = 0; i < change.part_count; ++i) {
    const Part& part = change.parts[i];
    if (auto copied = copy(item, part, 0, value.subspan(at, part.length)); !copied)
      return std::unexpected(copied.error());
    at += part.length;
  }
  return session_.put(store_key, value, options);
}

base::Expected<kv::Changed> Items::write_in_parts(std::string_view store_key, Item& item,
                                                  const Change& change, const kv::PutOptions& options) {
  kv::ValueWriter writer;
  if (auto opened = writer.open(session_, store_key); !opened) return std::unexpected(opened.error());
  const storage::Buffer memory(pool_, kCopyBytes);
  if (memory.bytes().empty()) return base::failure(ENOMEM, "no memory for a value");
  std::byte head[ItemHead::kMaxBytes];
  change.head.write(head);
  if (auto done = writer.append(std::span(head).first(change.head.bytes())); !done)
    return std::unexpected(done.error());
  for (size_t i = 0; i < change.part_count; ++i) {
    const Part& part = change.parts[i];
    const bool is_in_memory = part.kind == Part::Kind::kBytes;
    for (uint64_t at = 0; at < part.length;) {
      kv::Bytes next(part.bytes, part.length);
      if (!is_in_memory) {
        const std::span to = memory.bytes().first(std::min(kCopyBytes, part.length - at));
        if (auto copied = copy(item, part, at, to); !copied) return std::unexpected(copied.error());
        next = to;
      }
      if (auto done = writer.append(next); !done) return std::unexpected(done.error());
      at += next.size();
    }
  }
  return writer.commit(options);
}

// Copies from the part, from its byte `offset` on.
base::Expected<void> Items::copy(Item& item, const Part& part, uint64_t offset, std::span<std::byte> to) {
  if (to.empty()) return {};
  switch (part.kind) {
    case Part::Kind::kBytes: memcpy(to.data(), part.bytes + offset, to.size()); return {};
    case Part::Kind::kFill: memset(to.data(), part.fill, to.size()); return {};
    case Part::Kind::kOld: {
      auto read = item.read(session_, part.offset + offset, to);
      if (!read) return std::unexpected(read.error());
      CHECK_EQ(*read, to.size());
      return {};
    }
  }
}

}  // namespace server
