// Updates of random records of a full table, by each engine in turn, on the same buckets.
// (papers/cache-aware-batch-update.txt, sections 4.2 to 4.4)
//
//   PROGRAM key=8 record=16 bucket=512 buckets=400000 [threads=1] [seconds=0.3] [turns=5] [active=N] [seed=1]
//
//   {"records": N, "memory_bytes": N, "huge": N, "engines": {"direct_linear": [ns, ...], "direct": [...], "prefetch": [...], "tagged": [...]}}
//
// Nanoseconds of an update, of all threads together, a number for each turn; the engines' order changes from turn to turn. Records' keys are numbers,
// as many in each bucket as it has room for, in random order there. Requests are made as they are needed, kGroup at a time, which is in the
// time. `active`: of all buckets so many take part, others after a while (clustered random).
#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../measure.h"
#include "../random.h"
#include "../words.h"
#include "batch/kernels.h"

namespace {

constexpr size_t kGroup = 256;
// Requests between two choices of the buckets that take part.
constexpr uint64_t kPeriod = 1 << 20;

struct Settings {
  std::map<std::string, uint64_t> numbers = {{"key", 8},           {"record", 16}, {"bucket", 512},
                                             {"buckets", 400'000}, {"threads", 1}, {"turns", 5},
                                             {"active", 0},        {"seed", 1}};
  double seconds = 0.3;

  uint64_t operator[](const char* name) const { return numbers.at(name); }
};

Settings settings_of(int count, char** words) {
  load::program_name = "batch-load";
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const size_t at = word.find('=');
    const std::string name = word.substr(0, at);
    if (at != std::string::npos && name == "seconds") {
      settings.seconds = load::share_of(name, words[i] + at + 1, 1000);
    } else if (at != std::string::npos && settings.numbers.contains(name)) {
      settings.numbers[name] = load::count_of(name, words[i] + at + 1, uint64_t{1} << 40);
    } else {
      load::fail(2, "no such word: " + word);
    }
  }
  const auto check = [&](const char* name, uint64_t least, uint64_t most) {
    if (settings[name] >= least && settings[name] <= most) return;
    load::fail(
        2, std::string(name) + " is a number from " + std::to_string(least) + " to " + std::to_string(most));
  };
  check("key", batch::kKeyBytesMin, batch::kKeyBytesMax);
  check("record", std::max<uint64_t>(batch::kRecordBytesMin, settings["key"] + 1), batch::kRecordBytesMax);
  check("bucket", batch::kBucketBytesMin, batch::kBucketBytesMax);
  if (settings["bucket"] % base::kLineBytes != 0) load::fail(2, "bucket is a multiple of 64 bytes");
  check("buckets", 1, uint64_t{1} << 32);
  check("threads", 1, 256);
  check("turns", 1, 1000);
  return settings;
}

struct Engine {
  const char* name;
  batch::Search search;
  batch::Run batch::Kernels::* run;
};
constexpr Engine kEngines[] = {
    {"direct_linear", batch::Search::kLinear, &batch::Kernels::direct},
    {"direct", batch::Search::kVector, &batch::Kernels::direct},
    {"prefetch", batch::Search::kVector, &batch::Kernels::prefetch},
    {"tagged", batch::Search::kVector, &batch::Kernels::tagged},
};

void fill(const batch::Buckets& buckets, uint64_t seed) {
  const batch::Shape& shape = buckets.shape();
  const uint32_t slots = shape.slots();
  load::Random random(seed);
  std::vector<uint64_t> order(slots);
  for (uint64_t i = 0; i < buckets.spread().bucket_count(); ++i) {
    for (uint32_t slot = 0; slot < slots; ++slot) order[slot] = i * slots + slot;
    for (uint32_t slot = slots - 1; slot > 0; --slot) std::swap(order[slot], order[random.below(slot + 1)]);
    for (uint32_t slot = 0; slot < slots; ++slot) {
      memcpy(buckets.record(i, slot), &order[slot], std::min<size_t>(shape.key_bytes, sizeof order[slot]));
      buckets.tags(i)[slot] = buckets.tag_of(batch::load_key(buckets.record(i, slot), shape.key_bytes));
    }
    static_cast<void>(buckets.lock(i));
    buckets.unlock(i, {.count = slots});
  }
}

// Requests of a thread.
class Requests {
 public:
  Requests(const batch::Buckets& buckets, uint64_t active, uint64_t seed)
      : shape_(buckets.shape()),
        count_(buckets.spread().bucket_count()),
        active_(active == 0 ? count_ : std::min(active, count_)),
        random_(seed),
        keys_(kGroup * shape_.key_bytes),
        values_(kGroup * shape_.value_bytes) {}

