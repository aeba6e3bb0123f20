// What lies in a function's frame or comes with its call, while its loops access spilled memory: variables whose address
// others keep, copies of arguments, results that the caller has room for, arguments on the stack, recursion, exceptions.
#include <alloca.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#define NOINLINE __attribute__((noinline))

static constexpr int kCount = 400;
static uint64_t* numbers;

struct Large {
  uint64_t word[9];
};

// Others keep the address of what lies here, and change it.
static uint64_t *kept, *kept_too;
static NOINLINE void keep(uint64_t* where, uint64_t* there) { kept = where, kept_too = there; }
static NOINLINE void change(int i) {
  kept[i % 3] += numbers[i] | 1;
  *kept_too += static_cast<uint64_t>(i);
}
NOINLINE uint64_t variables(int count) {
  uint64_t here[3] = {1, 2, 3}, there = 4;
  uint64_t seen = 0;
  keep(here, &there);
  for (int i = 0; i < count; ++i) {
    change(i);
    seen = seen * 3 + here[(i + 1) % 3];
    numbers[i] ^= seen;
  }
  return seen + here[0] + there * 3 + (kept == here);
}

// A copy that the caller made, changed in a loop; its address goes elsewhere too.
static NOINLINE void bump(Large* l, int i) { l->word[i % 9] += numbers[i]; }
NOINLINE uint64_t copied(Large l, const uint64_t* from, int count) {
  for (int i = 0; i < count; ++i) {
    l.word[(i + 4) % 9] ^= from[i] * 5;
    bump(&l, i);
  }
  return l.word[0] + l.word[3] * 7 + l.word[8];
}
NOINLINE uint64_t copied_at_once(Large l, const uint64_t* from) { return l.word[2] + *from; }

// A result for which the caller has room.
NOINLINE Large returned(const uint64_t* from, int count) {
  Large l = {};
  for (int i = 0; i < count; ++i) l.word[from[i] % 9] += from[i] ^ static_cast<uint64_t>(i);
  return l;
}

// Of these some are alive to the end, and some are not.
NOINLINE uint64_t many(uint64_t a, const uint64_t* b, uint64_t c, uint64_t d, double e, uint64_t f,
                       uint64_t g, uint64_t h, const uint64_t* i, float j) {
  uint64_t sum = a * 3 + *b + d;
  for (uint64_t k = 0; k < c; ++k) sum = sum * 5 + i[k] + h;
  for (uint64_t k = 0; k < f; ++k) sum = sum * 7 + i[k % c] + static_cast<uint64_t>(j);
  return sum + g + static_cast<uint64_t>(e);
}

NOINLINE uint64_t* same(uint64_t* p, int count) {
  for (int i = 0; i < count; ++i) p[i] += 3;
  return p;
}

// In circles, by functions of which all calls are known and by others.
NOINLINE uint64_t down(int n, uint64_t* p);
static NOINLINE uint64_t odd(int n, uint64_t* p);
static NOINLINE uint64_t even(int n, uint64_t* p) {
  p[n] += 1;
  return n == 0 ? p[0] : odd(n - 1, p) * 3 + p[n];
}
static NOINLINE uint64_t odd(int n, uint64_t* p) {
  p[n] ^= 5;
  return n == 0 ? p[0] : (n % 7 == 0 ? down(n - 1, p) : even(n - 1, p)) + p[n];
}
uint64_t down(int n, uint64_t* p) {
  uint64_t local = p[n];
  uint64_t* at = n % 2 != 0 ? &local : &p[n];
  for (int i = 0; i < 3; ++i) *at += p[(n + i) % kCount];
  return (n == 0 ? 1 : even(n - 1, p)) + local;
}

// Thrown below, caught here; and on its way through.
struct Guard {
  explicit Guard(uint64_t* p) : p(p) {}
  ~Guard() { ++*p; }
  uint64_t* p;
};
static NOINLINE void throws(uint64_t* p, int i) {
  Guard guard(p + i);
  if (p[i] % 3 == 0) throw std::runtime_error("third");
}
NOINLINE int catches(uint64_t* p, int count) {
  int caught = 0;
  for (int i = 0; i < count; ++i) {
    Guard guard(p + (i * 7) % count);
    try {
      throws(p, i);
    } catch (const std::exception& e) {
      for (const char* c = e.what(); *c != 0; ++c) p[i] = p[i] * 3 + static_cast<uint64_t>(*c);
      ++caught;
    }
  }
  return caught;
}
NOINLINE int passes(uint64_t* p, int count) {
  uint64_t local = 0;
  try {
    for (int i = 0; i < count; ++i) {
      Guard guard(&local);
      throws(p, i);
    }
  } catch (const std::runtime_error&) {
    return static_cast<int>(local);
  }
  return -1;
}

// Room on the stack that is taken in loops, and given back.
NOINLINE uint64_t rooms(const uint64_t* p, int count) {
  uint64_t sum = 0;
  for (int i = 1; i < count; ++i) {
    uint64_t room[i % 9 + 1];
    for (int k = 0; k <= i % 9; ++k) room[k] = p[i] + static_cast<uint64_t>(k);
    sum = sum * 3 + room[i % 9] + room[0];
  }
  auto* list = static_cast<uint64_t*>(nullptr);
  for (int i = 0; i < 20; ++i) {
    auto* node = static_cast<uint64_t*>(alloca(2 * sizeof(uint64_t)));
    node[0] = p[i];
    node[1] = reinterpret_cast<uint64_t>(list);
    list = node;
  }
  for (; list != nullptr; list = reinterpret_cast<uint64_t*>(list[1])) sum = sum * 5 + list[0];
  return sum;
}

NOINLINE uint64_t variadic(int count, ...) {
  va_list list;
  va_start(list, count);
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) sum = sum * 3 + *va_arg(list, uint64_t*);
  va_end(list);
  return sum;
}

static NOINLINE uint64_t apply(uint64_t (*what)(Large, const uint64_t*, int), const Large& l) {
  return what(l, numbers, kCount / 2);
}

int main() {
  numbers = static_cast<uint64_t*>(std::malloc(kCount * sizeof *numbers));
  for (int i = 0; i < kCount; ++i) numbers[i] = static_cast<uint64_t>(i) * 2654435761u + 17;
  std::printf("variables %lx\n", variables(kCount));
  Large l = returned(numbers, kCount);
  for (const uint64_t word : l.word) std::printf(" %lx", word);
  std::printf("\ncopied %lx %lx %lx\n", copied(l, numbers, kCount), copied_at_once(l, numbers),
              apply(copied, l));
  std::printf("many %lx\n", many(1, numbers + 5, kCount, 4, 2.5, 60, 7, numbers[3], numbers, 8.5f));
  std::printf("same %d\n", same(numbers, kCount) == numbers);
  std::printf("down %lx\n", down(kCount - 1, numbers));
  std::printf("catches %d\n", catches(numbers, kCount));
  std::printf("passes %d\n", passes(numbers, kCount));
  std::printf("rooms %lx\n", rooms(numbers, kCount));
  std::printf("variadic %lx\n", variadic(4, numbers, numbers + 100, numbers + 200, numbers + 300));
  uint64_t sum = 0;
  for (int i = 0; i < kCount; ++i) sum = sum * 31 + numbers[i];
  std::printf("numbers %lx\n", sum);
  std::free(numbers);
}
