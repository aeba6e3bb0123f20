#!/usr/bin/env python3
"""heap_program.py SEED: prints a C program that keeps its data on the heap, more than a budget of 1 MiB has frames for, without undefined
behaviour (given -fwrapv -fno-strict-aliasing). It prints checksums of its data after each round. Its argument, a number, changes the
values and much of what is done with them.

Structures with random members (packed or not, bit-fields, arrays, nested, by value as arguments and results) live in growing
arrays, lists, trees and hash tables; bytes are read and written at any alignment and moved over themselves; strings are made and
cut; threads add atomically and under a lock. What is done, with which types, sizes and orders, the seed decides.
"""
import random
import sys

SCALARS = ["uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t", "float", "double", "_Bool"]
WIDE = ["unsigned __int128", "long double", "Vector"]

HEAD = r"""
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef uint32_t Vector __attribute__((vector_size(16), aligned(1)));
static uint64_t state;
static uint64_t next(void) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  return z ^ z >> 29;
}
static uint64_t mix(uint64_t sum, uint64_t value) { return (sum ^ value) * 1099511628211u + (sum >> 31); }
__attribute__((noinline)) static uint64_t mix_many(int count, ...) {
  va_list list;
  va_start(list, count);
  uint64_t sum = 7;
  for (int i = 0; i < count; ++i) sum = i & 1 ? mix(sum, va_arg(list, uint64_t)) : mix(sum, (uint64_t)va_arg(list, double));
  va_end(list);
  return sum;
}
static void* get(size_t bytes) {
  void* block = malloc(bytes);
  if (!block) abort();
  return block;
}
"""

# An array that grows, of NAME.
ARRAY = r"""
static struct NAME* array_NAME; static size_t count_NAME, room_NAME;
static void push_NAME(struct NAME value) {
  if (count_NAME == room_NAME) {
    room_NAME = room_NAME * GROW / 8 + 5;
    array_NAME = realloc(array_NAME, room_NAME * sizeof *array_NAME);
  }
  array_NAME[count_NAME++] = value;
}
static int compare_NAME(const void* a, const void* b) {
  uint64_t x = key_NAME(a), y = key_NAME(b);
  return x < y ? -1 : x > y;
}
static void do_array_NAME(uint64_t what, size_t n) {
  switch (what % 9) {
    case 0: while (n--) push_NAME(make_NAME(next())); break;
    case 1: if (count_NAME) qsort(array_NAME, count_NAME, sizeof *array_NAME, compare_NAME); break;
    case 2: for (size_t i = 0, j = count_NAME; i + 1 < j; ++i) { struct NAME t = array_NAME[i]; array_NAME[i] = array_NAME[--j]; array_NAME[j] = t; } break;
    case 3: if (count_NAME > 3) { size_t by = 1 + n % (count_NAME - 2); memmove(array_NAME + by, array_NAME, (count_NAME - by) * sizeof *array_NAME); } break;
    case 4: if (count_NAME > 3) { size_t by = 1 + n % (count_NAME - 2); memmove(array_NAME, array_NAME + by, (count_NAME - by) * sizeof *array_NAME); } break;
    case 5: for (size_t i = 1; i < count_NAME; ++i) change_NAME(&array_NAME[i], &array_NAME[i - 1]); break;
    case 6: for (size_t i = 0; i < n && count_NAME; ++i) change_NAME(&array_NAME[next() % count_NAME], &array_NAME[next() % count_NAME]); break;
    case 7: if (count_NAME > 100) { count_NAME -= n % 50; room_NAME = count_NAME; array_NAME = realloc(array_NAME, room_NAME * sizeof *array_NAME); } break;
    default: for (size_t i = 0; i + STRIDE < count_NAME; i += STRIDE) array_NAME[i] = array_NAME[i + STRIDE];
  }
}
static uint64_t sum_array_NAME(void) {
  uint64_t sum = count_NAME;
  for (size_t i = 0; i < count_NAME; ++i) sum = mix(sum, sum_NAME(&array_NAME[i]));
  return sum;
}
"""

