// Flushes: at once, at a time, of a store that is full, through restarts, and beside writers.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kv/testing/jitter_device.h"
#include "kv/testing/medium_device.h"
#include "server/items/flush_record.h"
#include "server/items/items.h"
#include "server/items/test_items.h"

namespace server {
namespace {

class FlushTest : public ItemsTest {
 protected:
  explicit FlushTest(storage::Device* own_device = *storage::make_memory_device(64 << 20))
      : ItemsTest(own_device) {}
  void flush() {
    auto flushed = items.flush();
    ASSERT_TRUE(flushed) << flushed.error().message;
  }
  void flush_after(uint64_t ms) {
    auto flushed = items.flush_at(now_ms() + ms);
    ASSERT_TRUE(flushed) << flushed.error().message;
  }
};

TEST_F(FlushTest, AllThatWasSetIsGoneAndWhatComesAfterStays) {
  set("a", "1", {.expires_ms = now_ms() + 1000});
  set("b", "1");
  set("number", "5");
  const uint64_t cas = cas_of("a");
  flush();
  for (const char* key : {"a", "b", "number"}) EXPECT_EQ(get(key), "(none)");
  EXPECT_EQ(set("a", "2", {.mode = Mode::kReplace}), Outcome::kAbsent);
  EXPECT_EQ(set("a", "2", {.cas = cas}), Outcome::kAbsent);
  EXPECT_EQ(set("a", "2", {.mode = Mode::kAppend}), Outcome::kAbsent);
  EXPECT_EQ(of(items.remove("b")).outcome, Outcome::kAbsent);
  EXPECT_EQ(of(items.add("number", {})).outcome, Outcome::kAbsent);
  EXPECT_EQ(of(items.touch("b", kNever)).outcome, Outcome::kAbsent);
  EXPECT_FALSE(of(items.fetch("b", {})).item.found());
  const std::string_view keys[] = {"a", "b"};
  std::vector<base::Expected<Item>> results(2);
  EXPECT_EQ(get_some(keys, results), 2u);
  EXPECT_FALSE(results[0]->found() || results[1]->found());
  EXPECT_EQ(set("a", "2", {.mode = Mode::kAdd}), Outcome::kDone);
  EXPECT_EQ(set("b", "2"), Outcome::kDone);
  EXPECT_EQ(get("a"), "2");
  EXPECT_EQ(get("b"), "2");
  EXPECT_EQ(shared.counts()[Count::kFlushes], 1u);
}

TEST_F(FlushTest, IsKeptThroughRestarts) {
  set("a", "1");
  set("b", "1");
  flush();
  set("b", "2");
  reopen();
  EXPECT_EQ(get("a"), "(none)");
  EXPECT_EQ(get("b"), "2");
  flush();
  set("c", "3");
  reopen();
  reopen();
  EXPECT_EQ(get("b"), "(none)");
  EXPECT_EQ(get("c"), "3");
}

TEST_F(FlushTest, AtATimeTakesAllThatWasSetBefore) {
  set("before", "1");
  flush_after(10'000);
  EXPECT_EQ(shared.flush_at_ms(), now_ms() + 10'000);
  set("between", "1");
  clock.move(9'999);
  EXPECT_EQ(get("before"), "1");
  EXPECT_EQ(get("between"), "1");
  clock.move(1);
  set("after", "1");
  EXPECT_EQ(get("before"), "(none)");
  EXPECT_EQ(get("between"), "(none)");
  EXPECT_EQ(get("after"), "1") << "it came when the time was there";
  EXPECT_EQ(shared.flush_at_ms(), 0u);
  clock.move(100'000);
  EXPECT_EQ(get("after"), "1");
}

// Each of the calls may be the first that comes.
TEST_F(FlushTest, WhoeverComesFirstMakesTheOneThatIsDue) {
  const auto expect_flush = [&](const char* name, auto call) {
    set("key", "1");
    flush_after(10);
    clock.move(10);
    call();
    EXPECT_EQ(shared.flush_at_ms(), 0u) << name;
    EXPECT_EQ(get("other"), "(none)") << name;
  };
  set("other", "1");
  expect_flush("get", [&] { EXPECT_EQ(get("key"), "(none)"); });
  expect_flush("fetch", [&] { EXPECT_FALSE(of(items.fetch("key", {})).item.found()); });
  expect_flush("remove", [&] { EXPECT_EQ(of(items.remove("key")).outcome, Outcome::kAbsent); });
  expect_flush("update", [&] { EXPECT_EQ(of(items.touch("key", kNever)).outcome, Outcome::kAbsent); });
  expect_flush("add", [&] { EXPECT_EQ(set("key", "2", {.mode = Mode::kAdd}), Outcome::kDone); });
  expect_flush("many", [&] {
    const std::string_view keys[] = {"key"};
    std::vector<base::Expected<Item>> results(1);
    EXPECT_EQ(get_some(keys, results), 1u);
    EXPECT_FALSE(results[0]->found());
  });
}

TEST_F(FlushTest, OneThatIsToComeIsKeptThroughRestarts) {
  set("first", "1");
  flush_after(10'000);
  reopen();
  EXPECT_EQ(get("first"), "1") << "nothing was flushed so far";
  set("second", "1");
  clock.move(9'000);
  reopen();
  EXPECT_EQ(get("first"), "1");
  clock.move(1'000);
  reopen();
  EXPECT_EQ(get("first"), "(none)");
  EXPECT_EQ(get("second"), "(none)");
  set("third", "1");
  reopen();
  EXPECT_EQ(get("third"), "1") << "it was made once";
}

TEST_F(FlushTest, TheLastOneCounts) {
  set("old", "1");
  flush();
  set("key", "1");
  flush_after(10'000);
  flush_after(50'000);
  reopen();
  clock.move(10'000);
  EXPECT_EQ(get("key"), "1");
  EXPECT_EQ(get("old"), "(none)") << "what was flushed before stays so";
  flush();
  set("key", "2");
  clock.move(100'000);
  EXPECT_EQ(get("key"), "2") << "a flush at once ended the one that was to come";
  ASSERT_TRUE(items.flush_at(now_ms()));
  EXPECT_EQ(get("key"), "(none)");
  EXPECT_EQ(shared.flush_at_ms(), 0u);
}

TEST_F(FlushTest, AFullStoreIsFlushedAndTakesItemsAgain) {
  const std::string value(50'000, 'v');
  int count = 0;
  while (items.set("key" + std::to_string(count), bytes_of(value))) ++count;
  ASSERT_GT(count, 500);
  flush();
  const int new_count = count * 9 / 10;
  for (int i = 0; i < new_count; ++i)
    ASSERT_EQ(set("new" + std::to_string(i), value), Outcome::kDone) << i << " of " << count;
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(get("key" + std::to_string(i)), "(none)") << i;
    for (int i = 0; i < new_count; ++i) ASSERT_TRUE(get("new" + std::to_string(i)) == value) << i;
    reopen();
  }
  store->verify();
}

TEST_F(FlushTest, ARecordThatIsDamagedIsRefused) {
  items.close();
  shared.close();
  kv::Session session;
  ASSERT_TRUE(session.open(*store));
  ASSERT_TRUE(session.put(std::string_view("\0\1flush", 7), bytes_of("short")));
  EXPECT_EQ(shared.open(*store, {}).error().number, EBADMSG);
  ASSERT_TRUE(session.remove(std::string_view("\0\1flush", 7)));
  session.close();
  EXPECT_EQ(shared.open(*store, {.value_bytes_max = kMaxValueBytes + 1}).error().number, EINVAL);
  ASSERT_TRUE(shared.open(*store, {}));
  ASSERT_TRUE(items.open(shared));
}

class CacheFlushTest : public FlushTest {
 protected:
  void SetUp() override {
    auto made = kv::Store::make(*device, {.segment_bytes = 1 << 20, .is_cache = true});
    ASSERT_TRUE(made) << made.error().message;
    open();
  }
};

// A start reads the record of the flush, so the cache keeps the record when its segment goes, but with another version: that of the copying, not
// of the flush.
TEST_F(CacheFlushTest, WhatHasComeSinceStaysThroughRestarts) {
  const std::string value(20'000, 'v');
  set("a", "1");
  flush();
  reopen();
  int count = 0;
  for (; store->counts().collected.dropped_records == 0; ++count) {
    ASSERT_LT(count, 20'000);
    set("key" + std::to_string(count), value);
    if (count % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::string key = "key" + std::to_string(count / 2);
  ASSERT_TRUE(get(key) == value);
  reopen();
  EXPECT_TRUE(get(key) == value);
  EXPECT_EQ(get("a"), "(none)");
}

TEST_F(CacheFlushTest, OneThatIsToComeIsKeptThoughTheCacheHasDroppedWhatSaysSo) {
  const std::string value(20'000, 'v');
  set("a", "1");
  flush_after(10'000);
  for (int i = 0; of(items.look("a")).found(); ++i) {
    ASSERT_LT(i, 20'000);
    set("key" + std::to_string(i), value);
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  items.keep_flush_to_come();
  set("b", "1");
  reopen();
  EXPECT_EQ(shared.flush_at_ms(), now_ms() + 10'000);
  EXPECT_EQ(get("b"), "1");
  clock.move(10'000);
  EXPECT_EQ(get("b"), "(none)");
  items.keep_flush_to_come();
  EXPECT_EQ(shared.flush_at_ms(), 0u) << "it was made once";
}

// A process that ends at once, without closing anything: the next one finds the medium as it was.
class SuddenEndTest : public FlushTest {
 protected:
  SuddenEndTest() : FlushTest(new kv::MediumDevice(std::vector<std::byte>(64 << 20))) {}
  void end_suddenly() {
    std::vector<std::byte> medium = static_cast<kv::MediumDevice*>(device)->medium();
    close();
    device->close();
    device = new kv::MediumDevice(std::move(medium));
    open();
  }
};

TEST_F(SuddenEndTest, AFlushThatHasReturnedIsKept) {
  set("a", "1");
  set("b", "1");
  end_suddenly();
  EXPECT_EQ(get("a"), "1");
  flush();
  set("b", "2");
  end_suddenly();
  EXPECT_EQ(get("a"), "(none)");
  EXPECT_EQ(get("b"), "2");
  flush_after(10'000);
  set("c", "1");
  end_suddenly();
  EXPECT_EQ(shared.flush_at_ms(), now_ms() + 10'000);
  EXPECT_EQ(get("a"), "(none)");
  EXPECT_EQ(get("c"), "1");
  clock.move(10'000);
  EXPECT_EQ(get("c"), "(none)");
  set("d", "1");
  end_suddenly();
  EXPECT_EQ(get("c"), "(none)");
  EXPECT_EQ(get("d"), "1") << "it was made once";
}

// A new value would repair the record, but nobody can give its key on a command line, and the server that could write it does not start.
TEST_F(SuddenEndTest, OfADamagedRecordItIsSaidWhatToDo) {
  flush();
  close();
  std::vector<std::byte> medium = static_cast<kv::MediumDevice*>(device)->medium();
  const size_t at = kv::text_of(medium).find(kFlushKey);
  ASSERT_NE(at, std::string_view::npos);
  medium[at + kFlushKey.size()] ^= std::byte{1};
  device->close();
  device = new kv::MediumDevice(std::move(medium));
  auto opened = kv::Store::open(*device, {.durability = kv::Durability::kNone, .clock = &clock});
  ASSERT_TRUE(opened) << opened.error().message;
  const auto shared_opened = shared.open(**opened, {});
  EXPECT_TRUE((*opened)->close());
  ASSERT_FALSE(shared_opened);
  EXPECT_TRUE(std::string_view(shared_opened.error().message).contains("load it into a new one"))
      << shared_opened.error().message;
}

// A writer finds what it sets after a flush has returned; what it set before a flush began nobody finds afterwards, and an append carries none
// of it over.
class Writer {
 public:
  Writer(SharedItems& shared, const std::string& name, const std::atomic<uint64_t>& begun,
         const std::atomic<uint64_t>& ended)
      : shared_(shared), name_(name), begun_(begun), ended_(ended) {}

  void run(const std::atomic<bool>& stops) {
    ASSERT_TRUE(items_.open(shared_));
    while (!stops && !testing::Test::HasFailure()) write_and_look();
    items_.close();
  }

 private:
  void write_and_look() {
    const uint64_t ended_first = ended_;
    const std::string number = std::to_string(begun_after_.size());
    EXPECT_TRUE(items_.set("key" + name_, bytes_of(number)));
    EXPECT_TRUE(
        items_.set("log" + name_, bytes_of("," + number), {.mode = Mode::kAppend, .makes_until_ms = kNever}));
    // Flushes with higher numbers have begun afterwards.
    begun_after_.push_back(begun_);
    const uint64_t ended_before = ended_;
    auto key = items_.get("key" + name_), log = items_.get("log" + name_);
    ASSERT_TRUE(key && log);
    if (begun_ == ended_first) {
      EXPECT_TRUE(key->found() && log->found()) << "no flush has begun since before";
    }
    if (key->found()) {
      EXPECT_EQ(text_of(*key), number);
      EXPECT_LE(ended_before, begun_after_.back());
    }
    if (!log->found()) return;
    const uint64_t first = std::stoull(text_of(*log).substr(1));
    std::string all;
    for (uint64_t i = first; i < begun_after_.size(); ++i) all += "," + std::to_string(i);
    EXPECT_EQ(text_of(*log), all);
    EXPECT_LE(ended_before, begun_after_[first]) << text_of(*log);
  }
  static std::string text_of(const Item& item) { return std::string(kv::text_of(item.value())); }

  SharedItems& shared_;
  const std::string name_;
  const std::atomic<uint64_t>&begun_, &ended_;
  Items items_;
  std::vector<uint64_t> begun_after_;
};

// On a device whose requests take a while: so much happens between the steps of a flush, and of an append.
class SlowFlushTest : public FlushTest {
 protected:
  SlowFlushTest() : FlushTest(new kv::JitterDevice(*storage::make_memory_device(64 << 20), 1)) {}
};

TEST_F(SlowFlushTest, BesideWriters) {
  static_cast<kv::JitterDevice*>(device)->set_slow_of_256(128);
  reopen();
  constexpr int kWriters = 3, kFlushes = 100;
  std::atomic<uint64_t> begun{0}, ended{0};
  std::atomic<bool> stops{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kWriters; ++t)
    threads.emplace_back([&, t] { Writer(shared, std::to_string(t), begun, ended).run(stops); });
  for (int i = 0; i < kFlushes; ++i) {
    ++begun;
    EXPECT_TRUE(items.flush());
    ++ended;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stops = true;
  for (std::thread& thread : threads) thread.join();
  flush();
  for (int t = 0; t < kWriters; ++t) EXPECT_EQ(get("log" + std::to_string(t)), "(none)");
}

}  // namespace
}  // namespace server
