// flags: -fno-math-errno -fno-builtin-sin -fno-builtin-fma -fno-builtin-fmod
// expect: cache.evictions>=100
//
// A program that has functions of the mathematical library itself, which use translations: where nothing is to be told by errno they are
// arithmetic to the compiler, and called while translations of their caller could be alive. So is what only other processors have an
// instruction for.
#include "e2e.h"

enum { kValues = 3 << 16 };

static struct {
  double scale;
  uint64_t calls;
  char rest[8000];
}* state;

// Now and then all that its caller has in memory leaves.
double sin(double x) {
  if (++state->calls % 16384 == 0) push_out(2 << 20);
  return x * state->scale;
}

double fma(double x, double y, double z) {
  ++state->calls;
  return x * y + z * state->scale;
}

double fmod(double x, double y) {
  ++state->calls;
  return (x - y) * state->scale;
}

__attribute__((noinline)) static void apply(double* values, size_t n) {
  for (size_t i = 0; i < n; ++i) values[i] = __builtin_sin(values[i]);
}

__attribute__((noinline)) static void fuse(double* values, size_t n, double factor) {
  for (size_t i = 0; i < n; ++i) values[i] = __builtin_fma(values[i], factor, values[i]);
}

__attribute__((noinline)) static void reduce(double* values, size_t n, double by) {
  for (size_t i = 0; i < n; ++i) values[i] = __builtin_fmod(values[i], by);
}

// What is loaded before the call is used behind it.
__attribute__((noinline)) static double weigh(const double* values, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += values[i] * __builtin_sin((double)(i & 7));
  return sum;
}

int main(void) {
  state = spilled_zeros(sizeof *state);
  state->scale = 3;
  double* values = spilled_zeros(kValues * sizeof *values);
  for (size_t i = 0; i < kValues; ++i) values[i] = (double)i;
  apply(values, kValues);
  fuse(values, kValues, 2);
  for (size_t i = 0; i < kValues; ++i) CHECK(values[i] == 15. * (double)i);
  reduce(values, kValues, 3);
  for (size_t i = 0; i < kValues; ++i) CHECK(values[i] == 45. * (double)i - 9);
  double sum = 0;
  for (size_t i = 0; i < kValues; ++i) sum += (45. * (double)i - 9) * 3 * (double)(i & 7);
  CHECK(weigh(values, kValues) == sum);
  printf("%f\n", values[kValues - 1]);
  return 0;
}
