// What is easy to get wrong: atomics, variable arguments, setjmp, assembly, function pointers, unions.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

struct Counter {
  _Atomic int count;
  _Atomic uint64_t wide;
  _Atomic unsigned char small;
  _Atomic(void*) pointer;
  atomic_flag flag;
};

NOINLINE int atomics(struct Counter* c) {
  int sum = 0;
  for (int i = 0; i < 1000; ++i) {
    sum += atomic_fetch_add(&c->count, i);
    atomic_fetch_xor(&c->wide, (uint64_t)i << 33);
    c->small += 3;
    int expected = i;
    if (!atomic_compare_exchange_strong(&c->count, &expected, 5)) sum += expected & 1;
    sum += atomic_exchange(&c->small, (unsigned char)i);
    if (!atomic_flag_test_and_set(&c->flag)) ++sum;
    atomic_store(&c->pointer, c);
    sum += atomic_load(&c->pointer) == c;
  }
  return sum + (int)(c->wide >> 33);
}

struct __attribute__((aligned(16))) Wide {
  uint64_t a, b;
};
NOINLINE uint64_t wide_atomics(_Atomic struct Wide* w) {
  struct Wide v = {1, 2};
  for (int i = 0; i < 10; ++i) {
    struct Wide old = atomic_exchange(w, v);
    v.a = old.b + 1;
    v.b = old.a + v.b;
  }
  v = atomic_load(w);
  return v.a * 1000 + v.b;
}

struct Format {
  va_list list;
  int used;
};
NOINLINE long take(struct Format* f, const char* kinds) {
  long sum = 0;
  va_list copy;
  va_copy(copy, f->list);
  sum += va_arg(copy, int);
  va_end(copy);
  for (; *kinds; ++kinds, ++f->used) switch (*kinds) {
      case 'i': sum = sum * 3 + va_arg(f->list, int); break;
      case 'd': sum = sum * 3 + (long)va_arg(f->list, double); break;
      case 'p': sum = sum * 3 + strlen(va_arg(f->list, char*)); break;
    }
  return sum;
}
NOINLINE long variadic(const char* kinds, ...) {
  struct Format* f = malloc(sizeof *f);
  f->used = 0;
  va_start(f->list, kinds);
  long result = take(f, kinds) + f->used;
  va_end(f->list);
  free(f);
  return result;
}

static jmp_buf* jump;
NOINLINE void thrower(int* depth) {
  if (++*depth == 5) longjmp(*jump, *depth);
  thrower(depth);
}
NOINLINE int jumps(int* depth) {
  volatile int before = *depth;
  int code = setjmp(*jump);
  if (!code) thrower(depth);
  return code * 100 + *depth - before;
}

NOINLINE uint64_t assembly(uint64_t* p, uint32_t* q) {
  uint64_t out;
  __asm__("movq %1, %0\n\taddq $5, %0" : "=r"(out) : "m"(p[3]));
  __asm__("incq %0" : "+m"(p[4]));
  __asm__("movl %1, %%eax\n\tmovl %%eax, %0" : "=m"(q[1]) : "m"(q[0]) : "eax");
  __asm__ volatile("lock; addl $7, %0" : "+m"(q[2])::"memory");
  return out + p[4] + q[1] + q[2];
}

struct Value {
  union {
    double number;
    char text[24];
    struct {
      uint32_t low, high;
    } parts;
  } u;
  int kind;
};
NOINLINE uint64_t unions(struct Value* v, int n) {
  uint64_t sum = 0;
  for (int i = 0; i < n; ++i) {
    v[i].u.number = i * 1.25;
    v[i].kind = i % 3;
    if (v[i].kind == 1) snprintf(v[i].u.text, sizeof v[i].u.text, "text %d", i);
    sum = sum * 33 + v[i].u.parts.low + v[i].u.parts.high;
  }
  return sum;
}

struct Large {
  long values[40];
};
NOINLINE long sum_large(struct Large l, int k, struct Large m) { return l.values[k] + m.values[39 - k]; }
NOINLINE struct Large make_large(int seed) {
  struct Large l;
  for (int i = 0; i < 40; ++i) l.values[i] = seed * i;
  return l;
}

struct Operations {
  void* (*allocate)(size_t);
  void (*release)(void*);
  void* (*copy)(void*, const void*, size_t);
};
static const struct Operations kOperations = {malloc, free, memcpy};
NOINLINE int through_pointers(const struct Operations* o) {
  int* block = o->allocate(1000 * sizeof(int));
  int* other = o->allocate(1000 * sizeof(int));
  for (int i = 0; i < 1000; ++i) block[i] = i;
  o->copy(other, block, 1000 * sizeof(int));
  int sum = 0;
  for (int i = 0; i < 1000; ++i) sum += other[i];
  o->release(block);
  o->release(other);
  return sum;
}

