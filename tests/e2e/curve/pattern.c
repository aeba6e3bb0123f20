// Touches pages of spilled memory in a known pattern.  pattern KIND PAGES TOUCHES
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t state = 88172645463325252;

static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

int main(int argument_count, char** arguments) {
  if (argument_count != 4) return 2;
  const char* kind = arguments[1];
  const size_t pages = strtoul(arguments[2], NULL, 10),
               touches = strtoul(arguments[3], NULL, 10);  // pages: a power of two
  char* memory = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  for (size_t i = 0; i < pages; ++i) memory[i * 4096] = 1;
  uint64_t sum = 0;
  for (size_t i = 0; i < touches; ++i) {
    const double u = (double)(next_random() >> 11) / 9007199254740992.0;
    size_t page;
    if (strcmp(kind, "loop") == 0)
      page = i % pages * 0x9e37 % pages;  // not a sequence, which would be read ahead; 0x9e37 is odd
    else if (strcmp(kind, "uniform") == 0)
      page = (size_t)(u * (double)pages);
    else if (strcmp(kind, "scan") == 0)
      // An eighth of the pages gets a quarter of the touches, the rest go round.
      page = next_random() % 4 == 0 ? (size_t)(u * (double)(pages / 8)) : i * 0x9e37 % pages;
    else
      // Skewed: a third of the pages gets 70 % of the touches.
      page = (size_t)(u * u * u * (double)pages) * 0x9e37 % pages;
    sum += (unsigned char)memory[page * 4096 + 64]++;
  }
  printf("%lu\n", sum);
  return 0;
}
