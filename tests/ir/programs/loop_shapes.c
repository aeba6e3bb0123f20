// Loops of shapes that are seldom met: counters that wrap, that go down, that are narrower than addresses; steps that divide no page;
// elements of odd sizes; ends in the middle, by longjmp, by computed goto; what is loaded ahead and changed meanwhile.
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

// A byte, from any start, comes back to it; where it begins anew the address goes back.
NOINLINE static uint64_t narrow8(const uint8_t* p, uint8_t start) {
  uint64_t sum = 0;
  uint8_t i = start;
  do sum = sum * 31 + p[i * 16];
  while (++i != start);
  return sum;
}
NOINLINE static void narrow8_stores(uint8_t* p, uint8_t start, uint8_t step) {
  uint8_t i = start, n = 0;
  do {
    p[i] ^= n;
    p[i + 255] += i;
    i += step;
  } while (++n != 0);
}
NOINLINE static uint64_t narrow16(const uint8_t* middle) {
  uint64_t sum = 0;
  for (int16_t i = 32000; i != -32000; i = (int16_t)(i + 16)) sum = sum * 31 + middle[i];
  return sum;
}
// The counter wraps; what is added to it makes that the array's beginning.
NOINLINE static uint64_t narrow32(const uint32_t* p, uint32_t start, uint32_t end) {
  uint64_t sum = 0;
  for (uint32_t i = start; i != end; i += 4) sum = sum * 31 + p[(uint32_t)(i + 64)];
  return sum;
}
NOINLINE static uint64_t counted_down(const uint16_t* p, unsigned n) {
  uint64_t sum = 0;
  while (n--) sum = sum * 31 + p[n];
  return sum;
}

NOINLINE static uint64_t down_by_three(const uint64_t* p, ptrdiff_t n) {
  uint64_t sum = 0;
  for (ptrdiff_t i = n - 1; i >= 0; i -= 3) sum = sum * 31 + p[i];
  return sum;
}
struct __attribute__((packed)) Thirteen {
  uint8_t a;
  uint64_t b;
  uint32_t c;
};
NOINLINE static uint64_t thirteen_down(struct Thirteen* begin, struct Thirteen* end) {
  uint64_t sum = 0;
  for (struct Thirteen* p = end; p - begin >= 5;) {
    p -= 5;
    sum = sum * 31 + p->b + p->c;
    p->a = (uint8_t)sum;
  }
  return sum;
}
NOINLINE static uint64_t until_met(const struct Thirteen* p, const struct Thirteen* end) {
  uint64_t sum = 0;
  do sum = sum * 31 + p->c;
  while ((p += 3) != end);
  return sum;
}
NOINLINE static void both_ends(uint32_t* p, long n) {
  for (long i = 0, j = n - 1; i < j; i += 2, j -= 3) {
    uint32_t swapped = p[i];
    p[i] = p[j] + 1;
    p[j] = swapped;
  }
}

struct __attribute__((packed)) Long {
  char gap;
  long double value;
};
NOINLINE static uint64_t long_doubles(struct Long* p, long n) {
  uint64_t sum = 0;
  for (long i = 0; i < n; ++i) p[i].value = (long double)i * 3;
  for (long i = n; i-- > 0;) sum = sum * 31 + (uint64_t)(p[i].value / 2);
  return sum;
}
struct __attribute__((packed)) Wide {
  uint8_t gap[8];
  unsigned __int128 value;
};
NOINLINE static uint64_t wide(struct Wide* p, long n) {
  uint64_t sum = 0;
  for (long i = 0; i < n; ++i) {
    p[i].value = p[i].value * 3 + (unsigned)i;
    sum = sum * 31 + (uint64_t)(p[i].value >> 64);
  }
  return sum;
}
typedef float Three __attribute__((ext_vector_type(3)));
struct __attribute__((packed)) Point {
  Three at;
  char gap;
};
NOINLINE static uint64_t points(struct Point* p, long n) {
  Three sum = {0, 0, 0};
  for (long i = 0; i < n; ++i) {
    p[i].at = (Three){(float)(i & 15), (float)(i & 7), 1};
    sum += p[i].at * p[i / 2].at;
  }
  return (uint64_t)sum.x * 10000 + (uint64_t)sum.y * 100 + (uint64_t)sum.z;
}

