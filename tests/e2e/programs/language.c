// What else C says of memory, on spilled memory: bit-fields, packed and flexible structures, complex numbers and long
// doubles, arrays of variable length, vectors, atomics of 16 bytes and atomic structures of any size, pages' neighbours
// as locks, tables of labels, pointers to functions, builtins that copy and fetch, a constructor that ends by a jump.
// flags: -ffp-contract=off -mcx16 -latomic -lm -pthread
// pages: 4K 16K
// expect: cache.evictions>=100
#define _GNU_SOURCE
#include <alloca.h>
#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include "e2e.h"

#define NOINLINE __attribute__((noinline))
enum { kCount = 900, kPage = 4096 };
static uint64_t state = 3, sum = 0;
static void add(const void* data, size_t n) {
  for (size_t i = 0; i < n; ++i) sum = (sum ^ ((const unsigned char*)data)[i]) * 1099511628211u;
}
#define ADD(x)                   \
  do {                           \
    __typeof__(x) value_ = (x);  \
    add(&value_, sizeof value_); \
  } while (0)

static char* memory;
// Around the end of a page, mostly.
static void* place(size_t n) {
  const uint64_t random = next_random(&state);
  const size_t page = 1 + random % (kCount - 4);
  const size_t back = random / kCount % 4 ? random / 7919 % (n + 1) : random / 7919 % 4000;
  return memory + page * kPage - back;
}

struct Bits {
  uint8_t lead;
  uint64_t a : 3, b : 31, c : 29, d : 1;
  int32_t e : 17;
  int32_t f : 15;
  uint16_t : 0;
  uint16_t g : 9;
} __attribute__((packed));
struct Plain {
  _Bool on : 1;
  unsigned n : 20;
  unsigned long long m : 43;
};

NOINLINE static void bits(struct Bits* p, volatile struct Plain* q) {
  p->b += p->a + 5;
  p->c ^= p->b;
  p->e -= (int32_t)p->c;
  p->f = p->e >> 2;
  p->g++;
  p->d = p->g & 1;
  q->on = !q->on;
  q->n += 77;
  q->m = q->m * 5 + q->n;
  ADD((uint64_t)p->b);
  ADD((uint64_t)q->m);
  ADD((int)(p->f + p->e));
}

struct Flexible {
  uint32_t count;
  struct __attribute__((packed)) {
    char tag;
    double value;
    uint16_t half;
  } items[];
};
NOINLINE static void flexible(struct Flexible* p) {
  for (uint32_t i = 0; i < p->count; ++i) {
    p->items[i].value = p->items[i].half * 0.5 + i;
    p->items[i].tag = (char)(p->items[i].tag + p->items[(i + 1) % p->count].half);
  }
  add(p->items, sizeof p->items[0] * p->count);
}

typedef long double __attribute__((aligned(1))) Wide;
typedef double complex __attribute__((aligned(1))) Complex;
typedef _Float16 __attribute__((aligned(1))) Half;
typedef __int128 __attribute__((aligned(1))) Huge;
NOINLINE static void numbers(Wide* w, Complex* c, Half* h, Huge* i) {
  *w = 1.25L;
  *w = *w * 3 + sqrtl(*w);
  *c = 1.5 - 2.0 * I;
  *c = *c * *c / (1.0 + I);
  *h = (_Float16)1.5;
  *h = (_Float16)(*h * 7 + 1);
  *i = (*i & 0xffffffff) * 1234567 - ((__int128)5 << 99);
  *i /= 7;
  ADD((double)*w);
  ADD(creal(*c));
  ADD((float)*h);
  ADD(*i);
}

typedef int32_t V8 __attribute__((vector_size(32), aligned(1)));
typedef uint8_t V3 __attribute__((ext_vector_type(3)));
typedef double V4 __attribute__((ext_vector_type(4), aligned(1)));
typedef _Bool B16 __attribute__((ext_vector_type(16)));
NOINLINE static void vectors(V8* a, V3* b, V4* d, B16* e) {
  *a = *a * 3 + 1;
  (*a)[next_random(&state) % 8] = 99;
  *b = b->zxy + (V3){1, 2, 3};
  ((char*)b)[3] = 0;  // padding, which may hold anything now
  *d = (V4){1, 2, 3, 4};
  d->xw = d->yz * 2.0;
  typedef _Bool B8 __attribute__((ext_vector_type(8)));
  const B8 large = __builtin_convertvector(*a > 5, B8);
  (*e)[3] = large[3], (*e)[9] = !large[5];
  V8 seen = __builtin_shufflevector(*a, *a, 0, 9, 2, 11, 4, 13, 6, 15);
  add(&seen, 32), add(d, 32), add(b, 3);
}

