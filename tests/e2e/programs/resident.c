// Memory that the program wants to keep: variables and blocks stay in plain memory, others of the size do not.
// spillcc: -fspill-globals
// levels: O0 O2 lto static
// expect: spill.globals_bytes==401408
#include "../../../include/spillway/spill.h"

#include "e2e.h"

char spilled[400000];
SPILLWAY_RESIDENT char kept[400000] = {1, 2};

static void check(char* block, size_t bytes) {
  CHECK(block != NULL && !is_spilled(block));
  for (size_t i = 0; i < bytes; i += 100) block[i] = (char)(i / 100);
  push_out(3 << 20);
  for (size_t i = 0; i < bytes; i += 100) CHECK(block[i] == (char)(i / 100));
}

int main(void) {
  CHECK(kept[1] == 2);
  for (int i = 0; i < 400000; ++i) spilled[i] = kept[i] = (char)(i * 7);
  check(kept, sizeof kept);
  char* block = spill_malloc_resident(300000);
  check(block, 300000);
  block = spill_realloc_resident(block, 700000);
  CHECK(block[299900] == (char)2999);
  check(block, 700000);
  free(block);
  char* zeros = spill_calloc_resident(1000, 300);
  for (int i = 0; i < 300000; ++i) CHECK(zeros[i] == 0);
  check(zeros, 300000);
  zeros = realloc(zeros, 300);
  CHECK(zeros[200] == 2);
  free(zeros);
  char* aligned = spill_aligned_alloc_resident(65536, 200000);
  CHECK((uintptr_t)aligned % 65536 == 0);
  check(aligned, 200000);
  free(aligned);
  char* ordinary = malloc(300000);
  CHECK_SPILLED(ordinary);
  ordinary[299999] = 'o';
  ordinary = spill_realloc_resident(ordinary, 400000);
  CHECK(ordinary[299999] == 'o' && !is_spilled(ordinary));
  free(ordinary);
  volatile size_t much = (size_t)-1;
  char* none = spill_malloc_resident(much);
  HIDE(none);
  CHECK(none == NULL && errno == ENOMEM);
  none = spill_calloc_resident(much, 3);
  HIDE(none);
  CHECK(none == NULL && errno == ENOMEM);
  errno = 0;
  none = spill_alloc(much, 64);
  HIDE(none);
  CHECK(none == NULL && errno == ENOMEM);
  for (int i = 0; i < 400000; ++i) CHECK(spilled[i] == (char)(i * 7));
  puts("resident");
  return 0;
}