LIST = r"""
struct ListNAME { LINKS struct NAME value; }PACKED;
static struct ListNAME* head_NAME; static size_t length_NAME;
static struct ListNAME* merge_NAME(struct ListNAME* a, struct ListNAME* b) {
  struct ListNAME* first = NULL; struct ListNAME* last = NULL;
  while (a || b) {
    struct ListNAME* t = !b || (a && key_NAME(&a->value) <= key_NAME(&b->value)) ? a : b;
    if (t == a) a = a->next; else b = b->next;
    if (last) last->next = t; else first = t;
    t->before = last;
    last = t;
  }
  return first;
}
static struct ListNAME* sorted_NAME(struct ListNAME* list) {
  if (!list || !list->next) return list;
  struct ListNAME* slow = list;
  for (struct ListNAME* fast = list->next; fast && fast->next; fast = fast->next->next) slow = slow->next;
  struct ListNAME* rest = slow->next;
  slow->next = NULL;
  return merge_NAME(sorted_NAME(list), sorted_NAME(rest));
}
static void do_list_NAME(uint64_t what, size_t n) {
  struct ListNAME* at = head_NAME;
  switch (what % 6) {
    case 0: while (n--) {
      struct ListNAME* t = calloc(1, sizeof *t);
      t->value = make_NAME(next());
      t->next = head_NAME;
      if (head_NAME) head_NAME->before = t;
      head_NAME = t, ++length_NAME;
    } break;
    case 1: head_NAME = sorted_NAME(head_NAME); break;
    case 2: for (size_t i = 0; at && i < n; ++i) {
      struct ListNAME* t = at;
      at = at->next;
      if (!(next() & 3)) {
        if (t->before) t->before->next = t->next; else head_NAME = t->next;
        if (t->next) t->next->before = t->before;
        free(t), --length_NAME;
      }
    } break;
    case 3: { struct ListNAME* last = NULL; while (at) { struct ListNAME* t = at->next; at->next = last; at->before = t; last = at; at = t; } head_NAME = last; } break;
    case 4: for (; at && at->next; at = at->next) change_NAME(&at->value, &at->next->value); break;
    default: for (size_t i = 0; at && i < n; ++i) { at->value = twisted_NAME(at->value); at = at->next; }
  }
}
static uint64_t sum_list_NAME(void) {
  uint64_t sum = length_NAME;
  struct ListNAME* last = NULL;
  for (struct ListNAME* at = head_NAME; at; at = at->next) sum = mix(sum, sum_NAME(&at->value)), last = at;
  for (; last; last = last->before) sum = mix(sum, key_NAME(&last->value));
  return sum;
}
"""

TREE = r"""
struct TreeNAME { struct TreeNAME* side[2]; struct NAME value; uint32_t heat; uint64_t key; }PACKED;
static struct TreeNAME* root_NAME;
static void put_NAME(struct TreeNAME** at, uint64_t key) {
  struct TreeNAME* t = *at;
  if (!t) {
    t = get(sizeof *t);
    t->side[0] = t->side[1] = NULL, t->key = key, t->heat = (uint32_t)next(), t->value = make_NAME(key);
    *at = t;
    return;
  }
  if (t->key == key) { change_NAME(&t->value, &(*at)->value); return; }
  int s = key > t->key;
  struct TreeNAME* child = t->side[s];
  put_NAME(&child, key);
  t->side[s] = child;
  if (child->heat > t->heat) { t->side[s] = child->side[!s]; child->side[!s] = t; *at = child; }
}
static struct TreeNAME* joined_NAME(struct TreeNAME* a, struct TreeNAME* b) {
  if (!a) return b;
  if (!b) return a;
  if (a->heat > b->heat) { a->side[1] = joined_NAME(a->side[1], b); return a; }
  b->side[0] = joined_NAME(a, b->side[0]);
  return b;
}
static int cut_NAME(struct TreeNAME** at, uint64_t key) {
  struct TreeNAME* t = *at;
  if (!t) return 0;
  if (t->key == key) { *at = joined_NAME(t->side[0], t->side[1]); free(t); return 1; }
  struct TreeNAME* child = t->side[key > t->key];
  int found = cut_NAME(&child, key);
  t->side[key > t->key] = child;
  return found;
}
static void do_tree_NAME(uint64_t what, size_t n) {
  uint64_t cuts = 0;
  switch (what % 3) {
    case 0: while (n--) put_NAME(&root_NAME, next() % KEYS); break;
    case 1: while (n--) cuts += cut_NAME(&root_NAME, next() % KEYS); state += cuts; break;
    default: while (n--) {
      struct TreeNAME* at = root_NAME;
      uint64_t key = next() % KEYS;
      while (at && at->key != key) at = at->side[key > at->key];
      if (at) at->value = twisted_NAME(at->value);
    }
  }
}
static uint64_t sum_of_NAME(const struct TreeNAME* t) {
  return t ? mix(mix(sum_of_NAME(t->side[0]), t->key + sum_NAME(&t->value)), sum_of_NAME(t->side[1])) : 3;
}
static uint64_t sum_tree_NAME(void) { return sum_of_NAME(root_NAME); }
"""

