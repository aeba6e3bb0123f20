// Loops that look ahead (compiler/loops/Prefetch.h): what they compute is what they would compute without, at the end of memory too,
// and with everything there that may happen meanwhile. And what programs ask for by hand.
// expect: cache.prefetches>=500 cache.ahead_used>=100
// pages: 4K 16K
// chaos: 2
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "../../../include/spillway/spill.h"
#include "e2e.h"

enum { P = 4096, N = 1 << 18, M = 1 << 12 };

static uint64_t* a;
static uint32_t* b;
static uint32_t* rows;

__attribute__((noinline)) static uint64_t sum(const uint64_t* x, const uint32_t* y, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) s += x[y[i]];
  return s;
}

__attribute__((noinline)) static void count_up(uint64_t* x, const uint32_t* y, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (y[i] & 1) x[y[i]] += i;
}

__attribute__((noinline)) static uint64_t chain(const uint64_t* x, const uint32_t* y, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) s += x[x[y[i]] % N];
  return s;
}

__attribute__((noinline)) static uint64_t downwards(const uint64_t* x, const uint32_t* y, int64_t n) {
  uint64_t s = 0;
  for (int64_t i = n - 1; i >= 0; --i) s = s * 3 + x[y[i]];
  return s;
}

__attribute__((noinline)) static uint64_t by_row(const uint64_t* x, const uint32_t* column,
                                                 const uint32_t* row, size_t n) {
  uint64_t s = 0;
  for (size_t r = 0; r < n; ++r) {
    uint64_t t = 0;
    for (uint32_t e = row[r]; e < row[r + 1]; ++e) t += x[column[e]];
    s = s * 5 + t;
  }
  return s;
}

// Its end is in the data.
__attribute__((noinline)) static uint64_t until(const uint64_t* x, const uint32_t* y, uint32_t end) {
  uint64_t s = 0;
  for (size_t i = 0; y[i] != end; ++i) s = s * 7 + x[y[i]];
  return s;
}

__attribute__((noinline)) static uint64_t probe(const uint64_t* table, uint64_t size, const uint32_t* keys,
                                                size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) {
    uint64_t h = keys[i] * 0x9e3779b97f4a7c15 % size;
    while (table[h] % 3 != 0) h = h + 1 == size ? 0 : h + 1;
    s = s * 11 + h;
  }
  return s;
}

__attribute__((noinline)) static uint64_t columns(const uint64_t* x, size_t width, size_t height) {
  uint64_t s = 0;
  for (size_t c = 0; c < 3; ++c)
    for (size_t r = 0; r < height; ++r) s = s * 13 + x[r * width + c];
  return s;
}

__attribute__((noinline)) static uint64_t called(uint64_t s, const uint64_t* x) { return s * 17 + *x; }
__attribute__((noinline)) static uint64_t calls(const uint64_t* x, const uint32_t* y, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) s = called(s, &x[y[i]]);
  return s;
}

__attribute__((noinline)) static double floats(const uint64_t* x, const uint32_t* y, size_t n) {
  double s = 0, t = 1;
  for (size_t i = 0; i < n; ++i) {
    s += (double)(x[y[i]] & 0xff);
    t = t * 0.999 + s;
  }
  return s + t;
}

static volatile sig_atomic_t alarms;
static volatile uint64_t in_handler;
static void set_alarm(void) {
  const struct itimerval once = {{0, 0}, {0, 2000}};
  setitimer(ITIMER_REAL, &once, NULL);
}
static void on_alarm(int number) {
  (void)number;
  in_handler += sum(a, b, 300);
  if (++alarms < 5) set_alarm();
}

static void* work(void* seed) {
  const uint32_t* y = b + (uintptr_t)seed * 100;
  uint64_t* result = malloc(sizeof *result);
  *result = sum(a, y, M / 2) + downwards(a, y, M / 2);
  return result;
}

static void fill(void) {
  uint64_t seed = 1;
  a = spill_alloc(N * sizeof *a, 0);
  b = malloc((M + 1) * sizeof *b);
  rows = malloc((M / 8 + 1) * sizeof *rows);
  CHECK_SPILLED(a);
  for (size_t i = 0; i < N; ++i) a[i] = next_random(&seed);
  for (size_t i = 0; i < M; ++i) b[i] = (uint32_t)(next_random(&seed) % N);
  b[M] = ~0u;
  uint32_t at = 0;
  for (size_t r = 0; r <= M / 8; ++r) {
    rows[r] = at;
    at += (uint32_t)(next_random(&seed) % 16);
    if (at > M) at = M;
  }
}

