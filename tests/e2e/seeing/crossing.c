// Atomic additions across the edges of spilled pages. Few: some processors and kernels take 100 ms for each.
#include <stdlib.h>

enum { kPages = 40, kPage = 4096 };

__attribute__((noinline)) void add_crossing(char* at) { __atomic_fetch_add((int*)at, 1, __ATOMIC_SEQ_CST); }

int main(void) {
  char* memory = calloc(kPages + 1, kPage);
  for (int page = 1; page < kPages; ++page)
    add_crossing(memory + page * kPage - ((unsigned long)memory & (kPage - 1)) - 2);
  return 0;
}
