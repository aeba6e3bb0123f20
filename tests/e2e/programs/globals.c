// Arrays and tables of static storage in spilled memory: what they hold before the first constructor, addresses
// of them in constants, all kinds of accesses, the C library and the kernel on them, threads, fork.
// flags: -pthread
// pages: 4K 8K 16K
// spillcc: -fspill-globals=1
// levels: O0 O2 lto static-pie
// expect: cache.evictions>=300 spill.globals_bytes>=1000000
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "e2e.h"

#define COUNT 60000
struct Node {
  char name[12];
  struct Node* next;
  uint64_t* number;
} __attribute__((packed));

uint64_t zeroed[COUNT];
static uint32_t filled[50000] = {7, 8, 9, [49999] = 10};
struct Node nodes[20000];
struct Node first_nodes[3000] = {
    {"a", &first_nodes[2999], &zeroed[COUNT - 1]}, [2999] = {"z", first_nodes, zeroed + 1}};
uint64_t* const middle = &zeroed[COUNT / 2];
uint64_t* end_of_zeroed = zeroed + COUNT;
static struct Node** table_of_tables[] = {0};
struct Node* pointers[1000] = {[10] = &nodes[10]};
_Atomic uint64_t sums[4096];
__attribute__((weak)) int weak_values[2000] = {1, 2, 3};
__attribute__((aligned(65536))) char aligned[100000];
static char small = 'x';
static const char constant[20000] = "constant";
static _Thread_local uint64_t own[2000];
__attribute__((section("chosen"))) uint64_t placed[1000] = {1};
int seen_by_constructor;

__attribute__((constructor(101))) static void check_early(void) {
  CHECK(filled[0] == 7 && filled[49999] == 10 && filled[3] == 0);
  CHECK(first_nodes[0].next == &first_nodes[2999] && first_nodes[2999].next->number == &zeroed[COUNT - 1]);
  CHECK(pointers[10] == &nodes[10] && weak_values[2] == 3 && small == 'x' && placed[0] == 1);
  zeroed[5] = 55;
  seen_by_constructor = 1;
}
__attribute__((destructor(101))) static void check_late(void) {
  CHECK(filled[0] == 7);
  puts("destructor");
}

static uint64_t walk(void) {
  uint64_t sum = 0;
  for (int i = 0; i < 20000; ++i) {
    nodes[i].next = &nodes[(i * 7919 + 1) % 20000];
    nodes[i].number = &zeroed[i * 2];
    snprintf(nodes[i].name, sizeof nodes[i].name, "n%d", i);
  }
  struct Node* at = nodes;
  for (int i = 0; i < 30000; ++i) {
    *at->number += (uint64_t)i;
    sum = sum * 31 + (uint64_t)(at - nodes) + (uint64_t)at->name[1];
    at = at->next;
  }
  return sum;
}

static void* add(void* argument) {
  uint64_t state = (uintptr_t)argument;
  for (int i = 0; i < 20000; ++i) {
    atomic_fetch_add(&sums[next_random(&state) % 4096], 1);
    own[i % 2000] += 1;
  }
  return own;
}

static void check_threads(void) {
  pthread_t threads[2];
  for (uintptr_t i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, add, (void*)(i + 1)) == 0);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  uint64_t sum = 0;
  for (int i = 0; i < 4096; ++i) sum += sums[i];
  CHECK(sum == 40000);
}

static void check_kernel(void) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  memset(aligned, 'k', sizeof aligned);
  CHECK(write(ends[1], aligned + 5000, 9000) == 9000);
  CHECK(read(ends[0], aligned + 50000, 9000) == 9000 && aligned[50001] == 'k');
  // What cannot be done to a global says so.
  if (runs_spilled()) {
    CHECK(munmap(aligned, 65536) == -1 && errno == EINVAL);
    char* before = (char*)((uintptr_t)&small & ~(uintptr_t)4095);
    if (before < aligned) CHECK(munmap(before, (size_t)(aligned + 4096 - before)) == -1 && errno == EINVAL);
    CHECK(mprotect(aligned, 65536, PROT_READ) == -1 && errno == EACCES);
    CHECK(mremap(aligned, 65536, 131072, MREMAP_MAYMOVE) == MAP_FAILED);
    CHECK(mmap(aligned, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
    CHECK(aligned[65535] == 'k');
  }
}

static void on_signal(int number) { zeroed[1000] += (uint64_t)number; }

static void check_signals(void) {
  signal(SIGUSR1, on_signal);
  const uint64_t before = zeroed[1000];
  for (int i = 0; i < 50; ++i) {
    raise(SIGUSR1);
    filled[i * 900 + 20] += 1;
  }
  CHECK(zeroed[1000] == before + 50 * SIGUSR1);
}

static void check_fork(void) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    filled[40000] = 77;
    _exit(filled[40000] == 77 && filled[0] == 7 ? 5 : 6);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
  CHECK(filled[40000] == 0);
}

static int compare(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return x < y ? -1 : x > y;
}

int main(void) {
  CHECK(seen_by_constructor && end_of_zeroed - zeroed == COUNT && middle - zeroed == COUNT / 2);
  uint64_t state = 1, sum = 0;
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < COUNT; ++i) zeroed[i] = zeroed[i] * 3 + next_random(&state);
  zeroed[5] = 0;
  check_threads();
  check_kernel();
  check_signals();
  check_fork();
  printf("%016llx\n", (unsigned long long)walk());
  for (int i = 0; i < COUNT; i += 3) sum = sum * 31 + middle[i - COUNT / 2];
  for (int i = 0; i < 50000; ++i) sum = sum * 31 + filled[i];
  for (int i = 0; i < 20000; ++i) sum = sum * 31 + (uint64_t)constant[i];
  qsort(zeroed, COUNT, sizeof *zeroed, compare);
  for (int i = 1; i < COUNT; ++i) CHECK(zeroed[i - 1] <= zeroed[i]);
  memmove(zeroed + 3, zeroed, sizeof zeroed - 3 * sizeof *zeroed);
  printf("%016llx %016llx %s\n", (unsigned long long)sum, (unsigned long long)zeroed[COUNT / 3],
         first_nodes[0].next->name);
  table_of_tables[0] = pointers;
  CHECK(table_of_tables[0][10] == &nodes[10] && weak_values[0] == 1 && placed[0] == 1);
  zeroed[5] = 55;
  return 0;
}
