// Structures in spilled memory as arguments and results: by value, through va_arg, into the place that a result goes to; lists of
// arguments, tables of labels and buffers of setjmp that lie there themselves; volatile accesses of every kind.
// pages: 4K 16K
// expect: cache.evictions>=100
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "e2e.h"

#define NOINLINE __attribute__((noinline))
enum { kCount = 3600 };

struct Small {
  uint16_t a;
  uint8_t b;
};
struct Pair {
  double x;
  int64_t y;
};
struct Large {
  uint64_t words[23];
  char text[5];
};
struct __attribute__((packed)) Odd {
  char c;
  uint64_t words[9];
  long double wide;
};

static uint64_t mix(uint64_t sum, uint64_t value) { return (sum ^ value) * 1099511628211u + (sum >> 29); }
static uint64_t sum_large(const struct Large* l) {
  return mix(mix(l->words[0], l->words[22]), (uint64_t)l->text[4]);
}
static uint64_t sum_odd(const struct Odd* o) {
  return mix(mix((uint64_t)o->c, o->words[8]), (uint64_t)o->wide);
}

// A result may be built in its place at once: the pointer to that is spilled memory then.
NOINLINE struct Large make_large(uint64_t seed) {
  struct Large l = {.text = "abcd"};
  for (int i = 0; i < 23; ++i) l.words[i] = seed * (uint64_t)i;
  return l;
}
NOINLINE struct Odd make_odd(uint64_t seed) {
  struct Odd o = {(char)seed, {seed, 1, 2, 3, 4, 5, 6, 7, seed * 3}, (long double)(seed % 1000)};
  return o;
}
NOINLINE struct Pair make_pair(int64_t seed) { return (struct Pair){(double)seed / 2, -seed}; }
NOINLINE void build_at(struct Large* place, uint64_t seed) { *place = make_large(seed); }

// A parameter is the callee's own: what it stores there is not seen by the caller.
NOINLINE uint64_t take_large(struct Large l, struct Small s, struct Odd o, struct Pair p) {
  l.words[0] += s.a;
  o.words[8] ^= s.b;
  l.text[4] = 'x';
  return mix(sum_large(&l) ^ sum_odd(&o), (uint64_t)p.x + (uint64_t)p.y);
}

static struct Large* larges;
static struct Odd* odds;
static struct Pair* pairs;
static struct Small* smalls;

static uint64_t by_value(void) {
  uint64_t sum = 1;
  for (int i = 0; i < kCount; ++i) {
    larges[i] = make_large((uint64_t)i);
    odds[i] = make_odd((uint64_t)i);
    pairs[i] = make_pair(i);
    smalls[i] = (struct Small){(uint16_t)i, (uint8_t)(i >> 3)};
  }
  for (int i = 0; i < kCount; ++i) {
    const int j = (i * 7919 + 3) % kCount;
    sum = mix(sum, take_large(larges[j], smalls[i], odds[(j + i) % kCount], pairs[j]));
    if (i % 3 == 0) build_at(&larges[j], sum);
    if (i % 5 == 0) odds[j] = odds[i];
  }
  for (int i = 0; i < kCount; ++i) sum = mix(sum, sum_large(&larges[i]) + sum_odd(&odds[i]));
  return sum;
}

