#include "persist/direct.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <thread>

#include "persist/test_compiled.h"
#include "persist/test_runtime.h"
#include "persist/test_shadow.h"

namespace persist {
namespace {

// An instruction that flushes here do not use.
const sys::LineFlush kOther =
    kBestFlush == sys::LineFlush::kClwb ? sys::LineFlush::kClflushopt : sys::LineFlush::kClwb;

// Pages of memory for a domain.
class Pages {
 public:
  explicit Pages(size_t count)
      : bytes_(count * base::kOsPageBytes),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Pages() { munmap(memory_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(memory_); }
  uintptr_t end() const { return begin() + bytes_; }
  Domain domain(DomainKind kind = DomainKind::kMemory) const {
    return {.begin = begin(), .end = end(), .kind = kind};
  }

 private:
  const size_t bytes_;
  void* const memory_;
};

TEST(Direct, ARangeIsOfWholePages) {
  const auto range = [](uint64_t first, uint64_t count) { return first << kAbiPersistRangeShift | count; };
  EXPECT_EQ(Direct::range_of(0x10000, 0x3000), range(0x10, 3));
  EXPECT_EQ(Direct::range_of(0x10040, 0x3000), range(0x11, 2));
  EXPECT_EQ(Direct::range_of(0x10040, 0x2fc0), range(0x11, 2));
  EXPECT_EQ(Direct::range_of(0x10040, 0x2f80), range(0x11, 1));
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{0x1000}, uint64_t{0x1f80}})
    EXPECT_EQ(Direct::range_of(0x10040, bytes), 0u) << bytes;
  constexpr uint64_t kMax = (uint64_t{1} << kAbiPersistRangeShift) - 1;
  EXPECT_EQ(Direct::range_of(0x10000, kMax << 12), range(0x10, kMax));
  EXPECT_EQ(Direct::range_of(0x10000, (kMax + 1) << 12), 0u);
  EXPECT_EQ(Direct::range_of((uint64_t{1} << 48) - 0x2000, 0x2000), 0u);
  EXPECT_EQ(Direct::range_of((uint64_t{1} << 48) - 0x2000, 0x1000), range((uint64_t{1} << 36) - 2, 1));
}

// Domains change, or a handler comes, between looking at them and opening.
TEST(Direct, WhatIsClosedMeanwhileIsNotOpened) {
  Direct direct;
  const PutOff table;
  const auto closes = [&] {
    direct.close();
    return true;
  };
  direct.open_range(0, Direct::range_of(0x10000, 0x3000), closes);
  direct.open_put_off(table, closes);
  EXPECT_EQ(direct.ranges[0].load(), 0u);
  EXPECT_EQ(direct.put_off.load(), &kNonePutOff);
  const auto is_other = [] { return false; };
  direct.open_range(0, Direct::range_of(0x10000, 0x3000), is_other);
  direct.open_put_off(table, is_other);
  EXPECT_EQ(direct.ranges[0].load() % (1 << kAbiPersistRangeShift), 0u);
  EXPECT_NE(direct.put_off.load(), &table);
  direct.close();
  const auto is_same = [] { return true; };
  direct.open_range(0, Direct::range_of(0x10000, 0x3000), is_same);
  direct.open_put_off(table, is_same);
  EXPECT_EQ(direct.ranges[0].load(), Direct::range_of(0x10000, 0x3000));
  EXPECT_EQ(direct.put_off.load(), &table);
}

TEST(Direct, MemoryIsFlushedWithoutACallWhileTheWayIsInline) {
  if (kBestFlush == sys::LineFlush::kClflush) GTEST_SKIP() << "this CPU has clflush alone";
  Own runtime(Way::kInline);
  const Pages pages(4), others(2);
  ASSERT_TRUE(runtime->add_domain(pages.domain()));
  ASSERT_TRUE(runtime->add_domain(others.domain()));
  Direct direct;
  Thread* const thread = runtime->enter(&direct);
  EXPECT_EQ(flush_compiled(*thread, pages.begin()), By::kCall);
  for (const uintptr_t address : {pages.begin(), pages.begin() + 8191, pages.end() - 1}) {
    EXPECT_EQ(flush_compiled(*thread, address), By::kInstruction);
    EXPECT_EQ(flush_compiled(*thread, address, sys::LineFlush::kClflush), By::kInstruction);
    EXPECT_EQ(flush_compiled(*thread, address, kOther), By::kCall);
  }
  EXPECT_EQ(runtime->counts().asked_lines, 4u);
  EXPECT_EQ(flush_compiled(*thread, others.begin()), By::kCall);
  EXPECT_EQ(flush_compiled(*thread, others.begin()), By::kInstruction);
  EXPECT_EQ(flush_compiled(*thread, pages.begin()), By::kCall);

  for (const Pages* const each : {&others, &pages}) {
    EXPECT_EQ(flush_compiled(*thread, each->begin(), sys::LineFlush::kClflush), By::kCall);
    EXPECT_EQ(flush_compiled(*thread, each->begin(), sys::LineFlush::kClflush), By::kInstruction);
  }

  ASSERT_TRUE(thread->set_way(Way::kEpoch));
  for (int again = 0; again < 2; ++again) EXPECT_EQ(flush_compiled(*thread, pages.begin()), By::kCall);
  EXPECT_EQ(flush_compiled(*thread, pages.begin() + 640), By::kCall);
  EXPECT_EQ(flush_compiled(*thread, pages.begin() + 640, sys::LineFlush::kClflush), By::kInstruction);

  ASSERT_TRUE(thread->set_way(Way::kInline));
  ASSERT_TRUE(thread->fence());
  flush_compiled(*thread, pages.begin());
  EXPECT_NE(direct.ranges[static_cast<size_t>(kBestFlush)].load(), 0u);
  EXPECT_GT(direct.fences.load(), 0);
  ASSERT_TRUE(runtime->leave(thread));
  for (const auto& range : direct.ranges) EXPECT_EQ(range.load(), 0u);
  EXPECT_EQ(direct.fences.load(), 0);
  EXPECT_EQ(direct.put_off.load(), &kNonePutOff);
}

// What is not memory needs more than an instruction.
TEST(Direct, OtherKindsAreCalledFor) {
  Own runtime(Way::kInline);
  ShadowDevice device(4 * base::kOsPageBytes);
  const Pages saved(4), nothing(4), outside(1);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  ASSERT_TRUE(runtime->add_domain(saved.domain(DomainKind::kFlushOnFail)));
  ASSERT_TRUE(runtime->add_domain(nothing.domain(DomainKind::kNone)));
  Thread* const thread = runtime->enter();
  for (int again = 0; again < 3; ++again)
    for (const uintptr_t address : {device.begin(), saved.begin(), nothing.begin(), outside.begin()})
      for (int twice = 0; twice < 2; ++twice)
        for (const sys::LineFlush instruction : sys::kLineFlushes)
          EXPECT_EQ(flush_compiled(*thread, address, instruction), By::kCall);
  ASSERT_TRUE(runtime->leave(thread));
}

TEST(Direct, NothingIsDirectThatIsToBeCounted) {
  Own runtime;
  runtime->configure(
      {.way = Way::kInline, .instruction = sys::best_line_flush(), .flushers = {}, .counts_all = true});
  const Pages pages(2);
  ASSERT_TRUE(runtime->add_domain(pages.domain()));
  Thread* const thread = runtime->enter();
  for (const Way way : {Way::kInline, Way::kEpoch}) {
    ASSERT_TRUE(thread->set_way(way));
    for (int i = 0; i < 50; ++i) {
      for (int again = 0; again < 3; ++again) EXPECT_EQ(flush_compiled(*thread, pages.begin()), By::kCall);
      ASSERT_TRUE(fence_compiled(*thread));
    }
  }
  EXPECT_EQ(runtime->counts().asked_lines, 300u);
  EXPECT_EQ(runtime->counts().fences, 100u);
  ASSERT_TRUE(runtime->leave(thread));
}

// Each line is durable after the fence, whoever flushed it.
TEST(Direct, WhatIsPutOffNeedsNoCall) {
  Own runtime(Way::kEpoch);
  ShadowDevice device(4 * base::kOsPageBytes);
  ASSERT_TRUE(runtime->add_domain(device.domain()));
  Thread* const thread = runtime->enter();
  uint64_t nothing = 0;
  for (uint64_t epoch = 1; epoch <= 5'000; ++epoch) {
    for (uint64_t i = 0; i < 12; ++i) {
      char* const at = device.memory() + (epoch + i % 3) % 250 * base::kLineBytes;
      store(at, 100 * epoch + i);
      nothing += flush_compiled(*thread, reinterpret_cast<uintptr_t>(at)) == By::kNothing;
    }
    ASSERT_TRUE(fence_compiled(*thread));
    ASSERT_TRUE(device.is_durable(device.memory(), device.bytes())) << epoch;
  }
  EXPECT_GT(nothing, 5'000u * 4);
  EXPECT_EQ(runtime->counts().asked_lines + nothing, 5'000u * 12);
  ASSERT_TRUE(runtime->leave(thread));
}

TEST(Direct, FencesAreCountedWhoeverExecutesThem) {
  Own runtime(Way::kInline);
  const Pages pages(1);
  ASSERT_TRUE(runtime->add_domain(pages.domain()));
  Thread* const thread = runtime->enter();
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(fence_compiled(*thread));
  ASSERT_TRUE(thread->set_way(Way::kEpoch));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(fence_compiled(*thread));
    EXPECT_EQ(thread->direct().fences.load(), 0);
  }
  EXPECT_EQ(runtime->counts().fences, 1'010u);
  ASSERT_TRUE(runtime->leave(thread));
}

// In a trial each line is counted, between trials none is; and one trial follows another.
TEST(Direct, AutoCountsWhileItTries) {
  Own runtime(Way::kAuto);
  const Pages pages(8);
  ASSERT_TRUE(runtime->add_domain(pages.domain()));
  Thread* const thread = runtime->enter();
  uint64_t calls = 0, stretches = 0, fences = 0;
  bool was_direct = false;
  // No line comes again soon: inline is best.
  for (; stretches < 2 && fences < 20'000'000; ++fences) {
    bool is_direct = true;
    for (uint64_t i = 0; i < 8; ++i) {
      const bool is_called =
          flush_compiled(*thread, pages.begin() + (8 * fences + i) % 512 * 64) == By::kCall;
      is_direct &= !is_called;
      calls += is_called;
    }
    stretches += is_direct && !was_direct;
    was_direct = is_direct;
    ASSERT_TRUE(fence_compiled(*thread));
  }
  EXPECT_EQ(stretches, 2u);
  EXPECT_EQ(runtime->counts().asked_lines, calls);
  EXPECT_LT(calls, fences * 8 / 4);
  EXPECT_GT(calls, uint64_t{2} * Policy::kRounds * Policy::kWindowFences * 8);
  ASSERT_TRUE(runtime->leave(thread));
}

TEST(Direct, ChangesOfTheDomainsCloseIt) {
  for (const Way way : {Way::kInline, Way::kEpoch}) {
    Own runtime(way);
    const Pages pages(4), others(2);
    ASSERT_TRUE(runtime->add_domain(pages.domain()));
    Direct direct;
    Thread* const thread = runtime->enter(&direct);
    const auto is_open = [&] {
      return std::ranges::any_of(direct.ranges, [](const auto& range) { return range.load() != 0; });
    };
    const auto use = [&] {
      for (int again = 0; again < 3; ++again) flush_compiled(*thread, pages.begin());
    };
    use();
    EXPECT_TRUE(is_open());
    ASSERT_TRUE(runtime->add_domain(others.domain()));
    EXPECT_FALSE(is_open());
    EXPECT_EQ(direct.put_off.load(), &kNonePutOff);
    use();
    EXPECT_TRUE(is_open());
    EXPECT_EQ(direct.put_off.load() != &kNonePutOff, way == Way::kEpoch);
    ASSERT_TRUE(runtime->remove_domain(others.begin(), others.end()).value());
    EXPECT_FALSE(is_open());
    use();
    runtime->forget_places();
    EXPECT_FALSE(is_open());
    ASSERT_TRUE(runtime->leave(thread));
  }
}

// A line that waits for the fence was in a domain that is removed, and a file is mapped there: its next flush must reach the file, although lines of
// another domain may be put off.
TEST(Direct, WhatWasPutOffIsNotTakenForWhatIsMappedThereNow) {
  Own runtime(Way::kEpoch);
  const Pages pages(2), others(1);
  ASSERT_TRUE(runtime->add_domain(others.domain()));
  Thread* const thread = runtime->enter();
  for (uint64_t round = 1; round < 100; ++round) {
    ASSERT_TRUE(runtime->add_domain(pages.domain()));
    for (int again = 0; again < 3; ++again) flush_compiled(*thread, pages.begin());
    EXPECT_EQ(flush_compiled(*thread, pages.begin()), By::kNothing);
    ASSERT_TRUE(runtime->remove_domain(pages.begin(), pages.end()).value());
    ASSERT_TRUE(runtime->add_domain(pages.domain(DomainKind::kFile)));
    flush_compiled(*thread, others.begin());
    EXPECT_NE(thread->direct().put_off.load(), &kNonePutOff);
    EXPECT_EQ(flush_compiled(*thread, pages.begin()), By::kCall);
    EXPECT_EQ(runtime->counts().noted_lines, round);
    ASSERT_TRUE(fence_compiled(*thread));
    ASSERT_TRUE(runtime->remove_domain(pages.begin(), pages.end()).value());
  }
  ASSERT_TRUE(runtime->leave(thread));
}

// A thread flushes where another thread turns memory into a device and back: whatever it flushes once it knows of a device reaches that device.
TEST(Direct, NothingIsMissedWhileDomainsChange) {
  for (const Way way : {Way::kInline, Way::kEpoch, Way::kAuto}) {
    Own runtime(way);
    ShadowDevice device(2 * base::kOsPageBytes);
    std::atomic<uint64_t> made{0};  // odd: it is a device now
    std::atomic<uint64_t> used{0};  // the last one that the thread has used up to a fence
    std::atomic<bool> is_over{false};
    std::thread flusher([&] {
      Thread* const thread = runtime->enter();
      for (uint64_t i = 1; !is_over.load(); ++i) {
        const uint64_t now = made.load();
        char* const at = device.memory() + i % 4 * base::kLineBytes;
        for (uint64_t k = 0; k < 3; ++k) {
          store(at, 4 * i + k);
          flush_compiled(*thread, reinterpret_cast<uintptr_t>(at));
        }
        ASSERT_TRUE(fence_compiled(*thread));
        if (now % 2 != 0 && made.load() == now) ASSERT_TRUE(device.is_durable(at, base::kLineBytes)) << i;
        used.store(now);
      }
      ASSERT_TRUE(runtime->leave(thread));
    });
    for (uint64_t round = 1; round <= (kIsThreadSanitizer ? 100 : 400); ++round) {
      Domain domain = device.domain();
      if (round % 2 == 0) {
        domain.kind = DomainKind::kMemory;
        domain.device = nullptr;
      }
      ASSERT_TRUE(runtime->add_domain(domain));
      made.store(round);
      while (used.load() < round) std::this_thread::yield();
      // While the thread is in the middle of its next turn.
      made.store(round / 2 * 2);
      ASSERT_TRUE(runtime->remove_domain(domain.begin, domain.end).value());
    }
    is_over = true;
    flusher.join();
  }
}

}  // namespace
}  // namespace persist
