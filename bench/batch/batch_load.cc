// Updates of random records of a full table, by each engine in turn, on the same records.
// (papers/cache-aware-batch-update.txt, sections 4.2 to 4.4)
//
//   PROGRAM key=8 record=16 bucket=512 buckets=400000 [threads=1] [seconds=0.3] [turns=5] [active=N] [cache=KIB] [cell=1024] [staging=KIB] [engine=NAME] [seed=1] [updates=N]
//
//   {"records": N, "memory_bytes": N, "huge": N, "cache_bytes": N, "engines": {"linear": [ns, ...], "direct": [...], ...},
//    "chosen": NAME, "choosing_seconds": S, "modelled": {"direct": ns, ...}, "tried": {...}}
//
// Nanoseconds of an update, of all threads together, a number for each turn; the engines' order changes from turn to turn. `auto` is the table that has chosen for
// itself, before the first turn; `modelled`: by its model, of one thread's updates, for engines that it may choose; `tried`: as it has measured them. Records' keys are numbers,
// as many in each bucket as it has room for, in random order there. Requests are made as they are needed, kGroup at a time, which is in the
// time. `cell`: bytes of a cache-bucket. `active`: of all buckets so many take part, others after a while (clustered random). An engine that stages has staged as much as it may before its
// time begins, which is longer then.
//
// With updates=N and an engine there are no turns: so many updates by one thread, for who counts what they do, and what the thesis says of a cache as large as
// the cache-buckets (equation 3.4):
//
//   {"records": N, "relative_misses": N}
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../measure.h"
#include "../random.h"
#include "../words.h"
#include "base/single_writer.h"
#include "batch/table.h"

namespace {

constexpr size_t kGroup = 256;
constexpr char kAuto[] = "auto";
// As much as is staged is made so often while a staging engine is measured, at least: at first all of its regions are full at about the same time.
constexpr uint64_t kCycles = 4;
// Requests between two choices of the buckets that take part.
constexpr uint64_t kPeriod = 1 << 20;

struct Settings {
  std::map<std::string, uint64_t> numbers = {{"key", 8},
                                             {"record", 16},
                                             {"bucket", 512},
                                             {"buckets", 400'000},
                                             {"threads", 1},
                                             {"turns", 5},
                                             {"active", 0},
                                             {"seed", 1},
                                             {"cache", 16 << 10},
                                             {"cell", batch::kCacheBucketBytes},
                                             {"staging", 64 << 10},
                                             {"updates", 0}};
  double seconds = 0.3;
  std::string engine;  // alone; "": all

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
    } else if (at != std::string::npos && name == "engine") {
      std::vector<std::string> names;
      for (const batch::Engine one : batch::kEngines) names.emplace_back(batch::name_of(one));
      names.emplace_back(kAuto);
      settings.engine = load::word_of(name, words[i] + at + 1, names);
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
  check("cell", base::kLineBytes, 1 << 20);
  if (settings["cell"] % base::kLineBytes != 0) load::fail(2, "cell is a multiple of 64 bytes");
  check("buckets", 1, uint64_t{1} << 32);
  check("threads", 1, 256);
  check("turns", 1, 1000);
  if (settings["updates"] != 0 && (settings.engine.empty() || settings.engine == kAuto))
    load::fail(2, "updates wants an engine");
  return settings;
}

void fill(batch::Table& table, uint64_t buckets, uint64_t seed) {
  const batch::Shape& shape = table.options().shape;
  const uint32_t slots = shape.slots();
  batch::Session session(table);
  load::Random random(seed);
  std::vector<uint64_t> order(slots);
  std::vector<std::byte> keys(slots * shape.key_bytes), values(slots * shape.value_bytes);
  for (uint64_t i = 0; i < buckets; ++i) {
    for (uint32_t slot = 0; slot < slots; ++slot) order[slot] = i * slots + slot;
    for (uint32_t slot = slots - 1; slot > 0; --slot) std::swap(order[slot], order[random.below(slot + 1)]);
    for (uint32_t slot = 0; slot < slots; ++slot)
      memcpy(&keys[slot * shape.key_bytes], &order[slot],
             std::min<size_t>(shape.key_bytes, sizeof order[slot]));
    batch::Job job{
        .code = {batch::Action::kUpsert}, .count = slots, .keys = keys.data(), .given = values.data()};
    if (session.run(job) != batch::Session::Ran::kAll) load::fail(1, "the table has no room");
  }
}

// Requests of a thread.
class Requests {
 public:
  Requests(const batch::Shape& shape, uint64_t buckets, uint64_t active, uint64_t seed)
      : shape_(shape),
        count_(buckets),
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
    return {.code = {batch::Action::kUpdate}, .count = kGroup, .keys = keys_.data(), .given = values_.data()};
  }

