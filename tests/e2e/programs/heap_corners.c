// Corners of the malloc family: what it returns, its alignment, its errors and errno, as the C library's.
// levels: O2
// flags: -pthread
// pages: 4K 16K
// chaos: 1
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include "e2e.h"
static void* freer(void* x) {
  void** v = x;
  for (int i = 0; i < 1000; ++i) {
    free(v[i]);
    v[i] = malloc(i * 7 + 1);
  }
  return 0;
}
static uint64_t r = 3;
static void grow_and_shrink(void) {
  for (int k = 0; k < 30; ++k) {
    size_t n = 1 + next_random(&r) % 100;
    unsigned char* p = malloc(n);
    memset(p, k, n);
    for (int i = 0; i < 40; ++i) {
      size_t m = 1 + next_random(&r) % (i % 7 == 0 ? 2000000 : i % 3 ? 5000 : 100000);
      p = realloc(p, m);
      size_t c = m < n ? m : n;
      CHECK(p[0] == (unsigned char)k);
      CHECK(p[c - 1] == (unsigned char)k);
      CHECK(p[c / 2] == (unsigned char)k);
      memset(p, k, m);
      n = m;
      CHECK(malloc_usable_size(p) >= m);
      CHECK(((uint64_t)p & 15) == 0);
    }
    free(p);
  }
  puts("chains");
}
// Blocks of any size, also those that became so small.
static void be_small(void) {
  for (size_t n = 0; n <= 64; ++n) {
    void* small[4] = {malloc(n), calloc(1, n), realloc(malloc(100), n + 1), NULL};
    CHECK(posix_memalign(&small[3], sizeof(void*), n) == 0);
    for (int i = 0; i < 4; ++i) {
      HIDE(small[i]);
      CHECK(((uint64_t)small[i] & 15) == 0);
      free(small[i]);
    }
  }
  puts("small");
}
static void be_aligned(void) {
  // Where an object of a large block crosses an edge must not differ from one process to the next.
  for (int i = 0; i < 16; ++i) {
    char* block = malloc(20000 + 5000 * i);
    CHECK_SPILLED(block);
    CHECK(!runs_spilled() || (uint64_t)block % 4096 == 0);
    free(block);
  }
  for (int s = 3; s <= 30; ++s) {
    void* p = 0;
    int e = posix_memalign(&p, (size_t)1 << s, 1000);
    CHECK(e == 0);
    CHECK(((uint64_t)p & (((size_t)1 << s) - 1)) == 0);
    memset(p, 1, 1000);
    free(p);
    p = aligned_alloc((size_t)1 << s, (size_t)1 << (s < 16 ? s : 16));
    CHECK(p && ((uint64_t)p & (((size_t)1 << s) - 1)) == 0);
    free(p);
    p = memalign((size_t)1 << s, 3);
    CHECK(p && ((uint64_t)p & (((size_t)1 << s) - 1)) == 0);
    p = realloc(p, 100000);
    CHECK(p);
    free(p);
  }
  puts("aligned");
}
static void refuse(void) {
  void* p = (void*)7;
  errno = 0;
  printf("%d %d\n", posix_memalign(&p, 3, 10), p == (void*)7);
  printf("%d\n", posix_memalign(&p, 4, 10));
  printf("%d\n", posix_memalign(&p, 0, 10));
  errno = 0;
  p = aligned_alloc(24, 48);
  printf("aligned_alloc(24) %d %d\n", p != 0, errno);
  free(p);
  errno = 0;
  p = memalign(24, 48);
  printf("memalign(24) %d %d %d\n", p != 0, errno, p ? (int)((uint64_t)p & 31) : 0);
  free(p);
  errno = 0;
  p = malloc(SIZE_MAX);
  printf("%d %d\n", p == 0, errno);
  errno = 0;
  p = malloc(PTRDIFF_MAX);
  printf("%d %d\n", p == 0, errno);
  errno = 0;
  p = malloc((size_t)1 << 62);
  printf("%d %d\n", p == 0, errno);
  errno = 0;
  size_t most = SIZE_MAX;
  HIDE(most);
  p = pvalloc(most);
  HIDE(p);
  CHECK(p == NULL && errno == ENOMEM);
  p = calloc(SIZE_MAX / 2, 3);
  printf("%d %d\n", p == 0, errno);
  errno = 0;
  p = calloc((size_t)1 << 32, (size_t)1 << 32);
  printf("%d %d\n", p == 0, errno);
  errno = 0;
  p = reallocarray(0, SIZE_MAX / 2, 3);
  printf("%d %d\n", p == 0, errno);
  errno = 0;
  p = aligned_alloc(4096, PTRDIFF_MAX);
  printf("%d %d\n", p == 0, errno);
  printf("%d\n", posix_memalign(&p, 4096, PTRDIFF_MAX));
  errno = 0;
  void* q = malloc(100);
  {
    void* rr = realloc(q, PTRDIFF_MAX);
    HIDE(rr);
    CHECK(rr == 0);
    printf("%d\n", errno);
  }
  free(q);
}
static void be_empty_or_nothing(void) {
  void *p = malloc(0), *q = malloc(0);
  HIDE(p);
  HIDE(q);
  CHECK(p && q && p != q);
  printf("%d\n", malloc_usable_size(p) > 0);
  free(p);
  free(q);
  p = calloc(0, 5);
  HIDE(p);
  CHECK(p);
  free(p);
  errno = 77;
  free(0);
  free(malloc(100));
  free(malloc(3 << 20));
  printf("%d\n", errno);
  errno = 77;
  p = malloc(5000000);
  HIDE(p);
  p = realloc(p, 6000000);
  HIDE(p);
  p = realloc(p, 10);
  HIDE(p);
  free(p);
  printf("%d\n", errno);
  printf("%d\n", realloc(malloc(10), 0) == 0);
}
static void be_large(void) {
  char* b = malloc((size_t)1 << 30);
  CHECK(b);
  b[0] = 1;
  b[(1 << 30) - 1] = 2;
  (void)*(volatile char*)&b[1 << 29];  // never stored to
  b = realloc(b, (size_t)2 << 30);
  CHECK(b[0] == 1 && b[(1 << 30) - 1] == 2);
  free(b);
  char* z = calloc(1, 1 << 28);
  for (size_t i = 0; i < 1 << 28; i += 1 << 16) CHECK(z[i] == 0);
  z[12345] = 1;
  free(z);
  z = calloc(1 << 14, 1 << 14);
  CHECK(z[12345] == 0);
  free(z);
}
static void be_freed_elsewhere(void) {
  void* v[1000];
  for (int i = 0; i < 1000; ++i) v[i] = malloc(i * 13 + 1);
  pthread_t t;
  CHECK(pthread_create(&t, 0, freer, v) == 0);
  pthread_join(t, 0);
  for (int i = 0; i < 1000; ++i) free(v[i]);
}
// What was freed with other content is zeros again.
static void be_zeros(void) {
  for (int i = 0; i < 2000; ++i) {
    size_t n = 1 + next_random(&r) % 100000;
    char* c = calloc(1, n);
    for (size_t k = 0; k < n; k += 37) CHECK(c[k] == 0);
    CHECK(c[n - 1] == 0);
    memset(c, 0xff, n);
    free(c);
  }
}
int main(void) {
  grow_and_shrink();
  be_small();
  be_aligned();
  refuse();
  be_empty_or_nothing();
  be_large();
  be_freed_elsewhere();
  be_zeros();
  puts("done");
  return 0;
}
