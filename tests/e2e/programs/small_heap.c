// What of a small heap stays in plain memory is counted: as much fits after all of it was freed, by whichever thread.
// flags: -pthread
// levels: O2
// memory: 16M
// evictions: none, it is about what is not spilled
#include <pthread.h>

#include "e2e.h"

enum { kMaxBlocks = 200000, kBlockBytes = 100, kMaxUncounted = 100, kRounds = 8 };

static char* blocks[kMaxBlocks];

// Allocates until a block is spilled. Returns how many are not.
static void* fill(void* none) {
  size_t count = 0;
  while (count < kMaxBlocks && (count == 0 || !is_spilled(blocks[count - 1]))) {
    blocks[count] = malloc(kBlockBytes);
    CHECK(blocks[count] != NULL);
    blocks[count][0] = (char)count;
    ++count;
  }
  CHECK(count < kMaxBlocks || getenv("SPILLWAY_MEMORY") == NULL);
  return (void*)(count - (size_t)is_spilled(blocks[count - 1]));
}

static void empty(void) {
  for (size_t i = 0; i < kMaxBlocks && blocks[i] != NULL; ++i) {
    CHECK(blocks[i][0] == (char)i);
    free(blocks[i]);
    blocks[i] = NULL;
  }
}

int main(void) {
  const size_t first = (size_t)fill(NULL);
  empty();
  for (int round = 0; round < kRounds; ++round) {
    void* result;
    if (round % 2 == 0) {
      result = fill(NULL);
    } else {
      pthread_t thread;
      CHECK(pthread_create(&thread, NULL, fill, NULL) == 0);
      CHECK(pthread_join(thread, &result) == 0);
    }
    const size_t count = (size_t)result;
    // Each of the two threads may not have told of a page of blocks.
    CHECK(count + kMaxUncounted >= first && count <= first + kMaxUncounted);
    empty();
  }
  puts("small heap");
  return 0;
}
