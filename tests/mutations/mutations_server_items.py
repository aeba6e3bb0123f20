"""Breakages of src/server/items: items that are lost or come back, changes that are not atomic, numbers and times read wrongly."""

CHANGE = "src/server/items/change.h"
EXPIRY = "src/server/items/expiry.cc"
HOT = "src/server/items/hot_table.cc"
ISOLATION, ISOLATION_H = "src/server/items/isolation.cc", "src/server/items/isolation.h"
ITEM = "src/server/items/item.cc"
ITEMS = "src/server/items/items.cc"
ITEMS_NUMBERS = "src/server/items/items_numbers.cc"
ITEMS_UPDATE = "src/server/items/items_update.cc"
NUMBERS = "src/server/items/numbers.cc"
SHARED = "src/server/items/shared_items.cc"
UPDATE_LOCKS = "src/server/items/update_locks.cc"
WALK = "src/server/items/walk.cc"


def mutation(name, *patches, test="server_items_test", gtest_filter="*"):
    return {"name": name, "test": (test, gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # Expiry
    mutation("31 days from now are absolute no more", (EXPIRY, "kMaxRelativeSeconds = 30", "kMaxRelativeSeconds = 31"), gtest_filter="ExpiryTest.*"),
    mutation("a time that is past is never", (EXPIRY, "std::clamp(at_ms, static_cast<int64_t>(kEnded)", "std::clamp(at_ms, static_cast<int64_t>(kNever)"), gtest_filter="ExpiryTest.*"),
    mutation("a negative exptime is relative", (EXPIRY, "  if (exptime < 0) return kEnded;\n", ""), gtest_filter="ExpiryTest.*"),
    mutation("seconds that are left are rounded down", (EXPIRY, "(ms + kMsPerSecond - 1) / kMsPerSecond", "ms / kMsPerSecond"), gtest_filter="ExpiryTest.*"),

    # What a cache drops
    mutation("an item that was dropped before it was read is an error", (ITEM, "  if (!read && read.error().number == ESTALE) return Item();\n", ""), gtest_filter="CacheItemsTest.*"),
    mutation("a change of what was dropped is an error", (ITEMS_UPDATE, "  if (!put && put.error().number == ESTALE) return std::nullopt;\n", ""), gtest_filter="CacheItemsTest.*"),

    # Numbers
    mutation("a number with something behind it is one", (NUMBERS, "  if (!value.empty() && !is_blank(value.front())) return std::nullopt;\n", ""), gtest_filter="NumbersTest.*"),
    mutation("a decrease wraps", (ITEMS_NUMBERS, "number - std::min(number, options.delta)", "number - options.delta"), gtest_filter="ItemsNumbersTest.*"),
    mutation("a number that gets shorter leaves its value shorter", (ITEMS_NUMBERS, "    if (length < item.value_bytes()) change.add", "    if (false) change.add"), gtest_filter="ItemsNumbersTest.*"),
    mutation("an integer wraps", (ITEMS_NUMBERS, "    if (__builtin_add_overflow(*number, delta, &added.number)) return Change::nothing(Outcome::kOverflow);\n", "    static_cast<void>(__builtin_add_overflow(*number, delta, &added.number));\n"), gtest_filter="ItemsNumbersTest.*"),
    mutation("a number is added to whatever its cas is", (ITEMS_NUMBERS, "options.cas != 0 && options.cas != item.cas()", "false"), gtest_filter="ItemsNumbersTest.*"),

    # Items as they lie in the store
    mutation("a client's key looks like the server's own", (ITEM, "  if (!key.empty() && key.front() != kEscape) return own;\n", "  if (!key.empty()) return own;\n"), gtest_filter="StoreKeyTest.*"),
    mutation("an item of a later version is read", (ITEM, "  if ((marks & ~kKnown) != 0) return std::nullopt;\n", ""), gtest_filter="ItemHeadTest.*"),
    mutation("a cas that is cut short is read", (ITEM, "  if (from.size() < kMaxBytes) return std::nullopt;\n", ""), gtest_filter="ItemHeadTest.*"),

    # Updates
    mutation("an update writes whatever is there by now", (ITEMS_UPDATE, "{.when = item.found() ? kv::When::kIfVersion : kv::When::kIfAbsent,", "{.when = kv::When::kAlways,"), (UPDATE_LOCKS, "    waiting_.append(waiter);\n", "    return;\n"), gtest_filter="ItemsThreadsTest.*"),
    mutation("an update that was refused counts as made", (ITEMS_UPDATE, "  if (put->outcome != kv::Changed::Outcome::kDone) return std::nullopt;\n", ""), gtest_filter="ItemsThreadsTest.*"),
    mutation("two hold the lock of a key", (UPDATE_LOCKS, "    waiting_.append(waiter);\n", "    return;\n"), gtest_filter="UpdateLocksTest.*"),
    mutation("who waits for the lock of a key is forgotten", (UPDATE_LOCKS, "    if (waiting_.empty())\n      is_taken_ = false;", "    if (waiting_.empty() || true)\n      is_taken_ = false;"), gtest_filter="UpdateLocks*"),
    mutation("who sets without looking is kept out of no fight", ("src/server/items/update_locks.h", "fights.load(std::memory_order_relaxed) != 0;", "fights.load(std::memory_order_relaxed) > 1'000'000;"), gtest_filter="ItemsFightTest.*"),
    mutation("what leaves no trace is kept by a cache", (ITEMS, "find(key, marks_used);", "find(key, true);"), gtest_filter="CacheItemsTest.WhatLeaves*"),
    mutation("a value that is given back by a set was not got", (ITEMS, "  if (done && before != nullptr) count_get(before->found());\n", ""), gtest_filter="ItemsTest.SetsThatKeep*"),
    mutation("a value that is given back by a removal was not got", (ITEMS, "    if (before != nullptr) count_get(before->found());\n  }\n", "  }\n"), gtest_filter="ItemsTest.SetsThatKeep*"),
    mutation("what is to end at another time is kept by a cache for having been looked at", (ITEMS_UPDATE, "read_item(store_key->text(), marks_used);", "read_item(store_key->text(), marks_used || true);"), gtest_filter="CacheItemsTest.WhatLeaves*"),
    mutation("what is touched was not used", (ITEMS, "  if (const auto store_key = StoreKey::of(key, pool_))\n    shared_->hot_.used(hash_of(store_key->text()), now_s());\n", ""), gtest_filter="ItemsMetaTest.ATouch*"),
    mutation("what is touched and returned was not used", (ITEMS, "  const bool marks_used = !options.leaves_no_trace && (options.is_get || options.expires_ms);\n", "  const bool marks_used = !options.leaves_no_trace && options.is_get;\n"), gtest_filter="ItemsMetaTest.ATouch*"),
    mutation("what is longer than the server takes is stored", (ITEMS_UPDATE, "  if (bytes > std::max(shared_->options_.value_bytes_max, item.value_bytes()))\n    return Done{.outcome = Outcome::kTooLong};\n", ""), gtest_filter="Items*Test.*"),
    mutation("what is longer than the server takes stays as it is", (ITEMS_UPDATE, "std::max(shared_->options_.value_bytes_max, item.value_bytes())", "shared_->options_.value_bytes_max"), gtest_filter="ItemsTest.WhatIsLonger*"),
    mutation("parts of a long value are copied from its beginning", (ITEMS_UPDATE, "copy(item, part, at, to)", "copy(item, part, 0, to)"), gtest_filter="ItemsTest.ValuesInPieces*"),
    mutation("a touch gives another cas", (CHANGE, "    change.head.own_cas = item.cas();\n", ""), gtest_filter="Items*Test.*"),
    mutation("a prepend appends", (ITEMS, "    if (options.mode == Mode::kPrepend) change.add(Part::of(value));\n", ""), (ITEMS, "    if (options.mode == Mode::kAppend) change.add", "    change.add"), gtest_filter="ItemsTest.Appends*"),
    mutation("any lower cas is taken", (ITEMS, "!(options.takes_lower_cas && has_lower_cas", "!(has_lower_cas"), gtest_filter="Items*Test.*"),
    mutation("two claim an item", (ITEMS, "!item.marks().is_claimed && (", "("), gtest_filter="Items*Test.*"),
    mutation("never is sooner than any time", (ITEMS, "const bool is_sooner = expires_ms != kNever && (is == kNever ||", "const bool is_sooner = (is == kNever ||"), gtest_filter="ItemsModelTest.*"),
    mutation("a range is written without what was behind it", (ITEMS, "    if (end < old) change.add(Part::old(end, old - end));\n", ""), gtest_filter="ItemsTest.SetsRanges"),
    mutation("what was stored anew counts as used", (HOT, "(was_used ? kUsed : 0)", "kUsed"), gtest_filter="HotTableTest.*"),
    mutation("what is used after 2106 was used in 1970", (HOT, "static_cast<int32_t>(static_cast<uint32_t>(now_s - word));", "static_cast<int64_t>(now_s - (word & kSeconds));"), (HOT, "std::max(since_s, 0)", "std::max<int64_t>(since_s, 0)"), gtest_filter="HotTableTest.GoesOn*"),
    mutation("an item is taken for another that was used", (HOT, "  if (word == 0 || tag_of(word) != tag_of(hash)) return {};\n", ""), gtest_filter="HotTableTest.*"),

    # Those who have all items to themselves
    mutation("who is alone does not wait for the calls of others", (ISOLATION, "  isolation.drain();\n", ""), gtest_filter="All/IsolationTest.*"),
    mutation("calls begin beside who is alone", (ISOLATION_H, "if (isolation.is_shut_.load(std::memory_order_acquire)) [[unlikely]]", "if (false) [[unlikely]]"), gtest_filter="All/IsolationTest.*"),
    mutation("who is alone waits for himself", (ISOLATION, "  if (is_alone()) return &place;\n", ""), gtest_filter="All/IsolationTest.Who*"),
    mutation("calls that were let in are not waited for", (ISOLATION, "  if (admitted_ != 0) return false;\n", ""), gtest_filter="All/IsolationTest.*"),
    mutation("the last call wakes nobody who waits to be alone", (ISOLATION_H, "          isolation_.tell_end(0);\n", "          static_cast<void>(0);\n"), gtest_filter="All/IsolationTest.*"),
    mutation("keys are looked up together in the middle of a transaction", (ITEMS, "    const Isolation::Call call(shared_->isolation_, calls_);\n    shared_->flush_if_due(session_);\n    found_count", "    shared_->flush_if_due(session_);\n    found_count"), gtest_filter="ItemsAloneTest.OthersSee*"),
    mutation("a walk begins in the middle of a transaction", (WALK, "  const Isolation::Call call(items.shared_->isolation_, items.calls_);\n", ""), gtest_filter="ItemsAloneTest.OthersSee*"),

    # Flushes
    mutation("flushed items come back with the server", (SHARED, "  store.forget_below(record.floor);\n", ""), gtest_filter="FlushTest.*"),
    mutation("what a cache keeps of a flush flushes what came after it", (SHARED, "      if (store.identity().is_cache) static_cast<void>(write(session, record));\n", ""), gtest_filter="CacheFlushTest.*"),
    mutation("a flush is not kept", (SHARED, "  auto floor = write(session, {});\n", "  base::Expected<uint64_t> floor = next_sequence();\n"), gtest_filter="SuddenEndTest.*"),
    mutation("a flush that is to come flushes at the next start", (SHARED, ".floor = std::max(store.floor(), kNoFloor), .at_ms", ".floor = 0, .at_ms"), gtest_filter="FlushTest.*"),
    mutation("of a damaged record of flushes only that is said", (SHARED, "found.error().number == EBADMSG ? unreadable() : found.error()", "found.error()"), gtest_filter="SuddenEndTest.OfADamaged*"),
    mutation("a flush that is to come goes with what a cache drops", (SHARED, "  if (!found || found->found()) return;\n", "  if (!found || found->found() || true) return;\n"), gtest_filter="CacheFlushTest.OneThat*"),
    mutation("a flush that is to come is forgotten with the server", (SHARED, "  flush_at_ms_.store(record.at_ms, std::memory_order_relaxed);\n", ""), gtest_filter="FlushTest.*"),
    mutation("a full store cannot be flushed", (SHARED, "  if (!floor && floor.error().number == ENOSPC) {", "  if (false) {"), gtest_filter="FlushTest.AFull*"),
    mutation("a flush at once leaves the one that is to come", (SHARED, "  store_->forget_below(*floor);\n  flush_at_ms_.store(0, std::memory_order_relaxed);\n", "  store_->forget_below(*floor);\n"), gtest_filter="FlushTest.TheLast*"),
    mutation("an update begun before a flush ends after it", (SHARED, "  UpdateLocks::AllHeld held(locks_);\n  return flush_under_locks(session);\n", "  return flush_under_locks(session);\n"), gtest_filter="SlowFlushTest.*"),
    mutation("a flush that is due waits for a get", (ITEMS, "base::Expected<StoreKey> Items::begin(std::string_view key) {\n  shared_->flush_if_due(session_);\n", "base::Expected<StoreKey> Items::begin(std::string_view key) {\n"), gtest_filter="FlushTest.*"),
    mutation("a flush that is due waits for more than a walk", (WALK, "  items.shared_->flush_if_due(items.session_);\n", ""), gtest_filter="WalkTest.*"),
    mutation("a walk tells the version for the cas", (WALK, "head->own_cas != 0 ? head->own_cas : found.version", "found.version"), gtest_filter="WalkTest.*"),
]