// The list itself is in spilled memory, and a function that was passed it reads on in another.
struct Reader {
  va_list list;
  uint64_t sum;
};
NOINLINE void read_some(struct Reader* r, const char* kinds) {
  for (; *kinds; ++kinds) switch (*kinds) {
      case 'i': r->sum = mix(r->sum, (uint64_t)va_arg(r->list, int)); break;
      case 'd': r->sum = mix(r->sum, (uint64_t)va_arg(r->list, double)); break;
      case 'D': r->sum = mix(r->sum, (uint64_t)va_arg(r->list, long double)); break;
      case 's': r->sum = mix(r->sum, va_arg(r->list, struct Small).a); break;
      case 'p': r->sum = mix(r->sum, (uint64_t)va_arg(r->list, struct Pair).y); break;
      case 't': r->sum = mix(r->sum, strlen(va_arg(r->list, char*))); break;
      case 'L': {
        struct Large l = va_arg(r->list, struct Large);
        r->sum = mix(r->sum, sum_large(&l));
        break;
      }
      default: {
        struct Odd o = va_arg(r->list, struct Odd);
        r->sum = mix(r->sum, sum_odd(&o));
      }
    }
}
NOINLINE uint64_t variadic(struct Reader* r, const char* kinds, ...) {
  va_list again;
  va_start(r->list, kinds);
  r->sum = 3;
  va_copy(again, r->list);
  read_some(r, kinds);
  r->sum = mix(r->sum, va_arg(again, int));
  va_end(again);
  va_end(r->list);
  return r->sum;
}
// The last thing that it does is a call: the stack with its arguments has to stay until that returns.
NOINLINE uint64_t read_all(struct Reader* r, const char* kinds) {
  read_some(r, kinds);
  return r->sum;
}
NOINLINE uint64_t variadic_last(struct Reader* r, const char* kinds, ...) {
  va_start(r->list, kinds);
  r->sum = 3;
  const uint64_t sum = read_all(r, kinds);
  va_end(r->list);
  return sum;
}
// By Microsoft's convention a list is one pointer: what lies behind it stays as it is.
struct Other {
  __builtin_ms_va_list list;
  uint64_t behind[2];
};
NOINLINE __attribute__((ms_abi)) uint64_t variadic_ms(struct Other* o, int n, ...) {
  uint64_t sum = 5;
  __builtin_ms_va_start(o->list, n);
  for (int i = 0; i < n; ++i) sum = mix(sum, (uint64_t)va_arg(o->list, long long));
  __builtin_ms_va_end(o->list);
  return sum;
}
static uint64_t lists_ms(void) {
  struct Other* others = malloc(kCount * sizeof *others);
  CHECK_SPILLED(others);
  uint64_t sum = 1;
  for (uint64_t i = 0; i < kCount; ++i) {
    others[i].behind[0] = i;
    others[i].behind[1] = ~i;
    sum = mix(sum, variadic_ms(&others[i], 5, (long long)i, -1ll, 2ll, (long long)sum, 7ll));
    CHECK(others[i].behind[0] == i && others[i].behind[1] == ~i);
  }
  free(others);
  return sum;
}
static uint64_t lists(void) {
  struct Reader* readers = malloc(kCount * sizeof *readers);
  CHECK_SPILLED(readers);
  char* text = malloc(100000);
  memset(text, 'x', 99999);
  text[99999] = 0;
  uint64_t sum = 1;
  for (int i = 0; i < kCount; i += 3) {
    const int j = (i * 31) % kCount;
    sum = mix(sum, variadic(&readers[i], "iLspdtOiiiDpLi", i, larges[i], smalls[j], pairs[i], pairs[j].x,
                            text + i * 11, odds[j], 1, 2, 3, (long double)i, pairs[0], larges[j], -i));
    sum = mix(sum, variadic_last(&readers[j], "idtiiiid", i, (double)j, text + i, 4, 5, 6, 7, (double)i));
  }
  free(text);
  free(readers);
  return sum;
}

