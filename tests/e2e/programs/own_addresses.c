// A program that wants addresses which the runtime keeps for itself: it gets none, and its data is not harmed.
// levels: O2
// spillcc: -DSPILLED
#define _GNU_SOURCE
#include <sys/mman.h>
#include "e2e.h"
#define RW (PROT_READ | PROT_WRITE)
#define AN (MAP_PRIVATE | MAP_ANONYMOUS)
enum { P = 4096, N = 2048 };

// Natively there is nothing at these addresses; what is asked for is said only when spilled.
#ifdef SPILLED
static void expect_refused(int result) {
  CHECK(result == -1);
  CHECK(errno == ENOMEM);
}

static void ask_for(char* at, size_t bytes) {
  CHECK(mmap(at, bytes, RW, AN | MAP_FIXED, -1, 0) == MAP_FAILED && errno == ENOMEM);
  CHECK(mmap(at, bytes, RW, AN | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
  CHECK(mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
  expect_refused(munmap(at, bytes));
  expect_refused(mprotect(at, bytes, PROT_NONE));
  expect_refused(madvise(at, bytes, MADV_DONTNEED));
  char* own = mmap(0, bytes, RW, AN | MAP_STACK, -1, 0);
  CHECK(own != MAP_FAILED);
  CHECK(mremap(own, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED && errno == ENOMEM);
  CHECK(munmap(own, bytes) == 0);
  // A hint is a hint.
  char* elsewhere = mmap(at, bytes, RW, AN, -1, 0);
  CHECK(elsewhere != MAP_FAILED && (elsewhere < at || elsewhere >= at + bytes));
  CHECK(munmap(elsewhere, bytes) == 0);
}
#endif

int main(int argc, char** argv) {
  char* data = malloc(N * P);
  for (int i = 0; i < N; ++i) memset(data + i * P, i, P);
  CHECK_SPILLED(data);
#ifdef SPILLED
  ask_for((char*)kPublished, P);
  ask_for((char*)kUnregisteredSlots, P);
  ask_for((char*)kPublished - 0xe000, 0x20000);
  ask_for((char*)kTableBase + ((uint64_t)data >> kTableShift) * 8 / P * P, P);  // the entries of data
#endif
  for (int i = 0; i < N; ++i) CHECK(data[i * P + 77] == (char)i);
  puts("unharmed");
}
