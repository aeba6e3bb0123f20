// Inline assembly on spilled memory: operands in memory, also across a page's edge and larger than a page; string instructions,
// whose addresses stand in registers, over many pages; atomic instructions; states of the processor saved there.
// levels: O0 O2
// chaos: 1
// expect: cache.evictions>=100 spill.faults>=1
#include "e2e.h"

#define NOINLINE __attribute__((noinline))
enum { kBytes = 3 << 20 };
static char *base, *other;
static uint64_t state = 9;

static uint64_t hash(const char* bytes, size_t n) {
  uint64_t sum = 14695981039346656037u;
  for (size_t i = 0; i < n; ++i) sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211u;
  return sum;
}

// Every distance from a page's edge; more operands than one.
NOINLINE uint64_t operands(char* at, char* second) {
  typedef uint64_t __attribute__((aligned(1))) Word;
  typedef uint32_t __attribute__((aligned(1))) Half;
  Word *p = (Word*)at, *q = (Word*)second;
  uint64_t out;
  __asm__("movq %1, %0\n\trolq $5, %0" : "=r"(out) : "m"(*p) : "cc");
  __asm__("addq %2, %0\n\tadcq $0, %1" : "+m"(*p), "+m"(*q) : "r"(out) : "cc");
  __asm__("movl %1, %%eax\n\tbswapl %%eax\n\tmovl %%eax, %0"
          : "=m"(*(Half*)(second + 9))
          : "m"(*(Half*)(at + 3))
          : "eax");
  __asm__ volatile("negq %0" : "+m"(*q) : : "cc", "memory");
  return out ^ *p ^ *q;
}

// More operands than there are registers, of two objects.
NOINLINE void adds(char* to, const char* with) {
  typedef uint64_t __attribute__((aligned(1))) Word;
  Word* t = (Word*)to;
  const Word* w = (const Word*)with;
  __asm__(
      "movq %5, %%rax\n\taddq %%rax, %0\n\tmovq %6, %%rax\n\tadcq %%rax, %1\n\tmovq %7, %%rax\n\tadcq %%rax, "
      "%2\n\t"
      "movq %8, %%rax\n\tadcq %%rax, %3\n\tmovq %9, %%rax\n\tadcq %%rax, %4"
      : "+m"(t[0]), "+m"(t[1]), "+m"(t[2]), "+m"(t[3]), "+m"(t[4])
      : "m"(w[0]), "m"(w[1]), "m"(w[2]), "m"(w[3]), "m"(w[4])
      : "rax", "cc");
}
NOINLINE void sums(char* to, const char* with) {
  uint64_t a[5], b[5];
  memcpy(a, to, sizeof a);
  memcpy(b, with, sizeof b);
  adds(to, with);
  unsigned __int128 sum = 0;
  for (int i = 0; i < 5; ++i) {
    sum += (unsigned __int128)a[i] + b[i];
    a[i] = (uint64_t)sum;
    sum >>= 64;
  }
  CHECK(memcmp(a, to, sizeof a) == 0);
}

// asm goto with an operand in memory.
NOINLINE int asks(const char* at, int bit) {
  __asm__ goto("btl %1, %0\n\tjc %l[set]" : : "m"(*(const uint32_t*)at), "r"(bit) : "cc" : set);
  return 0;
set:
  return 1;
}

// What an operand is to the assembly besides: an address, the first of many bits, as in the kernel's bitmaps, and what may be
// needed later.
NOINLINE void more_than_operands(char* at) {
  typedef uint64_t __attribute__((aligned(1))) Word;
  void* address;
  __asm__("leaq %1, %0" : "=r"(address) : "m"(*(Word*)at));
  CHECK(address == at);
  const uint64_t bit = next_random(&state) % (8 * 9000);
  const char before = at[bit / 8];
  __asm__ volatile("btcq %1, %0" : "+m"(*(Word*)at) : "r"(bit) : "cc", "memory");
  CHECK(at[bit / 8] == (char)(before ^ 1 << bit % 8));
  // Nothing need be there.
  __asm__ volatile("prefetcht0 %0" : : "m"(*(const char*)next_random(&state)));
}

