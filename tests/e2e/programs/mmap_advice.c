// Advice on memory, by madvise and by process_madvise for the process itself: what drops content does, what nobody knows
// is refused, and holes are passed over.
// levels: O2
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "e2e.h"

enum { P = 4096, N = 256 };

static char* fresh(void) {
  char* memory = mmap(NULL, N * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK_SPILLED(memory);
  memset(memory, 7, N * P);
  push_out(2 << 20);
  return memory;
}

static void expect_zeros(const char* memory, int from, int to) {
  for (int i = from; i < to; ++i) CHECK(memory[i * P] == 0 && memory[i * P + P - 1] == 0);
}

// Pages [from, to) are zeros, and those beside them are not.
static void expect_dropped(const char* memory, int from, int to) {
  expect_zeros(memory, from, to);
  CHECK(memory[from * P - 1] == 7 && memory[to * P] == 7);
}

static void drop(int advice) {
  char* memory = fresh();
  CHECK(madvise(memory + 3 * P, 5 * P - 100, advice) == 0);
  expect_dropped(memory, 3, 8);
  CHECK(madvise(memory + 20 * P, 0, advice) == 0 && memory[20 * P] == 7);
  CHECK(munmap(memory, N * P) == 0);
}

static void unknown(void) {
  char* memory = fresh();
  static const int advice[] = {-1, 5, 6, 7, 26, 27, 40, 99, 104, 12345};
  for (size_t i = 0; i < sizeof advice / sizeof advice[0]; ++i) {
    CHECK(madvise(memory, P, advice[i]) == -1 && errno == EINVAL);
    CHECK(madvise(memory, 0, advice[i]) == -1 && errno == EINVAL);
  }
  // Guards: where the kernel has them, not in spilled memory.
  if (is_spilled(memory)) CHECK(madvise(memory, P, 102) == -1 && errno == EINVAL && memory[0] == 7);
  CHECK(madvise(memory, P, MADV_REMOVE) == -1 && errno == EINVAL);
  CHECK(munmap(memory, N * P) == 0);
}

static void holes(void) {
  char* memory = fresh();
  CHECK(munmap(memory + 5 * P, P) == 0 && munmap(memory + 9 * P, 2 * P) == 0);
  CHECK(madvise(memory + 2 * P, 10 * P, MADV_DONTNEED) == -1 && errno == ENOMEM);
  expect_zeros(memory, 2, 5);
  expect_zeros(memory, 6, 9);
  expect_zeros(memory, 11, 12);
  CHECK(memory[2 * P - 1] == 7 && memory[12 * P] == 7);
  CHECK(madvise(memory + 4 * P, 10 * P, MADV_WILLNEED) == -1 && errno == ENOMEM);
  CHECK(munmap(memory, N * P) == 0);
}

static volatile sig_atomic_t asks, alarms;
static void on_alarm(int number) {
  (void)number;
  alarms += asks;
}

static int64_t used_ms(void) {
  struct timespec used;
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0);
  return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

// Handlers do not wait until all of a long range was looked at, of which nothing was ever written.
static void long_range(void) {
  const size_t bytes = (size_t)64 << 30;
  char* memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK_SPILLED(memory);
  const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  CHECK(signal(SIGALRM, on_alarm) != SIG_ERR && setitimer(ITIMER_REAL, &often, NULL) == 0);
  const int64_t begin_ms = used_ms();
  asks = 1;
  CHECK(madvise(memory, bytes, MADV_WILLNEED) == 0);
  asks = 0;
  const int64_t took_ms = used_ms() - begin_ms;
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
  if (is_spilled(memory) && took_ms >= 20) CHECK(alarms >= 3);
  CHECK(munmap(memory, bytes) == 0);
}

static ssize_t by_function(int process, struct iovec* pieces, size_t count, int advice) {
  return process_madvise(process, pieces, count, advice, 0);
}
static ssize_t by_number(int process, struct iovec* pieces, size_t count, int advice) {
  return syscall(SYS_process_madvise, process, pieces, count, advice, 0);
}

// An older kernel refuses what drops content: then nothing is dropped, natively too.
static void of_process(int process, ssize_t (*call)(int, struct iovec*, size_t, int)) {
  char* memory = fresh();
  char* plain = mmap(NULL, 4 * P, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct iovec* pieces = malloc(3 * sizeof *pieces);
  HIDE(pieces);
  pieces[0] = (struct iovec){memory + P, 4 * P};
  pieces[1] = (struct iovec){plain, P};
  pieces[2] = (struct iovec){memory + 9 * P, P};
  CHECK(call(process, pieces, 3, MADV_COLD) == 6 * P);
  const ssize_t advised = call(process, pieces, 3, MADV_DONTNEED);
  CHECK(advised == 6 * P || (advised == -1 && errno == EINVAL));
  if (advised > 0) {
    expect_dropped(memory, 1, 5);
    expect_dropped(memory, 9, 10);
    // What comes before the piece that cannot be.
    memset(memory, 7, N * P);
    CHECK(munmap(memory + 6 * P, P) == 0);
    pieces[1].iov_base = memory + 6 * P;
    CHECK(call(process, pieces, 3, MADV_DONTNEED) == 4 * P);
    expect_dropped(memory, 1, 5);
    CHECK(memory[9 * P] == 7);
    CHECK(call(process, pieces + 1, 2, MADV_DONTNEED) == -1 && errno == ENOMEM);
  } else {
    CHECK(memory[P] == 7 && memory[9 * P] == 7);
  }
  printf("%zd\n", advised);
  CHECK(call(-1, pieces, 3, MADV_COLD) == -1 && errno == EBADF);
  CHECK(call(STDOUT_FILENO, pieces, 3, MADV_COLD) == -1 && errno == EBADF);
  CHECK(munmap(memory, N * P) == 0);
  free(pieces);
}

int main(void) {
  drop(MADV_DONTNEED);
  drop(MADV_DONTNEED_LOCKED);
  unknown();
  holes();
  long_range();
  const int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
  CHECK(process >= 0);
  of_process(process, by_function);
  of_process(process, by_number);
  puts("end");
  return 0;
}
