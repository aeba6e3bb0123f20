// The budget is lowered while another thread pins memory, or makes it a stack: one of the two is refused, since together they would leave no frames
// for anything else.
// flags: -pthread
// levels: O2
// memory: 16M
// pages: 4K
// chaos: 1
// case: pin
// case: stack
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "../../../include/spillway/spill.h"
#include "e2e.h"

// Pinned are more than half of the small budget, and less than half of the large one.
enum { P = 4096, kPinned = 600 * P, kSmall = 4 << 20, kLarge = 16 << 20, kRounds = 4000, kSecondsMost = 2 };

static char* memory;
static int is_stack, stays;
static pthread_attr_t attributes;
static _Atomic int begun, ended;  // rounds; -1: there are no more

static int keep(void) {
  return (is_stack ? pthread_attr_setstack(&attributes, memory, kPinned) : spill_pin(memory, kPinned)) == 0;
}

static void let_go(void) {
  if (!is_stack) {
    CHECK(spill_unpin(memory, kPinned) == 0);
    return;
  }
  spill_free(memory);
  memory = spill_alloc(kPinned, P);
  CHECK(memory != NULL);
}

static void wait_a_little(uint64_t* random) {
  for (volatile uint64_t left = next_random(random) % 512; left > 0; --left) {
  }
}

static int next_round(int last) {
  for (int spins = 1;; ++spins) {
    const int now = atomic_load(&begun);
    if (now != last) return now;
    if (spins % 1024 == 0) sched_yield();
  }
}

static void* keep_in_each_round(void* none) {
  uint64_t random = 1;
  for (int round = next_round(0); round != -1; round = next_round(round)) {
    wait_a_little(&random);
    stays = keep();
    atomic_store(&ended, round);
  }
  return none;
}

static long seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  is_stack = argv[1][0] == 's';
  memory = spill_alloc(kPinned, P);
  CHECK(memory != NULL && pthread_attr_init(&attributes) == 0);
  const int is_limited = spill_set_memory(kLarge) != ENOSYS;
  CHECK(!is_limited || is_spilled(memory));
  pthread_t other;
  CHECK(pthread_create(&other, NULL, keep_in_each_round, NULL) == 0);
  uint64_t random = 2;
  const long end = seconds() + kSecondsMost;
  for (int round = 1; round <= kRounds && seconds() < end; ++round) {
    atomic_store(&begun, round);
    wait_a_little(&random);
    const int is_lowered = spill_set_memory(kSmall) == 0;
    while (atomic_load(&ended) != round) sched_yield();
    CHECK(!is_lowered || !stays);
    if (stays) let_go();
    CHECK(spill_set_memory(kLarge) == (is_limited ? 0 : ENOSYS));
  }
  atomic_store(&begun, -1);
  CHECK(pthread_join(other, NULL) == 0);

  // Whichever comes first.
  CHECK(keep());
  CHECK(spill_set_memory(kSmall) == (is_limited ? EINVAL : ENOSYS));
  let_go();
  CHECK(spill_set_memory(kSmall) == (is_limited ? 0 : ENOSYS));
  CHECK(keep() == !is_limited);
  push_out(8 << 20);
  puts("one of the two");
  return 0;
}
