// The index of the key-value store under load (cases.h), and what only it is asked:
//
//   PROGRAM latency|latency_sized KEYS 1    {"operations", "p50_ns", "p99_ns", "p99_99_ns", "most_ns", "regions_moved"}: each insert
//                                           timed by itself; the clock is in it
//   PROGRAM memory KEYS 1                   {"operations", "least", "mean"}: bytes for a key while KEYS keys are put in, after every
//                                           thousandth of them, from an eighth of KEYS on: the least, and the mean
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/histogram.h"
#include "cases.h"
#include "kv/index/index.h"

namespace {

constexpr unsigned kAddressBits = 32;
constexpr size_t kSeveral = 64;

// The thread that a store has for this, while it inserts.
class Background {
 public:
  explicit Background(kv::Index& index)
      : thread_([this, &index] {
          while (!over_.load(std::memory_order_relaxed)) {
            index.prepare();
            std::this_thread::sleep_for(std::chrono::microseconds(500));
          }
        }) {}
  ~Background() {
    over_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

class Table {
 public:
  Table(uint64_t keys, bool sized) : index_(open(sized ? keys : 0)), background_(*index_) {}

  bool insert_one(uint64_t number) {
    return index_->insert(cases::key_of(number), number, 1, {}) == kv::Index::Inserted::kDone;
  }
  // Keys that look like others are put in beside them, as the store does when it has read those.
  bool insert_beside(uint64_t number) {
    kv::Location found[kv::Index::kMaxCandidates];
    uint64_t known[kv::Index::kMaxCandidates];
    const size_t count = index_->find_all(cases::key_of(number), found);
    for (size_t i = 0; i < count; ++i) known[i] = found[i].address;
    return index_->insert(cases::key_of(number), number, 1, {known, count}) == kv::Index::Inserted::kDone;
  }
  uint64_t insert(uint64_t begin, uint64_t end) {
    uint64_t done = 0;
    for (uint64_t number = begin; number < end; ++number) {
      if (number + kAhead < end) index_->prefetch(cases::key_of(number + kAhead));
      done += insert_one(number) || insert_beside(number);
    }
    return done;
  }
  uint64_t look_up(unsigned thread, uint64_t keys, uint64_t count, bool several) {
    uint64_t state = thread, found = 0;
    if (!several) {
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t number = cases::random_below(state, keys);
        found += is_found(number, index_->find(cases::key_of(number)));
      }
      return found;
    }
    uint64_t numbers[kSeveral], hashes[kSeveral];
    kv::Location locations[kSeveral];
    for (uint64_t done = 0; done < count;) {
      const size_t size = std::min<uint64_t>(kSeveral, count - done);
      for (size_t i = 0; i < size; ++i)
        hashes[i] = cases::key_of(numbers[i] = cases::random_below(state, keys));
      index_->find({hashes, size}, {locations, size});
      for (size_t i = 0; i < size; ++i) found += is_found(numbers[i], locations[i]);
      done += size;
    }
    return found;
  }
  kv::IndexCounts counts() const { return index_->counts(); }

 private:
  static constexpr uint64_t kAhead = 8;

  static kv::Index* open(uint64_t keys) {
    const auto index = kv::Index::open(kAddressBits);
    if (!index || !(*index)->reserve(keys)) std::exit(1);
    return *index;
  }

  bool is_found(uint64_t number, const kv::Location& first) const {
    if (first.found && first.address == number) return true;
    kv::Location found[kv::Index::kMaxCandidates];
    const size_t count = index_->find_all(cases::key_of(number), found);
    return std::any_of(found, found + count,
                       [&](const auto& location) { return location.address == number; });
  }

  struct Close {
    void operator()(kv::Index* index) const { index->close(); }
  };
  std::unique_ptr<kv::Index, Close> index_;
  Background background_;  // ends before the index does
};

int latency(uint64_t keys, bool sized) {
  Table table(keys, sized);
  static base::Histogram times;
  for (uint64_t number = 0; number < keys; ++number) {
    const uint64_t begin_ns = cases::clock_ns(CLOCK_MONOTONIC);
    if (!table.insert_one(number) && !table.insert_beside(number)) return 1;
    times.add(cases::clock_ns(CLOCK_MONOTONIC) - begin_ns);
  }
  std::printf(
      "{\"operations\": %lu, \"p50_ns\": %lu, \"p99_ns\": %lu, \"p99_99_ns\": %lu, \"most_ns\": %lu, "
      "\"regions_moved\": %lu}\n",
      keys, times.at(0.5), times.at(0.99), times.at(0.9999), times.most(), table.counts().regions_moved);
  return 0;
}

int memory(uint64_t keys) {
  Table table(keys, false);
  const uint64_t step = std::max<uint64_t>(keys / 1000, 1);
  double least = 1e9, sum = 0, samples = 0;
  for (uint64_t begin = 0; begin < keys; begin += step) {
    const uint64_t end = std::min(begin + step, keys);
    if (table.insert(begin, end) != end - begin) return 1;
    if (end < keys / 8) continue;
    const kv::IndexCounts counts = table.counts();
    const double bytes = static_cast<double>(counts.memory_bytes) / static_cast<double>(counts.entries);
    least = std::min(least, bytes);
    sum += bytes;
    ++samples;
  }
  std::printf("{\"operations\": %lu, \"least\": %.3f, \"mean\": %.3f}\n", keys, least, sum / samples);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string name = count == 4 ? words[1] : "";
  const uint64_t keys = count == 4 ? cases::number_of(words[2]) : 0;
  if (name == "memory" && keys != 0) return memory(keys);
  if ((name == "latency" || name == "latency_sized") && keys != 0)
    return latency(keys, name == "latency_sized");
  return cases::run<Table>(count, words);
}
