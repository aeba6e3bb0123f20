// For tests: the load on a store whose history is recorded (history.h). Clients, whose calls are recorded, work on a few keys. A Churn
// changes many other keys, so that the index grows and shrinks around the few all the time, and the log fills.
//
// All keys have their home in one region of the index's tables. Some 4,200 of them fill the region and split its table; of keys in all
// regions it would take 30,000. Some keys of a Churn are in the next region, because a table in which a single region is full is not
// split: its hashes look as if they were not random.
#pragma once
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/mix.h"
#include "kv/index/table.h"
#include "kv/multi_put.h"
#include "kv/store.h"
#include "kv/testing/history.h"
#include "task/scheduler.h"

namespace kv {

// A read of a record of 16 grains or more may go beyond the record's end, into bytes that another thread writes at that moment. The reader
// ignores those bytes, but the thread sanitizer cannot know that.
#if __has_feature(thread_sanitizer)
inline constexpr uint64_t kLongestValueBytes = 7'000;
#else
inline constexpr uint64_t kLongestValueBytes = 40'000;
#endif

// The id decides all bytes of the value and its length, so that id_of() can tell whether a value is whole.
inline std::vector<std::byte> value_of(uint64_t id) {
  const uint64_t drawn = base::mix(id);
  const uint64_t longest = drawn % 32 == 0 ? kLongestValueBytes : drawn % 4 == 0 ? 3'000 : 200;
  std::vector<std::byte> value(sizeof id + (drawn >> 32) % longest);
  for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<std::byte>((id >> i % 8 * 8) + i / 8);
  return value;
}
// The id of a value; 0: these bytes are no value.
inline uint64_t id_of(Bytes value) {
  uint64_t id = 0;
  if (value.size() < sizeof id) return 0;
  memcpy(&id, value.data(), sizeof id);
  return std::ranges::equal(value, value_of(id)) ? id : 0;
}

// The first `count` keys that begin with `prefix` and have their home in this region.
inline std::vector<std::string> keys_of_region(const Store& store, const char* prefix, uint32_t region,
                                               size_t count) {
  std::vector<std::string> keys;
  for (uint64_t i = 0; keys.size() < count; ++i) {
    std::string key = prefix + std::to_string(i);
    if (region_of(home_of(hash_key(store.identity().secret, key).low)) == region)
      keys.push_back(std::move(key));
  }
  return keys;
}

// Makes calls, in one thread or task, and records what they return.
class Client {
 public:
  // `number` is unique among the clients of a history. Every third client makes hardly anything but gets.
  Client(StampClock& clock, const std::vector<std::string>& keys, uint32_t number, uint64_t seed)
      : clock_(clock),
        keys_(keys),
        next_value_(uint64_t{number} << 32),
        random_(base::mix(seed) ^ number),
        reads_(number % 3 == 0),
        seen_versions_(keys.size()) {}

  // Makes calls until there are `most` of them, or at least `least` and `enough` is set, or one ends with an error: then has_failed().
  void work(Session& session, size_t least, size_t most, const std::atomic<bool>& enough) {
    while (calls.size() < (enough.load(std::memory_order_relaxed) ? least : most) && step(session)) think();
  }
  bool has_failed() const { return failed_; }
  const base::Error& error() const { return error_; }

  // Gets all keys.
  void look(Session& session) {
    for (uint32_t key = 0; key < keys_.size() && get(session, key); ++key) continue;
  }

  std::vector<Call> calls;

 private:
  bool step(Session& session) {
    const auto key = static_cast<uint32_t>(random_() % keys_.size());
    const uint64_t drawn = random_() % 32;
    if (drawn < 13 || (reads_ && drawn < 31)) return get(session, key);
    if (drawn >= 30) return put_many(session);
    Call call = {.key = key, .kind = drawn < 17 ? Call::Kind::kRemove : Call::Kind::kPut};
    if (drawn < 15 || drawn >= 25)
      call.when = When::kAlways;
    else if (drawn < 21)
      call.when = When::kIfVersion;
    else
      call.when = drawn < 24 ? When::kIfAbsent : When::kIfPresent;
    if (call.when == When::kIfVersion) call.if_version = seen_versions_[key];
    return change(session, call);
  }

  bool get(Session& session, uint32_t key) {
    Call call = {.key = key, .began = clock_.stamp()};
    auto found = session.get(keys_[key]);
    call.ended = clock_.stamp();
    if (!found) return fail(found.error());
    think();  // meanwhile the session's other calls must not disturb what was found
    call.outcome = found->found() ? Changed::Outcome::kDone : Changed::Outcome::kAbsent;
    if (found->found()) {
      call.value = id_of(found->value());
      call.version = found->version();
      EXPECT_NE(call.value, 0u) << keys_[key] << " has " << found->value().size() << " bytes of no value";
    }
    return add(call);
  }

