// Spills, and lets a library touch what it spilled: each page three times by one function, some by another.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void foreign_hot(volatile char* at);
void foreign_cold(volatile char* at);

enum { kPages = 600, kPage = 4096 };

int main(void) {
  char* memory = calloc(kPages, kPage);
  for (int round = 0; round < 3; ++round)
    for (int page = 0; page < kPages; ++page) foreign_hot(memory + page * kPage);
  for (int page = 0; page < 100; ++page) foreign_cold(memory + page * kPage);
  int sum = 0;
  for (int page = 0; page < kPages; ++page) sum += memory[page * kPage];
  printf("sum %d\n", sum);
  return 0;
}