HASH = r"""
struct CellNAME { uint8_t used; uint64_t key; struct NAME value; }PACKED;
static struct CellNAME* cells_NAME; static size_t size_NAME = 16, used_NAME;
static struct CellNAME* find_NAME(struct CellNAME* cells, size_t size, uint64_t key) {
  size_t i = (key * 0x9e3779b97f4a7c15) >> 20 & (size - 1);
  while (cells[i].used && cells[i].key != key) i = (i + 1) & (size - 1);
  return &cells[i];
}
static void enter_NAME(uint64_t key) {
  if (!cells_NAME) cells_NAME = calloc(size_NAME, sizeof *cells_NAME);
  if (used_NAME * 4 >= size_NAME * 3) {
    struct CellNAME* larger = calloc(size_NAME * 2, sizeof *larger);
    for (size_t i = 0; i < size_NAME; ++i)
      if (cells_NAME[i].used) *find_NAME(larger, size_NAME * 2, cells_NAME[i].key) = cells_NAME[i];
    free(cells_NAME);
    cells_NAME = larger, size_NAME *= 2;
  }
  struct CellNAME* at = find_NAME(cells_NAME, size_NAME, key);
  if (!at->used) at->used = 1, at->key = key, at->value = make_NAME(key), ++used_NAME;
  else at->value = twisted_NAME(at->value);
}
static void do_hash_NAME(uint64_t what, size_t n) {
  if (what % 4) while (n--) enter_NAME(next() % KEYS);
  else for (size_t i = 1; cells_NAME && i < size_NAME; ++i) if (cells_NAME[i].used && cells_NAME[i - 1].used) change_NAME(&cells_NAME[i].value, &cells_NAME[i - 1].value);
}
static uint64_t sum_hash_NAME(void) {
  uint64_t sum = used_NAME;
  for (size_t i = 0; cells_NAME && i < size_NAME; ++i) if (cells_NAME[i].used) sum = mix(sum, cells_NAME[i].key ^ sum_NAME(&cells_NAME[i].value));
  return sum;
}
"""

BYTES = r"""
static uint8_t* bytes; static size_t byte_count;
#define AT(T, at) (((struct { T value; } __attribute__((packed))*)(bytes + (at)))->value)
static jmp_buf back;
__attribute__((noinline)) static void jump_at(size_t i) { if (bytes[i % byte_count] % 7 == 3) longjmp(back, (int)(i % 100) + 1); bytes[i % byte_count] += 3; }
static void do_bytes(uint64_t what, size_t n) {
  if (!bytes) { byte_count = BYTE_COUNT; bytes = get(byte_count); for (size_t i = 0; i < byte_count; ++i) bytes[i] = (uint8_t)(i * 7 >> 2); }
  size_t last = byte_count - 700, from = next() % last, to = next() % last, length = next() % 600;
  switch (what % 12) {
    case 0: memmove(bytes + to, bytes + from, length); break;
    case 1: memmove(bytes + from + length % 9, bytes + from, length); break;
    case 2: memset(bytes + from, (int)what, length); break;
    case 3: for (size_t i = 0; i < n; ++i) { size_t a = next() % last; AT(uint64_t, a) += AT(uint32_t, a + 3) ^ AT(uint16_t, a + 1); } break;
    case 4: for (size_t i = 0; i + 8 < last; i += STRIDE) AT(uint32_t, i) ^= AT(uint32_t, i + 5); break;
    case 5: for (size_t i = last; i-- > 64;) bytes[i] = (uint8_t)(bytes[i] + bytes[i - 64]); break;
    case 6: for (size_t i = 0; i < n; ++i) { size_t a = next() % last; unsigned __int128 v; memcpy(&v, bytes + a, 16); v = v * 3 + i; memcpy(bytes + next() % last, &v, 16); } break;
    case 7: for (size_t i = 0; i < n; ++i) AT(Vector, next() % last) += AT(Vector, next() % last); break;
    case 8: { size_t end = byte_count + 4096 + n; bytes = realloc(bytes, end); memset(bytes + byte_count, 9, end - byte_count); byte_count = end; } break;
    case 9: state += (uint64_t)memcmp(bytes + from, bytes + to, length) >> 63; uint8_t* hit = memchr(bytes + from, (int)(n & 255), length); state += hit ? (uint64_t)(hit - bytes) : 1; break;
    case 10: { volatile size_t i = 0; int code = setjmp(back); state += (uint64_t)code; for (; i < n; ) { i = i + 1; jump_at(from + i * 5); } } break;
    default: for (size_t i = 0; i < n; ++i) { uint64_t k = bytes[from + i % length + 1]; while (k) { AT(uint16_t, to + k) += 1; k >>= 1; } if (!length) break; }
  }
}
static uint64_t sum_bytes(void) {
  uint64_t sum = 1;
  for (size_t i = 0; i < byte_count; ++i) sum = mix(sum, bytes[i]);
  return sum;
}
"""

