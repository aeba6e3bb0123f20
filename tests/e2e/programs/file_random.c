// A mapped file of which the program says that it goes through it at random is loaded page by page, however it is accessed.
// expect: spill.file_maps>=2 cache.misses>=4000 cache.read_aheads<=64 cache.prefetches<=64
// memory: 4M
// levels: O2
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

#define P 4096
#define PAGES 2048

int main(void) {
  char path[64];
  snprintf(path, sizeof path, "file_random.%d", (int)getpid());
  int file = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
  CHECK(file >= 0);
  for (size_t page = 0; page < PAGES; ++page) {
    char bytes[P];
    memset(bytes, (int)page, P);
    CHECK(write(file, bytes, P) == P);
  }
  close(file);
  for (int kind = 0; kind < 2; ++kind) {
    file = open(path, O_RDONLY);
    const unsigned char* all = mmap(NULL, PAGES * P, PROT_READ, kind ? MAP_SHARED : MAP_PRIVATE, file, 0);
    CHECK(all != MAP_FAILED);
    CHECK_SPILLED(all);
    close(file);
    CHECK(madvise((void*)all, PAGES * P, MADV_RANDOM) == 0);
    for (size_t page = 0; page < PAGES; ++page)
      CHECK(((const volatile unsigned char*)all)[page * P + page] == (unsigned char)page);
    CHECK(munmap((void*)all, PAGES * P) == 0);
  }
  unlink(path);
  puts("page by page");
  return 0;
}
