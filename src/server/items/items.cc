#include "server/items/items.h"

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/single_writer.h"
#include "kv/multi_get.h"
#include "kv/multi_put.h"

namespace server {
namespace {

// Bounds all values that are set together.
constexpr size_t kGroupBytes = 256 << 10;

}  // namespace

// In memory of the pool: tasks have small stacks.
struct Items::Group {
  base::Expected<StoreKey> keys[kv::MultiGet::kGroup];
  // Of those that are valid:
  std::string_view texts[kv::MultiGet::kGroup];
  base::Expected<kv::Found> found[kv::MultiGet::kGroup];
};

struct Items::SetGroup {
  StoreKey keys[kv::MultiPut::kGroup];
  uint64_t hashes[kv::MultiPut::kGroup];
  kv::MultiPut::Put puts[kv::MultiPut::kGroup];
  base::Expected<kv::Changed> changed[kv::MultiPut::kGroup];
};

base::Expected<void> Items::open(SharedItems& shared, size_t depth) {
  if (auto opened = session_.open(shared.store(), depth); !opened) return opened;
  shared_ = &shared;
  shared.add(place_);
  shared.isolation_.add(calls_);
  return {};
}

void Items::close() {
  shared_->isolation_.remove(calls_);
  shared_->remove(place_);
  session_.close();
}

void Items::count(Count count) { base::increase(place_.counts[static_cast<size_t>(count)], uint64_t{1}); }

void Items::count_get(bool is_hit) { count(is_hit ? Count::kGetHits : Count::kGetMisses); }

void Items::count_cas(Outcome outcome) {
  if (outcome == Outcome::kDone) count(Count::kCasHits);
  if (outcome == Outcome::kAbsent) count(Count::kCasMisses);
  if (outcome == Outcome::kOtherCas) count(Count::kCasOthers);
}

void Items::note_error(const base::Error& error) {
  switch (error.number) {
    case EINVAL:  // what the client asked for
    case ESRCH:
    case EBUSY:  // what others do at the same time
    case ECANCELED: return;
    default: count(Count::kErrors);
  }
}

// How each call with one key begins.
base::Expected<StoreKey> Items::begin(std::string_view key) {
  shared_->flush_if_due(session_);
  return StoreKey::of(key, pool_);
}

uint64_t Items::hash_of(std::string_view store_key) const {
  return kv::hash_key(shared_->store().identity().secret, store_key).low;
}

base::Expected<Item> Items::read_item(std::string_view store_key, bool marks_used) {
  auto found = marks_used ? session_.get(store_key) : session_.peek(store_key);
  if (!found) return std::unexpected(found.error());
  return Item::of(session_, std::move(*found));
}

void Items::note_get(uint64_t hash, bool is_hit) {
  count_get(is_hit);
  if (is_hit) shared_->hot_.used(hash, now_s());
}

base::Expected<Item> Items::find(std::string_view key, bool marks_used) {
  const Isolation::Call call(shared_->isolation_, calls_);
  auto store_key = begin(key);
  return store_key ? read_item(store_key->text(), marks_used) : std::unexpected(store_key.error());
}

base::Expected<Item> Items::look(std::string_view key) { return find(key, false); }

base::Expected<Item> Items::get(std::string_view key) {
  const Isolation::Call call(shared_->isolation_, calls_);
  auto store_key = begin(key);
  if (!store_key) return std::unexpected(store_key.error());
  const uint64_t hash = hash_of(store_key->text());
  shared_->hot_.prefetch(hash);
  auto item = read_item(store_key->text());
  if (item) note_get(hash, item->found());
  return item;
}

size_t Items::get_some(std::span<const std::string_view> keys, const void* context, UseItem use) {
  const storage::Buffer memory = keys.size() > 1 ? storage::Buffer(pool_, sizeof(Group)) : storage::Buffer();
  if (memory.bytes().empty()) {
    auto item = get(keys.front());
    use(context, item);
    return 1;
  }
  Group* const group = new (memory.bytes().data()) Group;
  const size_t count =
      get_group(*group, keys.first(std::min(kv::MultiGet::kGroup, keys.size())), context, use);
  std::destroy_at(group);
  return count;
}

// Returns how many keys `use` was called for.
size_t Items::get_group(Group& group, std::span<const std::string_view> keys, const void* context,
                        UseItem use) {
  size_t count = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    group.keys[i] = StoreKey::of(keys[i], pool_);
    if (group.keys[i]) group.texts[count++] = group.keys[i]->text();
  }
  size_t found_count = 0;
  {
    const Isolation::Call call(shared_->isolation_, calls_);
    shared_->flush_if_due(session_);
    found_count = kv::MultiGet::get_some(session_, {group.texts, count}, {group.found, count}, kFoundBytes);
  }
  size_t i = 0;
  for (size_t at = 0; i < keys.size(); ++i) {
    base::Expected<Item> item;
    if (!group.keys[i]) {
      item = std::unexpected(group.keys[i].error());
    } else if (at == found_count) {
      break;
    } else {
      auto& found = group.found[at];
      // For a large value this reads a piece.
      item = found ? Item::of(session_, std::move(*found)) : std::unexpected(found.error());
      if (item) note_get(hash_of(group.texts[at]), item->found());
      ++at;
    }
    use(context, item);
  }
  return i;
}