static int compare_ints(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

NOINLINE int volatiles(volatile int* p) {
  *p = 4;
  *p += *p;
  return *p + p[1];
}

NOINLINE int switchy(const unsigned char* p, int n) {
  int s = 0;
  for (int i = 0; i < n; ++i) switch (p[i] & 7) {
      case 0: s += 3; break;
      case 1: s ^= p[i]; break;
      case 2: s += p[(i + 1) % n]; break;
      case 3:
        if (s > 10000) goto out;
        break;
      default: s -= 1;
    }
out:
  return s;
}

NOINLINE long alternating(long* a, long* b, int n) {
  long* current = a;
  long sum = 0;
  for (int i = 0; i < n; ++i) {
    current[i % 50] += i;
    sum += current[(i + 7) % 50];
    current = current == a ? b : a;
  }
  return sum;
}

// What is accessed most comes last: its loop holds the page, and for what comes before it now and then, and the first time.
struct Counts {
  long seldom, often;
};
NOINLINE long held_for_both(struct Counts* c, const long* words, long n) {
  long at = 0;
  while (at < n) {
    if (at % 3 == 0) ++c->seldom;
    c->often += words[at * 7919 % n];
    at += 1 + (c->often & 1);
  }
  return c->often * 1000 + c->seldom;
}

// An array that the loop fills ahead of itself: what lies behind its end is not yet what will be loaded.
struct Turn {
  long at, key;
};
NOINLINE unsigned long queued(const struct Turn** queue, const struct Turn* turns, const unsigned long* words,
                              long n) {
  unsigned long sum = 0;
  for (long i = 0; i < n; ++i) {
    const struct Turn* turn = queue[i];
    sum = sum * 3 + words[turn->key];
    queue[turn->at] = turns + turn->at;
  }
  return sum;
}
NOINLINE unsigned long queue_up(const unsigned long* words, long n) {
  enum { kAhead = 4 };
  struct Turn* turns = malloc((n + kAhead) * sizeof *turns);
  const struct Turn** queue = calloc(n + kAhead, sizeof *queue);
  for (long i = 0; i < n + kAhead; ++i) turns[i] = (struct Turn){i + kAhead, i * 7919 % n};
  for (long i = 0; i < kAhead; ++i) queue[i] = turns + i;
  const unsigned long sum = queued(queue, turns, words, n);
  free(queue);
  free(turns);
  return sum;
}

// A search whose first find need not be an index, as its last one is.
enum { kSlots = 256, kGone = 0x7fffffff };
NOINLINE unsigned long searched(const unsigned* slots, const unsigned* places, const unsigned long* words,
                                unsigned n) {
  unsigned long sum = 0;
  for (unsigned i = 0; i < n; ++i) {
    unsigned at = i * 7919 % kSlots, slot;
    do {
      slot = slots[at];
      at = (at * 5 + 1) % kSlots;
    } while (slot == kGone);
    sum = sum * 3 + words[places[slot]];
  }
  return sum;
}
NOINLINE unsigned long search(const unsigned long* words) {
  unsigned* slots = malloc(kSlots * sizeof *slots);
  unsigned* places = malloc(kSlots * sizeof *places);
  for (unsigned i = 0; i < kSlots; ++i) {
    slots[i] = i % 3 == 0 ? i : kGone;
    places[i] = i * 3;
  }
  const unsigned long sum = searched(slots, places, words, 300);
  free(slots);
  free(places);
  return sum;
}

// A look at a value that is there only where another one says so.
NOINLINE unsigned long left_out(const struct Turn* const* turns, const unsigned long* words, long n) {
  unsigned long sum = 0;
  for (long i = 0; i < n; ++i) {
    const struct Turn* turn = turns[i];
    if (turn != NULL && turn->at % 3 == 0) sum = sum * 3 + words[turn->key];
  }
  return sum;
}
NOINLINE unsigned long leave_out(const unsigned long* words, long n) {
  struct Turn* all = malloc(n * sizeof *all);
  const struct Turn** turns = malloc(n * sizeof *turns);
  for (long i = 0; i < n; ++i) {
    all[i] = (struct Turn){i, i * 7919 % n};
    turns[i] = i % 2 == 0 ? all + i : NULL;
  }
  const unsigned long sum = left_out(turns, words, n);
  free(turns);
  free(all);
  return sum;
}

static int sign(int v) { return (v > 0) - (v < 0); }
NOINLINE int comparisons(const unsigned char* p, const unsigned char* q) {
  int s = 0;
  for (int i = 0; i < 3000; ++i) {
    s = s * 3 + sign(memcmp(p + i, q + i, 2)) + sign(memcmp(p + i, q + 2 * i, 4)) +
        sign(memcmp(p + i, q + i, 8));
    s += (memcmp(p + i, q + i, 16) == 0) + (memcmp(p + i, q + i, 3) > 0) * 5;
  }
  return s;
}

// Every size that is compared in line, and more: equal ranges, and those that differ in one byte.
NOINLINE unsigned long compared(const unsigned char* p, const unsigned char* q) {
  unsigned long s = 0;
#define COMPARE(n)                                                                 \
  s = s * 31 + (unsigned long)sign(memcmp(p, q, n)) + 3 * (memcmp(p, q, n) == 0) + \
      5 * (memcmp(q, p, n) < 0) + 7 * (memcmp(q, p, n) >= 0) +                     \
      11 * (memcmp(p, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", n) <= 0) +            \
      13 * (memcmp(p + 1, q + 1, n) == 0) + 17 * (memcmp(q, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", n) != 0)
  COMPARE(1);
  COMPARE(2);
  COMPARE(3);
  COMPARE(4);
  COMPARE(5);
  COMPARE(6);
  COMPARE(7);
  COMPARE(8);
  COMPARE(9);
  COMPARE(10);
  COMPARE(11);
  COMPARE(12);
  COMPARE(13);
  COMPARE(14);
  COMPARE(15);
  COMPARE(16);
  COMPARE(17);
  COMPARE(18);
  COMPARE(19);
  COMPARE(24);
  COMPARE(31);
  COMPARE(32);
  COMPARE(33);
  return s;
}
NOINLINE unsigned long compared_at_edges(unsigned char* p, unsigned char* q) {
  unsigned long s = 0;
  for (int at = 0; at < 35; ++at)
    for (int byte = 0; byte < 34; ++byte) {
      memset(p + at, 'a', 36);
      memset(q + at, 'a', 36);
      s = s * 3 + compared(p + at, q + at);
      q[at + byte] = (unsigned char)(byte & 1 ? 'a' - 1 : 200);
      s = s * 3 + compared(p + at, q + at);
    }
  return s;
}

int main(void) {
  struct Counter* c = calloc(1, sizeof *c);
  printf("atomics %d\n", atomics(c));
  _Atomic struct Wide* wide = aligned_alloc(16, sizeof(struct Wide));
  memset((void*)wide, 0, sizeof(struct Wide));
  printf("wide %lu\n", wide_atomics(wide));
  printf("variadic %ld\n", variadic("iidpi", 3, 4, 5.5, "seven", 9));
  jump = malloc(sizeof *jump);
  int* depth = malloc(sizeof *depth);
  *depth = 0;
  printf("jumps %d\n", jumps(depth));
  uint64_t* words = calloc(1000, 8);
  for (int i = 0; i < 1000; ++i) words[i] = i * 3;
  for (int i = 0; i < 900; i += 97)
    printf("assembly %lu\n", assembly(words + i, (uint32_t*)(words + i + 20)));
  struct Value* values = calloc(300, sizeof *values);
  printf("unions %lu\n", unions(values, 300));
  struct Large* large = malloc(20 * sizeof *large);
  long sum = 0;
  for (int i = 0; i < 20; ++i) large[i] = make_large(i);
  for (int i = 0; i < 20; ++i) sum = sum * 3 + sum_large(large[i], i, large[19 - i]);
  printf("large %ld\n", sum);
  printf("pointers %d\n", through_pointers(&kOperations));
  int* ints = malloc(4000);
  for (int i = 0; i < 1000; ++i) ints[i] = i * 7919 % 1009;
  qsort(ints, 1000, sizeof *ints, compare_ints);
  for (int i = 1; i < 1000; ++i)
    if (ints[i - 1] > ints[i]) printf("not sorted at %d\n", i);
  printf("volatiles %d\n", volatiles(ints));
  printf("switchy %d\n", switchy((unsigned char*)words, 8000));
  printf("alternating %ld\n", alternating((long*)words, (long*)words + 511, 3000));
  printf("held %ld\n", held_for_both(calloc(1, sizeof(struct Counts)), (long*)words, 1000));
  printf("queued %lu\n", queue_up(words, 300));
  printf("searched %lu\n", search(words));
  printf("left out %lu\n", leave_out(words, 300));
  char* text = malloc(9000);
  int used = 0;
  for (int i = 0; i < 600; ++i) used += sprintf(text + used, "%d,", i);
  printf("text %zu %d\n", strlen(text), memcmp(text, text + 1, 100) != 0);
  unsigned char* bytes = malloc(14000);
  for (int i = 0; i < 14000; ++i) bytes[i] = (unsigned char)(i % 300 < 290 ? 200 : i * 7);
  printf("comparisons %d\n", comparisons(bytes, bytes + 4096));
  unsigned char* pages = aligned_alloc(4096, 4 * 4096);
  printf("compared %lx\n", compared_at_edges(pages + 4096 - 34, pages + 3 * 4096 - 50));
  errno = 0;
  char* end;
  printf("number %ld %d\n", strtol(text + 10, &end, 10), errno);
  return 0;
}
