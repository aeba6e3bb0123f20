// flags: -fno-math-errno -fno-builtin-sin
// expect: cache.evictions>=100
//
// A program that has functions of the mathematical library itself, which use translations: where nothing is to be told by errno they are
// arithmetic to the compiler, and called while translations of their caller could be alive.
#include "e2e.h"

enum { kValues = 3 << 16, kRounds = 2 };

static struct {
  double scale;
  uint64_t calls;
  char rest[8000];
}* state;

double sin(double x) {
  ++state->calls;
  return x * state->scale;
}

__attribute__((noinline)) static void apply(double* values, size_t n) {
  for (size_t i = 0; i < n; ++i) values[i] = __builtin_sin(values[i]);
}

int main(void) {
  state = spilled_zeros(sizeof *state);
  state->scale = 3;
  double* values = spilled_zeros(kValues * sizeof *values);
  for (size_t i = 0; i < kValues; ++i) values[i] = (double)i;
  for (int round = 0; round < kRounds; ++round) apply(values, kValues);
  for (size_t i = 0; i < kValues; ++i) CHECK(values[i] == 9. * (double)i);
  printf("%f\n", values[kValues - 1]);
  return 0;
}
