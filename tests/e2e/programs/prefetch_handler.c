// A handler that interrupts a loop while it looks ahead, and forks: the child goes on with what was interrupted, and has no queue for it.
// levels: O2
// pages: 4K
// chaos: 1
// expect: cache.prefetches>=100
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "e2e.h"

enum { kWords = 1 << 18, kPlaces = 1 << 12, kAlarms = 10 };

static uint64_t* words;
static uint32_t* places;
static volatile sig_atomic_t alarms, is_child;

__attribute__((noinline)) static uint64_t sum(void) {
  uint64_t s = 0;
  for (size_t i = 0; i < kPlaces; ++i) s += words[places[i]];
  return s;
}

static void set_alarm(void) {
  const struct itimerval once = {{0, 0}, {0, 1000 + alarms * 37}};
  setitimer(ITIMER_REAL, &once, NULL);
}

static void on_alarm(int number) {
  (void)number;
  const pid_t child = fork();
  if (child == 0) {
    is_child = 1;
    return;
  }
  expect_end(child);
  if (++alarms < kAlarms) set_alarm();
}

int main(void) {
  uint64_t state = 1;
  words = malloc(kWords * sizeof *words);
  places = malloc(kPlaces * sizeof *places);
  CHECK_SPILLED(words);
  for (size_t i = 0; i < kWords; ++i) words[i] = next_random(&state);
  for (size_t i = 0; i < kPlaces; ++i) places[i] = (uint32_t)(next_random(&state) % kWords);
  const uint64_t known = sum();
  signal(SIGALRM, on_alarm);
  set_alarm();
  while (alarms < kAlarms) {
    const uint64_t s = sum();
    if (is_child) _exit(s == known ? 0 : 1);
    CHECK(s == known);
  }
  puts("looked");
  return 0;
}
