// The second object that has the globals of one_name.h, and the definition that main.cc leaves to others (`replaced` is weak there).
#include "one_name.h"
int replaced[80000] = {200, 201};
long second_sum() {
  long sum = 0;
  for (int i = 0; i < 80000; ++i) sum = sum * 3 + One<int>::values[i];
  return sum;
}
