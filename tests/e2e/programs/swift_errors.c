// expect: cache.evictions>=100
//
// Functions of Swift's calling convention: their error comes and goes in a register, which looks like memory to the compiler.
#include "e2e.h"

enum { kBytes = 8 << 20 };

typedef __attribute__((swiftcall)) void Visit(__attribute__((swift_context)) long* context,
                                              __attribute__((swift_error_result)) void** error);

__attribute__((swiftcall)) static void visit(__attribute__((swift_context)) long* context,
                                             __attribute__((swift_error_result)) void** error) {
  if (*context < 0 && *error == NULL) *error = context;
}

// Called by its address, or the compiler would see what it is given.
static Visit* volatile visit_each = visit;

// Adds one to each value, up to the first one that is negative then, which it returns.
__attribute__((noinline)) static void* add(long* values, size_t n) {
  void* error = NULL;
  for (size_t i = 0; i < n; ++i) {
    values[i] += 1;
    visit_each(&values[i], &error);
    if (error != NULL) return error;
  }
  return NULL;
}

int main(void) {
  const size_t n = kBytes / sizeof(long);
  long* values = spilled_zeros(kBytes);
  CHECK(add(values, n) == NULL);
  values[n / 2] = -2;
  CHECK(add(values, n) == &values[n / 2]);
  printf("%ld %ld %ld\n", values[0], values[n / 2], values[n - 1]);
  return 0;
}
