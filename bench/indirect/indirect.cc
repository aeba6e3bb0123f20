// sum += a[b[i]] for a while, by one plain thread, at the pace of the driver.
//   indirect fill PATH A_BYTES B_COUNT     writes both arrays to a file or device
//   indirect heap A_BYTES B_COUNT          arrays on the heap
//   indirect map PATH A_BYTES B_COUNT      mapped from there: a read at random, b from front to back
// then on standard input, answered on standard output:
//       (start)         "started"        nothing is allocated yet
//       load            "ready BYTES"
//       run SECONDS     "ACCESSES SECONDS CPU_SECONDS"   goes on in b where it was; ends in one line if a sum is wrong
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../measure.h"
#include "../random.h"

namespace {

constexpr uint64_t kBatch = 1 << 15;  // between two looks at the clock
constexpr uint64_t kPartBytes = 1 << 20;

uint64_t a_count, b_count;
const uint64_t* a;
const uint32_t* b;
std::vector<uint64_t> sums;  // of each batch of b, as they should be

uint32_t index_at(uint64_t i) {
  return static_cast<uint32_t>((static_cast<unsigned __int128>(load::mix(~i)) * a_count) >> 64);
}

__attribute__((noinline)) uint64_t sum_of(const uint64_t* values, const uint32_t* indices, uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum += values[indices[i]];
  return sum;
}

void load_heap() {
  auto* const values = static_cast<uint64_t*>(std::aligned_alloc(4096, a_count * sizeof(uint64_t)));
  auto* const indices = static_cast<uint32_t*>(std::aligned_alloc(4096, b_count * sizeof(uint32_t)));
  if (values == nullptr || indices == nullptr) cases::fail("indirect");
  for (uint64_t i = 0; i < a_count; ++i) values[i] = load::mix(i);
  for (uint64_t i = 0; i < b_count; ++i) indices[i] = index_at(i);
  a = values, b = indices;
}

void load_mapped(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) cases::fail(path);
  const uint64_t a_bytes = a_count * sizeof(uint64_t), b_bytes = b_count * sizeof(uint32_t);
  void* const values = mmap(nullptr, a_bytes, PROT_READ, MAP_SHARED, file, 0);
  void* const indices = mmap(nullptr, b_bytes, PROT_READ, MAP_SHARED, file, static_cast<off_t>(a_bytes));
  if (values == MAP_FAILED || indices == MAP_FAILED || madvise(values, a_bytes, MADV_RANDOM) != 0 ||
      madvise(indices, b_bytes, MADV_SEQUENTIAL) != 0)
    cases::fail(path);
  a = static_cast<const uint64_t*>(values), b = static_cast<const uint32_t*>(indices);
}

// Past the page cache, so that it holds nothing when the measurement begins.
int fill_file(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  auto* const part = static_cast<char*>(std::aligned_alloc(4096, kPartBytes));
  if (file < 0 || part == nullptr) cases::fail(path);
  const auto write_all = [&](auto content, uint64_t count) {
    using Item = decltype(content(0));
    for (uint64_t at = 0; at < count; at += kPartBytes / sizeof(Item)) {
      for (uint64_t i = 0; i < kPartBytes / sizeof(Item); ++i)
        reinterpret_cast<Item*>(part)[i] = content(at + i);
      if (write(file, part, kPartBytes) != static_cast<ssize_t>(kPartBytes)) cases::fail(path);
    }
  };
  write_all([](uint64_t i) { return load::mix(i); }, a_count);
  write_all(index_at, b_count);
  if (fsync(file) != 0) cases::fail(path);
  return 0;
}

void run(double seconds) {
  static uint64_t at = 0;
  uint64_t accesses = 0;
  cases::Stopwatch watch;
  watch.start();
  const uint64_t end_ns = cases::clock_ns(CLOCK_MONOTONIC) + static_cast<uint64_t>(seconds * 1e9);
  do {
    if (sum_of(a, b + at, kBatch) != sums[at / kBatch]) {
      std::fputs("indirect: a sum is wrong\n", stderr);
      std::exit(1);
    }
    accesses += kBatch;
    at = at + kBatch == b_count ? 0 : at + kBatch;
  } while (cases::clock_ns(CLOCK_MONOTONIC) < end_ns);
  watch.stop();
  std::printf("%llu %.6f %.6f\n", static_cast<unsigned long long>(accesses),
              static_cast<double>(watch.wall_ns()) * 1e-9, static_cast<double>(watch.cpu_ns()) * 1e-9);
}

int answer(const char* mapped) {
  char line[80];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    double seconds;
    if (std::strcmp(line, "load\n") == 0) {
      for (uint64_t at = 0; at < b_count; at += kBatch) {
        sums.push_back(0);
        for (uint64_t i = at; i < at + kBatch; ++i) sums.back() += load::mix(index_at(i));
      }
      mapped != nullptr ? load_mapped(mapped) : load_heap();
      std::printf("ready %llu\n",
                  static_cast<unsigned long long>(a_count * sizeof(uint64_t) + b_count * sizeof(uint32_t)));
    } else if (std::sscanf(line, "run %lf", &seconds) == 1) {
      run(seconds);
    } else {
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  const bool on_heap = what == "heap";
  if ((on_heap ? count == 4 : count == 5) && (on_heap || what == "map" || what == "fill")) {
    a_count = std::strtoull(words[count - 2], nullptr, 10) / sizeof(uint64_t);
    b_count = std::strtoull(words[count - 1], nullptr, 10);
  }
  // Whole parts of a file, and whole batches.
  if (a_count == 0 || b_count == 0 || a_count * sizeof(uint64_t) % kPartBytes != 0 ||
      b_count % (8 * kBatch) != 0) {
    std::fputs("usage: indirect heap A_BYTES B_COUNT | map|fill PATH A_BYTES B_COUNT; of whole MiB\n",
               stderr);
    return 2;
  }
  if (what == "fill") return fill_file(words[2]);
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // spilled memory has pages of 4 KiB; so has everybody's
  std::puts("started");
  std::fflush(stdout);
  return answer(on_heap ? nullptr : words[2]);
}