// Instructions that take more than their operand's type says, or what lies behind it, as ciphers have them.
NOINLINE void more_than_bytes(char* to, const char* at) {
  uint64_t word;
  __asm__ volatile("movdqu %1, %%xmm1\n\tmovdqu %%xmm1, %0" : "=m"(*to) : "m"(*at) : "xmm1", "memory");
  __asm__ volatile("movq %1, %0" : "=r"(word) : "m"(*at) : "memory");
  CHECK(memcmp(to, at, 16) == 0 && memcmp(&word, at, sizeof word) == 0);
  typedef uint64_t __attribute__((aligned(1))) Word;
  __asm__ volatile("movq %H1, %0" : "=r"(word) : "m"(*(const Word*)at) : "memory");
  CHECK(memcmp(&word, at + 8, sizeof word) == 0);
  uint32_t half;
  __asm__ volatile("movl 0xc%1, %0" : "=r"(half) : "m"(*(const Word*)at) : "memory");
  CHECK(memcmp(&half, at + 12, sizeof half) == 0);
}

// What defines a symbol is there once, in a loop and in a function that gets pointers of both kinds.
NOINLINE uint64_t marked_loop(const uint64_t* p, uint64_t n) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n; ++i) {
    __asm__ volatile("spill_test_mark_in_loop: nop");
    sum = sum * 3 + p[(sum >> 7) % n];
  }
  return sum;
}
NOINLINE static uint64_t marked(const uint64_t* p) {
  __asm__ volatile("spill_test_mark: nop");
  return p[0] * 3 + p[1];
}

// An operand of several pages, walked through by a loop in the assembly.
struct Pages {
  char bytes[3 * 4096 + 100];
};
NOINLINE uint64_t walks(struct Pages* p) {
  uint64_t sum = 0, left = sizeof *p / 8;
  uint64_t* at = (uint64_t*)p;
  __asm__ volatile("1: addq (%0), %1\n\trolq $3, %1\n\tincq (%0)\n\taddq $8, %0\n\tdecq %2\n\tjnz 1b"
                   : "+r"(at), "+r"(sum), "+r"(left), "+m"(*p)
                   :
                   : "cc");
  return sum;
}

NOINLINE void string_instructions(void) {
  const size_t from = next_random(&state) % 70000, to = next_random(&state) % 70000,
               n = next_random(&state) % 30000;
  void *d = other + to, *s = base + from;
  size_t count = n;
  switch (next_random(&state) % 8) {
    case 0: __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(count) : : "memory"); break;
    case 1:
      count /= 8;
      __asm__ volatile("rep movsq" : "+D"(d), "+S"(s), "+c"(count) : : "memory");
      break;
    case 2:  // over itself, backwards
      d = base + from + n + 100, s = base + from + n;
      __asm__ volatile("std\n\trep movsb\n\tcld" : "+D"(d), "+S"(s), "+c"(count) : : "memory");
      break;
    case 3: __asm__ volatile("rep stosb" : "+D"(d), "+c"(count) : "a"(n & 255) : "memory"); break;
    case 4:
      count /= 4;
      __asm__ volatile("rep stosl" : "+D"(d), "+c"(count) : "a"(0x01020304) : "memory");
      break;
    case 5:
      memset(d, 7, n);
      other[to + n] = 9;
      count = n + 1;
      __asm__ volatile("repne scasb" : "+D"(d), "+c"(count) : "a"(9) : "cc", "memory");
      CHECK(d == other + to + n + 1 && count == 0);
      break;
    case 6:
      memcpy(d, s, n);
      other[to + n] = (char)(base[from + n] + 1);
      count = n + 5;
      __asm__ volatile("repe cmpsb" : "+D"(d), "+S"(s), "+c"(count) : : "cc", "memory");
      CHECK(d == other + to + n + 1 && count == 4);
      break;
    default: {
      uint64_t sum = 0;
      count = n / 8 + 1;
      __asm__ volatile("1: lodsq\n\txorq %%rax, %0\n\trolq $1, %0\n\tdecq %2\n\tjnz 1b"
                       : "+r"(sum), "+S"(s), "+r"(count)
                       :
                       : "rax", "cc", "memory");
      state += sum;
    }
  }
}

