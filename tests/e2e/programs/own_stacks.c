// Stacks that the program allocates itself: for signal handlers, contexts and threads.
// flags: -pthread
// case: signal
// case: context
// case: thread
// memory: 2560K
// pages: 16K 4K
// chaos: 2
// expect: cache.evictions>=500
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "e2e.h"

enum { kStackBytes = 128 << 10 };

static unsigned* data;
enum { kWords = 900000 };

// Uses a few pages of the stack and a lot of other memory.
__attribute__((noinline)) static unsigned work(unsigned depth) {
  volatile unsigned local[900];
  for (unsigned i = 0; i < 900; ++i) local[i] = i * depth;
  for (unsigned i = depth; i < kWords; i += 1001) ++data[i];
  unsigned deeper = depth > 0 ? work(depth - 1) : 0;
  unsigned sum = deeper;
  for (unsigned i = 0; i < 900; ++i) sum += local[i];
  return sum;
}
static unsigned expected(void) {
  unsigned sum = 0;
  for (unsigned depth = 0; depth <= 7; ++depth) sum += depth * (899 * 900 / 2);
  return sum;
}

static volatile int handled;
static char* low;
static void on_signal(int number) {
  char here;
  CHECK(number == SIGUSR1 && &here >= low && &here < low + kStackBytes);
  CHECK(work(7) == expected());
  ++handled;
}

static ucontext_t main_context, contexts[8];
static unsigned results[8];
static void run_context(int n) {
  for (int turn = 0; turn < 1; ++turn) {
    results[n] += work(7);
    swapcontext(&contexts[n], &contexts[(n + 1) % 8]);
  }
}

static void* run_thread(void* unused) {
  (void)unused;
  CHECK(work(7) == expected());
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  data = calloc(kWords, 4);
  CHECK_SPILLED(data);
  if (strcmp(argv[1], "signal") == 0) {
    stack_t stack = {0};
    low = stack.ss_sp = malloc(kStackBytes);
    stack.ss_size = kStackBytes;
    CHECK(sigaltstack(&stack, NULL) == 0);
    struct sigaction action = {0};
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int n = 0; n < 4; ++n) {
      push_out(2 << 20);
      raise(SIGUSR1);
    }
    stack_t now;
    CHECK(sigaltstack(NULL, &now) == 0 && now.ss_size == kStackBytes);
    printf("%d handled\n", handled);
  } else if (strcmp(argv[1], "context") == 0) {
    for (int n = 0; n < 8; ++n) {
      CHECK(getcontext(&contexts[n]) == 0);
      contexts[n].uc_stack.ss_sp = malloc(kStackBytes);
      contexts[n].uc_stack.ss_size = kStackBytes;
      contexts[n].uc_link = &main_context;
      makecontext(&contexts[n], (void (*)(void))run_context, 1, n);
    }
    CHECK(swapcontext(&main_context, &contexts[0]) == 0);
    for (int n = 0; n < 8; ++n) printf("%u\n", results[n] / expected());
  } else {
    for (int round = 0; round < 3; ++round) {
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      char* stack = mmap(NULL, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      CHECK(pthread_attr_setstack(&attributes, stack, kStackBytes) == 0);
      pthread_t thread;
      CHECK(pthread_create(&thread, &attributes, run_thread, NULL) == 0);
      CHECK(pthread_join(thread, NULL) == 0);
      munmap(stack, kStackBytes);
      // The older way: the end alone, and the size by itself.
      pthread_attr_init(&attributes);
      stack = mmap(NULL, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      CHECK(pthread_attr_setstackaddr(&attributes, stack + kStackBytes) == 0);
      CHECK(pthread_attr_setstacksize(&attributes, kStackBytes) == 0);
      CHECK(pthread_create(&thread, &attributes, run_thread, NULL) == 0);
      CHECK(pthread_join(thread, NULL) == 0);
      munmap(stack, kStackBytes);
    }
    printf("threads\n");
  }
  return 0;
}
