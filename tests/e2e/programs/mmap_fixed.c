// Patterns of mmap on anonymous memory: fixed addresses over memory of the program's own, holes, moves.
// levels: O2
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"
#define RW (PROT_READ | PROT_WRITE)
#define AN (MAP_PRIVATE | MAP_ANONYMOUS)
enum { P = 4096, N = 64 };
static char* fresh(void) {
  char* p = mmap(0, N * P, RW, AN, -1, 0);
  CHECK(p != MAP_FAILED);
  for (int i = 0; i < N; ++i) p[i * P] = p[i * P + 5] = i + 1;
  return p;
}
// What was moved stays mapped, and is zeros, whatever may be done with it.
static void stays_mapped(int protection) {
  char* from = fresh();
  char* to = mmap(0, 2 * N * P, RW, AN, -1, 0);
  to[4 * P] = 'd';
  CHECK(mprotect(from, N * P, protection) == 0);
  char* r = mremap(from + 8 * P, 8 * P, 8 * P, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to + 4 * P);
  CHECK(r == to + 4 * P);
  char* s = mremap(from + 32 * P, 8 * P, 8 * P, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
  CHECK(s != MAP_FAILED && s != from + 32 * P);
  CHECK(mprotect(from, N * P, RW) == 0 && mprotect(r, 8 * P, RW) == 0 && mprotect(s, 8 * P, RW) == 0);
  push_out(3 << 20);
  for (int i = 0; i < 8; ++i) CHECK(r[i * P + 5] == i + 9 && s[i * P + 5] == i + 33);
  for (int i = 0; i < N; ++i) {
    const int moved = (i >= 8 && i < 16) || (i >= 32 && i < 40);
    CHECK(from[i * P] == (moved ? 0 : i + 1) && from[i * P + 5] == from[i * P]);
  }
  from[9 * P] = 'n';
  CHECK(r[P] == 10 && munmap(from, N * P) == 0 && munmap(to, 2 * N * P) == 0 && munmap(s, 8 * P) == 0);
}
int main(int argc, char** argv) {
  char* p = fresh();
  CHECK_SPILLED(p);
  char* q = mmap(p + 4 * P, 4 * P, RW, AN | MAP_FIXED, -1, 0);
  CHECK(q == p + 4 * P);
  for (int i = 0; i < N; ++i) CHECK(p[i * P] == ((i >= 4 && i < 8) ? 0 : i + 1));
  p[5 * P] = 9;
  CHECK(p[5 * P] == 9);
  puts("fixed");
  // unmapped hole and remap in the hole
  CHECK(munmap(p + 20 * P, 4 * P) == 0);
  CHECK(munmap(p + 20 * P, 4 * P) == 0);
  q = mmap(p + 20 * P, 4 * P, RW, AN | MAP_FIXED, -1, 0);
  CHECK(q == p + 20 * P);
  CHECK(q[0] == 0);
  q[0] = 1;
  CHECK(p[20 * P] == 1);
  puts("hole");
  // remap
  char* m = fresh();
  char* r = mremap(m, N * P, 2 * N * P, MREMAP_MAYMOVE);
  CHECK(r != MAP_FAILED);
  for (int i = 0; i < N; ++i) CHECK(r[i * P + 5] == i + 1);
  for (int i = N; i < 2 * N; ++i) CHECK(r[i * P] == 0);
  r = mremap(r, 2 * N * P, 3 * P, 0);
  CHECK(r[2 * P] == 3);
  CHECK(mremap(r, 3 * P, 0, 0) == MAP_FAILED && errno == EINVAL);
  puts("mremap");
  char* d = fresh();
  CHECK(madvise(d + P, 3 * P, MADV_DONTNEED) == 0);
  CHECK(d[0] == 1 && d[P] == 0 && d[3 * P] == 0 && d[4 * P] == 5);
  CHECK(madvise(d + P + 1, P, MADV_DONTNEED) == -1 && errno == EINVAL);
  errno = 0;
  CHECK(madvise(d, 12345, 999) == -1);
  printf("madvise %d\n", errno);
  CHECK(munmap(d + 1, P) == -1 && errno == EINVAL);
  CHECK(munmap(d, 0) == -1 && errno == EINVAL);
  CHECK(mmap(0, 0, RW, AN, -1, 0) == MAP_FAILED && errno == EINVAL);
  char* e = mmap(d, P, RW, AN | MAP_FIXED_NOREPLACE, -1, 0);
  printf("noreplace %d %d\n", e == MAP_FAILED, e == MAP_FAILED ? errno : 0);
  CHECK(d[0] == 1);
  CHECK(mprotect(d, P, RW) == 0);
  char* t = fresh();
  char* big = mmap(0, (size_t)1 << 36, RW, AN | MAP_NORESERVE, -1, 0);
  CHECK(big != MAP_FAILED);
  big[(size_t)1 << 35] = 5;
  CHECK(big[((size_t)1 << 35) + 1] == 0 && big[(size_t)1 << 35] == 5);
  CHECK(munmap(big, (size_t)1 << 36) == 0);
  char* dst = mmap(0, N * P, RW, AN, -1, 0);
  r = mremap(t, 4 * P, 4 * P, MREMAP_MAYMOVE | MREMAP_FIXED, dst + 4 * P);
  CHECK(r == dst + 4 * P);
  CHECK(r[P] == 2 && dst[3 * P] == 0);
  stays_mapped(RW);
  stays_mapped(PROT_READ);
  stays_mapped(PROT_NONE);
  puts("done");
  return 0;
}
