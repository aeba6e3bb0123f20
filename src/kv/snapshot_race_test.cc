// What happens between a snapshot's own steps: changes by other threads, and by the collector.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "kv/testing/gate_device.h"
#include "kv/testing/test_snapshot.h"

namespace kv {
namespace {

// Threads that are joined whatever fails.
struct Threads {
  std::atomic<bool> ends{false};
  std::vector<std::thread> all;
  ~Threads() {
    ends = true;
    for (auto& thread : all) thread.join();
  }
};

// A put that takes its sequence before the snapshot, and reaches the index after it.
TEST(LateSnapshotTest, APutThatIsUnderWayIsNotPartOfIt) {
  auto* const device = new GateDevice(25 << 20);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  Store* const store = *Store::open(*device, {.durability = Durability::kNone, .stream_count = 2});
  Session session, other;
  ASSERT_TRUE(session.open(*store) && other.open(*store));
  ASSERT_TRUE(session.put("key", bytes_of("old")));
  ASSERT_TRUE(session.put("key2", bytes_of("old")));
  const std::string value(250'000, 'n');
  std::thread writer([&] {
    device->hold_next_write();
    EXPECT_TRUE(other.put("key", bytes_of(value)));
    EXPECT_TRUE(other.put("new", bytes_of("new")));
  });
  device->wait_until_held();
  Snapshot snapshot;
  EXPECT_TRUE(snapshot.open(session));
  EXPECT_EQ(text_of(session.get("key")->value()), "old");
  device->let_through();
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

// A device in memory that makes whoever reads do something between a read's beginning and its end.
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
  // Calls act() once: at this thread's read after `reads` others of its own, or at the first read of another thread (kOthersRead).
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
    // Into segments a third of which will be dead.
    for (int i = 0; const auto& [of, value] : expected) {
      put(of, value);
      put(key("other", i++ % 4), std::string(150'000, 'x'));
    }
    Snapshot snapshot;
    ASSERT_TRUE(snapshot.open(reader));
    std::thread compaction;
    // At a different read in each turn: of some of the keys, before others are read, or of pieces.
    at_read(turn / 2, [&] {
      // The collector moves what is live, and then waits for the reader.
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
    // Overwrites segments that were given back.
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

// Each thread counts up two keys, one after the other; at any moment they are the same, or the first is one ahead. And a snapshot has no less than
// what a get before it found, and no more than one after it finds.
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
    const auto number_of = [](Bytes value) { return std::stoull(std::string(text_of(value))); };
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
