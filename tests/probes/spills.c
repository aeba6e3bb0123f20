// Data that outgrows its memory, written and read again; then a change of the budget, and code that spillcc did not compile.
#include <spillway/spill.h>
#include <stdlib.h>
#include <string.h>

long foreign_sum(const char *at, long bytes);

char *data;
long bytes;

__attribute__((noinline)) void work(void) {
  unsigned random = 1;
  for (long i = 0; i < bytes; ++i) data[i] = (char)i;
  for (int i = 0; i < 20000; ++i) {
    random = random * 1664525 + 1013904223;
    data[random % bytes]++;
  }
}

int main(int argc, char **arguments) {
  bytes = atol(arguments[1]) << 20;
  data = malloc(bytes);
  work();
  if (argc == 2) return 0;
  const int refused = spill_set_memory(3 << 20);
  return refused != 0 || foreign_sum(data, 64) == 0;
}
