// Updates of random records of a full table, by each engine in turn, on the same records.
// (cache-aware batch update, sections 4.2 to 4.4)
//
//   PROGRAM key=8 record=16 bucket=512 buckets=400000 [threads=1] [seconds=0.3] [turns=5] [active=N] [cache=KIB] [cell=1024] [staging=KIB] [engine=NAME]... [seed=1] [updates=N] [base=1]
//
//   {"records": N, "memory_bytes": N, "huge": N, "cache_bytes": N, "ns_per_cycle": N, "engines": {"linear": [ns, ...], "direct": [...], ...}, "cpu": {...},
//    "chosen": NAME, "choosing_seconds": S, "modelled": {"direct": ns, ...}, "tried": {...}}
//
// Nanoseconds of an update, of all threads together, a number for each turn; the engines' order changes from turn to turn. `auto` is the table that has chosen for
// itself, before the first turn; `modelled`: by its model, of one thread's updates, for engines that it may choose; `tried`: as it has measured them. Records' keys are numbers,
// as many in each bucket as it has room for, in random order there. Requests are made as they are needed, kGroup at a time, which is in the
// time. `cell`: bytes of a cache-bucket. `active`: of all buckets so many take part, others after a while (clustered random). An engine that stages has staged as much as it may before its
// time begins, which is longer then.
//
// With engines only these are measured. `cpu`: the same as `engines` in CPU time of all threads. `ns_per_cycle`: of the CPU's clock, which counts at a frequency
// of its own.
//
// With base=1 there is no table: `linear` and `cache_buckets` do what has nothing to do with its buckets (base_cost.h).
//
// With updates=N and an engine there are no turns: so many updates by one thread, for who counts what they do, and what the thesis says of a cache as large as
// the cache-buckets (equation 3.4):
//
//   {"records": N, "relative_misses": N}
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../measure.h"
#include "../random.h"
#include "../words.h"
#include "base/single_writer.h"
#include "base_cost.h"
#include "batch/table.h"
#include "requests.h"
#include "sys/streaming.h"

namespace {

constexpr char kAuto[] = "auto";
// As much as is staged is made so often while a staging engine is measured, at least: at first all of its regions are full at about the same time.
constexpr uint64_t kCycles = 4;

using load::kGroup;

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
                                             {"updates", 0},
                                             {"base", 0}};
  double seconds = 0.3;
  std::vector<std::string> engines;  // none: all

  uint64_t operator[](const char* name) const { return numbers.at(name); }
  bool wants(const std::string& engine) const {
    return engines.empty() || std::ranges::find(engines, engine) != engines.end();
  }
  // Updates of a thread until all that it may stage is staged.
  uint64_t staged_updates(batch::Engine engine) const {
    if (!batch::is_staging(engine)) return 0;
    // Cache-buckets are all threads'.
    const uint64_t kib =
        engine == batch::Engine::kPartitioned ? (*this)["staging"] : (*this)["cache"] / (*this)["threads"];
    return (kib << 10) / (*this)["record"];
  }
};

Settings settings_of(int count, char** words) {
  load::program_name = "batch-load";
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const auto [word, name, text] = load::Word(words[i]);
    if (name == "seconds") {
      settings.seconds = load::share_of(name, text, 1000);
    } else if (name == "engine") {
      std::vector<std::string> names;
      for (const batch::Engine one : batch::kEngines) names.emplace_back(batch::name_of(one));
      names.emplace_back(kAuto);
      settings.engines.push_back(load::word_of(name, text, names));
    } else if (settings.numbers.contains(name)) {
      settings.numbers[name] = load::count_of(name, text, uint64_t{1} << 40);
    } else {
      load::fail(2, "no such word: " + word);
    }
  }
  const auto check = [&](const char* name, uint64_t least, uint64_t most) {
    load::check_range(name, settings[name], least, most);
  };
  check("key", batch::kMinKeyBytes, batch::kMaxKeyBytes);
  check("record", std::max<uint64_t>(batch::kMinRecordBytes, settings["key"] + 1), batch::kMaxRecordBytes);
  check("bucket", batch::kMinBucketBytes, batch::kMaxBucketBytes);
  if (settings["bucket"] % base::kLineBytes != 0) load::fail(2, "bucket is a multiple of 64 bytes");
  check("cell", base::kLineBytes, 1 << 20);
  if (settings["cell"] % base::kLineBytes != 0) load::fail(2, "cell is a multiple of 64 bytes");
  check("buckets", 1, uint64_t{1} << 32);
  check("threads", 1, 256);
  check("turns", 1, 1000);
  check("base", 0, 1);
  if (settings["updates"] != 0 && (settings.engines.size() != 1 || settings.wants(kAuto)))
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