// An interpreter whose code, registers and table of labels are in spilled memory.
struct Machine {
  void* labels[6];
  uint64_t registers[8];
  uint8_t code[60000];
};
NOINLINE uint64_t interpret(struct Machine* m, uint64_t steps) {
  void* const labels[6] = {&&add, &&xor, &&move, &&jump, &&turn, &&end};
  if (m->labels[0] == NULL) memcpy(m->labels, labels, sizeof labels);
  const uint8_t* at = m->code;
#define NEXT() goto * m->labels[steps-- == 0 ? 5 : *at++ % 5]
#define R(shift) m->registers[at[0] >> (shift) & 7]
  NEXT();
add:
  R(0) += R(3) + 1, ++at;
  if (at - m->code > 59000) at = m->code;
  NEXT();
  xor : R(0) ^= R(3), ++at;
  NEXT();
move:
  R(2) = R(5), ++at;
  NEXT();
jump:
  at = m->code + (R(1) ^ at[1]) % 58000;
  NEXT();
turn:
  R(1) = R(1) << 7 | R(1) >> 57, ++at;
  if (at - m->code > 59000) at = m->code;
  NEXT();
end:
  return m->registers[0] ^ m->registers[5];
}
static uint64_t labels(void) {
  struct Machine* m = calloc(1, sizeof *m);
  CHECK_SPILLED(m);
  uint64_t state = 5;
  for (size_t i = 0; i < sizeof m->code; ++i) m->code[i] = (uint8_t)next_random(&state);
  for (int i = 0; i < 8; ++i) m->registers[i] = next_random(&state);
  uint64_t sum = 1;
  for (int i = 0; i < 60; ++i) {
    sum = mix(sum, interpret(m, 3000));
    if (i % 20 == 0) push_out(1 << 20);
  }
  free(m);
  return sum;
}

struct Mixed {
  volatile uint32_t word;
  volatile unsigned low : 5, high : 20;
  volatile _Bool flag;
  volatile double number;
  volatile struct Pair pair;
  volatile unsigned __int128 wide;
};
static uint64_t volatiles(void) {
  struct Mixed* all = calloc(kCount, sizeof *all);
  CHECK_SPILLED(all);
  uint64_t sum = 1;
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < kCount; ++i) {
      struct Mixed* m = &all[(i * 7 + round) % kCount];
      m->word += m->word + (unsigned)i;
      m->low += 3, m->high ^= m->word;
      m->flag = !m->flag;
      m->number = m->number + i;
      m->pair = pairs[i];
      m->wide = m->wide * 3 + m->low;
      *(volatile struct Large*)&larges[i] = larges[kCount - 1 - i];
      const struct Pair p = m->pair;
      sum = mix(sum,
                m->word + m->high + m->flag + (uint64_t)m->number + (uint64_t)p.y + (uint64_t)(m->wide >> 3));
    }
  free(all);
  return sum;
}

// The buffer and what is changed between the calls are in spilled memory.
static jmp_buf* back;
NOINLINE void deeper(int depth, uint64_t* path) {
  struct Large kept = larges[depth];
  path[depth * 512] += kept.words[1];
  if (depth == 30) longjmp(*back, depth);
  deeper(depth + 1, path);
  path[0] = sum_large(&kept);
}
static uint64_t jumps(void) {
  back = malloc(sizeof *back);
  uint64_t* path = calloc(31 * 512, sizeof *path);
  volatile uint64_t sum = 1;
  for (volatile int i = 0; i < 20; ++i) {
    const int code = setjmp(*back);
    if (code == 0) deeper(i % 20, path);
    sum = mix(sum, path[512 * (i % 31)] + (unsigned)code);
    if (i % 10 == 0) push_out(1 << 20);
  }
  free(path);
  free(back);
  return sum;
}

int main(void) {
  larges = malloc(kCount * sizeof *larges);
  odds = malloc(kCount * sizeof *odds);
  pairs = malloc(kCount * sizeof *pairs);
  smalls = malloc(kCount * sizeof *smalls);
  CHECK_SPILLED(larges);
  printf("by value %016llx\n", (unsigned long long)by_value());
  printf("lists %016llx\n", (unsigned long long)lists());
  printf("lists of pointers %016llx\n", (unsigned long long)lists_ms());
  printf("labels %016llx\n", (unsigned long long)labels());
  printf("volatiles %016llx\n", (unsigned long long)volatiles());
  printf("jumps %016llx\n", (unsigned long long)jumps());
  return 0;
}
