// Handlers of signals that flush and fence in the middle of what their thread does.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>

#include "persist/test_compiled.h"
#include "persist/test_runtime.h"
#include "persist/test_words.h"

namespace persist {
namespace {

class SignalTest : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, SignalTest, testing::ValuesIn(kOwnWays),
                         [](const auto& way) { return name_of(way.param); });

struct Handled {
  Thread* thread = nullptr;
  WordDevice device;
  std::atomic<uint64_t> count{0}, failures{0};
  // For the thread's own lines: what it has flushed, stored here after the flush.
  std::atomic<uint64_t> flushed[16] = {};
};
Handled* handled = nullptr;

// Half of the handlers fence: then what they and their thread have flushed is durable. The others leave that to the thread.
void handle(int) {
  const uint64_t count = handled->count.fetch_add(1) + 1;
  const size_t line = 32 + count % 8;
  handled->device.word(line).store(count);
  flush_compiled(*handled->thread, handled->device.line(line));
  if (count % 2 == 0) return;
  if (!fence_compiled(*handled->thread) || handled->device.durable[line].load() != count)
    handled->failures.fetch_add(1);
  for (size_t i = 0; i < 16; ++i)
    if (handled->device.durable[i].load() < handled->flushed[i].load()) handled->failures.fetch_add(1);
}

TEST_P(SignalTest, HandlersOfSignalsFlushInTheMiddleOfAnything) {
  Own runtime(GetParam());
  const auto own = std::make_unique<Handled>();
  handled = own.get();
  ASSERT_TRUE(runtime->add_domain(own->device.domain()));
  own->thread = runtime->enter();
  struct sigaction action = {};
  action.sa_handler = handle;
  struct sigaction old;
  sigaction(SIGUSR1, &action, &old);
  std::atomic<bool> is_over{false};
  const pthread_t self = pthread_self();
  std::thread sender([&] {
    while (!is_over.load()) {
      pthread_kill(self, SIGUSR1);
      std::this_thread::yield();
    }
  });
  std::mt19937_64 random(3);
  for (uint64_t step = 1; own->count.load() < 3'000; ++step) {
    const size_t line = random() % 16;
    own->device.word(line).store(step);
    flush_compiled(*own->thread, own->device.line(line));
    own->flushed[line].store(step);
    if (step % 32 != 0) continue;
    ASSERT_TRUE(fence_compiled(*own->thread));
    for (size_t i = 0; i < 16; ++i) ASSERT_GE(own->device.durable[i].load(), own->flushed[i].load());
  }
  is_over = true;
  sender.join();
  sigaction(SIGUSR1, &old, nullptr);
  ASSERT_TRUE(own->thread->fence());
  for (size_t i = 32; i < 40; ++i) EXPECT_EQ(own->device.durable[i].load(), own->device.word(i).load());
  EXPECT_EQ(own->failures.load(), 0u);
  EXPECT_TRUE(runtime->leave(own->thread));
}

// The line is still listed as put off, but a flush that comes after its write-back is a new one.
TEST(Signals, AHandlersFlushOfALineThatIsJustBeingExecutedIsNotLost) {
  Own runtime(Way::kEpoch);
  const auto device = std::make_unique<WordDevice>();
  ASSERT_TRUE(runtime->add_domain(device->domain()));
  Thread* const thread = runtime->enter();
  uint64_t value = 0, interrupts = 0;
  for (uint64_t epoch = 0; epoch < 100; ++epoch) {
    device->interrupt = nullptr;
    for (size_t i = 0; i < 12; ++i) {
      device->word(i % 4).store(++value);
      flush_compiled(*thread, device->line(i % 4));
    }
    device->interrupt = [&](uintptr_t line) {
      const auto interrupt = std::exchange(device->interrupt, nullptr);
      device->word(device->index(line)).store(++value);
      flush_compiled(*thread, line);
      ++interrupts;
      device->interrupt = interrupt;
    };
    ASSERT_TRUE(fence_compiled(*thread));
    device->interrupt = nullptr;
    ASSERT_TRUE(fence_compiled(*thread));
    for (size_t i = 0; i < 4; ++i) ASSERT_EQ(device->durable[i].load(), device->word(i).load()) << epoch;
  }
  EXPECT_GE(interrupts, 400u);
  ASSERT_TRUE(runtime->leave(thread));
}

}  // namespace
}  // namespace persist