NOINLINE uint64_t atomics(char* at) {
  unsigned __int128* wide = (unsigned __int128*)((uintptr_t)at & ~(uintptr_t)15);
  uint64_t low = (uint64_t)*wide, high = (uint64_t)(*wide >> 64);
  unsigned char done;
  __asm__ volatile("lock cmpxchg16b %1\n\tsete %0"
                   : "=q"(done), "+m"(*wide), "+a"(low), "+d"(high)
                   : "b"(high + 1), "c"(low ^ 5)
                   : "cc", "memory");
  CHECK(done);
  uint32_t* word = (uint32_t*)((uintptr_t)at & ~(uintptr_t)3);
  uint32_t value = 3;
  __asm__ volatile("lock xaddl %0, %1" : "+r"(value), "+m"(*word) : : "cc", "memory");
  __asm__ volatile("lock btsq %1, %0"
                   : "+m"(*(uint64_t*)((uintptr_t)at & ~(uintptr_t)7))
                   : "r"((uint64_t)7)
                   : "cc", "memory");
  __asm__ volatile("xchgl %0, %1" : "+r"(value), "+m"(*word) : : "memory");
  return value ^ (uint64_t)*wide;
}

// 512 bytes, at a multiple of 16: across a page's edge too. What was saved is what is restored.
struct __attribute__((aligned(16))) Saved {
  char bytes[512];
};
NOINLINE int saves(char* at) {
  struct Saved* s = (struct Saved*)((uintptr_t)at & ~(uintptr_t)15);
  uint32_t before, after, other_mode = 0x3f80;
  __asm__ volatile("stmxcsr %0" : "=m"(before));
  __asm__ volatile("fxsave %0" : "=m"(*s));
  __asm__ volatile("ldmxcsr %0" : : "m"(other_mode));
  push_out(1 << 16);
  __asm__ volatile("fxrstor %0" : : "m"(*s) : "memory");
  __asm__ volatile("stmxcsr %0" : "=m"(after));
  return before == after;
}

// What assembly calls uses the slots, and has other pages in memory, before the operand is accessed.
static void use_others(void) { push_out(2 << 20); }
NOINLINE void increments_behind_call(uint64_t* at) {
  __asm__ volatile(
      "movq %%rsp, %%rbx\n\tsubq $128, %%rsp\n\tandq $-16, %%rsp\n\tcallq *%1\n\tmovq %%rbx, %%rsp\n\tincq %0"
      : "+m"(*at)
      : "r"(use_others)
      : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "memory");
}

int main(void) {
  base = malloc(kBytes);
  other = malloc(kBytes);
  CHECK_SPILLED(base);
  CHECK_SPILLED(other);
  for (size_t i = 0; i < kBytes; i += 8) {
    const uint64_t word = next_random(&state);
    memcpy(base + i, &word, 8);
    memcpy(other + i, &word, 8);
  }
  uint64_t sum = 1;
  for (int i = 0; i < 20000; ++i) {
    // Every second one near an edge.
    size_t at = 64 + next_random(&state) % (kBytes - 8192);
    if (i % 2) at = (at & ~(size_t)4095) + 4096 - 20 + at % 32;
    sum = sum * 31 + operands(base + at, other + next_random(&state) % (kBytes - 64));
    sum = sum * 31 + (unsigned)asks(base + (at & ~(size_t)3), i % 32) + atomics(other + at);
  }
  printf("operands and atomics %016llx\n", (unsigned long long)sum);
  uint64_t local[2] = {sum, sum >> 3};
  HIDE(local[1]);
  sum =
      marked(local) * 31 + marked((const uint64_t*)(base + 4096)) + marked_loop((const uint64_t*)base, 9000);
  for (int i = 0; i < 60; ++i) sum = sum * 31 + walks((struct Pages*)(base + i * 40008));
  printf("walks %016llx\n", (unsigned long long)sum);
  for (int i = 0; i < 300; ++i) {
    string_instructions();
    sums(base + 4096 * (i + 2) - i % 48, other + 4096 * i + 4096 - i / 48 % 48);
    more_than_operands(base + next_random(&state) % (kBytes - 10000));
    more_than_bytes(other + 4096 * i + 4096 - i % 17, base + 4096 * (i + 1) + 4096 - i / 17 % 17);
  }
  printf("strings %016llx %016llx\n", (unsigned long long)hash(base, 200000),
         (unsigned long long)hash(other, 200000));
  for (int i = 0; i < 40; ++i) CHECK(saves(base + 4096 * i + 4096 - 16 * i));
  for (int i = 0; i < 8; ++i) {
    uint64_t* at = (uint64_t*)(base + 200000 * i);
    const uint64_t before = *at;
    increments_behind_call(at);
    CHECK(*at == before + 1);
  }
  printf("%016llx\n", (unsigned long long)(hash(other, kBytes) ^ state));
  return 0;
}
