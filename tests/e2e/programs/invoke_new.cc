// Arrays allocated under invoke (a live cleanup, exceptions thrown and caught meanwhile) are spilled, and
// constructors that throw have what was built before destroyed.
// expect: cache.evictions>=1000
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>
#include "e2e.h"

static int alive = 0;

struct Item {
  explicit Item(int n = 0) : number(n) {
    if (n < 0) throw std::runtime_error("negative " + std::to_string(n));
    ++alive;
    for (int i = 0; i < 100; ++i) filler[i] = n + i;
  }
  Item(const Item& other) : number(other.number) {
    if (number == 777) throw std::string("777 is not copied");
    ++alive;
    memcpy(filler, other.filler, sizeof filler);
  }
  ~Item() { --alive; }
  int number;
  int filler[100];
};

struct Guard {
  explicit Guard(int* counter) : counter_(counter) {}
  ~Guard() { ++*counter_; }
  int* counter_;
};

__attribute__((noinline)) static long build(int count, int* cleaned) {
  Guard guard(cleaned);
  std::unique_ptr<int[]> numbers(new int[count]);
  CHECK_SPILLED(numbers.get());
  Item* items = new Item[count];
  CHECK_SPILLED(items);
  std::unique_ptr<Item[]> owner(items);
  for (int i = 0; i < count; ++i) numbers[i] = items[i].filler[99] + i;
  if (count % 3 == 0) throw std::out_of_range("count " + std::to_string(count));
  long sum = 0;
  for (int i = 0; i < count; ++i) sum += numbers[i];
  return sum;
}

int main() {
  int cleaned = 0;
  long sum = 0;
  std::string caught;
  for (int count = 100; count < 1000; count += 17) {
    try {
      sum += build(count, &cleaned);
    } catch (const std::out_of_range& error) {
      caught += error.what();
      caught += ';';
    }
    CHECK(alive == 0);
  }
  CHECK(cleaned == 53);
  printf("%ld %s\n", sum, caught.c_str());

  try {
    std::vector<Item> items;
    for (int i = 0; i < 800; ++i) items.push_back(Item(i));
    printf("%zu\n", items.size());
  } catch (const std::string& text) {
    printf("caught: %s\n", text.c_str());
  }
  CHECK(alive == 0);
  try {
    std::unique_ptr<Item> one(new Item(-5));
  } catch (const std::exception& error) {
    printf("caught: %s\n", error.what());
  }
  CHECK(alive == 0);
  size_t impossible = size_t{1} << 60;
  HIDE(impossible);
  try {
    char* none = new char[impossible];
    HIDE(none);
    CHECK(false);
  } catch (const std::bad_alloc&) {
    printf("bad_alloc\n");
  }
  char* nothing = new (std::nothrow) char[impossible];
  HIDE(nothing);
  CHECK(nothing == nullptr);
  struct alignas(256) Wide {
    char bytes[512];
  };
  std::vector<std::unique_ptr<Wide>> wide;
  for (int i = 0; i < 3000; ++i) {
    wide.emplace_back(new Wide);
    CHECK(reinterpret_cast<uintptr_t>(wide.back().get()) % 256 == 0);
    memset(wide.back()->bytes, i, sizeof wide.back()->bytes);
  }
  for (int i = 0; i < 3000; ++i) CHECK(wide[i]->bytes[511] == static_cast<char>(i));
  return 0;
}
