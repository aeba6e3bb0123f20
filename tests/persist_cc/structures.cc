// C++ over persistent memory: containers in it, exceptions, threads that lock, a constructor that runs before main. Of
// the containers those of which nothing is in the C++ library itself, which reports nothing.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <forward_list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "region.h"

namespace {

std::mutex mutex;

void flush(const void* address) { __asm__ volatile("clwb (%0)" : : "r"(address) : "memory"); }
void fence() { __asm__ volatile("sfence" : : : "memory"); }

void persist(const void* begin, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(begin) & -uintptr_t{kLineBytes};
  const auto end = reinterpret_cast<uintptr_t>(begin) + bytes;
  unsigned count = 0;
  for (uintptr_t line = first; line < end; line += kLineBytes, ++count) flush(reinterpret_cast<void*>(line));
  fence();
  const std::lock_guard lock(mutex);
  expected.flushes += count;
  ++expected.fences;
}

char* top = REGION;

template <class T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U>
  Allocator(const Allocator<U>&) {}
  T* allocate(size_t count) {
    char* result = top;
    top += (count * sizeof(T) + 63) / 64 * 64;
    if (top > REGION + kRegionBytes) throw std::bad_alloc();
    return reinterpret_cast<T*>(result);
  }
  void deallocate(T*, size_t) {}
  bool operator==(const Allocator&) const { return true; }
};

struct Early {
  Early() {
    map_region();
    REGION[kRegionBytes - 1] = 'e';
    persist(REGION + kRegionBytes - 1, 1);
  }
} early;

using Name = std::basic_string<char, std::char_traits<char>, Allocator<char>>;
int fail(int i) {
  if (i % 3 == 0) throw std::runtime_error("third");
  return i;
}

}  // namespace

int main() {
  auto* numbers = new (Allocator<char>().allocate(64)) std::vector<int, Allocator<int>>;
  for (int i = 0; i < 5000; ++i) numbers->push_back(i * 7919 % 5003);
  std::sort(numbers->begin(), numbers->end());
  persist(numbers->data(), numbers->size() * sizeof(int));

  auto* names = new (Allocator<char>().allocate(128)) std::deque<Name, Allocator<Name>>(50);
  auto* list = new (Allocator<char>().allocate(64)) std::forward_list<Name, Allocator<Name>>;
  for (int i = 0; i < 300; ++i) {
    Name& name = (*names)[i * 31 % 50];
    name += "a name that is longer than a string holds in itself ";
    persist(name.data(), name.size());
    if (i % 10 == 0) list->push_front(name);
  }
  list->sort();
  int caught = 0;
  for (int i = 0; i < 30; ++i) {
    try {
      (*numbers)[i] = fail(i);
    } catch (const std::exception& e) {
      std::strcpy(reinterpret_cast<char*>(numbers->data() + 100), e.what());
      ++caught;
    }
  }
  auto* total = new (Allocator<char>().allocate(64)) std::atomic<long>(0);
  std::vector<std::thread> threads;
  char* own = Allocator<char>().allocate(4 * 4096);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([=] {
      for (int i = 0; i < 4096; ++i) own[t * 4096 + i] = static_cast<char>(i * t);
      persist(own + t * 4096, 4096);
      for (int i = 0; i < 100; ++i) *total += i;
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("caught %d total %ld first %s\n", caught, total->load(), list->front().c_str());
  print_region();
}
