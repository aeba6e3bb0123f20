// A shared library with a global that programs use too, a pointer into it, and a global that nobody else sees.
int of_library[80000] = {[9] = 99};
int* const last_of_library = &of_library[79999];
static int hidden[80000] = {3, 4};
long library_sum(void) {
  long sum = 0;
  for (int i = 0; i < 80000; ++i) sum = sum * 3 + of_library[i] + hidden[i]++;
  return sum;
}
