#include "kv/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "kv/clock.h"
#include "kv/test_store.h"
#include "storage/latency.h"

namespace kv {
namespace {

// Joined whatever fails.
struct Threads {
  std::atomic<bool> ends{false};
  std::vector<std::thread> all;
  ~Threads() {
    ends = true;
    for (auto& thread : all) thread.join();
  }
};

using Model = std::map<std::string, std::string>;

// A snapshot, what it has to hold, and what has come of it.
struct Watched {
  Snapshot snapshot;
  Model expected, seen;
  bool has_ended = false;
};

class SnapshotTest : public StoreTest {
 protected:
  explicit SnapshotTest(uint64_t bytes = 25 << 20) : StoreTest(bytes) {}
  void SetUp() override {
    make({.segment_bytes = 1 << 20});
    ASSERT_TRUE(reader.open(*store));
  }
  void TearDown() override { reader.close(); }

  void change(uint64_t keys, uint64_t most_bytes) {
    const std::string key = "key" + std::to_string(random() % keys);
    if (random() % 5 == 0) {
      EXPECT_EQ(remove(key) == Outcome::kDone, model.erase(key) == 1);
      return;
    }
    std::string value = key + "=" + std::to_string(number++);
    value.resize(value.size() + random() % most_bytes, static_cast<char>('a' + random() % 26));
    ASSERT_EQ(put(key, value), Outcome::kDone);
    model[key] = value;
  }
  std::unique_ptr<Watched> watch() {
    auto watched = std::make_unique<Watched>();
    auto opened = watched->snapshot.open(reader);
    EXPECT_TRUE(opened) << opened.error().message;
    watched->expected = model;
    return watched;
  }
  // One entry. False: it has ended, or was cancelled.
  bool step(Watched& watched) {
    Snapshot::Entry entry;
    auto next = watched.snapshot.next(entry);
    if (!next) {
      EXPECT_EQ(next.error().number, ECANCELED) << next.error().message;
      return false;
    }
    watched.has_ended = !*next;
    if (!*next) return false;
    std::string value(entry.value_bytes, '\0');
    auto read = watched.snapshot.read_value(0, std::as_writable_bytes(std::span(value)));
    if (!read) EXPECT_EQ(read.error().number, ECANCELED) << read.error().message;
    if (!read) return false;
    EXPECT_EQ(*read, value.size());
    if (!entry.is_large) EXPECT_TRUE(text_of(entry.value) == value);
    EXPECT_TRUE(watched.seen.emplace(entry.key, std::move(value)).second)
        << entry.key << " for the second time";
    return true;
  }
  static void expect_whole(const Watched& watched) {
    EXPECT_EQ(watched.seen.size(), watched.expected.size());
    for (const auto& [key, value] : watched.expected) {
      const auto at = watched.seen.find(key);
      ASSERT_TRUE(at != watched.seen.end()) << key;
      ASSERT_TRUE(at->second == value)
          << key << " is " << at->second.substr(0, 20) << ", not " << value.substr(0, 20);
    }
  }
  uint64_t kept() { return store->counts().log.kept_segments; }

