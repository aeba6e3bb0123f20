// A program of two files (another.c), in C and C++ alike.
#ifndef TABLE_H
#include "table.h"
#endif

int main(void) {
  unsigned long* words = (unsigned long*)malloc(kWords * sizeof *words);
  for (int i = 0; i < kWords; ++i) words[i] = 1;
  printf("%lx %lx\n", sum_of(words), sum_of_another());
  free(words);
  return 0;
}
