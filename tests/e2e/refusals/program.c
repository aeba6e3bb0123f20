// program KILOBYTES: fills that much spilled memory, checks it twice, then new memory of zeros, prints a line; at its end too.
#include "../programs/e2e.h"

static unsigned* data;
static size_t words;

static void at_end(void) { printf("end\n"); }

int main(int argc, char** argv) {
  CHECK(argc == 2);
  atexit(at_end);
  words = strtoull(argv[1], NULL, 10) << 8;
  data = malloc(words * 4 + 4);
  for (size_t i = 0; i < words; ++i) data[i] = (unsigned)i * 2654435761u;
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < words; ++i) CHECK(data[i] == (unsigned)i * 2654435761u);
  free(data);
  data = calloc(words, 4);
  for (size_t i = 0; i < words; ++i) CHECK(data[i] == 0);
  printf("filled\n");
  return 0;
}
