// Says which mark its blocks have, and those of a library (operators.cc), and how many are left.
#include <cstdio>

long blocks();
long* made();
void given(long* word);

long* volatile word;
long* volatile array;
long* volatile others;

int main() {
  const long before = blocks();
  word = new long(5);
  array = new long[500]();
  others = made();
  std::printf("%ld %ld %ld\n", word[-2], array[-2], others[-2]);
  given(word);
  delete others;
  delete[] array;
  std::printf("%ld\n", blocks() - before);
}
