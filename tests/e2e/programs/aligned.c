// aligned_alloc, posix_memalign, memalign, valloc: what they return is aligned, spilled, usable to its end,
// and can be freed and resized.
// expect: cache.evictions>=500
#define _GNU_SOURCE
#include <malloc.h>
#include "e2e.h"

static void use(unsigned char* block, size_t alignment, size_t bytes) {
  CHECK(block != NULL);
  CHECK((uintptr_t)block % alignment == 0);
  CHECK_SPILLED(block);
  CHECK(malloc_usable_size(block) >= bytes);
  for (size_t i = 0; i < bytes; ++i) block[i] = (unsigned char)(i * 31 + alignment);
  push_out(100000);
  for (size_t i = 0; i < bytes; ++i) CHECK(block[i] == (unsigned char)(i * 31 + alignment));
}

int main(void) {
  unsigned count = 0;
  for (size_t alignment = 8; alignment <= 1 << 21; alignment *= 2) {
    for (size_t bytes = alignment; bytes <= alignment * 2 && bytes < 300000; bytes += alignment / 2 + 1) {
      unsigned char* block = aligned_alloc(alignment, bytes);
      use(block, alignment, bytes);
      unsigned char* other = memalign(alignment, bytes);
      use(other, alignment, bytes);
      CHECK(block != other);
      free(block);
      void* third = (void*)5;
      CHECK(posix_memalign(&third, alignment, bytes) == 0);
      use(third, alignment, bytes);
      third = realloc(third, bytes + 5000);
      for (size_t i = 0; i < bytes; ++i)
        CHECK(((unsigned char*)third)[i] == (unsigned char)(i * 31 + alignment));
      free(third);
      free(other);
      ++count;
    }
    unsigned char* tiny = aligned_alloc(alignment, alignment);
    CHECK(tiny != NULL && (uintptr_t)tiny % alignment == 0);
    tiny[alignment - 1] = 1;
    HIDE(tiny);
    free(tiny);
  }
  unsigned char* page = valloc(100);
  use(page, 4096, 100);
  free(page);
  void** into = malloc(sizeof(void*));
  CHECK(posix_memalign(into, 64, 1000) == 0);
  use(*into, 64, 1000);
  free(*into);
  CHECK(posix_memalign(into, 3, 1000) == EINVAL);
  free(into);
  printf("%u\n", count);
  return 0;
}
