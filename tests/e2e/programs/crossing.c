// Loads, stores and copies of every size at every offset around the edge of a page.
// levels: O0 O2 O3 avx2
// expect: cache.evictions>=200 spill.crossings>=100
#include <sys/mman.h>
#include "page_edge.h"

#define PAGES 600

typedef uint64_t v4 __attribute__((vector_size(32), aligned(1)));
typedef uint16_t __attribute__((aligned(1))) u16;
typedef uint32_t __attribute__((aligned(1))) u32;
typedef uint64_t __attribute__((aligned(1))) u64;
typedef float __attribute__((aligned(1))) f32;
typedef long double __attribute__((aligned(1))) f80;

// The bytes of a long double that count.
#define BYTES_OF(type) (sizeof(type) == 16 ? 10 : sizeof(type))

#define PLAIN(type, at)                                                          \
  do {                                                                           \
    type seen = *(type*)(window + (at)), wanted;                                 \
    __builtin_memcpy(&wanted, model + (at), sizeof(type));                       \
    CHECK(__builtin_memcmp(&seen, &wanted, BYTES_OF(type)) == 0);                \
    unsigned char bytes[sizeof(type)] = {0};                                     \
    for (size_t b = 0; b < sizeof(type); ++b) bytes[b] = value_of(b + (at), 77); \
    type next;                                                                   \
    __builtin_memcpy(&next, bytes, sizeof next);                                 \
    *(type*)(window + (at)) = next;                                              \
    __builtin_memcpy(model + (at), &next, BYTES_OF(type));                       \
    compare(window, at);                                                         \
  } while (0)

// From one page's edge to another's, and through the stack.
#define COPY(bytes, to, from)                                                                        \
  do {                                                                                               \
    __builtin_memcpy(window + (to), window + (from), bytes);                                         \
    __builtin_memcpy(model + (to), model + (from), bytes);                                           \
    compare(window, to);                                                                             \
    unsigned char own[bytes];                                                                        \
    __builtin_memcpy(own, window + (to), bytes);                                                     \
    for (size_t b = 0; b < (bytes); ++b) own[b] ^= 0x5a, model[(from) + b] = model[(to) + b] ^ 0x5a; \
    __builtin_memcpy(window + (from), own, bytes);                                                   \
    compare(window, from);                                                                           \
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
    PLAIN(u16, offset);
    PLAIN(u32, offset);
    PLAIN(u64, offset);
    PLAIN(f32, offset);
    PLAIN(f80, offset);
    PLAIN(v4, offset);
    PLAIN(u64, offset + 4096);
    COPY(40, offset + 4096 - 20, offset);
    COPY(100, offset + 4096 - 50, offset);
    COPY(100, offset, offset + 4096);
    // A window elsewhere pushes this one out now and then.
    for (size_t page = 0; page < PAGES; page += 3)
      *(volatile unsigned char*)(all + page * 4096 + 4000 + round % 64) += 0;
    compare(window, offset);
  }
  printf("%u offsets\n", round);
  return 0;
}
