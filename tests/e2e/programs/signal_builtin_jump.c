// __builtin_longjmp out of signal handlers, more often than handlers may be nested: each jump ends its handler. Buffers on
// the stack, in static memory, and spilled; out of one handler and of two at once.
// levels: O0 O2
// chaos: 1
// pages: 4K
#define _GNU_SOURCE
#include <signal.h>
#include "e2e.h"

enum { kRounds = 300, kWords = 1 << 18 };

static void* fixed[5];
static void** buffer;
static volatile int depth;
static unsigned* words;  // spilled
static volatile unsigned added;

static void jump(void) {
  void** to = buffer;
  HIDE(to);
  __builtin_longjmp(to, 1);
}

static void handle(int number) {
  (void)number;
  for (unsigned i = 0; i < 20; ++i, ++added) ++words[(added * 7919u) % kWords];
  if (depth-- > 0)
    raise(SIGUSR1);
  else
    jump();
  CHECK(0);
}

// What survives the jump lies in memory: nothing in registers does.
__attribute__((noinline)) static void leave_by(void** into, int nested) {
  buffer = into;
  depth = nested;
  if (__builtin_setjmp(into) == 0) {
    raise(SIGUSR1);
    CHECK(0);
  }
}

__attribute__((noinline)) static void on_the_stack(int nested) {
  void* local[5];
  buffer = local;
  depth = nested;
  if (__builtin_setjmp(local) == 0) {
    raise(SIGUSR1);
    CHECK(0);
  }
}

int main(void) {
  words = calloc(kWords, sizeof *words);
  void** spilled = malloc(5 * sizeof(void*));
  CHECK_SPILLED(words);
  CHECK_SPILLED(spilled);
  struct sigaction action = {0};
  action.sa_handler = handle;
  action.sa_flags = SA_NODEFER;
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  for (volatile int round = 0; round < kRounds; ++round) {
    leave_by(fixed, round % 3);
    on_the_stack(round % 3);
    leave_by(spilled, round % 3);
  }
  unsigned sum = 0;
  for (unsigned i = 0; i < kWords; ++i) sum += words[i];
  CHECK(sum == added);
  printf("%u\n", sum);
  return 0;
}
