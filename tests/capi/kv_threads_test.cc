// The key-value store's C API from many threads, and from C++.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "spillway/kv.h"

namespace {

iovec piece_of(const std::string& text) { return {const_cast<char*>(text.data()), text.size()}; }

spillway_kv_open_options fast_options() {
  spillway_kv_open_options options = {};
  options.struct_bytes = sizeof options;
  options.durability = SPILLWAY_KV_NONE;
  return options;
}

class ThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    const spillway_kv_open_options options = fast_options();
    ASSERT_EQ(spillway_kv_open_memory(256 << 20, &options, &store), SPILLWAY_KV_OK);
  }
  void TearDown() override {
    EXPECT_EQ(spillway_kv_close(store), SPILLWAY_KV_OK) << spillway_kv_error_text(nullptr);
  }
  spillway_kv_session* session() {
    spillway_kv_session* opened = nullptr;
    EXPECT_EQ(spillway_kv_session_open(store, &opened), SPILLWAY_KV_OK);
    return opened;
  }
  static void put(spillway_kv_session* session, const std::string& key, const std::string& value) {
    const iovec piece = piece_of(value);
    ASSERT_EQ(spillway_kv_put(session, key.data(), key.size(), &piece, 1, nullptr, nullptr), SPILLWAY_KV_OK)
        << spillway_kv_error_text(session);
  }
  static std::string get(spillway_kv_session* session, const std::string& key, uint64_t* version = nullptr) {
    char buffer[64];
    spillway_kv_value value = {};
    value.struct_bytes = sizeof value;
    if (spillway_kv_get(session, key.data(), key.size(), buffer, sizeof buffer, &value) != SPILLWAY_KV_OK)
      return "";
    if (version != nullptr) *version = value.version;
    return {buffer, value.data_bytes};
  }
  template <class F>
  static void in_threads(int count, F f) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
    for (auto& thread : threads) thread.join();
  }

  spillway_kv* store = nullptr;
};

TEST_F(ThreadsTest, CountUpByVersion) {
  constexpr int kThreads = 4, kEach = 500;
  in_threads(kThreads, [&](int) {
    spillway_kv_session* const own = session();
    for (int i = 0; i < kEach; ++i) {
      for (;;) {
        uint64_t version = 0;
        const std::string old = get(own, "counter", &version);
        const std::string next = std::to_string(old.empty() ? 1 : std::stoi(old) + 1);
        spillway_kv_change_options options = {};
        options.struct_bytes = sizeof options;
        options.when = old.empty() ? SPILLWAY_KV_IF_ABSENT : SPILLWAY_KV_IF_VERSION;
        options.version = version;
        const iovec piece = piece_of(next);
        const int status = spillway_kv_put(own, "counter", 7, &piece, 1, &options, nullptr);
        if (status == SPILLWAY_KV_OK) break;
        ASSERT_TRUE(status == SPILLWAY_KV_PRESENT || status == SPILLWAY_KV_OTHER_VERSION) << status;
      }
    }
    EXPECT_EQ(spillway_kv_session_close(own), SPILLWAY_KV_OK);
  });
  spillway_kv_session* const own = session();
  EXPECT_EQ(get(own, "counter"), std::to_string(kThreads * kEach));
  spillway_kv_session_close(own);
}

TEST_F(ThreadsTest, ASessionGoesFromThreadToThread) {
  spillway_kv_session* const own = session();
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      put(own, "key", std::to_string(i));
      EXPECT_EQ(get(own, "key"), std::to_string(i));
    }).join();
  }
  EXPECT_EQ(get(own, "key"), "19");
  spillway_kv_session_close(own);
}

TEST_F(ThreadsTest, ErrorsAreTheSessionsAndTheThreads) {
  in_threads(4, [&](int i) {
    spillway_kv_session* const own = session();
    const std::string key(65537 + i, 'k'), device = "floppy" + std::to_string(i) + ":/";
    spillway_kv* none = nullptr;
    for (int round = 0; round < 100; ++round) {
      EXPECT_EQ(spillway_kv_remove(own, key.data(), key.size(), nullptr, nullptr), SPILLWAY_KV_INVALID);
      EXPECT_EQ(spillway_kv_open(device.c_str(), nullptr, &none), SPILLWAY_KV_INVALID);
      std::this_thread::yield();
      EXPECT_NE(std::string(spillway_kv_error_text(own)).find(std::to_string(key.size())), std::string::npos);
      EXPECT_NE(std::string(spillway_kv_error_text(nullptr)).find(device), std::string::npos);
    }
    spillway_kv_session_close(own);
  });
}

