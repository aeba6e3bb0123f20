// A program that uses its memory in one way, at the pace of the driver.
//   selfdriving loop|zipf|scan|tree MEGABYTES     then on standard input, answered on standard output:
//       (start)     "started"     nothing is allocated yet
//       load        "ready BYTES"
//       run         "SECONDS CPU_SECONDS SUM"   as much work each time, and the same in each process
//
// loop: all of it is read from front to back, again and again. zipf: records are read and written, those of some pages far more often than those
// of others. scan: the same in a fourth of it, while the rest is read from front to back. tree: a std::map with values of 100 bytes, of which one
// in eight that are looked up is replaced.
#include <sys/prctl.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "../measure.h"
#include "../random.h"

namespace {

constexpr uint64_t kMib = 1 << 20;
constexpr double kTheta = 0.9;

struct Record {
  uint64_t words[8];
};
constexpr uint64_t kRecordsInPage = 4096 / sizeof(Record);

class Program {
 public:
  Program(std::string way, uint64_t bytes) : way_(std::move(way)), bytes_(bytes) {}

  void load() {
    if (way_ == "tree") {
      count_ = bytes_ / 160;  // a node: color, three pointers, key, value, and what the heap adds
      for (uint64_t i = 0; i < count_; ++i) tree_[::load::mix(i)].fill(static_cast<unsigned char>(i));
      choice_ = ::load::Choice(count_, kTheta);
      return;
    }
    records_.resize(bytes_ / sizeof(Record));
    for (uint64_t i = 0; i < records_.size(); ++i) records_[i].words[0] = ::load::mix(i);
    hot_count_ = way_ == "scan" ? records_.size() / 4 : records_.size();
    choice_ = ::load::Choice(hot_count_ / kRecordsInPage, kTheta);
  }

  uint64_t run() {
    if (way_ == "loop") return loop();
    if (way_ == "tree") return tree();
    return zipf(way_ == "scan");
  }

 private:
  uint64_t loop() {
    uint64_t sum = 0;
    for (int round = 0; round < 4; ++round)
      for (const Record& record : records_)
        for (const uint64_t word : record.words) sum += word;
    return sum;
  }

  uint64_t zipf(bool scans) {
    uint64_t sum = 0;
    const uint64_t rest = records_.size() - hot_count_;
    for (uint64_t i = 0; i < bytes_ / 512; ++i) {
      sum += ++records_[choice_.next(random_) * kRecordsInPage + random_.below(kRecordsInPage)].words[0];
      if (scans)
        for (int n = 0; n < 4; ++n) sum += records_[hot_count_ + at_++ % rest].words[1];
    }
    return sum;
  }

  uint64_t tree() {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes_ / 2048; ++i) {
      auto& value = tree_[::load::mix(choice_.next(random_))];
      if (i % 8 == 0) value.fill(static_cast<unsigned char>(i));
      sum += value[i % value.size()];
    }
    return sum;
  }

  const std::string way_;
  const uint64_t bytes_;
  std::vector<Record> records_;
  std::map<uint64_t, std::array<unsigned char, 100>> tree_;
  uint64_t count_ = 0, hot_count_ = 0, at_ = 0;
  ::load::Random random_{1};
  ::load::Choice choice_{0, 0};
};

}  // namespace

int main(int count, char** words) {
  const std::string way = count == 3 ? words[1] : "";
  const uint64_t bytes = count == 3 ? std::strtoull(words[2], nullptr, 10) * kMib : 0;
  if ((way != "loop" && way != "zipf" && way != "scan" && way != "tree") || bytes == 0) {
    std::fputs("usage: selfdriving loop|zipf|scan|tree MEGABYTES\n", stderr);
    return 2;
  }
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // as the other programs here
  std::puts("started");
  std::fflush(stdout);
  Program program(way, bytes);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (std::strcmp(line, "load\n") == 0) {
      program.load();
      std::printf("ready %llu\n", static_cast<unsigned long long>(bytes));
    } else if (std::strcmp(line, "run\n") == 0) {
      cases::Stopwatch watch;
      watch.start();
      const uint64_t sum = program.run();
      watch.stop();
      std::printf("%.6f %.6f %016llx\n", static_cast<double>(watch.wall_ns()) * 1e-9,
                  static_cast<double>(watch.cpu_ns()) * 1e-9, static_cast<unsigned long long>(sum));
    } else {
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}
