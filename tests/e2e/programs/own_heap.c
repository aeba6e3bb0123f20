// levels: O0 O2 O3 lto thin static static-lto
// expect: cache.evictions>=100
//
// A program that has a malloc of its own, as those with an allocator among their sources: blocks that it and the C library
// allocate for each other are of one heap all the same.
#include "e2e.h"

static char pool[64 << 20] __attribute__((aligned(4096)));
static size_t used;
static int foreign;

void* malloc(size_t bytes) {
  bytes = (bytes + 31) & ~(size_t)15;
  char* block = pool + __atomic_fetch_add(&used, bytes, __ATOMIC_SEQ_CST);
  *(size_t*)block = bytes - 16;
  return block + 16;
}
void free(void* block) {
  if (block != NULL && ((char*)block < pool || (char*)block >= pool + sizeof pool)) foreign = 1;
}
void* calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
// Other names, as jemalloc gives them: what one allocates the other frees.
void* also_malloc(size_t bytes) __attribute__((alias("malloc")));
void also_free(void* block) __attribute__((alias("free")));
void* realloc(void* block, size_t bytes) {
  char* moved = malloc(bytes);
  size_t old = block != NULL ? ((size_t*)block)[-2] : 0;
  if (block != NULL) memcpy(moved, block, old < bytes ? old : bytes);
  return moved;
}
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  char* begin = malloc(bytes + alignment);
  *block = begin + (-(size_t)begin & (alignment - 1));
  return 0;
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  void* block;
  return posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

int main(void) {
  enum { kBlocks = 1500 };
  char** blocks = malloc(kBlocks * sizeof *blocks);
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = malloc(4000);
    memset(blocks[i], i, 4000);
  }
  char* line = NULL;
  size_t capacity = 0;
  FILE* text = tmpfile();
  CHECK(text != NULL);
  for (int i = 0; i < 300; ++i) fprintf(text, "line %d\n", i);
  rewind(text);
  size_t length = 0;
  while (getline(&line, &capacity, text) > 0) length += strlen(line);
  free(line);
  fclose(text);
  char* path = realpath("/", NULL);
  char* copy = strdup(path);
  printf("%zu %s %s\n", length, path, copy);
  free(path);
  free(copy);
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = realloc(blocks[i], 4000 + i % 3);
    for (int j = 0; j < 4000; ++j) CHECK(blocks[i][j] == (char)i);
    free(blocks[i]);
  }
  char* named = also_malloc(4000);
  memset(named, 1, 4000);
  free(named);
  also_free(malloc(4000));
  void* aligned = aligned_alloc(4096, 8192);
  CHECK((size_t)aligned % 4096 == 0);
  free(aligned);
  free(blocks);
  printf("%d\n", foreign);
  return 0;
}