TEST_F(ThreadsTest, BatchesAtTheSameTime) {
  constexpr int kThreads = 4, kKeys = 600;
  in_threads(kThreads, [&](int t) {
    spillway_kv_session* const own = session();
    std::vector<std::string> keys, texts;
    for (int i = 0; i < kKeys; ++i) keys.push_back(std::to_string(t) + ":" + std::to_string(i));
    for (int round = 0; round < 5; ++round) {
      texts.clear();
      std::vector<iovec> pieces, wanted;
      std::vector<spillway_kv_change> changes(kKeys);
      std::vector<spillway_kv_value> values(kKeys);
      for (int i = 0; i < kKeys; ++i) texts.push_back(keys[i] + "=" + std::to_string(round));
      for (const auto& text : texts) pieces.push_back(piece_of(text));
      for (const auto& key : keys) wanted.push_back(piece_of(key));
      for (int i = 0; i < kKeys; ++i) {
        changes[i].struct_bytes = sizeof changes[i];
        changes[i].key = keys[i].data();
        changes[i].key_bytes = keys[i].size();
        changes[i].value = &pieces[i];
        changes[i].value_count = 1;
        values[i].struct_bytes = sizeof values[i];
      }
      ASSERT_EQ(spillway_kv_change_many(own, changes.data(), kKeys), SPILLWAY_KV_OK);
      ASSERT_EQ(spillway_kv_get_many(own, wanted.data(), kKeys, values.data()), SPILLWAY_KV_OK);
      for (int i = 0; i < kKeys; ++i)
        ASSERT_EQ(std::string(static_cast<const char*>(values[i].data), values[i].data_bytes), texts[i]);
      spillway_kv_value_release(values.data(), kKeys);
    }
    EXPECT_EQ(spillway_kv_session_close(own), SPILLWAY_KV_OK);
  });
}

// A store that is nearly full makes puts wait for room that collection gains: later changes of the same key, of whatever kind, wait, too.
TEST_F(ThreadsTest, PacedChangesOfAKeyKeepTheirOrder) {
  EXPECT_EQ(spillway_kv_close(store), SPILLWAY_KV_OK);
  const spillway_kv_open_options options = fast_options();
  ASSERT_EQ(spillway_kv_open_memory(64 << 20, &options, &store), SPILLWAY_KV_OK);
  spillway_kv_session* const own = session();
  constexpr int kOld = 5500, kChanges = 240, kRounds = 40;
  const std::string text(8000, 'v');
  for (int i = 0; i < kOld; ++i) put(own, "old" + std::to_string(i), text);
  std::minstd_rand random(1);
  iovec value = piece_of(text);
  int64_t there = 0;
  int pairs = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::string> keys;
    std::vector<spillway_kv_change> changes(kChanges);
    for (int i = 0; i < kChanges; ++i) {
      const bool is_pair = i % 12 >= 8;  // a put, and then a remove
      keys.push_back(is_pair ? "pair" + std::to_string(i / 2) : "old" + std::to_string(random() % kOld));
      changes[i].struct_bytes = sizeof changes[i];
      changes[i].is_remove = is_pair && i % 2 == 1;
      changes[i].value = &value;
      changes[i].value_count = changes[i].is_remove ? 0 : 1;
    }
    for (int i = 0; i < kChanges; ++i) {
      changes[i].key = keys[i].data();
      changes[i].key_bytes = keys[i].size();
    }
    spillway_kv_change_many(own, changes.data(), kChanges);
    for (int i = 0; i < kChanges; ++i) {
      if (!changes[i].is_remove || changes[i - 1].status != SPILLWAY_KV_OK) continue;
      EXPECT_EQ(changes[i].status, SPILLWAY_KV_OK);
      ++pairs;
      there +=
          spillway_kv_get(own, keys[i].data(), keys[i].size(), nullptr, 0, nullptr) != SPILLWAY_KV_ABSENT;
    }
  }
  EXPECT_EQ(there, 0);
  EXPECT_GT(pairs, kRounds) << "the store was full";
  EXPECT_EQ(spillway_kv_session_close(own), SPILLWAY_KV_OK);
}

