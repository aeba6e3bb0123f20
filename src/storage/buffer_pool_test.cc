#include "storage/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/ids.h"

namespace storage {
namespace {

constexpr size_t kBytes = 64 << 10;
constexpr int kFilled = 0xa5;

using Buffers = std::vector<std::span<std::byte>>;

Buffers take(BufferPool& pool, size_t count, size_t bytes = kBytes) {
  Buffers buffers;
  for (size_t i = 0; i < count; ++i) buffers.push_back(pool.take(bytes));
  return buffers;
}
void give(BufferPool& pool, const Buffers& buffers) {
  for (const std::span<std::byte> buffer : buffers) pool.give(buffer);
}
void fill(const Buffers& buffers) {
  for (const std::span<std::byte> buffer : buffers) memset(buffer.data(), kFilled, buffer.size());
}
// All but its first OS page, of which the pool uses some itself.
bool is_filled(std::span<std::byte> buffer) {
  for (size_t at = base::kOsPageBytes; at < buffer.size(); at += base::kOsPageBytes)
    if (buffer[at] != std::byte{kFilled}) return false;
  return true;
}
// How many have been filled, and not given to the system since, which has zeros in their place.
size_t count_filled(const Buffers& buffers) {
  return static_cast<size_t>(std::ranges::count_if(buffers, is_filled));
}

TEST(BufferPool, OnlyWhatNobodyHadForAWhileIsGivenToTheSystem) {
  BufferPool pool;
  Buffers all = take(pool, 8);
  fill(all);
  give(pool, all);
  pool.trim();
  Buffers some = take(pool, 3);
  EXPECT_EQ(count_filled(some), 3u) << "all were in use since the pool was made";
  give(pool, {some[0], some[1]});
  pool.trim();
  give(pool, {some[2]});
  all = take(pool, 8);
  EXPECT_EQ(count_filled(all), 3u);
  EXPECT_EQ(std::ranges::count_if(all, [](std::span<std::byte> buffer) { return buffer.empty(); }), 0);
}

TEST(BufferPool, WhatIsReservedStays) {
  BufferPool pool;
  const std::span<std::byte> reserved = pool.reserve(4 * kBytes);
  const Buffers all = take(pool, 4);
  for (const std::span<std::byte> buffer : all) {
    EXPECT_GE(buffer.data(), reserved.data());
    EXPECT_LE(buffer.data() + buffer.size(), reserved.data() + reserved.size());
  }
  fill(all);
  give(pool, all);
  for (int i = 0; i < 3; ++i) pool.trim();
  EXPECT_EQ(count_filled(take(pool, 4)), 4u);
}

TEST(BufferPool, MuchIsGivenToTheSystemByAndBy) {
  constexpr size_t kMost = BufferPool::kMaxBytes, kCount = 6;
  BufferPool pool;
  const Buffers all = take(pool, kCount, kMost);
  fill(all);
  give(pool, all);
  pool.trim();
  pool.trim();
  const size_t left = count_filled(all);
  EXPECT_GT(left, 0u);
  EXPECT_LT(left, kCount);
  pool.trim();
  EXPECT_EQ(count_filled(all), 0u);
}

}  // namespace
}  // namespace storage