NOINLINE static uint64_t variable(size_t n, size_t m, uint32_t (*table)[m]) {
  uint32_t local[n][m];
  char* more = alloca(n * 3000);
  char* hidden = more;
  HIDE(hidden);
  memset(hidden, (int)n, n * 3000);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < m; ++j) local[i][j] = table[i][j] * 3 + (uint32_t)hidden[i * j % (n * 3000)];
  uint32_t(*rows)[m] = local;
  HIDE(rows);
  memcpy(table, rows, sizeof local);
  uint64_t total = sizeof local;
  for (size_t i = 0; i < n; ++i) total += table[i][i % m];
  return total;
}

// 16 bytes at a time, aligned as cmpxchg16b wants them, at both ends of pages.
static _Atomic(unsigned __int128)* counters[16];
struct Triple {
  uint64_t a, b, c;
};
struct Twelve {
  uint32_t a, b, c;
};
static _Atomic(struct Triple)* triple;
static _Atomic(struct Twelve)* twelve;
static _Atomic(long double)* shared_wide;
enum { kThreads = 4, kTurns = 3000 };
static void* count(void* number) {
  uint64_t random = (uint64_t)(uintptr_t)number;
  for (int i = 0; i < kTurns; ++i) {
    _Atomic(unsigned __int128)* at = counters[i % 16];
    atomic_fetch_add(at, ((unsigned __int128)1 << 64) + 1);
    unsigned __int128 old = atomic_load(at);
    CHECK((uint64_t)(old >> 64) == (uint64_t)old);
    while (!atomic_compare_exchange_weak(at, &old, old + (((unsigned __int128)1 << 64) | 1))) {
    }
    struct Triple was = atomic_load(triple), next;
    do {
      CHECK(was.b == was.a * 2 && was.c == was.a * 3);
      next = (struct Triple){was.a + 1, was.a * 2 + 2, was.a * 3 + 3};
    } while (!atomic_compare_exchange_strong(triple, &was, next));
    struct Twelve twelve_was = atomic_load(twelve);
    CHECK(twelve_was.c == (twelve_was.a ^ twelve_was.b));
    const uint32_t fresh = (uint32_t)next_random(&random);
    atomic_store(twelve, ((struct Twelve){fresh, ~fresh, fresh ^ ~fresh}));
    if (i % 4 == 0) atomic_store(shared_wide, atomic_load(shared_wide) + 0 * i);
    if (i % 64 == 0) memory[next_random(&random) % kCount * kPage + 2000] += 1;  // others leave
  }
  return NULL;
}
static void atomics(void) {
  char* room = aligned_alloc(kPage, 20 * kPage);
  CHECK_SPILLED(room);
  memset(room, 0, 20 * kPage);
  for (int i = 0; i < 16; ++i) counters[i] = (void*)(room + (i + 1) * kPage - (i % 3) * 16);
  // What libatomic locks for, across a page's end.
  triple = (void*)(room + 18 * kPage - 8);
  twelve = (void*)(room + 19 * kPage - 16);
  shared_wide = (void*)(room + 19 * kPage + 64);
  *shared_wide = 0;
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, count, (void*)(uintptr_t)(i + 1)) == 0);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  unsigned __int128 total = 0;
  for (int i = 0; i < 16; ++i) total += atomic_load(counters[i]);
  const struct Triple last = atomic_load(triple);
  printf("%llu %llu %llu %.0Lf %d\n", (unsigned long long)total, (unsigned long long)(total >> 64),
         (unsigned long long)last.a, *shared_wide, atomic_is_lock_free(triple));
}

// An interpreter whose program and table of labels are spilled, and a table of functions.
NOINLINE static long run(void*** where, const uint8_t* program) {
  static void* const labels[] = {&&increment, &&twice, &&less, &&again, &&end};
  if (*where == NULL) {
    *where = malloc(sizeof labels);
    memcpy(*where, labels, sizeof labels);
    push_out(2000000);
  }
  void** table = *where;
  const uint8_t* at = program;
  long value = 0, left = 5;
  goto* table[*at++];
increment:
  value += 1;
  goto* table[*at++];
twice:
  value *= 2;
  goto* table[*at++];
less:
  value -= 3;
  goto* table[*at++];
again:
  if (--left > 0) at = program;
  goto* table[*at++];
end:
  return value;
}
static long plus(long a, long b) { return a + b; }
static long times(long a, long b) { return a * b; }

