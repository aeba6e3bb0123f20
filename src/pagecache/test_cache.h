// For tests: a small cache over a device in memory that fails when it is told to.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "pagecache/session.h"
#include "storage/backends/memory.h"
#include "storage/piece_io.h"
#include "storage/testing/test_fail_device.h"
#include "task/sync.h"
#include "task/test_tasks.h"

namespace pagecache {

using Failing = storage::FailDevice::Failing;

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Options for a cache with `frames`, in as few sets as possible; with one node, or as many as the options say, with the same number each.
inline CacheOptions with_frames(uint64_t frames, CacheOptions options = {}) {
  const PageSet::Layout layout(options.policy);
  options.nodes = std::max(options.nodes, 1u);
  uint64_t sets = options.nodes;
  while (sets * kMaxWays < frames) sets *= 2;
  options.memory_bytes = frames * options.page_bytes + sets * layout.bytes;
  return options;
}

class TestDevice {
 public:
  explicit TestDevice(uint64_t bytes)
      : memory_(*storage::make_memory_device(bytes)), device(*new storage::FailDevice(memory_)) {}
  ~TestDevice() { device.close(); }

  // What is on the device, bypassing the cache.
  std::vector<std::byte> content() { return content(0, device.capacity_bytes()); }
  // REQUIRES: multiples of 4 KiB.
  std::vector<std::byte> content(uint64_t offset, uint64_t bytes) {
    std::vector<std::byte> all(bytes);
    // Aligned, as a device requires it.
    storage::BufferPool pool;
    const storage::Buffer buffer(pool, 4096);
    storage::Queue* const queue = *device.open_queue(1);
    for (size_t at = 0; at < all.size(); at += 4096) {
      storage::PieceIo io(storage::Operation::kRead, offset + at, buffer.bytes().data(), 4096);
      queue->run(io);
      CHECK(io.whole());
      memcpy(all.data() + at, buffer.bytes().data(), 4096);
    }
    device.close_queue(queue);
    return all;
  }

 private:
  storage::Device* memory_;

 public:
  storage::FailDevice& device;
};

// Tasks of a session add one, `rounds` times each, to numbers in a hundred pages in turn, while `meanwhile` is called; no addition is lost.
template <class Meanwhile>
void count_by_tasks(Session& session, File& file, uint64_t tasks, uint64_t rounds,
                    const Meanwhile& meanwhile) {
  constexpr uint64_t kPages = 100, kPageBytes = 4096;
  task::IntraSemaphore ended(0);
  auto work = [&] {
    for (uint64_t i = 0; i < rounds; ++i) {
      const auto add = [&](std::span<std::byte> bytes, uint64_t) {
        uint64_t count;
        memcpy(&count, bytes.data(), sizeof count);
        ++count;
        memcpy(bytes.data(), &count, sizeof count);
      };
      EXPECT_TRUE(session.update(file, i % kPages * kPageBytes, sizeof(uint64_t), add));
    }
    ended.release();
  };
  for (uint64_t i = 0; i < tasks; ++i) task::start("worker", work);
  meanwhile();
  for (uint64_t i = 0; i < tasks; ++i) static_cast<void>(ended.acquire());
  for (uint64_t page = 0; page < kPages; ++page) {
    uint64_t count = 0;
    ASSERT_TRUE(session.read(file, page * kPageBytes, std::as_writable_bytes(std::span(&count, 1))));
    EXPECT_EQ(count, tasks * rounds / kPages);
  }
}

}  // namespace pagecache
