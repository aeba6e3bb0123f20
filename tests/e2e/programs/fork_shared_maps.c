// A copy of the process has the whole budget for spilled memory, however much of it shared mappings of files took: these are not in its page
// tables yet. Nobody measures them in a child of _Fork, which has no threads of the runtime.
// storage: /var/tmp
// levels: O2
// memory: 8M
// chaos: 0
// expect: spill.shared_maps>=1 cache.evictions>=1000
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

// Of mappings, three quarters of half of the budget stay.
enum { kPage = 4096, kPages = 4096, kMapPages = 640 };

static char* data;

static void touch_all(void) {
  for (int i = 0; i < kPages; ++i) ++data[(size_t)i * kPage];
}

// How many of the pages are in memory after a child has used all of them.
static size_t resident_in_child(void) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = _Fork();
  if (child == 0) {
    static unsigned char present[kPages];
    size_t count = 0;
    touch_all();
    touch_all();
    if (mincore(data, (size_t)kPages * kPage, present) != 0) _exit(3);
    for (int i = 0; i < kPages; ++i) count += present[i] & 1;
    _exit(write(ends[1], &count, sizeof count) == sizeof count ? 0 : 4);
  }
  expect_end(child);
  size_t count;
  CHECK(read(ends[0], &count, sizeof count) == sizeof count);
  CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
  return count;
}

int main(void) {
  data = mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(data != MAP_FAILED);
  CHECK_SPILLED(data);
  touch_all();
  const size_t before = resident_in_child();
  char path[64];
  snprintf(path, sizeof path, "fork_shared_maps.%d", (int)getpid());
  const int file = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
  CHECK(file >= 0 && unlink(path) == 0 && ftruncate(file, kMapPages * kPage) == 0);
  char* map = mmap(NULL, kMapPages * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(map != MAP_FAILED && !is_spilled(map));
  for (int i = 0; i < kMapPages; ++i) map[i * kPage] = 1;
  usleep(200000);  // until they count against the budget
  const size_t after = resident_in_child();
  CHECK(before > 0 && after + kMapPages / 2 >= before);
  puts("the same");
  return 0;
}
