// Copies and fills that end with the last byte of an allocation's last page touch nothing behind it: the
// next address is not allocated.
// expect: cache.evictions>=300
#define _GNU_SOURCE
#include <sys/mman.h>
#include "e2e.h"

#define BYTES (1u << 20)

int main(void) {
  char* map = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  CHECK_SPILLED(map);
  CHECK(munmap(map + BYTES, BYTES) == 0);
  char* end = map + BYTES;
  static char plain[20000], back[20000];
  for (size_t i = 0; i < sizeof plain; ++i) plain[i] = (char)(i * 7 + 1);
  size_t sizes[] = {0,  1,  2,  3,  7,   8,   15,   16,   17,   31,   32,
                    33, 63, 64, 65, 255, 256, 4095, 4096, 4097, 8192, 12345};
  unsigned long sum = 0;
  for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    size_t n = sizes[s];
    HIDE(end);
    memcpy(end - n, plain, n);
    CHECK(memcmp(end - n, plain, n) == 0);
    memcpy(back, end - n, n);
    CHECK(memcmp(back, plain, n) == 0);
    if (n > 0) CHECK(memchr(end - n, plain[n - 1], n) != NULL);
    CHECK(memchr(end - n, 0x101 * (n == 0), 0) == NULL);
    memmove(end - n, end - 2 * n, n);
    memset(end - n, 'x', n);
    for (size_t i = 0; i < n; ++i) CHECK(end[-1 - (long)i] == 'x');
    if (n > 1) {
      end[-1] = 0;
      CHECK(strlen(end - n) == n - 1);
      CHECK(strnlen(end - n, n + 100) == n - 1);
      CHECK(strcmp(end - n, end - n) == 0);
      char* copied = strdup(end - n);
      CHECK(strlen(copied) == n - 1);
      CHECK(strcmp(copied, end - n) == 0);
      CHECK(stpcpy(end - n, copied) == end - 1);
      sum += strlen(strcpy(back, end - n));
      free(copied);
    }
    push_out(1200000);
  }
  // Loops that the compiler makes wide must not read past the end either.
  for (size_t n = 1; n < 300; n += 13) {
    char* from = end - n;
    HIDE(from);
    for (size_t i = 0; i < n; ++i) from[i] = (char)(from[i] + i);
    for (size_t i = 0; i < n; ++i) sum += (unsigned char)from[i];
  }
  printf("%lu\n", sum);
  return 0;
}
