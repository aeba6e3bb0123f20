// Compiled by clang: a global of its own, and accesses to one of main.cc, which is spilled.
extern int of_main[80000];
int of_foreign[80000] = {5};
int* into_main = &of_main[79999];
long foreign_sum(void) {
  long sum = *into_main;
  for (int i = 0; i < 80000; ++i) sum = sum * 3 + of_main[i] + of_foreign[i];
  return sum;
}
