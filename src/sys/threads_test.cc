#include "sys/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <iterator>
#include <string>

#include "base/bits.h"
#include "sys/kernel.h"
#include "sys/lock.h"

namespace sys {
namespace {

thread_local int own_value = 5;

struct Seen {
  bool ran = false;
  int value = 0;
  char name[16] = {};
  sigset_t mask;
};

TEST(Threads, RunNamedWithSignalsBlockedAndThreadLocals) {
  own_value = 6;
  Seen seen;
  auto thread = start_thread(
      [](void* argument) {
        auto& s = *static_cast<Seen*>(argument);
        s.value = own_value;
        pthread_getname_np(pthread_self(), s.name, sizeof s.name);
        pthread_sigmask(SIG_BLOCK, nullptr, &s.mask);
        s.ran = true;
      },
      &seen, "spillway-test");
  ASSERT_TRUE(thread.has_value()) << thread.error().message;
  join_thread(*thread);
  EXPECT_TRUE(seen.ran);
  EXPECT_EQ(seen.value, 5);
  EXPECT_EQ(std::string(seen.name), "spillway-test");
  for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGPROF, SIGRTMIN, SIGRTMAX})
    EXPECT_EQ(sigismember(&seen.mask, signal), 1) << signal;
  sigset_t own_mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &own_mask);
  EXPECT_EQ(sigismember(&own_mask, SIGUSR1), 0) << "the starter's mask is as it was";
}

TEST(Threads, AreCountedUntilTheyReturn) {
  const uint32_t before = started_thread_count();
  std::atomic<uint32_t> may_return{0};
  auto thread = start_thread(
      [](void* word) {
        auto& released = *static_cast<std::atomic<uint32_t>*>(word);
        while (released.load() == 0) futex_wait(released, 0);
      },
      &may_return, "spillway-test");
  ASSERT_TRUE(thread.has_value()) << thread.error().message;
  EXPECT_EQ(started_thread_count(), before + 1);
  may_return = 1;
  futex_wake(may_return, 1);
  join_thread(*thread);
  EXPECT_EQ(started_thread_count(), before);
}

TEST(Cpus, HaveAnyNumbers) {
  Cpus cpus;
  EXPECT_EQ(cpu_at(cpus, 0), kNoCpu);
  constexpr uint32_t kNumbers[] = {3, 64, 1023, 1024, 1500, kMaxCpus - 1};
  for (const uint32_t cpu : kNumbers) base::set_bit(cpus.words, cpu);
  for (uint32_t i = 0; i < 2 * std::size(kNumbers); ++i)
    EXPECT_EQ(cpu_at(cpus, i), kNumbers[i % std::size(kNumbers)]) << i;
}

TEST(Cpus, AreThoseOfTheThread) {
  const Cpus before = own_cpus();
  const uint32_t last = cpu_at(before, cpu_count() - 1);
  ASSERT_NE(last, kNoCpu);
  Cpus one;
  EXPECT_FALSE(stay_on(one));
  base::set_bit(one.words, last);
  ASSERT_TRUE(stay_on(one));
  EXPECT_EQ(cpu_count(), 1u);
  EXPECT_EQ(cpu_at(own_cpus(), 7), last);
  EXPECT_TRUE(stay_on(before));
}

// As in threads of the program: setuid() waits until all threads have handled its signal.
TEST(Threads, TakeTheCLibrarysSignalsWhateverTheirStarterBlocks) {
  constexpr uint64_t kLibrarys = uint64_t{3} << (32 - 1);
  const uint64_t all = ~uint64_t{0};
  uint64_t before = 0, kept = 0, seen = kLibrarys;
  ASSERT_EQ(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all), 0);
  auto thread = start_thread(
      [](void* mask) { syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, mask, sizeof(uint64_t)); }, &seen,
      "spillway-test");
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, &kept, sizeof before);
  ASSERT_TRUE(thread.has_value()) << thread.error().message;
  join_thread(*thread);
  EXPECT_EQ(seen & kLibrarys, 0u);
  EXPECT_EQ(kept & kLibrarys, kLibrarys) << "the starter's mask is as it was";
}

}  // namespace
}  // namespace sys