 private:
  const batch::Shape shape_;
  const uint64_t count_, active_;
  load::Random random_;
  uint64_t first_ = 0, made_ = 0;
  std::vector<std::byte> keys_, values_;
};

// Threads that update until they are told to end, which count what they do.
class Load {
 public:
  Load(batch::Table& table, const Settings& settings, uint64_t seed) : counts_(settings["threads"]) {
    const uint64_t threads = settings["threads"];
    for (uint64_t t = 0; t < threads; ++t)
      all_.emplace_back([&, seed, t, threads] {
        if (static_cast<int>(threads) <= cases::cpu_count()) cases::stay_on_cpu(static_cast<int>(t));
        batch::Session session(table);
        Requests requests(table.options().shape, settings["buckets"], settings["active"], seed * threads + t);
        while (!ends_.load(std::memory_order_relaxed)) {
          batch::Job job = requests.next();
          if (session.run(job) != batch::Session::Ran::kAll || job.absent_count != 0)
            load::fail(1, "a record is not there");
          base::increase(counts_[t].value, uint64_t{kGroup});
        }
      });
  }
  ~Load() {
    ends_.store(true);
    for (std::thread& thread : all_) thread.join();
  }

  uint64_t sum() const {
    uint64_t total = 0;
    for (const Count& count : counts_) total += count.value.load(std::memory_order_relaxed);
    return total;
  }
  // Each of them has done so many.
  void await(uint64_t updates) const {
    for (const Count& count : counts_)
      while (count.value.load(std::memory_order_relaxed) < updates)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  struct alignas(64) Count {
    std::atomic<uint64_t> value{0};
  };

  std::vector<Count> counts_;
  std::atomic<bool> ends_{false};
  std::vector<std::thread> all_;
};

// Nanoseconds of an update.
double measure(batch::Table& table, const Settings& settings, uint64_t turn) {
  const uint64_t shape_bytes = table.options().shape.record_bytes();
  double ns = 0;
  {
    const Load load(table, settings, settings["seed"] + turn);
    const uint64_t staged = batch::is_staging(table.engine()) ? (settings["staging"] << 10) / shape_bytes : 0;
    load.await(std::max<uint64_t>(staged, kGroup));
    const uint64_t begin_ns = cases::clock_ns(CLOCK_MONOTONIC), begin = load.sum();
    std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
    while (load.sum() - begin < kCycles * staged * settings["threads"])
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const uint64_t end = load.sum(), end_ns = cases::clock_ns(CLOCK_MONOTONIC);
    ns = static_cast<double>(end_ns - begin_ns) / static_cast<double>(end - begin);
  }
  if (table.missed_count() != 0) load::fail(1, "a record is not there");
  return ns;
}

void expect(const base::Expected<void>& done) {
  if (!done) load::fail(1, done.error().message);
}

void use(batch::Table& table, std::optional<batch::Engine> engine) {
  batch::Session session(table);
  expect(table.use(session, engine));
}

// Updates by the caller.
void update(batch::Table& table, const Settings& settings) {
  batch::Session session(table);
  Requests requests(table.options().shape, settings["buckets"], settings["active"], settings["seed"]);
  for (uint64_t done = 0; done < settings["updates"]; done += kGroup) {
    batch::Job job = requests.next();
    if (session.run(job) != batch::Session::Ran::kAll) load::fail(1, "the table has no room");
  }
}

double relative_misses(const batch::Shape& shape, const Settings& settings) {
  batch::ThesisModel model{.m = static_cast<double>(settings["buckets"]),
                           .a = static_cast<double>(shape.bucket_bytes),
                           .r = static_cast<double>(shape.record_bytes()),
                           .s = static_cast<double>(settings["cache"] << 10)};
  model.fill_cache(static_cast<double>(settings["cell"] / shape.record_bytes()));
  return model.relative_misses();
}

// The engine that the table chooses under this load.
struct Chosen {
  batch::Engine engine;
  double seconds = 0;
  double cache_bytes = 0;
  std::map<std::string, double> modelled, tried;
};
Chosen choose(batch::Table& table, const Settings& settings) {
  Chosen chosen;
  const uint64_t begin_ns = cases::clock_ns(CLOCK_MONOTONIC);
  {
    const Load load(table, settings, settings["seed"]);
    load.await(kGroup);  // all of their sessions are there
    use(table, std::nullopt);
    for (bool is_trying = true; is_trying;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      table.visit_choice([&](const batch::Choice& choice) {
        is_trying = choice.is_trying();
        chosen.cache_bytes = choice.machine().cache_bytes;
        for (const auto& candidate : choice.candidates()) {
          chosen.modelled[batch::name_of(candidate.engine)] = candidate.modelled_ns;
          chosen.tried[batch::name_of(candidate.engine)] = candidate.measured_ns;
        }
      });
    }
    chosen.engine = table.engine();
  }
  chosen.seconds = static_cast<double>(cases::clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1e9;
  return chosen;
}

// `{"name": text_of(value), ...}`
template <class Values, class TextOf>
std::string object_of(const Values& values, TextOf text_of) {
  std::string text;
  for (const auto& [name, value] : values)
    text += (text.empty() ? "{\"" : ", \"") + name + "\": " + text_of(value);
  return text + "}";
}
std::string text_of(double number) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2f", number);
  return text;
}
std::string list_of(const std::vector<double>& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : ", ") + text_of(numbers[i]);
  return text + "]";
}

}  // namespace