TEXTS = r"""
static char** texts; static size_t text_count;
static void do_texts(uint64_t what, size_t n) {
  switch (what % 5) {
    case 0: texts = realloc(texts, (text_count + n) * sizeof *texts);
      while (n--) { char* t = get(TEXT_ROOM); snprintf(t, TEXT_ROOM, "%llx:%zu:%s:%.3f", (unsigned long long)next(), n, text_count ? texts[next() % text_count] + 1 : "first", (double)n / 7); texts[text_count++] = t; } break;
    case 1: for (size_t i = 0; i < text_count; ++i) { char* c = strchr(texts[i], ':'); if (c) memmove(texts[i] + 1, c, strlen(c) + 1); } break;
    case 2: for (size_t i = 1; i < text_count; ++i) if (strcmp(texts[i - 1], texts[i]) > 0) { char* t = texts[i]; texts[i] = texts[i - 1]; texts[i - 1] = t; } break;
    case 3: for (size_t i = 0; i < text_count; ++i) { char* d = strdup(texts[i]); char* keep; size_t k = 0; for (char* p = strtok_r(d, ":", &keep); p; p = strtok_r(NULL, ":", &keep)) k += strtoul(p, NULL, 16); state += k; free(d); } break;
    default: for (size_t i = 0; i < text_count; ++i) if (strlen(texts[i]) + 3 < TEXT_ROOM) strcat(texts[i], i & 1 ? "x:" : "yz");
  }
}
static uint64_t sum_texts(void) {
  uint64_t sum = text_count;
  for (size_t i = 0; i < text_count; ++i) for (const char* c = texts[i]; *c; ++c) sum = mix(sum, (uint64_t)*c);
  return sum;
}
"""

