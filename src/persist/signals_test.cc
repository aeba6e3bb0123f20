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

namespace persist {
namespace {

class SignalTest : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, SignalTest, testing::ValuesIn(kOwnWays),
                         [](const auto& way) { return name_of(way.param); });

// A device without locks, since handlers come while the thread is inside of it: a line's first word is durable when it is flushed.
class WordDevice final : public LineDevice {
 public:
  static constexpr size_t kLines = 64;

  void flush(const uintptr_t* lines, size_t count) override {
    // Words only grow; whoever has read one and was stopped then must not put it over a newer one.
    for (size_t i = 0; i < count; ++i) {
      std::atomic<uint64_t>& to = durable[index(lines[i])];
      const uint64_t now = word(index(lines[i])).load();
      for (uint64_t before = to.load(); before < now && !to.compare_exchange_weak(before, now);) {
      }
    }
  }
  void fence() override {}

  std::atomic<uint64_t>& word(size_t i) {
    return *reinterpret_cast<std::atomic<uint64_t>*>(memory + i * base::kLineBytes);
  }
  size_t index(uintptr_t line) const { return (line - begin()) / base::kLineBytes; }
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(memory); }
  Domain domain() {
    return {.begin = begin(), .end = begin() + sizeof memory, .kind = DomainKind::kDevice, .device = this};
  }

  std::atomic<uint64_t> durable[kLines] = {};

 private:
  alignas(base::kLineBytes) char memory[kLines * base::kLineBytes] = {};
};

struct Handled {
  Thread* thread = nullptr;
  WordDevice device;
  std::atomic<uint64_t> count{0}, failures{0};
  // Of the thread's own lines: what it had flushed when it said so, and has not stored to since.
  std::atomic<uint64_t> flushed[16] = {};
};
Handled* handled = nullptr;

// Half of the handlers fence: then what they have flushed is durable, and so is what the thread had flushed before. The others leave it to the thread.
void handle(int) {
  const uint64_t count = handled->count.fetch_add(1) + 1;
  const size_t line = 32 + count % 8;
  handled->device.word(line).store(count);
  flush_compiled(*handled->thread, handled->device.begin() + line * base::kLineBytes);
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
    flush_compiled(*own->thread, own->device.begin() + line * base::kLineBytes);
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

}  // namespace
}  // namespace persist