// What stays and what moves, also where the former must be accessed in each iteration.
NOINLINE static uint64_t fixed_and_moving(volatile uint32_t* fixed, _Atomic uint32_t* counter,
                                          const uint32_t* p, long n) {
  uint64_t sum = 0;
  for (long i = 0; i < n; ++i) {
    *fixed += p[i];
    sum = sum * 31 + *fixed + atomic_fetch_add(counter, p[i] & 7);
  }
  return sum;
}
// Neighbours, of which an iteration may leave some out.
NOINLINE static uint64_t neighbours(uint32_t* p, long n) {
  uint64_t sum = 0;
  for (long i = 2; i < n - 2; ++i) {
    uint32_t v = p[i];
    if (v & 1) v += p[i + 1] - p[i - 2];
    if (v & 64) p[i - 1] = v;
    sum = sum * 31 + v;
  }
  return sum;
}
NOINLINE static void recurrence(uint64_t* p, long n) {
  for (long i = 3; i < n; ++i) p[i] = p[i - 1] * 5 + p[i - 3];
}
NOINLINE static void blocks(uint8_t* restrict to, const uint8_t* restrict from, long n) {
  for (long i = 0; i < n; ++i) {
    memcpy(to + i * 24, from + i * 40, 24);
    memset(to + i * 24 + 3, (int)i, 5);
  }
}

NOINLINE static long pair_of(const uint8_t* p, long n, uint8_t a, uint8_t b) {
  long at = -1;
  for (long i = 0; i < n; i += 100) {
    for (long j = i; j < i + 100; ++j) switch (p[j] ^ a) {
        case 0:
          if (p[j + 1] == b) {
            at = j;
            goto found;
          }
          break;
        case 1: j += 2; break;
        case 2: goto next;
        default: at = at * 3 % 1000;
      }
  next:
    at -= p[i];
  }
found:
  return at;
}
NOINLINE static uint64_t tokens(const uint8_t* p, const uint64_t* words) {
  uint64_t sum = 0;
  int zeros = 0;
  for (;;) switch (*p++ & 15) {
      case 0:
        if (++zeros == 60) return sum;
        continue;
      case 1: sum += words[*p * 4]; continue;
      case 2: ++p; continue;
      default: sum = sum * 31 + p[-1]; continue;
    }
}

static jmp_buf out;
NOINLINE static long jump_out(uint64_t* p, long n) {
  volatile long done = -1;
  if (setjmp(out) == 0)
    for (long i = 0; i < n; ++i) {
      p[i] += (uint64_t)i;
      done = i;
      if (p[i] % 997 == 5) longjmp(out, 1);
    }
  return done;
}

NOINLINE static uint64_t interpret(const uint8_t* code, uint64_t* data, long n) {
  static void* const kTo[] = {&&add, &&mix, &&skip, &&back};
  uint64_t sum = 1;
  long at = 0, steps = 0;
#define NEXT                          \
  do {                                \
    if (++steps > n) return sum;      \
    goto* kTo[code[at++ % 5000] & 3]; \
  } while (0)
  NEXT;
add:
  data[sum % 900] += sum + 1;
  NEXT;
mix:
  sum = sum * 31 + data[(sum >> 3) % 900];
  NEXT;
skip:
  at += 3;
  sum ^= data[at % 900];
  NEXT;
back:
  sum += (uint64_t)at;
  NEXT;
}