// Passed and returned in memory, of a page and more.
struct Page {
  char bytes[4096 - 8];
  uint64_t last;
};
struct More {
  struct Page pages[2];
  char rest[13];
};
NOINLINE static struct More pass(struct Page a, struct More b, int n, ...) {
  va_list list, twice;
  va_start(list, n);
  va_copy(twice, list);
  for (int i = 0; i < n; ++i) {
    struct Page c = va_arg(list, struct Page);
    b.pages[i % 2].bytes[i] = c.bytes[i + 1];
    b.pages[i % 2].last += c.last + va_arg(twice, struct Page).last + a.last;
  }
  va_end(twice);
  va_end(list);
  memcpy(b.rest, a.bytes, sizeof b.rest);
  return b;
}

NOINLINE static void builtins(char* a, char* b, char* restrict c) {
  __builtin_memcpy_inline(a, c, 77);
  __builtin_memset_inline(b, 7, 33);
  __builtin_prefetch(b + (1ull << 45));
  __builtin_prefetch(NULL, 1, 0);
  __builtin_prefetch(a);
  __builtin_prefetch((char*)((uint64_t)b ^ 1ull << 63), 0, 1);
  __builtin_nontemporal_store(__builtin_nontemporal_load((uint32_t*)((uint64_t)c & ~3ull)) + 1,
                              (uint32_t*)((uint64_t)a & ~3ull));
  __builtin_memmove(a + 3, a, 200);
  __builtin___clear_cache(a, a);
  long low;
  if (__builtin_add_overflow(*(int16_t*)a, 77, (int32_t*)b)) ADD(1);
  if (__builtin_mul_overflow((long)*(int32_t*)a, 1l << 40, &low)) ADD(low);
  struct Page *from = (struct Page*)c, *to = (struct Page*)a;
  *to = *from;
  add(a, 300);
  ADD(__builtin_bswap64(*(uint64_t*)b) + (uint64_t)__builtin_popcountll(*(uint64_t*)c));
}

// A constructor that ends by a jump.
static int began;
static void begin(void) { began = 1; }
__attribute__((constructor)) static void jump(void) { __attribute__((musttail)) return begin(); }

int main(void) {
  CHECK(began == 1);
  memory = aligned_alloc(kPage, (kCount + 8) * kPage);
  CHECK_SPILLED(memory);
  for (size_t i = 0; i < (kCount + 8) * (size_t)kPage; ++i) memory[i] = (char)(i * 7 >> 3);
  for (int round = 0; round < 1200; ++round) {
    bits(place(sizeof(struct Bits)), (struct Plain*)((uint64_t)place(16) & ~7ull));
    struct Flexible* f = (struct Flexible*)((uint64_t)place(600) & ~3ull);
    f->count = 50;
    flexible(f);
    char* four = place(80);
    numbers((Wide*)four, (Complex*)(four + 16), (Half*)(four + 33), (Huge*)(four + 64));
    vectors(place(32), (V3*)((uint64_t)place(8) & ~3ull), place(32), (B16*)((uint64_t)place(8) & ~1ull));
    if (round % 10 == 0) ADD(variable(1 + (size_t)round % 23, 70, (void*)((uint64_t)place(3000) & ~3ull)));
    char* one = place(200);
    builtins(one, one + 5000 < memory + kCount * kPage ? one + 5000 : one - 9000,
             one + 14000 < memory + kCount * kPage ? one + 14000 : one - 20000);
  }
  uint8_t* program = strcpy(malloc(100), "");
  memcpy(program, "\0\1\1\0\2\3\1\4", 9);
  void*** where = calloc(1, sizeof *where);
  printf("%ld %ld\n", run(where, program), run(where, program));
  long (**functions)(long, long) = malloc(2 * sizeof *functions);
  functions[0] = plus, functions[1] = times;
  HIDE(functions);
  push_out(2000000);
  long value = 1;
  for (int i = 0; i < 20; ++i) value = functions[i % 3 != 0](value, i + 1) % 1000003;
  printf("%ld\n", value);
  struct Page* page = (struct Page*)(memory + 5 * kPage - 8);
  struct More* more = (struct More*)(memory + 100 * kPage - 24);
  for (int i = 0; i < 20; ++i) {
    *more = pass(*page, *more, 3, page[1], *page, page[i]);
    page[i + 1] = more->pages[1];
  }
  add(more, sizeof *more);
  atomics();
  for (size_t i = 0; i < kCount; ++i) memory[i * kPage + 2000] = 0;
  add(memory, kCount * kPage);
  printf("%016llx\n", (unsigned long long)sum);
  return 0;
}