// An array that ends where memory ends, plain and spilled, with a loop whose end is in it.
static void at_the_end(int flags) {
  char* memory = mmap(NULL, 3 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  CHECK(memory != MAP_FAILED && munmap(memory + 2 * P, P) == 0);
  uint32_t* end = (uint32_t*)(memory + 2 * P);
  uint64_t seed = 5;
  for (uint32_t* at = (uint32_t*)memory; at < end; ++at) *at = (uint32_t)(next_random(&seed) % N);
  end[-1] = ~0u;
  for (int round = 0; round < 3; ++round)
    printf("%lx %lx\n", (unsigned long)until(a, (uint32_t*)memory, ~0u),
           (unsigned long)sum(a, (uint32_t*)memory, (size_t)(end - 1 - (uint32_t*)memory)));
  CHECK(munmap(memory, 2 * P) == 0);
}

static void by_hand(void) {
  char* memory = spill_alloc(64 * P, P);
  CHECK((uintptr_t)memory % P == 0);
  CHECK_SPILLED(memory);
  for (int i = 0; i < 64; ++i) memset(memory + i * P, i, P);
  CHECK(spill_flush(memory, 64 * P) == 0);
  CHECK(spill_flush(memory + 100, 5) == 0 && spill_flush(memory, 0) == 0);
  CHECK(spill_pin(memory + 10, 20 * P) == 0);
  CHECK(spill_pin(memory + 10, 20 * P) == 0);
  memset(memory + 3 * P, 99, P);
  sum(a, b, M);
  spill_prefetch(memory, 64 * P);
  spill_prefetch(memory + 60 * P, 1 << 20);
  spill_prefetch(NULL, 1 << 20);
  for (int i = 0; i < 64; ++i) CHECK(memory[i * P + 7] == (i == 3 ? 99 : i));
  fflush(stdout);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    for (int i = 0; i < 64; ++i) CHECK(memory[i * P + 7] == (i == 3 ? 99 : i));
    CHECK(spill_unpin(memory + 10, 20 * P) == 0 && spill_unpin(memory + 10, 20 * P) == 0);
    printf("child %lx\n", (unsigned long)sum(a, b, M));
    exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(spill_unpin(memory + 10, 20 * P) == 0);
  CHECK(spill_unpin(memory + 10, 20 * P) == 0);
  if (runs_spilled()) {
    CHECK(spill_unpin(memory + 10, 20 * P) == -1 && errno == EINVAL);
    CHECK(spill_pin(memory, (size_t)1 << 42) == -1 && (errno == EINVAL || errno == ENOMEM));
    CHECK(spill_pin(a, N * sizeof *a) == -1 && errno == ENOMEM);
  }
  char plain[100];
  CHECK(spill_pin(plain, sizeof plain) == 0 && spill_flush(plain, sizeof plain) == 0 &&
        spill_unpin(plain, sizeof plain) == 0);
  CHECK(spill_pin(memory, 4 * P) == 0);
  spill_free(memory);
  spill_free(NULL);
  CHECK(madvise((void*)((uintptr_t)(a + 1000) & -(uintptr_t)P), 16 * P, MADV_WILLNEED) == 0);
}

int main(void) {
  fill();
  for (int round = 0; round < 2; ++round) {
    printf("%lx\n", (unsigned long)sum(a, b, M));
    count_up(a, b, M);
    printf("%lx\n", (unsigned long)chain(a, b, M / 2));
    printf("%lx\n", (unsigned long)downwards(a, b, M));
    printf("%lx\n", (unsigned long)by_row(a, b, rows, M / 8));
    printf("%lx\n", (unsigned long)until(a, b, ~0u));
    printf("%lx\n", (unsigned long)probe(a, N - 7, b, M / 2));
    printf("%lx\n", (unsigned long)columns(a, 600, N / 600));
    printf("%lx\n", (unsigned long)calls(a, b, M / 2));
    printf("%.6g\n", floats(a, b, M));
  }
  at_the_end(0);
  at_the_end(MAP_STACK);

  signal(SIGALRM, on_alarm);
  set_alarm();
  uint64_t s = 0;
  while (alarms < 5) s = sum(a, b, M);
  printf("%lx\n", (unsigned long)s);
  CHECK(in_handler == (uint64_t)alarms * sum(a, b, 300));

  pthread_t threads[3];
  for (uintptr_t i = 0; i < 3; ++i) CHECK(pthread_create(&threads[i], NULL, work, (void*)i) == 0);
  for (int i = 0; i < 3; ++i) {
    void* result;
    CHECK(pthread_join(threads[i], &result) == 0);
    printf("%lx\n", (unsigned long)*(uint64_t*)result);
  }
  by_hand();
  return 0;
}
