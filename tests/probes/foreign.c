// A library that spillcc does not compile.
long foreign_sum(const char *at, long bytes) {
  long sum = 0;
  for (long i = 0; i < bytes; ++i) sum += at[i];
  return sum + 1;
}
