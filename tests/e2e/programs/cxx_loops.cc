// Loops of tasks (spillway/task.h) over more data than there is memory: every access gets what a plain loop would, whatever else
// the task was in the middle of when it had to wait.
// flags: -std=c++17 -pthread
// levels: O0 O2 O3 lto
// expect: spill.task_misses>=500 cache.evictions>=500 cache.read_aheads>=300
#include "../../../include/spillway/task.h"

#include <cerrno>
#include <cfenv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "e2e.h"

namespace {

using spillway::parallel_for;

constexpr size_t kWords = size_t{1} << 19;  // 4 MiB
constexpr size_t kWordsPerPage = 512;

uint64_t mixed(uint64_t x) {
  uint64_t state = x;
  return next_random(&state);
}

std::vector<uint64_t> data;

void test_fill_and_read() {
  data.resize(kWords);
  parallel_for(size_t{0}, kWords, [](size_t i) { data[i] = mixed(i); });
  for (size_t i = 0; i < kWords; ++i) CHECK(data[i] == mixed(i));
  std::vector<uint64_t> sums(4096);
  parallel_for(0, sums.size(), [&](size_t i) {
    uint64_t sum = 0;
    for (uint64_t k = 0; k < 16; ++k) sum += data[mixed(i * 16 + k) % kWords];
    sums[i] = sum;
  });
  for (size_t i = 0; i < sums.size(); ++i) {
    uint64_t sum = 0;
    for (uint64_t k = 0; k < 16; ++k) sum += mixed(mixed(i * 16 + k) % kWords);
    CHECK(sums[i] == sum);
  }
  puts("filled and read");
}

// Several translations live at once while each of the accesses may wait.
void test_many_pointers() {
  constexpr size_t kCount = 3000;
  std::vector<uint64_t> to(kCount * 8);
  parallel_for(size_t{0}, kCount, {64, 2, 1, 0}, [&](size_t i) {
    uint64_t* a = &data[mixed(i) % kWords];
    uint64_t* b = &data[mixed(i + 1) % kWords];
    uint64_t* c = &data[mixed(i + 2) % kWords];
    uint64_t* d = &data[mixed(i + 3) % kWords];
    uint64_t* out = &to[i * 8];
    out[0] = *a + *b;
    out[1] = *b + *c;
    out[2] = *c + *d;
    out[3] = *d + *a;
    out[4] = *a ^ *c;
    out[5] = *b ^ *d;
    out[6] = *a * *b;
    out[7] = *c * *d;
  });
  for (size_t i = 0; i < kCount; ++i) {
    const auto at = [&](size_t k) { return mixed(mixed(i + k) % kWords); };
    const uint64_t a = at(0), b = at(1), c = at(2), d = at(3);
    const uint64_t expected[] = {a + b, b + c, c + d, d + a, a ^ c, b ^ d, a * b, c * d};
    for (size_t k = 0; k < 8; ++k) CHECK(to[i * 8 + k] == expected[k]);
  }
  puts("many pointers");
}

void test_sequences() {
  std::vector<double> x(1 << 17), y(1 << 17);
  parallel_for(size_t{0}, size_t{64}, [&](size_t part) {
    const size_t n = x.size() / 64;
    for (size_t i = part * n; i < (part + 1) * n; ++i) x[i] = static_cast<double>(i);
  });
  parallel_for(size_t{0}, size_t{64}, [&](size_t part) {
    const size_t n = x.size() / 64;
    for (size_t i = part * n; i < (part + 1) * n; ++i) y[i] = 2 * x[i] + 1;
  });
  for (size_t i = 0; i < y.size(); ++i) CHECK(y[i] == 2 * static_cast<double>(i) + 1);
  puts("sequences");
}

template <class Begin, class End>
uint64_t count_of(Begin begin, End end, uint64_t grain = 0) {
  static std::mutex mutex;
  uint64_t count = 0;
  spillway::LoopOptions options;
  options.grain = grain;
  parallel_for(begin, end, options, [&](typename std::common_type<Begin, End>::type) {
    std::lock_guard<std::mutex> guard(mutex);
    ++count;
  });
  return count;
}

void test_bounds() {
  CHECK(count_of(0, 0) == 0);
  CHECK(count_of(5, 3) == 0);
  CHECK(count_of(-3, 4) == 7);
  CHECK(count_of(0, size_t{10}) == 10);
  CHECK(count_of(static_cast<unsigned char>(250), static_cast<unsigned char>(255)) == 5);
  CHECK(count_of(INT_MAX - 3, INT_MAX) == 3);
  CHECK(count_of(INT_MIN, INT_MIN + 4) == 4);
  CHECK(count_of(ULLONG_MAX - 5, ULLONG_MAX) == 5);
  CHECK(count_of(LLONG_MIN, LLONG_MIN + 100, ULLONG_MAX) == 100);
  CHECK(count_of(0, 1000, ULLONG_MAX - 1) == 1000);
  long long sum = 0;
  parallel_for(-100, 101, {1, 1, 0, 0}, [&](int i) { sum += i; });
  CHECK(sum == 0);
  puts("bounds");
}

// The iterations of a loop that is inside another come one after the other, also if there is one task for the outer one.
void test_nested(uint32_t tasks) {
  std::vector<uint64_t> sums(32);
  spillway::LoopOptions options;
  options.tasks = tasks;
  parallel_for(0, 32, options, [&](int i) {
    uint64_t sum = 0;
    parallel_for(0, 50, [&](int k) { sum += data[mixed(i * 50 + k) % kWords]; });
    sums[i] = sum;
  });
  for (int i = 0; i < 32; ++i) {
    uint64_t sum = 0;
    for (int k = 0; k < 50; ++k) sum += mixed(mixed(i * 50 + k) % kWords);
    CHECK(sums[i] == sum);
  }
  puts("nested");
}

void test_errno() {
  parallel_for(0, 2000, [](int i) {
    errno = i;
    const uint64_t at = mixed(i) % kWords;
    CHECK(data[at] == mixed(at));
    CHECK(errno == i);
  });
  puts("errno");
}

// The values lie in x87 registers when the operands are missing.
void test_long_doubles() {
  std::vector<long double> values(40000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<long double>(i) / 3;
  parallel_for(size_t{0}, size_t{3000}, [&](size_t i) {
    const auto at = [&](uint64_t k) { return mixed(i * 4 + k) % values.size(); };
    const size_t a = at(0), b = at(1), c = at(2), d = at(3);
    const long double sum = (values[a] * 3 + values[b]) * (values[c] + values[d] * 5);
    const auto value = [](size_t k) { return static_cast<long double>(k) / 3; };
    CHECK(sum == (value(a) * 3 + value(b)) * (value(c) + value(d) * 5));
  });
  puts("long doubles");
}

void test_rounding() {
  fesetround(FE_UPWARD);
  parallel_for(0, 500, [](int i) {
    CHECK(fegetround() == FE_UPWARD);
    fesetround(i % 2 == 0 ? FE_DOWNWARD : FE_TOWARDZERO);
    const uint64_t at = mixed(i + 77) % kWords;
    CHECK(data[at] == mixed(at));
    CHECK(fegetround() == (i % 2 == 0 ? FE_DOWNWARD : FE_TOWARDZERO));
    fesetround(FE_UPWARD);
  });
  CHECK(fegetround() == FE_UPWARD);
  fesetround(FE_TONEAREST);
  puts("rounding");
}

struct Raises {
  explicit Raises(uint64_t at) : at(at) {}
  ~Raises() { CHECK(data[at] == mixed(at)); }
  uint64_t at;
};

void test_exceptions() {
  parallel_for(0, 1000, [](int i) {
    try {
      const Raises one(mixed(i) % kWords), other(mixed(i + 5000) % kWords);
      throw std::runtime_error(std::to_string(i));
    } catch (const std::exception& error) {
      const uint64_t at = mixed(i + 9000) % kWords;
      CHECK(data[at] == mixed(at));
      CHECK(error.what() == std::to_string(i));
      CHECK(std::uncaught_exceptions() == 0);
      try {
        throw i;
      } catch (int inner) {
        const uint64_t again = mixed(i + 12000) % kWords;
        CHECK(data[again] == mixed(again));
        CHECK(inner == i);
      }
      CHECK(error.what() == std::to_string(i));
    }
  });
  puts("exceptions");
}

void test_containers() {
  std::map<uint64_t, std::string> tree;
  for (uint64_t i = 0; i < 8000; ++i) tree[mixed(i)] = std::string(40, static_cast<char>('a' + i % 26));
  std::vector<std::unique_ptr<std::string>> found(2000);
  parallel_for(0, found.size(), [&](size_t i) {
    const uint64_t key = i * 4;
    found[i].reset(new std::string(tree.at(mixed(key))));
  });
  for (size_t i = 0; i < found.size(); ++i)
    CHECK(*found[i] == std::string(40, static_cast<char>('a' + i * 4 % 26)));
  puts("containers");
}

void test_locks() {
  constexpr int kLocks = 8;
  static std::mutex mutexes[kLocks];
  std::vector<uint64_t> counts(kLocks * kWordsPerPage);
  parallel_for(0, 4000, [&](int i) {
    const int k = i % kLocks;
    std::lock_guard<std::mutex> guard(mutexes[k]);
    const uint64_t at = mixed(i + 40000) % kWords;
    const uint64_t before = counts[k * kWordsPerPage];
    CHECK(data[at] == mixed(at));
    counts[k * kWordsPerPage] = before + 1;
  });
  for (int k = 0; k < kLocks; ++k) CHECK(counts[k * kWordsPerPage] == 4000 / kLocks);
  puts("locks");
}

void test_loops_again() {
  for (int round = 0; round < 20; ++round) {
    std::vector<uint64_t> found(200);
    parallel_for(0, 200, {40, 3, 1, 32 << 10}, [&](int i) { found[i] = data[mixed(i + round) % kWords]; });
    for (int i = 0; i < 200; ++i) CHECK(found[i] == mixed(mixed(i + round) % kWords));
  }
  puts("again");
}

}  // namespace

int main() {
  test_fill_and_read();
  test_many_pointers();
  test_sequences();
  test_bounds();
  test_nested(0);
  test_nested(1);
  test_errno();
  test_long_doubles();
  test_rounding();
  test_exceptions();
  test_containers();
  test_locks();
  test_loops_again();
  return 0;
}