int main(int count, char** words) {
  const Settings settings = settings_of(count, words);
  const auto key = static_cast<uint32_t>(settings["key"]);
  const batch::Shape shape = {.key_bytes = key,
                              .value_bytes = static_cast<uint32_t>(settings["record"]) - key,
                              .bucket_bytes = static_cast<uint32_t>(settings["bucket"])};
  const uint64_t records = settings["buckets"] * shape.slots();
  batch::Table table;
  expect(table.open({.shape = shape,
                     .records = records,
                     .key_space = key > sizeof(uint64_t) ? 0 : records,
                     .cache_bytes = settings["cache"] << 10,
                     .cache_bucket_bytes = static_cast<uint32_t>(settings["cell"]),
                     .staging_bytes = settings["staging"] << 10}));
  fill(table, settings["buckets"], settings["seed"]);
  if (settings["updates"] != 0) {
    for (const batch::Engine engine : batch::kEngines)
      if (settings.engine == batch::name_of(engine)) use(table, engine);
    update(table, settings);
    std::printf("{\"records\": %lu, \"relative_misses\": %.4f}\n", records, relative_misses(shape, settings));
    return 0;
  }
  // What is measured, by its name.
  std::vector<std::pair<std::string, batch::Engine>> all;
  for (const batch::Engine engine : batch::kEngines)
    if (settings.engine.empty() || settings.engine == batch::name_of(engine))
      all.emplace_back(batch::name_of(engine), engine);
  Chosen chosen;
  if (settings.engine.empty() || settings.engine == kAuto) {
    chosen = choose(table, settings);
    all.emplace_back(kAuto, chosen.engine);
  }
  std::map<std::string, std::vector<double>> times;
  for (uint64_t turn = 0; turn < settings["turns"]; ++turn)
    for (size_t i = 0; i < all.size(); ++i) {
      const auto& [name, engine] = all[(i + turn) % all.size()];
      use(table, engine);
      times[name].push_back(measure(table, settings, turn));
    }
  std::printf(
      "{\"records\": %lu, \"memory_bytes\": %lu, \"huge\": %lu, \"cache_bytes\": %.0f, \"engines\": %s",
      records, table.memory_bytes(), cases::bytes_of("/proc/self/smaps_rollup", "AnonHugePages:"),
      chosen.cache_bytes, object_of(times, list_of).c_str());
  if (!chosen.modelled.empty())
    std::printf(", \"chosen\": \"%s\", \"choosing_seconds\": %.2f, \"modelled\": %s, \"tried\": %s",
                batch::name_of(chosen.engine), chosen.seconds, object_of(chosen.modelled, text_of).c_str(),
                object_of(chosen.tried, text_of).c_str());
  std::puts("}");
  return 0;
}