base::Expected<Fetched> Items::fetch(std::string_view key, const FetchOptions& options) {
  Fetched fetched;
  const auto decide = [&](Item& item) -> Change {
    fetched.is_made = !item.found() && options.makes_until_ms.has_value();
    fetched.has_claimed = fetched.is_made;
    if (fetched.is_made) {
      Change change = Change::put({}, 0, *options.makes_until_ms);
      change.head = {.marks = {.is_claimed = true}, .own_cas = options.own_cas};
      return change;
    }
    if (!item.found()) return Change::nothing(Outcome::kAbsent);
    Change change = Change::same_as(item);
    change.expires_ms = options.expires_ms.value_or(item.expires_ms());
    const uint64_t ends_ms = options.claims_by_new_expiry ? change.expires_ms : item.expires_ms();
    const bool ends_soon = ends_ms != kNever && ends_ms < options.claims_before_ms;
    fetched.has_claimed =
        !item.marks().is_claimed && ((options.claims_stale && item.marks().is_stale) || ends_soon);
    change.head.marks.is_claimed = item.marks().is_claimed || fetched.has_claimed;
    const bool is_same = change.expires_ms == item.expires_ms() && !fetched.has_claimed;
    return is_same ? Change::nothing(Outcome::kDone) : change;
  };
  auto store_key = StoreKey::of(key, pool_);
  if (!store_key) return std::unexpected(store_key.error());
  const uint64_t hash = hash_of(store_key->text());
  fetched.facts = shared_->hot_.facts_of(hash, now_s());
  const bool marks_used = !options.leaves_no_trace && (options.is_get || options.expires_ms);
  auto item = find(key, marks_used);
  if (!item) return std::unexpected(item.error());
  // Usually the item stays as it is.
  if (decide(*item).kind == Change::Kind::kNothing) {
    fetched.item = std::move(*item);
    fetched.cas = fetched.item.cas();
    fetched.expires_ms = fetched.item.expires_ms();
  } else {
    auto done = update(key, decide, &fetched.item);
    if (!done) return std::unexpected(done.error());
    if (fetched.is_made) count(Count::kStored);
    fetched.cas = done->cas;
    fetched.expires_ms = done->expires_ms;
  }
  const bool is_hit = fetched.item.found();
  if (options.expires_ms) count(is_hit ? Count::kTouchHits : Count::kTouchMisses);
  if (options.is_get) count_get(is_hit);
  if (marks_used && is_hit) shared_->hot_.used(hash, now_s());
  return fetched;
}

base::Expected<Done> Items::set_blindly(std::string_view key, kv::Bytes value, const SetOptions& options) {
  if (value.size() > shared_->options_.value_bytes_max) return Done{.outcome = Outcome::kTooLong};
  const Isolation::Call call(shared_->isolation_, calls_);
  auto store_key = begin(key);
  if (!store_key) return std::unexpected(store_key.error());
  const uint64_t hash = hash_of(store_key->text());
  std::optional<UpdateLocks::Held> held;
  if (shared_->locks_.is_fought(hash)) held.emplace(shared_->locks_, hash);
  Change change = Change::put(value, options.flags, options.expires_ms);
  change.head.own_cas = options.own_cas;
  Item none;
  auto put = write(store_key->text(), none, change,
                   {.when = options.mode == Mode::kAdd ? kv::When::kIfAbsent : kv::When::kAlways,
                    .expires_ms = options.expires_ms,
                    .flags = options.flags});
  if (!put) return std::unexpected(put.error());
  if (put->outcome != kv::Changed::Outcome::kDone) return Done{.outcome = Outcome::kPresent};
  count(Count::kStored);
  shared_->hot_.stored(hash, now_s());
  return Done{.cas = options.own_cas != 0 ? options.own_cas : put->version,
              .value_bytes = value.size(),
              .expires_ms = options.expires_ms};
}

