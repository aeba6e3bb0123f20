// The second file of the program of main.c: a table of its own.
#ifndef TABLE_H
#include "table.h"
#endif

unsigned long sum_of_another(void) {
  unsigned long* words = (unsigned long*)calloc(kWords, sizeof *words);
  const unsigned long sum = sum_of(words);
  free(words);
  return sum;
}