THREADS = r"""
struct Shared { _Atomic uint32_t small; _Atomic uint64_t large; _Atomic uint8_t byte; _Atomic uint16_t half; };
static struct Shared* shared; static pthread_mutex_t* lock; static struct Kept { struct Kept* next; uint64_t value; }* kept;
static void* work(void* argument) {
  uint64_t own = (uint64_t)argument * 977 + 5;
  for (int i = 0; i < WORK; ++i) {
    own = own * 6364136223846793005u + 1442695040888963407u;
    struct Shared* s = &shared[(own >> 33) % SHARED];
    switch (own >> 60) {
      case 0: case 1: case 2: atomic_fetch_add(&s->small, (uint32_t)(own >> 40)); break;
      case 3: case 4: case 5: atomic_fetch_xor(&s->large, own); break;
      case 6: case 7: { uint64_t old = atomic_load(&s->large); while (!atomic_compare_exchange_weak(&s->large, &old, old ^ own * 3)) {} } break;
      case 8: atomic_fetch_add(&s->byte, 3); break;
      case 9: atomic_fetch_sub(&s->half, (uint16_t)own); break;
      case 10: if (i % 16 == 0) { struct Kept* k = get(sizeof *k); k->value = own; pthread_mutex_lock(lock); k->next = kept; kept = k; pthread_mutex_unlock(lock); } break;
      default: atomic_fetch_add_explicit(&s->small, 1, memory_order_relaxed);
    }
  }
  return NULL;
}
static void do_threads(uint64_t what, size_t n) {
  if (!shared) { shared = calloc(SHARED, sizeof *shared); lock = get(sizeof *lock); pthread_mutex_init(lock, NULL); }
  pthread_t threads[THREAD_COUNT];
  for (uintptr_t i = 0; i < THREAD_COUNT; ++i) if (pthread_create(&threads[i], NULL, work, (void*)(i + what % 1000 + n))) abort();
  for (int i = 0; i < THREAD_COUNT; ++i) pthread_join(threads[i], NULL);
}
static uint64_t sum_threads(void) {
  uint64_t sum = 1, all = 0;
  for (int i = 0; shared && i < SHARED; ++i) sum = mix(sum, shared[i].small ^ shared[i].large ^ (uint64_t)shared[i].byte << 50 ^ (uint64_t)shared[i].half << 40);
  for (struct Kept* k = kept; k; k = k->next) all += k->value;
  return sum + all;
}
"""


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seed = seed
        self.structs = []  # (name, members)

    def number(self, low, high):
        return self.random.randint(low, high)

    def pick(self, *choices):
        return self.random.choice(choices)

    def members(self):
        """(declaration, kind, name, how many) of each member."""
        found = []
        for i in range(self.number(2, 7)):
            kind, name = self.random.choice(SCALARS), f"m{i}"
            shape = self.number(0, 11)
            if shape == 0 and self.structs:
                inner = self.random.choice(self.structs)[0]
                found.append((f"struct {inner} {name};", inner, name, 1))
            elif shape == 1:
                n = self.pick(2, 3, 7, 16, 40)
                found.append((f"{kind} {name}[{n}];", kind, name, n))
            elif shape == 2:
                bits = self.number(1, 31)
                found.append((f"{self.pick('unsigned', 'int')} {name} : {bits};", "bits", name, 1))
            elif shape == 3:
                kind = self.random.choice(WIDE)
                found.append((f"{kind} {name};", kind, name, 1))
            else:
                found.append((f"{kind} {name};", kind, name, 1))
        return found

    @staticmethod
    def as_number(kind, value):
        """An expression's bits as a uint64_t, the same at any optimisation."""
        if kind == "Vector":
            return f"({value}[0] ^ (uint64_t){value}[3] << 17)"
        if kind == "unsigned __int128":
            return f"((uint64_t)({value} >> 64) + (uint64_t){value})"
        if kind in ("float", "double", "long double"):
            return f"(uint64_t)(int64_t)({value} * 16)"
        return f"(uint64_t){value}"

    @staticmethod
    def from_number(kind, value):
        if kind == "Vector":
            return f"(Vector){{(uint32_t)({value}), 2, 3, (uint32_t)({value} >> 32)}}"
        if kind == "unsigned __int128":
            return f"(unsigned __int128)({value}) << 40"
        if kind in ("float", "double", "long double"):
            return f"({kind})({value} % 100000) / 8"
        return f"({value})" if kind in ("bits", "_Bool") else f"({kind})({value})"

    def structure(self, index):
        name = f"S{index}"
        members = self.members()
        packed = " __attribute__((packed))" if self.number(0, 1) else ""
        line = [f"struct {name} {{ {' '.join(m[0] for m in members)} }}{packed};"]
        make, total, change = [], [], []
        known = {s for s, _ in self.structs}
        for _, kind, member, n in members:
            for i in range(n) if n < 4 else (0, n // 2, n - 1):
                place = f"{member}[{i}]" if n > 1 else member
                salt = self.number(1, 63)
                if kind in known:
                    make.append(f"value.{place} = make_{kind}(seed + {salt});")
                    total.append(f"sum = mix(sum, sum_{kind}(&s->{place}));")
                    change.append(self.pick(f"a->{place} = b->{place};", f"change_{kind}(&a->{place}, &b->{place});"))
                    continue
                make.append(f"value.{place} = {self.from_number(kind, f'(seed >> {salt % 40})')};")
                total.append(f"sum = mix(sum, {self.as_number(kind, f's->{place}')});")
                if kind in ("float", "double", "long double"):
                    change.append(f"a->{place} = b->{place} + 1;" if self.number(0, 1) else f"a->{place} = b->{place};")
                elif kind == "_Bool":
                    change.append(f"a->{place} = !b->{place};")
                else:
                    change.append(f"a->{place} {self.pick('+', '^', '-', '|')}= b->{place};")
        self.random.shuffle(change)
        member = next((m for m in members if m[1] not in known and m[1] not in WIDE and m[3] == 1), None)
        key = self.as_number(member[1], f"s->{member[2]}") if member else f"sum_{name}(s)"
        inline = self.pick("static", "__attribute__((noinline)) static")
        # It may lie in a packed structure, where nothing is aligned.
        line.append(f"typedef struct {name} Any_{name} __attribute__((aligned(1)));")
        line.append(f"{inline} struct {name} make_{name}(uint64_t seed) {{ struct {name} value; memset(&value, 0, sizeof value); "
                    f"{' '.join(make)} return value; }}")
        line.append(f"{self.pick('static', '__attribute__((noinline)) static')} uint64_t sum_{name}(const Any_{name}* s) "
                    f"{{ uint64_t sum = {self.number(1, 999)}; {' '.join(total)} return sum; }}")
        line.append(f"static uint64_t key_{name}(const Any_{name}* s) {{ return {key}; }}")
        line.append(f"{inline} void change_{name}(Any_{name}* a, const Any_{name}* b) {{ {' '.join(change)} }}")
        line.append(f"__attribute__((noinline)) static struct {name} twisted_{name}(struct {name} value) {{ struct {name} other = value; "
                    f"change_{name}(&value, &other); state += mix_many({self.number(1, 6)}, (double)(state & 255), state, 2.0, sum_{name}(&value), 3.0, "
                    "(uint64_t)5); return value; }")
        self.structs.append((name, members))
        return "\n".join(line)

    def fill(self, thing):
        """A call that makes it grow to some hundred KiB."""
        kind, _, name = thing.partition("_")
        kib = self.pick(60, 150, 300)
        if kind == "tree":
            kib //= 3
        count = {"bytes": "1", "texts": str(kib * 4), "threads": "1"}.get(kind, f"{kib * 1024} / (sizeof(struct {name}) + 24)")
        return f"  do_{thing}({1 if kind == 'hash' else 0}, {count});"

    def text(self):
        parts = [HEAD]
        parts += [self.structure(i) for i in range(self.number(2, 3))]
        things = []
        for name, _ in self.structs:
            chosen = self.random.sample([("array", ARRAY), ("list", LIST), ("tree", TREE), ("hash", HASH)], self.number(1, 2))
            for kind, template in chosen:
                links = self.pick("struct ListNAME* next; struct ListNAME* before;", "uint8_t gap; struct ListNAME* before; struct ListNAME* next;")
                parts.append(template.replace("LINKS", links).replace("PACKED", self.pick("", " __attribute__((packed))"))
                             .replace("GROW", str(self.number(9, 20))).replace("KEYS", str(self.pick(self.number(50, 3000), 20000)))
                             .replace("STRIDE", str(self.number(1, 9))).replace("NAME", name))
                things.append(f"{kind}_{name}")
        for name, template, odds in (("bytes", BYTES, 4), ("texts", TEXTS, 2), ("threads", THREADS, 1)):
            if self.number(0, 4) < odds:
                parts.append(template.replace("BYTE_COUNT", str(self.pick(self.number(9000, 90000), 400000))).replace("STRIDE", str(self.number(1, 9)))
                             .replace("TEXT_ROOM", str(self.number(60, 300))).replace("WORK", str(self.number(200, 3000)))
                             .replace("SHARED", str(self.number(1, 900))).replace("THREAD_COUNT", str(self.number(2, 3))))
                things.append(name)
        fills = [self.fill(thing) for thing in things]
        calls = []
        for _ in range(self.number(6, 16)):
            thing = self.random.choice(things)
            calls.append(f"    do_{thing}({self.pick('next()', str(self.number(0, 11)), '0')}, {self.number(1, self.pick(100, 1000))});")
        sums = "\n".join(f'    printf("{thing} %016llx\\n", (unsigned long long)sum_{thing}());' for thing in things)
        parts.append("int main(int count, char** arguments) {\n" + f"  state = SEED + (count > 1 ? strtoull(arguments[1], NULL, 10) : 0);\n" +
                     "\n".join(fills) + f"\n  for (int round = 0; round < {self.number(2, 5)}; ++round) {{\n" + "\n".join(calls) + "\n" +
                     sums + "\n  }\n" + '  printf("%016llx\\n", (unsigned long long)state);\n  return 0;\n}\n')
        return "\n".join(parts).replace("SEED", f"{self.seed}u")


if __name__ == "__main__":
    print(Program(int(sys.argv[1])).text())