  bool change(Session& session, Call call) {
    const bool is_put = call.kind == Call::Kind::kPut;
    std::vector<std::byte> value;
    if (is_put) value = value_of(call.value = ++next_value_);
    call.began = clock_.stamp();
    const auto done =
        is_put ? session.put(keys_[call.key], value, {.when = call.when, .version = call.if_version})
               : session.remove(keys_[call.key], call.when, call.if_version);
    const uint64_t ended = clock_.stamp();
    if (done) {
      call.ended = ended;
      call.outcome = done->outcome;
      if (is_put || done->outcome != Changed::Outcome::kDone) call.version = done->version;
      return add(call);
    }
    // A call that was refused because the store is full has changed nothing.
    call.is_known = false;
    if (done.error().number != ENOSPC) calls.push_back(call);
    return fail(done.error());
  }

  // Puts random keys together, among them a key twice at times. Each put is recorded as a call of its own; all overlap.
  bool put_many(Session& session) {
    std::vector<Call> made(1 + random_() % 6);
    std::vector<std::vector<std::byte>> values;
    std::vector<MultiPut::Put> puts;
    for (Call& call : made) {
      call = {.key = static_cast<uint32_t>(random_() % keys_.size()),
              .kind = Call::Kind::kPut,
              .value = ++next_value_};
      call.when = When::kAlways;
      values.push_back(value_of(call.value));
    }
    for (size_t i = 0; i < made.size(); ++i) puts.push_back({.key = keys_[made[i].key], .value = values[i]});
    std::vector<base::Expected<Changed>> results(puts.size());
    for (Call& call : made) call.began = clock_.stamp();
    MultiPut::put(session, puts, results);
    std::optional<base::Error> error;
    for (size_t i = 0; i < made.size(); ++i) {
      made[i].is_known = results[i].has_value();
      if (results[i]) {
        made[i].ended = clock_.stamp();
        made[i].outcome = results[i]->outcome;
        made[i].version = results[i]->version;
        add(made[i]);
      } else {
        error = results[i].error();
        // A call that was refused because the store is full has changed nothing.
        if (error->number != ENOSPC) calls.push_back(made[i]);
      }
    }
    return error ? fail(*error) : true;
  }

  bool add(const Call& call) {
    calls.push_back(call);
    // One in four goes on with the version that it knew before, so that conditions fail at times.
    if (call.version != 0 && random_() % 4 != 0) seen_versions_[call.key] = call.version;
    return true;
  }
  bool fail(const base::Error& error) {
    failed_ = true;
    error_ = error;
    return false;
  }
  void think() {
    if (random_() % 8 != 0) return;
    if (task::in_task())
      task::yield();
    else
      sched_yield();
  }

  StampClock& clock_;
  const std::vector<std::string>& keys_;
  uint64_t next_value_;
  std::mt19937_64 random_;
  const bool reads_;
  std::vector<uint64_t> seen_versions_;
  bool failed_ = false;
  base::Error error_;
};

// Puts many keys and removes them again, round after round, and overwrites some large values. No client uses its keys.
class Churn {
 public:
  static constexpr size_t kKeys = 4'400, kKeysOfNextRegion = 500, kLargeKeys = 32;
  static constexpr uint64_t kLargeBytes = 16 << 10;

  // `is_lasting`: the test expects that no call fails and no key is lost.
  Churn(Store& store, uint32_t region, uint64_t seed, bool is_lasting)
      : keys_(keys_of_region(store, "churn", region, kKeys)),
        random_(seed),
        is_lasting_(is_lasting),
        large_(kLargeBytes) {
    const auto others = keys_of_region(store, "churn", next_region(region), kKeysOfNextRegion);
    keys_.insert(keys_.end(), others.begin(), others.end());
  }

  // Puts most of the keys, so that few more make the index grow.
  void fill(Session& session) {
    std::shuffle(keys_.begin(), keys_.end(), random_);
    for (size_t i = 0; i < kKeys + 150; ++i) static_cast<void>(change(session, keys_[i], true));
  }
  // Works until `stop` is set or a call fails. Sets `cycled` when all keys were put and removed once.
  void work(Session& session, const std::atomic<bool>& stop, std::atomic<bool>& cycled) {
    const bool first = is_lasting_ || random_() % 2 == 0;
    for (;;) {
      for (const bool puts : {first, !first}) {
        std::shuffle(keys_.begin(), keys_.end(), random_);
        for (const std::string& key : keys_) {
          if (stop.load(std::memory_order_relaxed) || !change(session, key, puts)) return;
          if (random_() % 4 == 0 && !overwrite(session)) return;
        }
      }
      cycled.store(true, std::memory_order_relaxed);
    }
  }

 private:
  bool change(Session& session, const std::string& key, bool puts) {
    const auto done =
        puts ? session.put(key, Bytes(large_).first(random_() % 400),
                           {.when = is_lasting_ && random_() % 2 == 0 ? When::kAlways : When::kIfAbsent})
             : session.remove(key);
    if (is_lasting_) {
      EXPECT_TRUE(done) << done.error().message;
      if (done) EXPECT_EQ(done->outcome, Changed::Outcome::kDone) << key;
    }
    return done.has_value();
  }
  bool overwrite(Session& session) {
    const auto done = session.put("large" + std::to_string(random_() % kLargeKeys),
                                  Bytes(large_).first(random_() % kLargeBytes));
    if (is_lasting_) EXPECT_TRUE(done) << done.error().message;
    return done.has_value();
  }

  std::vector<std::string> keys_;
  std::mt19937_64 random_;
  const bool is_lasting_;
  std::vector<std::byte> large_;
};

}  // namespace kv