  Session reader;
  Model model;
  std::mt19937_64 random{1};
  uint64_t number = 0;
};

TEST_F(SnapshotTest, HoldsWhatWasThereWhileEverythingChanges) {
  int whole = 0;
  for (int i = 0; i < 3000; ++i) change(1500, 5000);
  for (int turn = 0; turn < 40; ++turn) {
    auto watched = watch();
    while (step(*watched))
      for (uint64_t changes = random() % 4; changes > 0; --changes) change(1500, 5000);
    if (!watched->has_ended) continue;
    ++whole;
    expect_whole(*watched);
    Snapshot::Entry entry;
    EXPECT_FALSE(*watched->snapshot.next(entry)) << "ends more than once";
  }
  EXPECT_GT(whole, 30);
  EXPECT_GT(store->counts().collected.victims, 50u);
  EXPECT_EQ(kept(), 0u);
  store->compact();
  store->verify();
}

TEST_F(SnapshotTest, SeveralAtATimeEachOfItsOwnMoment) {
  std::unique_ptr<Watched> open[Snapshots::kMost];
  int whole = 0;
  for (int i = 0; i < 2000; ++i) change(800, 5000);
  for (int turn = 0; turn < 60'000; ++turn) {
    if (random() % 4 == 0) change(800, 5000);
    auto& one = open[random() % std::size(open)];
    if (one == nullptr) {
      one = watch();
      EXPECT_EQ(one->expected.size(), store->counts().index.entries);
      continue;
    }
    if (step(*one)) continue;
    if (one->has_ended) {
      expect_whole(*one);
      ++whole;
    }
    one = nullptr;
  }
  EXPECT_GT(whole, 40);
  for (auto& one : open)
    if (one == nullptr) one = watch();
  Snapshot more;
  EXPECT_EQ(more.open(reader).error().number, EBUSY);
  for (auto& one : open) one = nullptr;
  ASSERT_TRUE(more.open(reader));
  more.close();
  EXPECT_EQ(kept(), 0u);
}

class LargerSnapshotTest : public SnapshotTest {
 protected:
  LargerSnapshotTest() : SnapshotTest(81 << 20) {}
};

TEST_F(LargerSnapshotTest, WhileTheIndexGrowsAndShrinks) {
  const auto put_one = [&](int i) {
    const std::string key = "key" + std::to_string(i), value = std::to_string(number++);
    ASSERT_EQ(put(key, value), Outcome::kDone);
    model[key] = value;
  };
  for (int i = 0; i < 20'000; ++i) put_one(i);
  auto small = watch();
  const uint64_t tables = store->counts().index.tables;
  for (int i = 0; i < 80'000; ++i) {
    if (i % 5 == 0) step(*small);
    put_one(i);
  }
  EXPECT_GT(store->counts().index.tables, tables + 1);
  while (step(*small)) {
  }
  ASSERT_TRUE(small->has_ended);
  expect_whole(*small);
  auto grown = watch();
  const uint64_t most = store->counts().index.tables;
  for (int i = 0; i < 79'000; ++i) {
    if (i % 2 == 0) step(*grown);
    ASSERT_EQ(remove("key" + std::to_string(i)), Outcome::kDone);
    model.erase("key" + std::to_string(i));
    if (i % 16 == 0) put_one(i % 1000);
  }
  EXPECT_LT(store->counts().index.tables, most);
  while (step(*grown)) {
  }
  ASSERT_TRUE(grown->has_ended);
  expect_whole(*grown);
}

TEST_F(LargerSnapshotTest, LargeValuesThatAreReplacedAndRemoved) {
  const uint64_t most = 6 * store->identity().geometry.value_bytes_max();
  uint64_t whole = 0;
  for (int i = 0; i < 30; ++i) change(20, most);
  for (int i = 0; i < 200; ++i) {
    const std::string key = "small" + std::to_string(i);
    put(key, key);
    model[key] = key;
  }
  for (int turn = 0; turn < 25; ++turn) {
    auto watched = watch();
    for (int steps = 0; step(*watched); ++steps)
      if (steps % 8 == 0) change(20, most);
    if (!watched->has_ended) continue;
    expect_whole(*watched);
    ++whole;
  }
  EXPECT_GT(whole, 15u);
  EXPECT_GT(store->counts().collected.victims, 50u);
  EXPECT_EQ(kept(), 0u);
  for (const auto& [key, value] : model) EXPECT_EQ(remove(key), Outcome::kDone);
  store->compact();
  EXPECT_EQ(store->counts().index.entries, 0u) << "no piece is left";
  EXPECT_LE(store->counts().log.live_bytes, store->counts().log.tombstone_bytes);
}

TEST_F(SnapshotTest, AnEntryOfALargeValueIsReadInPartsWhileItIsReplaced) {
  std::string value(3'000'000, '\0');
  for (char& byte : value) byte = static_cast<char>(random());
  put("key", value, {.flags = 9});
  Snapshot snapshot;
  ASSERT_TRUE(snapshot.open(reader));
  put("key", "small");
  Snapshot::Entry entry;
  ASSERT_TRUE(*snapshot.next(entry));
  EXPECT_EQ(entry.key, "key");
  EXPECT_TRUE(entry.is_large && entry.value.empty());
  EXPECT_EQ(entry.value_bytes, value.size());
  EXPECT_EQ(entry.flags, 9u);
  EXPECT_EQ(remove("key"), Outcome::kDone);
  store->compact();
  std::string part(100'000, '\0');
  for (uint64_t at = 0; at < value.size() + 1; at += part.size()) {
    const auto read = snapshot.read_value(at, std::as_writable_bytes(std::span(part)));
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_TRUE(part.substr(0, *read) == value.substr(at, part.size()));
  }
  EXPECT_FALSE(*snapshot.next(entry));
  store->compact();
  EXPECT_EQ(store->counts().index.entries, 0u);
  snapshot.close();
}

TEST_F(SnapshotTest, ClosedEarlyGivesEverythingBack) {
  for (int i = 0; i < 2000; ++i) change(800, 4000);
  put("large", std::string(3'000'000, 'l'));
  {
    auto watched = watch();
    ASSERT_TRUE(step(*watched));
    for (int i = 0; i < 1000; ++i) change(800, 4000);
    EXPECT_EQ(remove("large"), Outcome::kDone);
    EXPECT_GT(kept(), 3u);
    store->compact();
    EXPECT_GT(store->counts().log.live_bytes, 3'000'000u);
  }
  EXPECT_EQ(kept(), 0u);
  store->compact();
  uint64_t bytes = 0;
  for (const auto& [key, value] : model) bytes += value.size() + 600;
  EXPECT_LT(store->counts().log.live_bytes - store->counts().log.tombstone_bytes, bytes + (1 << 20));
  EXPECT_EQ(store->counts().index.entries, model.size());
  store->verify();
}

TEST_F(SnapshotTest, IsCancelledWhenItsRoomIsNeeded) {
  for (int i = 0; i < 2000; ++i) change(800, 30'000);
  auto old = watch(), young = watch();
  ASSERT_TRUE(step(*old));
  ASSERT_TRUE(step(*young));
  // What was there and what is there now are too much together. No put fails, nor waits for one of them.
  for (int i = 0; i < 20'000; ++i) change(800, 30'000);
  for (auto* watched : {old.get(), young.get()}) {
    while (step(*watched)) {
    }
    EXPECT_FALSE(watched->has_ended);
    Snapshot::Entry entry;
    EXPECT_EQ(watched->snapshot.next(entry).error().number, ECANCELED) << "and stays so";
  }
  EXPECT_EQ(kept(), 0u);
  auto again = watch();
  while (step(*again)) {
  }
  EXPECT_TRUE(again->has_ended);
  expect_whole(*again);
}

TEST_F(SnapshotTest, LargeValuesThatItHoldsAreGivenUpForRoom) {
  auto watched = std::make_unique<Watched>();
  for (int i = 0; i < 4; ++i) put("key" + std::to_string(i), std::string(2'500'000, 'a'));
  ASSERT_TRUE(watched->snapshot.open(reader));
  ASSERT_TRUE(step(*watched));
  // With what was there before they would be over what may be live.
  for (int i = 0; i < 4; ++i)
    ASSERT_EQ(put("key" + std::to_string(i), std::string(2'500'000, 'b')), Outcome::kDone);
  while (step(*watched)) {
  }
  EXPECT_FALSE(watched->has_ended);
  EXPECT_EQ(get("key3"), std::string(2'500'000, 'b'));
}

TEST_F(SnapshotTest, WhatHasExpiredIsNotPartOfIt) {
  put("a", "now", {.expires_ms = now_ms() + 50});
  put("b", std::string(1'000'000, 'x'), {.expires_ms = now_ms() + 50});
  put("c", "later", {.expires_ms = now_ms() + 100'000});
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  Snapshot snapshot;
  ASSERT_TRUE(snapshot.open(reader));
  put("a", "new");
  put("b", "new");
  Snapshot::Entry entry;
  ASSERT_TRUE(*snapshot.next(entry));
  EXPECT_EQ(entry.key, "c");
  EXPECT_GT(entry.expires_ms, now_ms());
  EXPECT_FALSE(*snapshot.next(entry));
  snapshot.close();
}

// A put that has its sequence from before, and comes to the index afterwards.
TEST(LateSnapshotTest, APutThatIsUnderWayIsNotPartOfIt) {
  auto* const device = *storage::make_latency_device(*storage::make_memory_device(25 << 20),
                                                     {.megabytes_per_second = 2, .sleeps = true});
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  Store* const store = *Store::open(*device, {.durability = Durability::kNone, .stream_count = 2});
  Session session, other;
  ASSERT_TRUE(session.open(*store) && other.open(*store));
  ASSERT_TRUE(session.put("key", bytes_of("old")));
  ASSERT_TRUE(session.put("key2", bytes_of("old")));
  const std::string value(250'000, 'n');  // 0.1 s
  std::thread writer([&] {
    EXPECT_TRUE(other.put("key", bytes_of(value)));
    EXPECT_TRUE(other.put("new", bytes_of("new")));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  Snapshot snapshot;
  EXPECT_TRUE(snapshot.open(session));
  EXPECT_EQ(text_of(session.get("key")->value()), "old");
  writer.join();
  EXPECT_EQ(text_of(session.get("key")->value()), value);
  Snapshot::Entry entry;
  size_t count = 0;
  for (; *snapshot.next(entry); ++count) EXPECT_EQ(text_of(entry.value), "old") << entry.key;
  EXPECT_EQ(count, 2u);
  snapshot.close();
  session.close();
  other.close();
  ASSERT_TRUE(store->close());
  device->close();
}

// A device in memory that has something done by whoever reads, between the reads' beginning and end.
class BetweenDevice final : public storage::Device {
 public:
  explicit BetweenDevice(size_t bytes) : medium_(bytes) {
    capacity_bytes_ = bytes;
    counted_ = false;
  }

  void at_read(std::function<void()> act) {
    std::lock_guard scope(lock_);
    at_read_ = std::move(act);
  }

 private:
  class BetweenQueue final : public storage::Queue {
   public:
    BetweenQueue(BetweenDevice& device, size_t depth) : Queue(device, depth), own_(device) {}

   private:
    void do_start(storage::Io& io) override { started_.push_back(&io); }
    void do_poll(bool) override {
      const std::vector<storage::Io*> started = std::exchange(started_, {});
      if (!started.empty() && started[0]->operation == storage::Operation::kRead) own_.begin_read();
      for (storage::Io* io : started) {
        own_.perform(*io);
        complete(*io);
      }
    }
    void do_close() override { delete this; }

    BetweenDevice& own_;
    std::vector<storage::Io*> started_;
  };

  base::Expected<storage::Queue*> do_open_queue(size_t depth, const storage::QueueUse&) override {
    return new BetweenQueue(*this, depth);
  }
  void do_close() override { delete this; }

  void perform(storage::Io& io) {
    std::lock_guard scope(lock_);
    io.transferred_bytes = io.length_bytes;
    std::byte* at = &medium_[io.offset_bytes];
    for (uint32_t i = 0; i < io.segment_count; ++i) {
      const iovec& segment = io.segments[i];
      if (io.operation == storage::Operation::kRead)
        memcpy(segment.iov_base, at, segment.iov_len);
      else if (io.operation == storage::Operation::kWrite)
        memcpy(at, segment.iov_base, segment.iov_len);
      at += segment.iov_len;
    }
  }

  void begin_read() {
    std::function<void()> act;
    {
      std::lock_guard scope(lock_);
      act = at_read_;
    }
    if (act) act();
  }

  std::mutex lock_;
  std::function<void()> at_read_;
  std::vector<std::byte> medium_;
};

class BetweenTest : public SnapshotTest {
 protected:
  BetweenTest() {
    device->close();
    device = between;
  }
  // Calls act() once: at this thread's read after so many others of its, or at the first one of another thread.
  void at_read(int reads, const std::function<void()>& act) {
    between->at_read(
        [reads, act, self = std::this_thread::get_id(), count = std::make_shared<std::atomic<int>>(0)] {
          const bool is_own = std::this_thread::get_id() == self;
          if (is_own == (reads >= 0) && count->fetch_add(1) == std::max(reads, 0)) act();
        });
  }
  static constexpr int kOthersRead = -1;

  BetweenDevice* between = new BetweenDevice(25 << 20);
};

TEST_F(BetweenTest, WhatIsChangedWhileItIsReadComesLater) {
  constexpr int kKeys = 12;
  const auto key = [](const char* kind, int i) { return kind + std::to_string(i); };
  for (int turn = 0; turn < 20; ++turn) {
    const bool moves = turn % 2 != 0;
    store->compact();
    Model expected;
    for (int i = 0; i < kKeys; ++i) {
      expected[key("large", i)] = std::string(300'000, static_cast<char>('a' + turn));
      expected[key("small", i)] = key("small", turn);
    }
    // In segments of which a third is dead.
    for (int i = 0; const auto& [of, value] : expected) {
      put(of, value);
      put(key("other", i++ % 4), std::string(150'000, 'x'));
    }
    Snapshot snapshot;
    ASSERT_TRUE(snapshot.open(reader));
    std::thread compaction;
    // At one of the reads, another one in each turn: of some of the keys, of others before they are read, or of pieces.
    at_read(turn / 2, [&] {
      // The collector moves what is live, and then waits for who reads.
      if (moves) compaction = std::thread([&] { store->compact(); });
      if (moves) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      for (int i = 0; i < kKeys; ++i) {
        put(key("large", i), "new");
        EXPECT_EQ(remove(key("small", i)), Outcome::kDone);
      }
    });
    Model seen;
    Snapshot::Entry entry;
    while (*snapshot.next(entry)) {
      if (entry.key.starts_with("other")) continue;
      if (compaction.joinable()) compaction.join();
      if (entry.is_large) store->compact();
      std::string whole(entry.value_bytes, '\0');
      auto read = snapshot.read_value(0, std::as_writable_bytes(std::span(whole)));
      EXPECT_TRUE(read) << entry.key << ": " << read.error().message;
      EXPECT_TRUE(seen.emplace(entry.key, whole).second) << entry.key;
    }
    if (compaction.joinable()) compaction.join();
    EXPECT_TRUE(seen == expected) << turn;
    snapshot.close();
    EXPECT_EQ(kept(), 0u);
    between->at_read({});
  }
}

TEST_F(BetweenTest, WhatIsChangedWhileItsSegmentIsCollectedIsKept) {
  constexpr uint64_t kKeys = 1500;
  for (int i = 0; i < 5000; ++i) change(kKeys, 4000);
  int whole = 0;
  for (int turn = 0; turn < 10; ++turn) {
    store->compact();
    for (int i = 0; i < 700; ++i) change(kKeys, 4000);
    auto watched = watch();
    at_read(kOthersRead, [&] {
      for (int i = 0; i < 700; ++i) change(kKeys, 4000);
    });
    store->compact();
    between->at_read({});
    // What has been given back is written over.
    for (int i = 0; i < 20'000; ++i) change(kKeys, 4000);
    while (step(*watched)) {
    }
    if (!watched->has_ended) continue;
    expect_whole(*watched);
    ++whole;
  }
  EXPECT_GT(whole, 5);
  store->compact();
  store->verify();
}

// Each thread counts up two keys, one after the other; so far they are the same, or the first is one ahead. And a snapshot has no less than
// what a get before it found, and no more than one after it.
TEST_F(SnapshotTest, IsOfOneMomentForThreads) {
  constexpr int kThreads = 3;
  const auto key = [](int thread, int which, uint64_t salt) {
    return "t" + std::to_string(thread) + (which == 0 ? "a" : "b") + std::to_string(salt);
  };
  int whole = 0;
  {
    Threads threads;
    for (int t = 0; t < kThreads; ++t)
      threads.all.emplace_back([&, t] {
        Session own;
        ASSERT_TRUE(own.open(*store));
        for (uint64_t i = 1; !threads.ends; ++i)
          for (uint64_t salt = 0; salt < 200 && !threads.ends; ++salt)
            for (int which = 0; which < 2; ++which) {
              std::string value = std::to_string(i) + " ";
              value.resize(1 + i * 7919 % 4000 + value.size(), 'v');
              ASSERT_TRUE(own.put(key(t, which, salt), bytes_of(value)));
              if (salt % 16 == 0) ASSERT_TRUE(own.remove("other" + std::to_string(salt)));
            }
        own.close();
      });
    const auto number_of = [](Bytes value) { return std::stoull(text_of(value)); };
    const auto number_at = [&](const std::string& of) {
      auto found = session.get(of);
      EXPECT_TRUE(found) << found.error().message;
      return found->found() ? number_of(found->value()) : 0;
    };
    for (int turn = 0; turn < 3000 && whole < 60; ++turn) {
      std::map<std::string, uint64_t> before, seen;
      for (int t = 0; t < kThreads; ++t) before[key(t, 0, 7)] = number_at(key(t, 0, 7));
      Snapshot snapshot;
      ASSERT_TRUE(snapshot.open(reader));
      std::map<std::string, uint64_t> after = before;
      for (auto& [of, at] : after) at = number_at(of);
      Snapshot::Entry entry;
      base::Expected<bool> next;
      while ((next = snapshot.next(entry)) && *next)
        ASSERT_TRUE(seen.emplace(entry.key, number_of(entry.value)).second);
      if (!next) {
        ASSERT_EQ(next.error().number, ECANCELED) << next.error().message;
        continue;
      }
      ++whole;
      for (int t = 0; t < kThreads; ++t) {
        uint64_t last = ~uint64_t{0};
        for (uint64_t salt = 0; salt < 200; ++salt)
          for (int which = 0; which < 2; ++which) {
            const uint64_t now = seen[key(t, which, salt)];
            ASSERT_LE(now, last) << key(t, which, salt);
            ASSERT_TRUE(salt + static_cast<uint64_t>(which) == 0 || now + 1 >= seen[key(t, 0, 0)]);
            last = now;
          }
        ASSERT_LE(before[key(t, 0, 7)], seen[key(t, 0, 7)]);
        ASSERT_LE(seen[key(t, 0, 7)], after[key(t, 0, 7)]);
      }
    }
  }
  EXPECT_GE(whole, 20);
  EXPECT_EQ(kept(), 0u);
}

}  // namespace
}  // namespace kv
