// Reading, writing and adding through a null pointer, or near it, kills the program as it does natively.
// case: load => 139
// case: store => 139
// case: add => 139
// case: copy => 139
// case: member => 139
// case: below_range => 139
// case: unallocated => 139
// case: freed_map => 139
// chaos: 1
// evictions: none, it is killed before that
#include <sys/mman.h>
#include "e2e.h"

struct Large {
  char before[3000];
  int member;
};

int main(int argc, char** argv) {
  CHECK(argc == 2);
  push_out(3 << 20);
  char* null = NULL;
  HIDE(null);
  const char* what = argv[1];
  volatile long sink = 0;
  if (strcmp(what, "load") == 0) sink = *(long*)null;
  if (strcmp(what, "store") == 0) *(long*)null = 42;
  if (strcmp(what, "add") == 0) __atomic_fetch_add((long*)null, 1, __ATOMIC_SEQ_CST);
  if (strcmp(what, "copy") == 0) memcpy(null, argv[1], 16 + argc);
  if (strcmp(what, "member") == 0) sink = ((struct Large*)null)->member;
  if (strcmp(what, "below_range") == 0) {
    char* below = (char*)(kRangeBegin - 4096);
    HIDE(below);
    *below = 1;
  }
  if (strcmp(what, "unallocated") == 0) {
    char* high = (char*)(kRangeEnd - 4096);
    HIDE(high);
    *high = 1;
  }
  if (strcmp(what, "freed_map") == 0) {
    char* map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_SPILLED(map);
    map[4096] = 1;
    HIDE(map);
    munmap(map, 1 << 20);
    HIDE(map);
    sink = map[4096];
  }
  (void)sink;
  printf("still alive\n");
  return 0;
}
