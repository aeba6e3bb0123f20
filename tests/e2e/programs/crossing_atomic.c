// Atomics of every size at every offset around the edge of a page: one instruction sees both pages.
// flags: -mcx16
// levels: O0 O2
// expect: cache.evictions>=200 spill.crossings>=70
#include <sys/mman.h>
#include "page_edge.h"

#define PAGES 600

typedef unsigned __int128 u128;

#define ATOMIC(type, at)                                                                           \
  do {                                                                                             \
    type* p = (type*)(window + (at));                                                              \
    type* m = (type*)(model + (at));                                                               \
    HIDE(p);                                                                                       \
    CHECK(__atomic_fetch_add(p, (type)0x0102030405060708, __ATOMIC_SEQ_CST) == *m);                \
    *m += (type)0x0102030405060708;                                                                \
    CHECK(__atomic_exchange_n(p, (type)0x1122334455667788, __ATOMIC_SEQ_CST) == *m);               \
    *m = (type)0x1122334455667788;                                                                 \
    type expected = *m;                                                                            \
    CHECK(__atomic_compare_exchange_n(p, &expected, (type)0x7fedcba987654321, 0, __ATOMIC_SEQ_CST, \
                                      __ATOMIC_SEQ_CST));                                          \
    *m = (type)0x7fedcba987654321;                                                                 \
    expected = 5;                                                                                  \
    CHECK(!__atomic_compare_exchange_n(p, &expected, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));   \
    CHECK(expected == *m);                                                                         \
    CHECK(__atomic_or_fetch(p, 0x55, __ATOMIC_RELAXED) == (type)(*m | 0x55));                      \
    *m |= 0x55;                                                                                    \
    CHECK(__atomic_load_n(p, __ATOMIC_ACQUIRE) == *m);                                             \
    __atomic_store_n(p, 99, __ATOMIC_RELEASE);                                                     \
    *m = 99;                                                                                       \
    compare(window, at);                                                                           \
  } while (0)

int main(void) {
  unsigned char* all = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(all != MAP_FAILED);
  CHECK_SPILLED(all);
  unsigned round = 0;
  for (size_t offset = 4096 - 40; offset <= 4096 + 8; ++offset, ++round) {
    unsigned char* window = all + (round * 7 % (PAGES - 2)) * 4096;
    HIDE(window);
    fill(window, round);
    // A window elsewhere pushes this one out now and then.
    for (size_t page = 0; page < PAGES; page += 3)
      *(volatile unsigned char*)(all + page * 4096 + 4000 + round % 64) += 0;
    ATOMIC(uint8_t, offset);
    ATOMIC(uint16_t, offset);
    ATOMIC(uint32_t, offset);
    ATOMIC(uint64_t, offset);
    if (offset % 16 == 0) {
      u128* p = (u128*)(window + offset);
      HIDE(p);
      u128 seen = *p, next = ~seen;
      CHECK(__sync_bool_compare_and_swap(p, seen, next));
      CHECK(!__sync_bool_compare_and_swap(p, seen, next));
      CHECK(*p == next);
    }
  }
  printf("%u offsets\n", round);
  return 0;
}
