// The page cache's C API from many threads, and from C++.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "spillway/pagecache.h"

namespace {

constexpr uint64_t kPage = 4096, kPages = 400;

class PagecacheThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    spillway_pagecache_options options = {};
    options.struct_bytes = sizeof options;
    options.memory_bytes = 300'000;  // 70 pages
    options.memory_bytes_max = 1'000'000;
    options.threads = 2;
    ASSERT_EQ(spillway_pagecache_open(&options, &cache), SPILLWAY_PAGECACHE_OK);
    ASSERT_EQ(spillway_pagecache_add(cache, "memory:1638400", nullptr, &file), SPILLWAY_PAGECACHE_OK);
  }
  void TearDown() override {
    EXPECT_EQ(spillway_pagecache_close(cache), SPILLWAY_PAGECACHE_OK)
        << spillway_pagecache_error_text(nullptr);
  }
  spillway_pagecache_session* session() {
    spillway_pagecache_session* opened = nullptr;
    EXPECT_EQ(spillway_pagecache_session_open(cache, &opened), SPILLWAY_PAGECACHE_OK);
    return opened;
  }
  template <class F>
  static void in_threads(int count, F f) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
    for (auto& thread : threads) thread.join();
  }

  spillway_pagecache* cache = nullptr;
  spillway_pagecache_file* file = nullptr;
};

