// Calls that read into spilled memory and are left, by a jump out of a handler that interrupts them or with a thread that is cancelled: what they
// had pinned can leave memory again.
// flags: -pthread
// levels: O2
// pages: 4K 16K
// chaos: 2
// case: jump
// case: cancel
// case: cleanup
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
#include "e2e.h"

// So much that the kernel reads it into the pages themselves. All pages that calls leave pinned are many more than there are frames.
enum { kBytes = 256 << 10, kRounds = 150 };

static int file;
static char* blocks[kRounds];
static int round_number;
static int reads;
static sigjmp_buf out;

static void read_on(void) {
  for (;;) {
    CHECK(pread(file, blocks[round_number], kBytes, 0) == kBytes);
    __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
  }
}

static void leave(int number) { siglongjmp(out, number); }

static void jump_out(void) {
  struct itimerval soon = {.it_value = {.tv_usec = 1000}};
  if (sigsetjmp(out, 1) != 0) return;
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
  read_on();
}

static void* read_in_thread(void* unused) {
  read_on();
  return unused;
}

// What a cancelled thread still runs makes such calls, too.
static void read_again(void* block) { CHECK(pread(file, block, kBytes, 0) == kBytes); }

static void* read_and_clean_up(void* block) {
  pthread_cleanup_push(read_again, block);
  read_on();
  pthread_cleanup_pop(1);
  return block;
}

static void cancel(void* (*routine)(void*)) {
  pthread_t thread;
  void* result;
  __atomic_store_n(&reads, 0, __ATOMIC_RELAXED);
  CHECK(pthread_create(&thread, NULL, routine, blocks[0]) == 0);
  while (__atomic_load_n(&reads, __ATOMIC_RELAXED) == 0) sched_yield();
  CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  char* bytes = spilled_zeros(kBytes);
  for (int i = 0; i < kBytes; ++i) bytes[i] = (char)(i * 7);
  file = fileno(tmpfile());
  CHECK(file >= 0 && write(file, bytes, kBytes) == kBytes);
  signal(SIGALRM, leave);
  for (; round_number < kRounds; ++round_number) {
    blocks[round_number] = spilled_zeros(kBytes);
    if (strcmp(argv[1], "jump") == 0)
      jump_out();
    else
      cancel(strcmp(argv[1], "cancel") == 0 ? read_in_thread : read_and_clean_up);
  }
  CHECK(pread(file, blocks[0], kBytes, 0) == kBytes && memcmp(blocks[0], bytes, kBytes) == 0);
  printf("%s\n", argv[1]);
  return 0;
}
