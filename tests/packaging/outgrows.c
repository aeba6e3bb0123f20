// Makes so many MiB of numbers, and prints a sum of them that depends on each one's place.  outgrows MIB
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
  const size_t numbers = (size_t)(count > 1 ? atoi(words[1]) : 16) << 17;
  uint64_t *const all = malloc(numbers * sizeof *all);
  if (all == NULL) return 1;
  uint64_t state = 1;
  for (size_t i = 0; i < numbers; ++i) all[i] = state = state * 6364136223846793005u + 1442695040888963407u;
  uint64_t sum = 0;
  for (size_t i = 0; i < numbers; i += 61) sum = sum * 31 + all[numbers - 1 - i];
  printf("%" PRIu64 "\n", sum);
  free(all);
  return 0;
}
