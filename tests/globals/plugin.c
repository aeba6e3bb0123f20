// A library that is loaded, unloaded and loaded again.
#include <stdio.h>
int values[200000] = {1, 2, [199999] = 3};
int* into_values = &values[199999];
static int zeros[200000];
// The runtime's (spill_pin, spill_prefetch); null natively. What is pinned stays so until the library goes.
extern int __spillway_pin(const void* p, size_t bytes) __attribute__((weak));
extern void __spillway_prefetch(const void* p, size_t bytes) __attribute__((weak));
__attribute__((constructor)) static void begin(void) {
  if (__spillway_pin != NULL && __spillway_pin(&values[100000], 10000) != 0) puts("not pinned");
  // That is beyond the end of all addresses.
  if (__spillway_prefetch != NULL) __spillway_prefetch(values, (size_t)1 << 43);
  printf("begin %d %d %d\n", values[1], *into_values, zeros[7]);
}
__attribute__((destructor)) static void end(void) { printf("end %d %d\n", values[1], zeros[7]); }
int step(int by) {
  int sum = 0;
  for (int i = 0; i < 200000; ++i) sum += (values[i] += by) + (zeros[i] += 2 * by);
  return sum;
}
