// A heap in a library that a program is linked with, as jemalloc is: a block has its size and a mark before it, and one of another heap ends the
// process. Nothing is used again.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kMark = 0x5ea1ed, kHeader = 16 };
static _Alignas(4096) char arena[512u << 20];
static uint64_t used;

static void *take(size_t alignment, size_t bytes) {
  uint64_t at = __atomic_load_n(&used, __ATOMIC_RELAXED), begin;
  do {
    begin = (at + kHeader + alignment - 1) / alignment * alignment;
    if (bytes > sizeof arena || begin + bytes > sizeof arena) {
      errno = ENOMEM;
      return NULL;
    }
  } while (!__atomic_compare_exchange_n(&used, &at, begin + bytes, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  uint64_t *header = (uint64_t *)(arena + begin - kHeader);
  header[0] = bytes;
  header[1] = kMark;
  return arena + begin;
}

size_t own_size(void *block) {
  const uint64_t *header = (uint64_t *)((char *)block - kHeader);
  if ((char *)block < arena || (char *)block >= arena + sizeof arena || header[1] != kMark) abort();
  return header[0];
}

void own_free(void *block) {
  if (block != NULL) (void)own_size(block);
}

void *malloc(size_t bytes) { return take(16, bytes); }
void free(void *block) { own_free(block); }
void *calloc(size_t count, size_t bytes) { return take(16, count * bytes); }
void *realloc(void *block, size_t bytes) {
  void *moved = take(16, bytes);
  if (block != NULL && moved != NULL) memcpy(moved, block, own_size(block) < bytes ? own_size(block) : bytes);
  return moved;
}
void *memalign(size_t alignment, size_t bytes) { return take(alignment < 16 ? 16 : alignment, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void **result, size_t alignment, size_t bytes) {
  *result = memalign(alignment, bytes);
  return *result == NULL ? ENOMEM : 0;
}
size_t malloc_usable_size(void *block) { return block == NULL ? 0 : own_size(block); }
