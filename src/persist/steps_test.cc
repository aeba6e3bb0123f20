// Signal handlers after each instruction of what a thread does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>

#include "persist/test_compiled.h"
#include "persist/test_runtime.h"
#include "persist/test_steps.h"
#include "persist/test_words.h"

namespace persist {
namespace {

// What a thread and its handler do to three lines, and what must be durable of it.
class Program {
 public:
  explicit Program(Way way) : runtime_(way) {
    EXPECT_TRUE(runtime_->add_domain(device_->domain()));
    thread_ = runtime_->enter();
  }
  ~Program() { EXPECT_TRUE(runtime_->leave(thread_)); }

  // One line flushed again and again, and one once, twice over: so that it is put off in the second epoch from the beginning.
  void run() {
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const size_t line : {0, 0, 0, 1}) {
        flushed_[line] = store_and_flush(line);
      }
      fence();
    }
  }

  enum Act { kFlushOther, kFlushSame, kFlushAndFence, kFence, kWay, kActs };
  void handle(Act act) {
    switch (act) {
      case kFlushOther: store_and_flush(2); return;
      case kFlushSame: store_and_flush(0); return;
      case kFlushAndFence:
      case kFence: {
        const uint64_t flushed[] = {flushed_[0], flushed_[1], act == kFence ? 0 : store_and_flush(2)};
        failures_ += !fence_compiled(*thread_);
        for (size_t i = 0; i < 3; ++i) failures_ += device_->durable[i].load() < flushed[i];
        return;
      }
      case kWay:
        failures_ += !thread_->set_way(thread_->way() == Way::kEpoch ? Way::kInline : Way::kEpoch);
        return;
      case kActs: return;
    }
  }
  // What a handler has flushed and not fenced is durable after the thread's next fence.
  bool is_right() {
    fence();
    for (size_t i = 0; i < 3; ++i) failures_ += device_->durable[i].load() != device_->word(i).load();
    return failures_ == 0;
  }
  Thread& thread() { return *thread_; }

 private:
  // Returns what was stored, unless something newer was.
  uint64_t store_and_flush(size_t line) {
    const uint64_t value = value_.fetch_add(1) + 1;
    WordDevice::raise(device_->word(line), value);
    flush_compiled(*thread_, device_->line(line));
    return value;
  }
  void fence() {
    const uint64_t flushed[] = {flushed_[0], flushed_[1]};
    failures_ += !fence_compiled(*thread_);
    for (size_t i = 0; i < 2; ++i) failures_ += device_->durable[i].load() < flushed[i];
  }

  Own runtime_;
  std::unique_ptr<WordDevice> device_ = std::make_unique<WordDevice>();
  Thread* thread_;
  std::atomic<uint64_t> value_{0}, flushed_[2] = {}, failures_{0};  // a handler's, too
};

class StepsTest : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, StepsTest, testing::ValuesIn(kOwnWays),
                         [](const auto& way) { return name_of(way.param); });

TEST_P(StepsTest, AHandlerAfterAnyInstruction) {
  if (kIsThreadSanitizer) GTEST_SKIP() << "the thread sanitizer calls handlers later";
  // A step costs a virtual machine some 20 us. The slow tier is close.
  const uint64_t kStride = getenv("SPILLWAY_TEST_LONG") != nullptr ? 6 : 250;
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 1);
  Steps steps;
  for (int act = 0; act < Program::kActs; ++act) {
    Program program(GetParam());
    program.run();
    uint64_t handled = 0;
    for (uint64_t number = random() % kStride;; number += 1 + random() % kStride) {
      const bool has_acted = steps.act_after(
          number, [&] { program.run(); }, [&] { program.handle(static_cast<Program::Act>(act)); });
      ASSERT_TRUE(program.is_right()) << "act " << act << " after " << number << " instructions";
      if (act == Program::kWay) ASSERT_TRUE(program.thread().set_way(GetParam()));
      if (!has_acted) break;
      ++handled;
    }
    EXPECT_GT(handled, 3u);
  }
}

// While the numbers of epochs wrap around, no line looks as if it were put off.
TEST(Steps, EpochsBeginAnewUnderAHandlersEyes) {
  if (kIsThreadSanitizer) GTEST_SKIP() << "the thread sanitizer calls handlers later";
  constexpr uint64_t kEpochs = (1 << 12) - 1;
  constexpr uintptr_t kLine = 0x7000'0000'0000;
  Steps steps;
  const auto set = std::make_unique<LineSet>();
  const auto is_put_off = [&] {
    const uint64_t number = kLine / base::kLineBytes;
    return set->put_off().entries[PutOff::index_of(number)] ==
           (number << kAbiPersistPutOffShift | set->put_off().mark);
  };
  for (uint64_t number = 0; number < 400; ++number) {
    // To the first of all numbers, where the line is put off; and once around.
    while (set->put_off().mark >> 2 != 0) set->begin_epoch();
    set->add(kLine);
    ASSERT_EQ(set->add(kLine), LineSet::Flush::kPutIn);
    set->put_in(kLine);
    ASSERT_TRUE(is_put_off());
    set->clear();
    for (uint64_t epoch = 1; epoch < kEpochs; ++epoch) set->begin_epoch();
    bool was_put_off = false;
    steps.act_after(number, [&] { set->begin_epoch(); }, [&] { was_put_off = is_put_off(); });
    ASSERT_EQ(set->put_off().mark >> 2, 0u);
    ASSERT_FALSE(was_put_off) << number;
    ASSERT_FALSE(is_put_off());
  }
}

}  // namespace
}  // namespace persist
