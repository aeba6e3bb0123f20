// Operators new and delete instead of the C++ library's: blocks have a mark before them, and only such blocks are given back.
#include <cstdlib>
#include <new>

static volatile long live;  // clang takes new for a function that stores to nothing

long blocks() { return live; }

void* operator new(std::size_t bytes) {
  auto* block = static_cast<long*>(std::malloc(bytes + 16));
  if (block == nullptr) throw std::bad_alloc();
  block[0] = 42;
  live = live + 1;
  return block + 2;
}

void operator delete(void* pointer) noexcept {
  if (pointer == nullptr) return;
  long* block = static_cast<long*>(pointer) - 2;
  if (block[0] != 42) std::abort();
  live = live - 1;
  std::free(block);
}
