// Compiled by spillc++ and linked statically with foreign_new.cc.
#include <cstdint>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

char* foreign_new(size_t n);
void foreign_delete(char* block);
void* foreign_new_aligned(size_t n);
void foreign_delete_aligned(void* block);

#define CHECK(condition) \
  if (!(condition)) return std::printf("line %d: %s\n", __LINE__, #condition), 1;

static bool is_spilled(const void* block) { return reinterpret_cast<uintptr_t>(block) >> 44 == 1; }

template <class F>
static bool throws_bad_alloc(F&& allocate) {
  try {
    allocate();
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

static volatile size_t huge = SIZE_MAX / 4;

int main() {
  // operator new of uninstrumented code spills what is large, as from a shared library; what it throws passes.
  for (int i = 0; i < 50; ++i) {
    char* block = foreign_new(1 << 20);
    CHECK(is_spilled(block));
    block[4567] = 3;
    i % 2 == 0 ? foreign_delete(block) : delete[] block;
    void* aligned = foreign_new_aligned(1 << 20);
    CHECK(is_spilled(aligned));
    foreign_delete_aligned(aligned);
    CHECK(throws_bad_alloc([] { foreign_new(huge); }));
    CHECK(throws_bad_alloc([] { foreign_new_aligned(huge); }));
    CHECK(throws_bad_alloc([] { delete new char[huge]; }));
    char* small = foreign_new(100);
    CHECK(!is_spilled(small));
    delete[] small;
  }
  // What the C library allocates after operator new threw is still plain.
  FILE* file = std::fopen("/dev/null", "w");
  CHECK(file != nullptr && std::fclose(file) == 0);

  std::string text;  // grows inside libstdc++.a
  for (int i = 0; i < 300000; ++i) text.append("0123456789");
  CHECK(is_spilled(text.data()));
  std::vector<std::thread> threads;
  size_t counts[3] = {};
  for (size_t& count : counts)
    threads.emplace_back([&count, &text] {
      for (char c : text) count += c == '7';
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t count : counts) CHECK(count == 300000);
  try {
    text.at(text.size());
  } catch (const std::out_of_range& error) {
    std::printf("right\n");
  }
  return 0;
}