namespace {

bool is_joined(Mode mode) { return mode == Mode::kAppend || mode == Mode::kPrepend; }

Change decide_set(const Item& item, kv::Bytes value, const SetOptions& options) {
  Change change = Change::put(value, options.flags, options.expires_ms);
  change.head.own_cas = options.own_cas;
  if (!item.found()) {
    if (is_joined(options.mode) && options.makes_until_ms) {
      change.expires_ms = *options.makes_until_ms;
      return change;
    }
    const bool is_new = options.mode == Mode::kAdd || (options.mode == Mode::kSet && !options.cas);
    return is_new ? change : Change::nothing(Outcome::kAbsent);
  }
  if (options.mode == Mode::kAdd) return Change::nothing(Outcome::kPresent);
  const bool has_other_cas = options.cas && *options.cas != item.cas();
  const bool has_lower_cas = has_other_cas && *options.cas != 0 && *options.cas < item.cas();
  if (has_other_cas && !(options.takes_lower_cas && has_lower_cas && !is_joined(options.mode)))
    return Change::nothing(Outcome::kOtherCas);
  if (is_joined(options.mode)) {
    change = Change::value_of(item);
    change.head = {.own_cas = options.own_cas};
    if (options.mode == Mode::kPrepend) change.add(Part::of(value));
    change.add(Part::old(0, item.value_bytes()));
    if (options.mode == Mode::kAppend) change.add(Part::of(value));
    return change;
  }
  if (has_other_cas) change.head.marks = {.is_stale = true, .is_claimed = item.marks().is_claimed};
  if (has_other_cas || options.keeps_expiry) change.expires_ms = item.expires_ms();
  return change;
}

}  // namespace

base::Expected<Done> Items::set(std::string_view key, kv::Bytes value, const SetOptions& options,
                                Item* before) {
  count(Count::kSets);
  const bool is_blind =
      before == nullptr &&
      (options.mode == Mode::kAdd || (options.mode == Mode::kSet && !options.cas && !options.keeps_expiry));
  if (is_blind) return set_blindly(key, value, options);
  const auto decide = [&](Item& item) { return decide_set(item, value, options); };
  auto done = update(key, decide, before);
  if (done && done->outcome == Outcome::kDone) count(Count::kStored);
  if (done && options.cas) count_cas(done->outcome);
  if (done && before != nullptr) count_get(before->found());
  return done;
}

void Items::set(std::span<const NewItem> items, std::span<base::Expected<Done>> results) {
  CHECK_EQ(items.size(), results.size());
  const storage::Buffer memory(pool_, sizeof(SetGroup));
  for (size_t at = 0; at < items.size();) {
    size_t count = 0;
    if (!memory.bytes().empty()) {
      SetGroup* const group = new (memory.bytes().data()) SetGroup;
      count = set_group(*group, items.subspan(at), results.subspan(at));
      std::destroy_at(group);
    }
    if (count == 0) {
      results[at] = set(items[at]);
      count = 1;
    }
    at += count;
  }
}

// Sets a group of the first items; returns how many that were. A group ends before an item that is too long for it, has no valid key, or is
// fought for.
size_t Items::set_group(SetGroup& group, std::span<const NewItem> items,
                        std::span<base::Expected<Done>> results) {
  const Isolation::Call call(shared_->isolation_, calls_);
  shared_->flush_if_due(session_);
  const storage::Buffer memory(pool_, kGroupBytes);
  const ItemHead head;
  size_t count = 0, used = 0;
  for (; count < std::min(items.size(), kv::MultiPut::kGroup); ++count) {
    const NewItem& item = items[count];
    const size_t bytes = head.bytes() + item.value.size();
    if (used + bytes > memory.bytes().size() || item.value.size() > shared_->options_.value_bytes_max) break;
    auto key = StoreKey::of(item.key, pool_);
    if (!key) break;
    group.keys[count] = std::move(*key);
    group.hashes[count] = hash_of(group.keys[count].text());
    if (shared_->locks_.is_fought(group.hashes[count])) break;
    const std::span value = memory.bytes().subspan(used, bytes);
    head.write(value.data());
    std::ranges::copy(item.value, value.begin() + static_cast<ptrdiff_t>(head.bytes()));
    group.puts[count] = {
        .key = group.keys[count].text(), .value = value, .expires_ms = item.expires_ms, .flags = item.flags};
    used += bytes;
  }
  kv::MultiPut::put(session_, {group.puts, count}, {group.changed, count});
  for (size_t i = 0; i < count; ++i) {
    this->count(Count::kSets);
    const auto& changed = group.changed[i];
    if (!changed) {
      results[i] = std::unexpected(changed.error());
      continue;
    }
    this->count(Count::kStored);
    shared_->hot_.stored(group.hashes[i], now_s());
    results[i] = Done{
        .cas = changed->version, .value_bytes = items[i].value.size(), .expires_ms = items[i].expires_ms};
  }
  return count;
}

