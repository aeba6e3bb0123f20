// Contexts and environments of setjmp that are spilled themselves, more of them than code that spillcc did not compile
// has mapped at a time: masks, registers of the processor's floating point, successors, jumps out of handlers.
// flags: -lm
// levels: O0 O2 O3
// pages: 4K 16K
// chaos: 2
// expect: cache.evictions>=100 spill.faults<=20
#define _GNU_SOURCE
#include <fenv.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "e2e.h"

enum { kCount = 150, kRounds = 4, kStackBytes = 32 << 10 };
static char stacks[kCount][kStackBytes] __attribute__((aligned(16)));
static ucontext_t *back, *contexts[kCount];
static char* tables[kCount];
static char* not_compiled;
static int ended = 0;

// Somewhere in a page of its own, also across its end.
static void* spilled_at(size_t bytes, size_t at) {
  char* block = aligned_alloc(4096, 8192);
  CHECK_SPILLED(block);
  memset(block, 0x5a, 8192);
  return block + (4096 - bytes + at % bytes) / 16 * 16;
}

static int blocks(int number) {
  sigset_t now;
  CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
  return sigismember(&now, number);
}
static void block(int how, int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  CHECK(sigprocmask(how, &set, NULL) == 0);
}

static void body(int low, int n, double none, int third, int fourth, int fifth, int sixth, int seventh) {
  (void)none;
  CHECK(low == n + 1 && third == 3 && fourth == 4 && fifth == 5 && sixth == 6 && seventh == 7);
  double sum = n;
  for (int i = 0; i < kRounds; ++i) {
    tables[n][i * 100] += (char)n;
    sum += i * 0.5;
    CHECK(!blocks(SIGUSR1) && blocks(SIGUSR2) == n % 2);
    // Code that spillcc did not compile, while faults are blocked.
    if (n == 10) CHECK(fnmatch("a *e", not_compiled, 0) == 0);
    if (n % 3 == 0) CHECK(fesetround(FE_UPWARD) == 0);
    CHECK(swapcontext(contexts[n], back) == 0);
    CHECK(fegetround() == (n % 3 == 0 ? FE_UPWARD : FE_TONEAREST));
    CHECK(tables[n][i * 100] == (char)n);
  }
  CHECK(sum == n + 3.0);
  ++ended;
}

// All go on in turns; each ends in its successor.
static void many_contexts(void) {
  back = spilled_at(sizeof *back, 500);
  not_compiled = strcpy(malloc(5000), "a text of code");
  CHECK_SPILLED(not_compiled);
  HIDE(not_compiled);
  push_out(3000000);
  for (int n = 0; n < kCount; ++n) {
    ucontext_t* c = contexts[n] = spilled_at(sizeof *c, (size_t)n * 16);
    tables[n] = calloc(1, 4096);
    CHECK(getcontext(c) == 0);
    c->uc_stack.ss_sp = stacks[n];
    c->uc_stack.ss_size = kStackBytes;
    c->uc_link = back;
    if (n % 2) sigaddset(&c->uc_sigmask, SIGUSR2);
    if (n == 10) sigaddset(&c->uc_sigmask, SIGSEGV);
    makecontext(c, (void (*)(void))body, 7, n + 1, n, 3, 4, 5, 6, 7);
  }
  block(SIG_BLOCK, SIGUSR1);
  for (int round = 0; round <= kRounds; ++round) {
    for (int n = 0; n < kCount; ++n) {
      CHECK(swapcontext(back, contexts[n]) == 0);
      CHECK(blocks(SIGUSR1) && !blocks(SIGUSR2));
      CHECK(fegetround() == FE_TONEAREST);
    }
  }
  block(SIG_UNBLOCK, SIGUSR1);
  printf("%d contexts ended\n", ended);
}

