// After a fork, a thread that needs a page in a frame that can be mapped elsewhere waits for others' pins.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/statistics.h"
#include "cache/testing/test_world.h"
#include "sys/kernel.h"

namespace cache {
namespace {

using ForkWaitTest = WorldTest;

// There are as many changes as a thread would wait in ten seconds without changes.
TEST_F(ForkWaitTest, ChangesOfOtherPagesDoNotShortenTheWait) {
  write(3, 'a');
  write(4, 'b');
  a->release_all();
  EXPECT_TRUE(world->cache->before_fork({[](PageId) { return false; }, [](PageId) { return 0u; }}));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  world->cache->after_fork_in_parent();
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(world->cache->pin(PageId{3}, *a->workspace).has_value());
  // Each time the waiting thread looks at the page is a hit; so is each pin.
  constexpr uint64_t kLooks = 12'000;
  const uint64_t hits = base::statistics.cache_hits.get();
  std::atomic<bool> ended{false};
  std::thread other([&] {
    auto pinned = world->cache->pin_shared(PageId{3}, *b->workspace);
    ended = true;
    ASSERT_TRUE(pinned.has_value()) << pinned.error().message;
    EXPECT_TRUE(world->cache->is_shared(PageId{3}));
    world->cache->unpin(PageId{3});
  });
  // Fewer on a slow machine: the test must stay well below ten seconds.
  const uint64_t until_ns = sys::monotonic_ns() + 3'000'000'000;
  for (uint64_t own = 0; base::statistics.cache_hits.get() - hits < own + kLooks; ++own) {
    if (ended || sys::monotonic_ns() > until_ns) break;
    EXPECT_TRUE(world->cache->pin(PageId{4}, *a->workspace).has_value());
    world->cache->unpin(PageId{4});
  }
  world->cache->unpin(PageId{3});
  other.join();
}

}  // namespace
}  // namespace cache