  batch::Job next() {
    if (active_ < count_ && made_ % kPeriod < kGroup) first_ = random_.below(count_);
    for (size_t i = 0; i < kGroup; ++i) {
      const uint64_t random = random_.next();
      const uint64_t slots = shape_.slots();
      uint64_t number =
          static_cast<uint64_t>(static_cast<unsigned __int128>(random) * (active_ * slots) >> 64);
      // Those that take part lie at equal distances, as the thesis's do, which has some for each cache-bucket.
      if (active_ < count_) {
        const uint64_t bucket = (first_ + number / slots * (count_ / active_)) % count_;
        number = bucket * slots + number % slots;
      }
      memcpy(&keys_[i * shape_.key_bytes], &number, std::min<size_t>(shape_.key_bytes, sizeof number));
      memcpy(&values_[i * shape_.value_bytes], &random, std::min<size_t>(shape_.value_bytes, sizeof random));
    }
    made_ += kGroup;
    return {.code = {batch::Action::kUpdate},
            .count = kGroup,
            .keys = keys_.data(),
            .given = values_.data(),
            .key_stride = shape_.key_bytes,
            .given_stride = shape_.value_bytes};
  }

 private:
  const batch::Shape shape_;
  const uint64_t count_, active_;
  load::Random random_;
  uint64_t first_ = 0, made_ = 0;
  std::vector<std::byte> keys_, values_;
};

// Nanoseconds of an update.
double measure(const batch::Buckets& buckets, batch::Run run, const Settings& settings, uint64_t turn) {
  const uint64_t threads = settings["threads"];
  std::atomic<uint64_t> ready{0}, done{0};
  std::atomic<bool> begins{false}, ends{false};
  std::vector<std::thread> all;
  for (uint64_t t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      if (static_cast<int>(threads) <= cases::cpu_count()) cases::stay_on_cpu(static_cast<int>(t));
      Requests requests(buckets, settings["active"], settings["seed"] + turn * threads + t);
      uint64_t mine = 0;
      ready.fetch_add(1);
      while (!begins.load(std::memory_order_relaxed)) __builtin_ia32_pause();
      while (!ends.load(std::memory_order_relaxed)) {
        batch::Job job = requests.next();
        if (run(buckets, job, 0) != kGroup || job.absent_count != 0) load::fail(1, "a record is not there");
        mine += kGroup;
      }
      done.fetch_add(mine);
    });
  while (ready.load() != threads) std::this_thread::yield();
  const uint64_t begin_ns = cases::clock_ns(CLOCK_MONOTONIC);
  begins.store(true);
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
  ends.store(true);
  for (std::thread& thread : all) thread.join();
  return static_cast<double>(cases::clock_ns(CLOCK_MONOTONIC) - begin_ns) / static_cast<double>(done.load());
}

}  // namespace

int main(int count, char** words) {
  const Settings settings = settings_of(count, words);
  const auto key = static_cast<uint32_t>(settings["key"]);
  const batch::Shape shape = {.key_bytes = key,
                              .value_bytes = static_cast<uint32_t>(settings["record"]) - key,
                              .bucket_bytes = static_cast<uint32_t>(settings["bucket"])};
  const uint64_t records = settings["buckets"] * shape.slots();
  batch::Buckets buckets;
  if (auto opened = buckets.open(shape, batch::Spread::by_number(records, settings["buckets"]), true);
      !opened)
    load::fail(1, opened.error().message);
  fill(buckets, settings["seed"]);
  std::map<std::string, std::vector<double>> times;
  for (uint64_t turn = 0; turn < settings["turns"]; ++turn)
    for (size_t i = 0; i < std::size(kEngines); ++i) {
      const Engine& engine = kEngines[(i + turn) % std::size(kEngines)];
      times[engine.name].push_back(
          measure(buckets, batch::choose_kernels(shape, engine.search).*engine.run, settings, turn));
    }
  std::printf("{\"records\": %lu, \"memory_bytes\": %lu, \"huge\": %lu, \"engines\": {", records,
              buckets.memory_bytes(), cases::bytes_of("/proc/self/smaps_rollup", "AnonHugePages:"));
  for (const auto& [name, all] : times) {
    std::printf("%s\"%s\": [", name == times.begin()->first ? "" : ", ", name.c_str());
    for (size_t i = 0; i < all.size(); ++i) std::printf("%s%.2f", i == 0 ? "" : ", ", all[i]);
    std::printf("]");
  }
  std::puts("}}");
  return 0;
}
