// What runs before the runtime does: resolvers of indirect functions, functions of .preinit_array, and what these call with pointers.
// levels: O0 O2
// chaos: 1
#include <cpuid.h>
#include "e2e.h"

#define NOINLINE __attribute__((noinline))
enum { kWords = 3 << 17 };

NOINLINE static int ask(unsigned* words) {
  unsigned leaf;
  HIDE(words);
  return __get_cpuid(0, &leaf, &words[0], &words[2], &words[1]);
}

NOINLINE static int spell(char* text, const unsigned* words) {
  int count = 0;
  HIDE(text);
  for (int i = 0; i < 12; ++i) {
    text[i] = (char)(words[i / 4] >> i % 4 * 8);
    count += text[i] >= ' ';
  }
  return count;
}

typedef uint64_t sum_function(const uint64_t*, size_t);
static uint64_t sum_words(const uint64_t* words, size_t n) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum = sum * 31 + words[i];
  return sum;
}
static uint64_t sum_nothing(const uint64_t* words, size_t n) {
  (void)words, (void)n;
  return 0;
}

sum_function* resolve_sum(void) {
  unsigned words[3];
  char text[12];
  return ask(words) && spell(text, words) == 12 ? sum_words : sum_nothing;
}
uint64_t sum(const uint64_t* words, size_t n) __attribute__((ifunc("resolve_sum")));

static int early_count = -1;
static const char* early_end = "none yet";
static void run_early(int count, char** arguments) {
  HIDE(arguments);
  early_count = count;
  early_end = arguments[count];
}
__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char**) = run_early;

int main(int argc, char** argv) {
  CHECK(early_count == argc && early_end == argv[argc]);
  uint64_t *words = spilled_zeros(kWords * sizeof *words), state = 5;
  for (size_t i = 0; i < kWords; ++i) words[i] = next_random(&state);
  CHECK(sum(words, kWords) == sum_words(words, kWords) && sum(words, 1) == words[0]);
  printf("%lx\n", sum(words, kWords));
  return 0;
}
