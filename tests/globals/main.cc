// Uses globals of each kind of object, and says so; one_name.h is also part of second.cc.
#include <stdio.h>

#include "one_name.h"

extern int of_foreign[80000];  // foreign.c, by clang alone
extern int of_other[];         // other.c, by spillcc
extern int of_library[80000];  // library.c, a shared library
extern int* const last_of_library;
extern "C" long foreign_sum();
extern "C" long library_sum();
long second_sum();
int of_main[80000] = {1, 2, 3};
int* into_other = &of_other[7];
int* into_library = &of_library[9];
__attribute__((weak)) int replaced[80000] = {100};
alignas(4096) char neighbour_before[1] = {'b'};

__attribute__((constructor(101))) static void early() {
  printf("early %d %d %d\n", of_main[2], *into_other, *into_library);
}

int main() {
  for (int i = 0; i < 80000; ++i) {
    of_main[i] += i;
    of_foreign[i] += 2 * i;
    of_other[i] += 3 * i;
    of_library[i] += 4 * i;
    One<int>::values[i] += 5 * i;
    replaced[i] += i;
  }
  printf("%ld %ld %ld %d %d %d\n", foreign_sum(), library_sum(), second_sum(), *into_other, *into_library,
         replaced[0]);
  printf("%d %c\n", last_of_library == &of_library[79999], neighbour_before[0]);
}
