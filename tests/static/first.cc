// The smallest program that needs the C++ library's operator new: only it can throw.
#include <new>

static volatile unsigned long huge = ~0UL / 4;

int main() {
  try {
    delete new char[huge];
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return 1;
}