// What says where to look next is changed while others may have looked ahead.
NOINLINE static uint64_t redirected(uint32_t* index, const uint64_t* words, uint32_t n) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; ++i) {
    sum = sum * 31 + words[index[i] % 4000];
    index[(i * 7 + 3) % n] = (uint32_t)(sum % 4000);
  }
  return sum;
}
// Each row says where the next one begins; many are empty.
NOINLINE static uint64_t rows(const uint32_t* ends, const uint64_t* words, uint32_t n) {
  uint64_t sum = 0;
  uint32_t at = 0;
  for (uint32_t row = 0; row < n; ++row) {
    for (; at < ends[row]; ++at) sum = sum * 31 + words[at];
    sum ^= row;
  }
  return sum;
}

static uint64_t state = 88172645463325252ull;
static void* filled(size_t size) {
  uint8_t* p = malloc(size);
  for (size_t i = 0; i < size; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    p[i] = (uint8_t)(state >> 24);
  }
  return p;
}
static uint64_t sum_of(const void* p, size_t size) {
  uint64_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum = (sum ^ ((const uint8_t*)p)[i]) * 1099511628211ull;
  return sum;
}
static void show(const char* what, uint64_t sum) { printf("%s %lx\n", what, (unsigned long)sum); }

int main(void) {
  uint8_t* bytes = filled(100000);
  for (int start = 0; start < 256; start += 51) {
    show("narrow8", narrow8(bytes, (uint8_t)start));
    narrow8_stores(bytes + 4000, (uint8_t)start, (uint8_t)(2 * start + 1));
  }
  show("narrow16", narrow16(bytes + 40000));
  uint32_t* numbers = filled(4 * 5000);
  show("narrow32", narrow32(numbers, (uint32_t)-64, 2000));
  uint16_t* halves = filled(2 * 6000);
  for (unsigned n = 0; n < 20; ++n)
    for (unsigned at = 2040; at < 2050; ++at) show("few", counted_down(halves + at, n));
  show("counted down", counted_down(halves, 6000));

  uint64_t* words = filled(8 * 4000);
  show("down by three", down_by_three(words, 4000));
  struct Thirteen* odd = filled(3000 * sizeof *odd);
  show("thirteen", thirteen_down(odd, odd + 2998));
  show("until met", until_met(odd, odd + 3000));
  for (long n = 0; n < 6; ++n) both_ends(numbers, n);
  both_ends(numbers, 5000);
  show("long double", long_doubles(filled(2000 * sizeof(struct Long)), 2000));
  struct Wide* pairs = filled(2000 * sizeof *pairs);
  show("wide", wide(pairs, 2000));
  struct Point* places = filled(2000 * sizeof *places);
  show("points", points(places, 2000));

  uint32_t* fixed = filled(2 * sizeof *fixed);
  show("fixed", fixed_and_moving(fixed, (_Atomic uint32_t*)fixed + 1, numbers, 5000));
  show("neighbours", neighbours(numbers, 5000));
  recurrence(words, 4000);
  uint8_t* copies = filled(24 * 2000);
  blocks(copies, bytes, 2000);
  show("pair", (uint64_t)pair_of(bytes, 90000, 17, 34));
  show("tokens", tokens(bytes, words));
  for (int turn = 0; turn < 5; ++turn) show("jump", (uint64_t)jump_out(words + turn, 3900));
  uint64_t* data = filled(8 * 900);
  show("interpret", interpret(bytes, data, 20000));

  uint32_t* ends = malloc(4 * 1500);
  for (uint32_t row = 0; row < 1500; ++row) ends[row] = row * 2 - row % 7 % 3 * 2 * (row != 0);
  show("rows", rows(ends, words, 1500));
  uint32_t* index = filled(4 * 3000);  // nothing lies behind it
  show("redirected", redirected(index, words, 3000));

  show("bytes", sum_of(bytes, 100000));
  show("numbers", sum_of(numbers, 4 * 5000));
  show("words", sum_of(words, 8 * 4000));
  show("odd", sum_of(odd, 3000 * sizeof *odd));
  show("pairs", sum_of(pairs, 2000 * sizeof *pairs));
  show("copies", sum_of(copies, 24 * 2000));
  show("data", sum_of(data, 8 * 900));
  show("index", sum_of(index, 4 * 3000));
  return 0;
}