// A poll that waits ends when nothing is under way any more, even if other threads poll on, or a request was refused meanwhile.
TEST_F(ThreadsTest, PollsEndWhenNothingIsUnderWay) {
  spillway_kv_queue* queue = nullptr;
  ASSERT_EQ(spillway_kv_queue_open(store, nullptr, &queue), SPILLWAY_KV_OK);
  // Getting it takes longer than it takes the threads to begin to wait.
  std::string large(16 << 20, 'v');
  spillway_kv_session* const own = session();
  put(own, "large", large);
  spillway_kv_session_close(own);
  const auto done = [](void* context, const spillway_kv_result* result) {
    EXPECT_EQ(result->status, SPILLWAY_KV_OK);
    ++*static_cast<std::atomic<int>*>(context);
  };
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ended{0};
    ASSERT_EQ(spillway_kv_submit_get(queue, "large", 5, large.data(), large.size(), done, &ended),
              SPILLWAY_KV_OK);
    in_threads(4, [&](int t) {
      if (t == 0)
        EXPECT_EQ(spillway_kv_submit_get(queue, nullptr, 1, nullptr, 0, done, &ended), SPILLWAY_KV_INVALID);
      while (spillway_kv_poll(queue, 0, -1) > 0) {
      }
    });
    EXPECT_EQ(ended, 1);
  }
  EXPECT_EQ(spillway_kv_queue_close(queue), SPILLWAY_KV_OK);
}

// Threads submit to one queue, others poll: each request ends once, and changes of a key are made in their order.
TEST_F(ThreadsTest, QueuesOfManyThreads) {
  constexpr int kSubmitters = 3, kPollers = 2, kEach = 3000, kKeys = 7;
  struct Request {
    std::string key, text;
    iovec piece;
    std::atomic<int> ended{0};
    std::atomic<int64_t>* left;
  };
  spillway_kv_queue_options options = {};
  options.struct_bytes = sizeof options;
  options.requests = 100;
  options.outstanding = 32;
  options.threads = 2;
  spillway_kv_queue* queue = nullptr;
  ASSERT_EQ(spillway_kv_queue_open(store, &options, &queue), SPILLWAY_KV_OK);
  std::atomic<int64_t> left{kSubmitters * kEach};
  std::vector<std::vector<Request>> requests;
  for (int s = 0; s < kSubmitters; ++s) requests.emplace_back(kEach);
  in_threads(kSubmitters + kPollers, [&](int t) {
    if (t >= kSubmitters) {
      while (left.load() > 0)  // a poll ends when all requests have ended, whichever thread was told
        if (spillway_kv_poll(queue, t == kSubmitters ? 3 : 0, -1) == 0) std::this_thread::yield();
      return;
    }
    for (int i = 0; i < kEach; ++i) {
      Request& request = requests[t][i];
      request.key = std::to_string(t) + ":" + std::to_string(i % kKeys);
      request.text = std::to_string(i);
      request.piece = piece_of(request.text);
      request.left = &left;
      const auto done = [](void* context, const spillway_kv_result* result) {
        auto& ended = *static_cast<Request*>(context);
        EXPECT_EQ(result->status, SPILLWAY_KV_OK);
        ++ended.ended;
        --*ended.left;
      };
      int status;
      while ((status = spillway_kv_submit_put(queue, request.key.data(), request.key.size(), &request.piece,
                                              1, nullptr, done, &request)) == SPILLWAY_KV_BUSY)
        std::this_thread::yield();
      ASSERT_EQ(status, SPILLWAY_KV_OK);
    }
  });
  for (const auto& list : requests)
    for (const Request& request : list) ASSERT_EQ(request.ended, 1);
  spillway_kv_session* const own = session();
  for (int t = 0; t < kSubmitters; ++t)
    for (int i = kEach - kKeys; i < kEach; ++i)
      EXPECT_EQ(get(own, std::to_string(t) + ":" + std::to_string(i % kKeys)), std::to_string(i));
  spillway_kv_session_close(own);
  EXPECT_EQ(spillway_kv_queue_close(queue), SPILLWAY_KV_OK);
}

}  // namespace