base::Expected<Done> Items::set_range(std::string_view key, uint64_t offset, kv::Bytes bytes) {
  count(Count::kSets);
  const auto decide = [&](Item& item) -> Change {
    if (bytes.empty()) return Change::nothing(Outcome::kDone);
    if (offset > shared_->options_.value_bytes_max) return Change::nothing(Outcome::kTooLong);
    const uint64_t old = item.value_bytes(), kept = std::min(offset, old), end = offset + bytes.size();
    Change change = Change::value_of(item);
    change.add(Part::old(0, kept));
    change.add(Part::filled(0, offset - kept));
    change.add(Part::of(bytes));
    if (end < old) change.add(Part::old(end, old - end));
    return change;
  };
  auto done = update(key, decide);
  if (done && done->outcome == Outcome::kDone && !bytes.empty()) count(Count::kStored);
  return done;
}

base::Expected<Done> Items::remove(std::string_view key, std::optional<uint64_t> cas, Item* before) {
  base::Expected<Done> done;
  if (!cas && before == nullptr) {
    const Isolation::Call call(shared_->isolation_, calls_);
    auto store_key = begin(key);
    if (!store_key) return std::unexpected(store_key.error());
    const uint64_t hash = hash_of(store_key->text());
    std::optional<UpdateLocks::Held> held;
    if (shared_->locks_.is_fought(hash)) held.emplace(shared_->locks_, hash);
    auto removed = session_.remove(store_key->text());
    if (!removed) return std::unexpected(removed.error());
    if (removed->outcome != kv::Changed::Outcome::kDone) done->outcome = Outcome::kAbsent;
  } else {
    const auto decide = [&](Item& item) -> Change {
      const bool is_other = item.found() && cas && *cas != item.cas();
      return is_other ? Change::nothing(Outcome::kOtherCas) : Change::removal();
    };
    done = update(key, decide, before);
    if (!done) return done;
    if (before != nullptr) count_get(before->found());
  }
  if (done->outcome == Outcome::kDone) count(Count::kDeleteHits);
  if (done->outcome == Outcome::kAbsent) count(Count::kDeleteMisses);
  return done;
}

base::Expected<Done> Items::invalidate(std::string_view key, const InvalidateOptions& options) {
  const auto decide = [&](Item& item) -> Change {
    if (!item.found()) return Change::nothing(Outcome::kAbsent);
    if (options.cas && *options.cas != item.cas()) return Change::nothing(Outcome::kOtherCas);
    Change change = Change::value_of(item);
    if (options.empties) {
      change.flags = 0;
      change.expires_ms = kNever;
    } else {
      change.add(Part::old(0, item.value_bytes()));
    }
    if (options.expires_ms) change.expires_ms = *options.expires_ms;
    change.head = {.marks = {.is_stale = options.makes_stale}, .own_cas = options.own_cas};
    return change;
  };
  auto done = update(key, decide);
  if (done && done->outcome == Outcome::kAbsent) count(Count::kDeleteMisses);
  return done;
}

base::Expected<Done> Items::touch(std::string_view key, uint64_t expires_ms) {
  auto done = expire(key, expires_ms, {});
  if (done) count(done->outcome == Outcome::kDone ? Count::kTouchHits : Count::kTouchMisses);
  return done;
}

base::Expected<Done> Items::expire(std::string_view key, uint64_t expires_ms, const ExpireOptions& options) {
  const auto decide = [&](Item& item) -> Change {
    if (!item.found()) return Change::nothing(Outcome::kAbsent);
    const uint64_t is = item.expires_ms();
    // kNever is later than any.
    const bool is_later = is != kNever && (expires_ms == kNever || expires_ms > is);
    const bool is_sooner = expires_ms != kNever && (is == kNever || expires_ms < is);
    if ((options.if_never && is != kNever) || (options.if_ends && is == kNever) ||
        (options.if_later && !is_later) || (options.if_sooner && !is_sooner))
      return Change::nothing(Outcome::kUnmet);
    if (is == expires_ms) return Change::nothing(Outcome::kDone);
    Change change = Change::same_as(item);
    change.expires_ms = expires_ms;
    return change;
  };
  auto done = update(key, decide, nullptr, !options.leaves_no_trace);
  if (!done || done->outcome == Outcome::kAbsent || options.leaves_no_trace) return done;
  if (const auto store_key = StoreKey::of(key, pool_))
    shared_->hot_.used(hash_of(store_key->text()), now_s());
  return done;
}

base::Expected<void> Items::flush() {
  const Isolation::Call call(shared_->isolation_, calls_);
  count(Count::kFlushes);
  return shared_->flush(session_);
}

base::Expected<void> Items::flush_at(uint64_t at_ms) {
  const Isolation::Call call(shared_->isolation_, calls_);
  count(Count::kFlushes);
  if (at_ms <= clock().now_ms()) return shared_->flush(session_);
  shared_->flush_if_due(session_);
  return shared_->flush_at(session_, at_ms);
}

void Items::keep_flush_to_come() {
  if (shared_->flush_at_ms() == 0) return;
  const Isolation::Call call(shared_->isolation_, calls_);
  shared_->keep_flush_to_come(session_);
}

}  // namespace server
