// Large reservations cost nothing until they are touched; memory that lies on storage keeps its content when it is
// moved, cut and grown; and what is mapped without access first.
// storage: /var/tmp
// expect: cache.evictions>=500
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

#define P 4096
#define TIB ((size_t)1 << 40)
#define RW (PROT_READ | PROT_WRITE)
#define AN (MAP_PRIVATE | MAP_ANONYMOUS)

static void reserve(void) {
  const size_t before = resident_bytes();
  char* parts[3];
  for (int i = 0; i < 3; ++i) {
    parts[i] = mmap(NULL, TIB, RW, AN | MAP_NORESERVE, -1, 0);
    CHECK(parts[i] != MAP_FAILED);
    CHECK_SPILLED(parts[i]);
  }
  // A byte for each 2 MiB says what is allocated.
  CHECK(resident_bytes() - before < 4 << 20);
  for (size_t i = 0; i < 200; ++i) parts[i % 3][i * (TIB / 200) + i] = (char)i;
  push_out(4 << 20);
  for (size_t i = 0; i < 200; ++i) {
    const char* at = parts[i % 3] + i * (TIB / 200);
    CHECK(at[i] == (char)i && at[i + 1] == 0 && at[i ^ 1 << 20] == 0);
  }
  CHECK(munmap(parts[0] + TIB / 4, TIB / 2) == 0);
  CHECK(parts[0][0] == 0 && parts[0][198 * (TIB / 200) + 198] == (char)198);
  CHECK(munmap(parts[0], TIB) == 0 && munmap(parts[1], TIB) == 0 && munmap(parts[2], TIB) == 0);
  puts("reserve");
}

static char* filled(size_t pages, char first) {
  char* memory = mmap(NULL, pages * P, RW, AN, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK_SPILLED(memory);
  for (size_t i = 0; i < pages; ++i) memory[i * P + i] = (char)(first + i);
  push_out(2 << 20);
  return memory;
}
static void expect(const char* memory, size_t from, size_t to, char first) {
  for (size_t i = from; i < to; ++i)
    CHECK(memory[i * P + i] == (char)(first + i) && memory[i * P + i + 1] == 0);
}
static void expect_zeros(const char* memory, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i) CHECK(memory[i * P + i] == 0);
}

static void move(void) {
  for (int round = 0; round < 3; ++round) {
    char* memory = filled(100, 'a');
    memory = mremap(memory, 100 * P, 60 * P, 0);
    CHECK(memory != MAP_FAILED);
    memory = mremap(memory, 60 * P, 300 * P, MREMAP_MAYMOVE);
    CHECK(memory != MAP_FAILED);
    expect(memory, 0, 60, 'a');
    expect_zeros(memory, 60, 300);
    // Something behind it: it cannot grow where it is.
    char* other = filled(50, 'm');
    char* moved = mremap(memory, 300 * P, 700 * P, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED);
    expect(moved, 0, 60, 'a');
    expect_zeros(moved, 60, 700);
    // Over what the other one has, in its middle.
    char* fixed = mremap(moved + 10 * P, 20 * P, 20 * P, MREMAP_MAYMOVE | MREMAP_FIXED, other + 10 * P);
    CHECK(fixed == other + 10 * P);
    expect(other, 0, 10, 'm');
    expect(other, 30, 50, 'm');
    for (size_t i = 10; i < 30; ++i) CHECK(other[i * P + i] == (char)('a' + i));
    expect(moved, 0, 10, 'a');
    expect(moved, 30, 60, 'a');
    CHECK(mremap(other, 50 * P, 50 * P, MREMAP_MAYMOVE | MREMAP_FIXED, other + 20 * P) == MAP_FAILED &&
          errno == EINVAL);
    CHECK(mremap(other + 1, P, P, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    CHECK(munmap(moved, 700 * P) == 0 && munmap(other, 50 * P) == 0);
  }
  puts("move");
}

static void commit_later(void) {
  const size_t before = resident_bytes();
  char* memory = mmap(NULL, TIB, PROT_NONE, AN | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK_SPILLED(memory);
  CHECK(resident_bytes() - before < 4 << 20);
  for (size_t i = 0; i < 64; ++i) {
    CHECK(mprotect(memory + i * (16 << 20), 16 * P, RW) == 0);
    memory[i * (16 << 20) + 16 * P - 1] = (char)i;
  }
  push_out(2 << 20);
  for (size_t i = 0; i < 64; ++i) CHECK(memory[i * (16 << 20) + 16 * P - 1] == (char)i);
  CHECK(mprotect(memory, 16 * P, PROT_READ) == 0 && memory[16 * P - 1] == 0);
  CHECK(mprotect(memory, TIB, PROT_NONE) == 0 && mprotect(memory, TIB, RW) == 0);
  CHECK(memory[(16 << 20) + 16 * P - 1] == 1 && memory[TIB - 1] == 0);
  CHECK(munmap(memory, TIB) == 0);
  puts("commit later");
}

int main(void) {
  reserve();
  move();
  commit_later();
  return 0;
}
