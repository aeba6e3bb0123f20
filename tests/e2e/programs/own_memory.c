// levels: O0 O2 Os
// expect: cache.evictions>=100
//
// A program that has memcpy, memmove and memset of its own, which use translations: the copies that the compiler makes of
// structures and constant sizes must not call them while translations of their caller are alive.
#include "e2e.h"

__attribute__((optnone)) void* memmove(void* to, const void* from, size_t n) {
  volatile char* a = to;
  const volatile char* b = from;
  if ((char*)a < (const char*)b)
    for (size_t i = 0; i < n; ++i) a[i] = b[i];
  else
    while (n-- > 0) a[n] = b[n];
  return to;
}
__attribute__((optnone)) void* memcpy(void* to, const void* from, size_t n) { return memmove(to, from, n); }
__attribute__((optnone)) void* memset(void* to, int byte, size_t n) {
  volatile char* a = to;
  for (size_t i = 0; i < n; ++i) a[i] = (char)byte;
  return to;
}

#define SIZES(X) X(16) X(24) X(33) X(64) X(65) X(127) X(128) X(129) X(200) X(256) X(300)
#define MOVE(n)                                                                \
  __attribute__((noinline)) static void move_##n(char* to, const char* from) { \
    __builtin_memmove(to, from, n);                                            \
  }
SIZES(MOVE)
#define NAME(n) {move_##n, n},
static const struct {
  void (*move)(char*, const char*);
  size_t bytes;
} moves[] = {SIZES(NAME)};

// Translations of `one` and `other` are alive where the structures on the stack are copied.
struct Large {
  unsigned char bytes[190];
};
__attribute__((noinline)) static unsigned copied(uint32_t* one, uint32_t* other, struct Large* kept) {
  struct Large mine, again;
  *one += 1;
  *other += 2;
  mine = *kept;
  mine.bytes[7] += 1;
  again = mine;
  HIDE(one);
  *one += again.bytes[7];
  *other += again.bytes[189];
  *kept = again;
  return *one + *other;
}

int main(void) {
  enum { kBytes = 6 << 20, kMoves = 6000 };
  char* all = malloc(kBytes);
  static char model[kBytes];
  CHECK_SPILLED(all);
  for (int i = 0; i < kBytes; ++i) all[i] = model[i] = (char)(i * 7 + (i >> 12));
  uint64_t state = 1;
  for (int i = 0; i < kMoves; ++i) {
    const size_t kind = (size_t)i % (sizeof moves / sizeof *moves);
    const size_t from = next_random(&state) % (kBytes - 300);
    // Every fourth overlaps.
    const size_t to = i % 4 == 0 ? from + (size_t)i / 4 % 20 : next_random(&state) % (kBytes - 300);
    moves[kind].move(all + to, all + from);
    char bytes[300];
    for (size_t at = 0; at < moves[kind].bytes; ++at) bytes[at] = model[from + at];
    for (size_t at = 0; at < moves[kind].bytes; ++at) model[to + at] = bytes[at];
  }
  for (int i = 0; i < kBytes; ++i) CHECK(all[i] == model[i]);
  unsigned sum = 0;
  for (int i = 0; i < 2000; ++i) {
    char* place = all + next_random(&state) % (kBytes - 8192) / 64 * 64;
    sum = sum * 31 + copied((uint32_t*)place, (uint32_t*)(place + 4096), (struct Large*)(place + 2048));
  }
  printf("%u\n", sum);
  free(all);
  return 0;
}
