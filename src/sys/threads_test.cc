#include "sys/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <string>

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

}  // namespace
}  // namespace sys
