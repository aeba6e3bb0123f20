// Sorts records of 100 bytes by their first ten, as TeraSort does, at the pace of the driver.
//   sort std|gnu|shuffle RECORDS THREADS      then on standard input, answered on standard output:
//       (start)     "started"     nothing is allocated yet
//       fill        "ready BYTES"   of all that the sort uses; new records each time, the same in each process
//       sort        "SECONDS CPU_SECONDS"
//       check       "right SUM" or "wrong SUM"   whether they are in order; SUM is of all records, whatever their order
//
// std: std::sort. gnu: the multiway merge sort of libstdc++'s parallel mode. shuffle: records are moved to as many parts of a second array
// as there are values of a key's first byte, then each part is sorted: reads and writes go along the arrays, and a part fits in memory where
// the whole does not.
#include <omp.h>
#include <sys/prctl.h>
#include <parallel/algorithm>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "../measure.h"
#include "../random.h"

namespace {

constexpr size_t kKeyBytes = 10, kRecordBytes = 100, kParts = 256;

struct Record {
  unsigned char bytes[kRecordBytes];
};

bool operator<(const Record& a, const Record& b) { return std::memcmp(a.bytes, b.bytes, kKeyBytes) < 0; }

Record* records;
Record* moved;  // what shuffle sorts into
size_t record_count;
int thread_count;

void* allocate(size_t bytes) {
  void* const memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (memory == nullptr) cases::fail("sort");
  return memory;
}

// Of records [0, record_count) those of one thread.
size_t begin_of(int thread) {
  return record_count * static_cast<size_t>(thread) / static_cast<size_t>(thread_count);
}

void fill(uint64_t seed) {
#pragma omp parallel for
  for (int thread = 0; thread < thread_count; ++thread)
    for (size_t i = begin_of(thread); i < begin_of(thread + 1); ++i) {
      load::Random random(seed + i);
      for (size_t at = 0; at < kRecordBytes; at += sizeof(uint64_t)) {
        const uint64_t word = random.next();
        std::memcpy(records[i].bytes + at, &word, std::min(sizeof word, kRecordBytes - at));
      }
    }
}

void shuffle_sort() {
  using Places = std::vector<size_t>;
  std::vector<Places> places(static_cast<size_t>(thread_count), Places(kParts));
  size_t ends[kParts];
#pragma omp parallel for
  for (int thread = 0; thread < thread_count; ++thread)
    for (size_t i = begin_of(thread); i < begin_of(thread + 1); ++i)
      ++places[static_cast<size_t>(thread)][records[i].bytes[0]];
  size_t total = 0;
  for (size_t part = 0; part < kParts; ++part) {
    for (Places& own : places) total += std::exchange(own[part], total);
    ends[part] = total;
  }
#pragma omp parallel for
  for (int thread = 0; thread < thread_count; ++thread)
    for (size_t i = begin_of(thread); i < begin_of(thread + 1); ++i)
      moved[places[static_cast<size_t>(thread)][records[i].bytes[0]]++] = records[i];
#pragma omp parallel for schedule(dynamic, 1)
  for (size_t part = 0; part < kParts; ++part)
    std::sort(moved + (part == 0 ? 0 : ends[part - 1]), moved + ends[part]);
}

void check(const Record* sorted) {
  uint64_t sum = 0, wrong = 0;
#pragma omp parallel for reduction(+ : sum, wrong)
  for (int thread = 0; thread < thread_count; ++thread)
    for (size_t i = begin_of(thread); i < begin_of(thread + 1); ++i) {
      uint64_t hash = 0;
      for (size_t at = 0; at < kRecordBytes; at += sizeof(uint32_t)) {
        uint32_t word;
        std::memcpy(&word, sorted[i].bytes + at, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
      }
      sum += load::mix(hash);
      wrong += i + 1 < record_count && sorted[i + 1] < sorted[i];
    }
  std::printf("%s %016llx\n", wrong == 0 ? "right" : "wrong", static_cast<unsigned long long>(sum));
}

int answer(const std::string& way) {
  uint64_t fills = 0;
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (std::strcmp(line, "fill\n") == 0) {
      const size_t bytes = record_count * sizeof(Record);
      if (records == nullptr) {
        records = static_cast<Record*>(allocate(bytes));
        if (way == "shuffle") moved = static_cast<Record*>(allocate(bytes));
      }
      fill(++fills << 40);
      // The merge sort has a second array while it is at work.
      std::printf("ready %zu\n", bytes * (way == "std" ? 1 : 2));
    } else if (std::strcmp(line, "sort\n") == 0) {
      cases::Stopwatch watch;
      watch.start();
      if (way == "std")
        std::sort(records, records + record_count);
      else if (way == "gnu")
        __gnu_parallel::sort(records, records + record_count, std::less<Record>(),
                             __gnu_parallel::multiway_mergesort_tag(static_cast<unsigned>(thread_count)));
      else
        shuffle_sort();
      watch.stop();
      std::printf("%.6f %.6f\n", static_cast<double>(watch.wall_ns()) * 1e-9,
                  static_cast<double>(watch.cpu_ns()) * 1e-9);
    } else if (std::strcmp(line, "check\n") == 0) {
      check(moved != nullptr ? moved : records);
    } else {
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string way = count == 4 ? words[1] : "";
  if (count == 4) record_count = std::strtoull(words[2], nullptr, 10), thread_count = std::atoi(words[3]);
  if ((way != "std" && way != "gnu" && way != "shuffle") || record_count == 0 || thread_count < 1 ||
      thread_count > 64) {
    std::fputs("usage: sort std|gnu|shuffle RECORDS THREADS\n", stderr);
    return 2;
  }
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // spilled memory has pages of 4 KiB; so has everybody's
  omp_set_num_threads(thread_count);
  std::puts("started");
  std::fflush(stdout);
  return answer(way);
}