// A context that is gone on with twice by setcontext; locals live on the stack meanwhile.
static void again(void) {
  ucontext_t* here = spilled_at(sizeof *here, 300);
  volatile int times = 0;
  block(SIG_BLOCK, SIGUSR2);
  CHECK(getcontext(here) == 0);
  CHECK(blocks(SIGUSR2));
  block(SIG_UNBLOCK, SIGUSR2);
  push_out(3000000);
  if (++times < 3) setcontext(here);
  ucontext_t plain;
  volatile int plain_times = 0;
  CHECK(getcontext(&plain) == 0);
  if (++plain_times < 3) setcontext(&plain);
  // One is plain and one is not, either way.
  ucontext_t* other = spilled_at(sizeof *other, 700);
  volatile int steps = 0;
  CHECK(getcontext(other) == 0);
  if (steps++ == 0) CHECK(swapcontext(&plain, other) == 0);
  if (steps++ == 2) setcontext(&plain);
  printf("%d %d %d times\n", times, plain_times, steps);
}

static jmp_buf* jumps[kCount];
static sigjmp_buf* signal_jumps[kCount];
static void on_signal(int number) { siglongjmp(*signal_jumps[number == SIGUSR1 ? 0 : 1], number); }

__attribute__((noinline)) static void deep(int depth, jmp_buf to) {
  char local[300];
  memset(local, depth, sizeof local);
  char* hidden = local;
  HIDE(hidden);
  if (depth == 0) longjmp(to, 17);
  deep(depth - 1, to);
  CHECK(hidden[7] == depth);
}

static void environments(void) {
  volatile long sum = 0;
  for (int n = 0; n < kCount; ++n) {
    jumps[n] = spilled_at(sizeof(jmp_buf), (size_t)n * 16);
    signal_jumps[n] = spilled_at(sizeof(sigjmp_buf), (size_t)n * 16);
    volatile int kept = n;
    const int value = setjmp(*jumps[n]);
    if (value == 0) deep(20, *jumps[n]);
    CHECK(value == 17 && kept == n);
    sum += kept;
    // With the mask and without, wherever in the page that lies.
    for (int saves = 0; saves < 2; ++saves) {
      const int came = sigsetjmp(*signal_jumps[n], saves);
      if (came == 0) {
        block(SIG_BLOCK, SIGUSR1);
        push_out(n % 16 == 0 ? 2000000 : 4096);
        siglongjmp(*signal_jumps[n], 5);
      }
      CHECK(came == 5 && blocks(SIGUSR1) == !saves);
      block(SIG_UNBLOCK, SIGUSR1);
    }
  }
  struct sigaction action = {.sa_handler = on_signal};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
  for (volatile int i = 0; i < 300; ++i) {
    const int number = i % 2 ? SIGUSR1 : SIGUSR2;
    const int came = sigsetjmp(*signal_jumps[i % 2 ? 0 : 1], 1);
    if (came == 0) raise(number);
    CHECK(came == number && !blocks(number));
    sum += came == SIGUSR1;
  }
  printf("jumps %ld\n", sum);
}

static ucontext_t plain_here, plain_there;
static char plain_stack[65536];
static char* far_memory;
// What the fault path needs is never blocked, whatever mask a context has.
static void with_all_blocked(void) {
  CHECK(blocks(SIGUSR1));
  CHECK(foreign_load(far_memory) == 7);
}
static void masked_context(void) {
  far_memory = malloc(1 << 20);
  HIDE(far_memory);
  for (int way = 0; way < 2; ++way) {
    memset(far_memory, 7, 1 << 20);
    push_out(2000000);
    CHECK(getcontext(&plain_there) == 0);
    plain_there.uc_stack.ss_sp = plain_stack;
    plain_there.uc_stack.ss_size = sizeof plain_stack;
    plain_there.uc_link = &plain_here;
    sigfillset(&plain_there.uc_sigmask);
    makecontext(&plain_there, with_all_blocked, 0);
    volatile int came = 0;
    if (way == 0) {
      CHECK(swapcontext(&plain_here, &plain_there) == 0);
    } else {
      CHECK(getcontext(&plain_here) == 0);
      if (came++ == 0) setcontext(&plain_there);
    }
    CHECK(!blocks(SIGUSR1));
  }
  free(far_memory);
  puts("masks");
}

int main(void) {
  many_contexts();
  masked_context();
  again();
  environments();
  return 0;
}