// Threads that make requests until they are told to end, and count them. make_worker() gives each what does a job.
class Load {
 public:
  template <class MakeWorker>
  Load(const batch::Shape& shape, const Settings& settings, uint64_t seed, MakeWorker make_worker)
      : counts_(settings["threads"]) {
    const uint64_t threads = settings["threads"];
    for (uint64_t t = 0; t < threads; ++t)
      all_.emplace_back([&, shape, seed, t, threads, make_worker] {
        if (static_cast<int>(threads) <= cases::cpu_count()) cases::stay_on_cpu(static_cast<int>(t));
        const auto work = make_worker();
        load::Requests requests(shape, settings["buckets"], settings["active"], seed * threads + t);
        while (!ends_.load(std::memory_order_relaxed)) {
          batch::Job job = requests.next();
          work(job);
          base::increase(counts_[t].value, uint64_t{kGroup});
        }
      });
  }
  Load(batch::Table& table, const Settings& settings, uint64_t seed)
      : Load(table.options().shape, settings, seed, [&table] {
          return [session = std::make_unique<batch::Session>(table)](batch::Job& job) {
            if (session->run(job) != batch::Session::Ran::kAll || job.absent_count != 0)
              load::fail(1, "a record is not there");
          };
        }) {}
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

// What an update takes.
struct Cost {
  double ns = 0;
  double cpu_ns = 0;  // of all threads
  double ns_per_cycle = 0;
};

// Of updates that stage so many before they begin to be made, of each thread; of one at least, however little the machine lets the threads run.
Cost measure(const Load& load, const Settings& settings, uint64_t staged) {
  load.await(std::max<uint64_t>(staged, kGroup));
  struct Now {
    explicit Now(const Load& load) : updates(load.sum()) {}
    uint64_t updates, ns = cases::clock_ns(CLOCK_MONOTONIC),
                      cpu_ns = cases::clock_ns(CLOCK_PROCESS_CPUTIME_ID), cycles = sys::cycle_clock();
  };
  const Now begin(load);
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
  while (load.sum() - begin.updates < std::max<uint64_t>(kCycles * staged * settings["threads"], 1))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Now end(load);
  const auto updates = static_cast<double>(end.updates - begin.updates),
             ns = static_cast<double>(end.ns - begin.ns);
  return {.ns = ns / updates,
          .cpu_ns = static_cast<double>(end.cpu_ns - begin.cpu_ns) / updates,
          .ns_per_cycle = ns / static_cast<double>(end.cycles - begin.cycles)};
}

// By the engine that the table has.
Cost measure(batch::Table& table, const Settings& settings, uint64_t turn) {
  Cost cost;
  {
    const Load load(table, settings, settings["seed"] + turn);
    cost = measure(load, settings, settings.staged_updates(table.engine()));
  }
  if (table.missed_count() != 0) load::fail(1, "a record is not there");
  return cost;
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
  load::Requests requests(table.options().shape, settings["buckets"], settings["active"], settings["seed"]);
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
  std::string text = "{";
  for (const auto& [name, value] : values)
    text += (text.size() == 1 ? "\"" : ", \"") + name + "\": " + text_of(value);
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

// Of all turns, by the engines' names.
class Costs {
 public:
  void add(const std::string& name, const Cost& cost) {
    ns_[name].push_back(cost.ns);
    cpu_ns_[name].push_back(cost.cpu_ns);
    ns_per_cycle_ = cost.ns_per_cycle;
  }
  void print() const {
    std::printf("\"ns_per_cycle\": %.5f, \"engines\": %s, \"cpu\": %s", ns_per_cycle_,
                object_of(ns_, list_of).c_str(), object_of(cpu_ns_, list_of).c_str());
  }

 private:
  std::map<std::string, std::vector<double>> ns_, cpu_ns_;
  double ns_per_cycle_ = 0;
};

// Without a table, in turns.
void print_base_costs(const batch::Shape& shape, const Settings& settings) {
  const uint64_t key_space = settings["buckets"] * shape.slots();
  load::OnlyLocks locks;
  load::OnlyStages stages(shape, static_cast<uint32_t>(settings["cell"]));
  expect(locks.open(shape, batch::Spread::by_number(key_space, settings["buckets"])));
  expect(stages.open(settings["cache"] << 10, key_space));
  Costs costs;
  const auto measure_with = [&](batch::Engine engine, uint64_t turn, auto run) {
    const Load load(shape, settings, settings["seed"] + turn, [run] { return run; });
    costs.add(batch::name_of(engine), measure(load, settings, settings.staged_updates(engine)));
  };
  for (uint64_t turn = 0; turn < settings["turns"]; ++turn) {
    measure_with(batch::Engine::kLinear, turn, [&](batch::Job& job) { locks.run(job); });
    measure_with(batch::Engine::kCacheBuckets, turn, [&](batch::Job& job) { stages.run(job); });
  }
  std::printf("{");
  costs.print();
  std::puts("}");
}

// Engines beside each other, and what the table chooses, if it is asked for that.
void print_costs(batch::Table& table, const Settings& settings) {
  // What is measured, by its name.
  std::vector<std::pair<std::string, batch::Engine>> all;
  for (const batch::Engine engine : batch::kEngines)
    if (settings.wants(batch::name_of(engine))) all.emplace_back(batch::name_of(engine), engine);
  Chosen chosen;
  if (settings.wants(kAuto)) {
    chosen = choose(table, settings);
    all.emplace_back(kAuto, chosen.engine);
  }
  Costs costs;
  for (uint64_t turn = 0; turn < settings["turns"]; ++turn)
    for (size_t i = 0; i < all.size(); ++i) {
      const auto& [name, engine] = all[(i + turn) % all.size()];
      use(table, engine);
      costs.add(name, measure(table, settings, turn));
    }
  std::printf("{\"records\": %lu, \"memory_bytes\": %lu, \"huge\": %lu, \"cache_bytes\": %.0f, ",
              table.record_count(), table.memory_bytes(),
              cases::bytes_of("/proc/self/smaps_rollup", "AnonHugePages:"), chosen.cache_bytes);
  costs.print();
  if (!chosen.modelled.empty())
    std::printf(", \"chosen\": \"%s\", \"choosing_seconds\": %.2f, \"modelled\": %s, \"tried\": %s",
                batch::name_of(chosen.engine), chosen.seconds, object_of(chosen.modelled, text_of).c_str(),
                object_of(chosen.tried, text_of).c_str());
  std::puts("}");
}

}  // namespace

int main(int count, char** words) {
  const Settings settings = settings_of(count, words);
  const auto key = static_cast<uint32_t>(settings["key"]);
  const batch::Shape shape = {.key_bytes = key,
                              .value_bytes = static_cast<uint32_t>(settings["record"]) - key,
                              .bucket_bytes = static_cast<uint32_t>(settings["bucket"])};
  if (settings["base"] != 0) return print_base_costs(shape, settings), 0;
  const uint64_t records = settings["buckets"] * shape.slots();
  batch::Table table;
  expect(table.open({.shape = shape,
                     .records = records,
                     .key_space = key > sizeof(uint64_t) ? 0 : records,
                     .cache_bytes = settings["cache"] << 10,
                     .cache_bucket_bytes = static_cast<uint32_t>(settings["cell"]),
                     .staging_bytes = settings["staging"] << 10}));
  fill(table, settings["buckets"], settings["seed"]);
  if (settings["updates"] == 0) return print_costs(table, settings), 0;
  for (const batch::Engine engine : batch::kEngines)
    if (settings.wants(batch::name_of(engine))) use(table, engine);
  update(table, settings);
  std::printf("{\"records\": %lu, \"relative_misses\": %.4f}\n", records, relative_misses(shape, settings));
  return 0;
}
