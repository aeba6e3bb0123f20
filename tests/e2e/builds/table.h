// A table larger than the budget, filled and then read in another order, in which nearly each read needs another page: some of it.
#ifndef TABLE_H
#define TABLE_H
#include <stdio.h>
#include <stdlib.h>

enum { kWords = 1 << 18 };

static inline unsigned long sum_of(unsigned long* words) {
  unsigned long sum = 0;
  for (unsigned long i = 0; i < kWords; ++i) words[i] = i * 7 + (words[i] & 1);
  for (unsigned long i = 0; i < kWords / 8; ++i) sum = sum * 31 + words[i * 977 % kWords];
  return sum;
}

#ifdef __cplusplus
extern "C"
#endif
    unsigned long
    sum_of_another(void);

#endif