// Threads count in the same cells, while another resizes the cache: no addition is lost.
TEST_F(PagecacheThreadsTest, UpdatesOfTheSameBytes) {
  constexpr int kThreads = 4, kEach = 4000;
  std::atomic<int> running{kThreads};
  in_threads(kThreads + 1, [&](int t) {
    spillway_pagecache_session* const own = session();
    if (t == kThreads) {
      for (uint64_t size = 200'000; running.load() > 0; size = size == 200'000 ? 1'000'000 : 200'000)
        EXPECT_EQ(spillway_pagecache_resize(own, size), SPILLWAY_PAGECACHE_OK)
            << spillway_pagecache_error_text(own);
    } else {
      const auto add = [](void*, void* piece, size_t, uint64_t) {
        uint64_t number;
        memcpy(&number, piece, sizeof number);
        ++number;
        memcpy(piece, &number, sizeof number);
      };
      for (uint64_t i = 0; i < kEach; ++i)
        ASSERT_EQ(spillway_pagecache_update(own, file, i * 37 % kPages * kPage, 8, add, nullptr),
                  SPILLWAY_PAGECACHE_OK)
            << spillway_pagecache_error_text(own);
      --running;
    }
    EXPECT_EQ(spillway_pagecache_session_close(own), SPILLWAY_PAGECACHE_OK);
  });
  spillway_pagecache_session* const own = session();
  for (uint64_t page = 0; page < kPages; ++page) {
    uint64_t number = 0;
    ASSERT_EQ(spillway_pagecache_read(own, file, page * kPage, &number, sizeof number),
              SPILLWAY_PAGECACHE_OK);
    EXPECT_EQ(number, kThreads * kEach / kPages);
  }
  spillway_pagecache_session_close(own);
}

TEST_F(PagecacheThreadsTest, ASessionGoesFromThreadToThread) {
  spillway_pagecache_session* const own = session();
  spillway_pagecache_view view = {};
  view.struct_bytes = sizeof view;
  for (int i = 0; i < 100; ++i) {
    std::thread([&] {
      spillway_pagecache_view_release(&view);
      const uint64_t offset = static_cast<uint64_t>(i) * 2 * kPage;
      ASSERT_EQ(spillway_pagecache_write(own, file, offset, &i, sizeof i), SPILLWAY_PAGECACHE_OK);
      ASSERT_EQ(spillway_pagecache_view_get(own, file, offset, sizeof i, &view), SPILLWAY_PAGECACHE_OK);
      EXPECT_EQ(memcmp(view.data, &i, sizeof i), 0);
    }).join();
  }
  spillway_pagecache_view_release(&view);
  EXPECT_EQ(spillway_pagecache_session_close(own), SPILLWAY_PAGECACHE_OK);
}

TEST_F(PagecacheThreadsTest, ErrorsAreTheSessionsAndTheThreads) {
  in_threads(4, [&](int i) {
    spillway_pagecache_session* const own = session();
    const std::string device = "floppy" + std::to_string(i) + ":/";
    const uint64_t offset = 5'000'000 + static_cast<uint64_t>(i);
    spillway_pagecache_file* none = nullptr;
    char byte = 0;
    for (int round = 0; round < 100; ++round) {
      EXPECT_EQ(spillway_pagecache_read(own, file, offset, &byte, 1), SPILLWAY_PAGECACHE_INVALID);
      EXPECT_EQ(spillway_pagecache_add(cache, device.c_str(), nullptr, &none), SPILLWAY_PAGECACHE_INVALID);
      std::this_thread::yield();
      EXPECT_NE(std::string(spillway_pagecache_error_text(own)).find(std::to_string(offset)),
                std::string::npos);
      EXPECT_NE(std::string(spillway_pagecache_error_text(nullptr)).find(device), std::string::npos);
    }
    spillway_pagecache_session_close(own);
  });
}

// Within a page, a view sees all of a write or nothing, however it is written; and statistics may be asked for all the time.
TEST_F(PagecacheThreadsTest, ViewsBesideWritesAndQueues) {
  constexpr int kReaders = 2, kWriters = 2, kRounds = 3000;
  constexpr size_t kCell = 512;
  std::atomic<int> writing{kWriters};
  in_threads(kReaders + kWriters + 1, [&](int t) {
    std::minstd_rand random(static_cast<unsigned>(t) + 1);
    if (t < kReaders) {
      spillway_pagecache_session* const own = session();
      while (writing.load() > 0) {
        spillway_pagecache_view view = {};
        view.struct_bytes = sizeof view;
        ASSERT_EQ(spillway_pagecache_view_get(own, file, random() % kPages * kPage, kCell, &view),
                  SPILLWAY_PAGECACHE_OK)
            << spillway_pagecache_error_text(own);
        const char* const bytes = static_cast<const char*>(view.data);
        EXPECT_EQ(static_cast<size_t>(std::count(bytes, bytes + kCell, bytes[0])), kCell);
        spillway_pagecache_view_release(&view);
      }
      EXPECT_EQ(spillway_pagecache_session_close(own), SPILLWAY_PAGECACHE_OK);
    } else if (t < kReaders + kWriters) {
      spillway_pagecache_queue* queue = nullptr;
      ASSERT_EQ(spillway_pagecache_queue_open(cache, nullptr, &queue), SPILLWAY_PAGECACHE_OK);
      constexpr size_t kBatch = 20;
      std::vector<std::vector<char>> cells(kBatch, std::vector<char>(kCell));
      size_t ended = 0;
      for (int round = 0; round < kRounds / static_cast<int>(kBatch); ++round) {
        std::vector<spillway_pagecache_request> requests(kBatch);
        for (size_t i = 0; i < kBatch; ++i) {
          std::fill(cells[i].begin(), cells[i].end(), static_cast<char>(random()));
          requests[i].struct_bytes = sizeof requests[i];
          requests[i].file = file;
          requests[i].offset = random() % kPages * kPage;
          requests[i].data = cells[i].data();
          requests[i].bytes = kCell;
          requests[i].kind = SPILLWAY_PAGECACHE_WRITE;
          requests[i].context = &ended;
          requests[i].done = [](void* context, const spillway_pagecache_result* result) {
            EXPECT_EQ(result->status, SPILLWAY_PAGECACHE_OK) << result->error_text;
            ++*static_cast<size_t*>(context);
          };
        }
        size_t taken = 0;
        ASSERT_EQ(spillway_pagecache_submit(queue, requests.data(), kBatch, &taken), SPILLWAY_PAGECACHE_OK);
        ASSERT_EQ(taken, kBatch);
        const size_t all = (static_cast<size_t>(round) + 1) * kBatch;
        while (ended < all) spillway_pagecache_poll(queue, -1);
      }
      EXPECT_EQ(spillway_pagecache_queue_close(queue), SPILLWAY_PAGECACHE_OK);
      --writing;
    } else {
      char text[8192];
      while (writing.load() > 0)
        EXPECT_EQ(spillway_pagecache_stats(cache, text, sizeof text, nullptr), SPILLWAY_PAGECACHE_OK);
    }
  });
}

// Files come and go while others are used.
TEST_F(PagecacheThreadsTest, FilesThatComeAndGo) {
  in_threads(4, [&](int t) {
    spillway_pagecache_session* const own = session();
    for (int round = 0; round < 50; ++round) {
      spillway_pagecache_file* mine = nullptr;
      ASSERT_EQ(spillway_pagecache_add(cache, "memory:256K", nullptr, &mine), SPILLWAY_PAGECACHE_OK);
      std::vector<char> bytes(64 * kPage, static_cast<char>(t * 50 + round)), found(bytes.size());
      ASSERT_EQ(spillway_pagecache_write(own, mine, 0, bytes.data(), bytes.size()), SPILLWAY_PAGECACHE_OK);
      ASSERT_EQ(spillway_pagecache_read(own, mine, 0, found.data(), found.size()), SPILLWAY_PAGECACHE_OK);
      EXPECT_EQ(bytes, found);
      ASSERT_EQ(spillway_pagecache_remove(own, mine), SPILLWAY_PAGECACHE_OK)
          << spillway_pagecache_error_text(own);
    }
    EXPECT_EQ(spillway_pagecache_session_close(own), SPILLWAY_PAGECACHE_OK);
  });
}

}  // namespace
