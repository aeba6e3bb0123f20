// Does what load.h's words say, on a store of either program, and prints what it took.
//
//   Store(plan)
//   make(), open(durability), close()
//   run(depth, enter, moments): enter(i, client) by DEPTH tasks or threads at the same time, i from 0; moments.begin() when all are
//     there and have done nothing yet, and moments.end() when all have done all
//   client.get(key, take): calls take(value, version) and returns true, or false for a key that is not there
//   client.put(key, value): the version of what is there now, kNoVersion for a store that has none, kFull when there is no room
//   io(): what the device has done so far; more_json(): text for the answer
//
// The answer, one line
//   operation, record_bytes, keys: in the store when it began
//   operations, gets, found, puts, seconds, per_second
//   get_ns, put_ns: {mean, p50, p99, p999, max}; each from the end of the task's operation before it: the clock is read once for each
//   of an operation: user_us, system_us (all threads of the process), worker_us (of the first worker, both; 0 by threads), reads,
//     read_bytes, writes, write_bytes (of the device), allocations (calls of malloc and its kin)
//   overwrite: full_keys, amplification (bytes written by the device over bytes of keys and values; late_amplification: of the second
//     half), series_seconds, series: operations a second in each so long part
#pragma once
#include <sys/resource.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>

#include "../measure.h"
#include "allocations.h"
#include "base/histogram.h"
#include "load.h"

namespace load {

inline constexpr uint64_t kFull = 0, kNoVersion = ~uint64_t{0};

struct DeviceIo {
  uint64_t reads = 0, read_bytes = 0, writes = 0, write_bytes = 0;
};

// What had been used when it was made.
struct Used {
  static Used now(const DeviceIo& io) {
    rusage all, own;
    getrusage(RUSAGE_SELF, &all);
    getrusage(RUSAGE_THREAD, &own);
    return {.wall_ns = cases::clock_ns(CLOCK_MONOTONIC),
            .user_us = us_of(all.ru_utime),
            .system_us = us_of(all.ru_stime),
            .worker_us = us_of(own.ru_utime) + us_of(own.ru_stime),
            .allocations = allocation_count(),
            .io = io};
  }
  static uint64_t us_of(const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
  }

  uint64_t wall_ns, user_us, system_us, worker_us, allocations;
  DeviceIo io;
};

// What one task or thread brings along, from one phase to the next.
struct Runner {
  Runner(const Plan& plan, uint64_t index)
      : random(index ^ cases::clock_ns(CLOCK_MONOTONIC)), value(plan.value_bytes, index) {}
  Random random;
  Value value;
};
// What is counted: by each thread for itself, by all tasks of a worker together.
struct Tally {
  base::Histogram gets_ns, puts_ns;
  uint64_t found = 0;
};

// One phase: `most` operations of a kind, until it is time.
struct Phase {
  enum class Kind { kGet, kPut, kUpdate, kMixed };
  Kind kind;
  uint64_t most;  // operations; the phase ends with the first of both
  double seconds = 1e6;
  uint64_t first_key = 0;    // of kPut
  bool may_be_full = false;  // then it ends
  bool has_series = false;

  static constexpr uint64_t kSeriesNs = 100'000'000, kMaxSeries = 40'000;
  std::atomic<uint64_t> taken{0};
  std::atomic<bool> is_full{false};
  uint64_t began_ns = 0, until_ns = 0;
  std::vector<std::atomic<uint32_t>> series = std::vector<std::atomic<uint32_t>>(has_series ? kMaxSeries : 0);
  DeviceIo half_io = {};  // when half of the operations had been taken
  std::atomic<uint64_t> done{0};
};

template <class Store>
class Bench {
 public:
  explicit Bench(const Plan& plan) : plan_(plan), store_(plan), keys_(plan.keys) {
    for (uint64_t i = 0; i < plan.depth; ++i) runners_.push_back(std::make_unique<Runner>(plan, i));
  }

  void run() {
    if (plan_.make) make_and_fill();
    if (plan_.is("overwrite")) find_fill();
    if (plan_.is("fill")) return print_fill();
    choice_ = std::make_unique<Choice>(keys_, plan_.theta);
    if (!plan_.is("get") && !plan_.is("put")) versions_ = std::vector<std::atomic<uint64_t>>(keys_);
    const auto kind = plan_.is("get")     ? Phase::Kind::kGet
                      : plan_.is("put")   ? Phase::Kind::kPut
                      : plan_.is("mixed") ? Phase::Kind::kMixed
                                          : Phase::Kind::kUpdate;
    store_.open(plan_.durability);
    Phase warm{.kind = kind, .most = kWarmOperations * plan_.depth, .first_key = keys_};
    run(warm);
    Phase phase{.kind = kind,
                .most = plan_.most != 0 ? plan_.most : kMaxCount,
                .seconds = plan_.seconds != 0 ? plan_.seconds : 1e6,
                .first_key = keys_ + warm.most,
                .has_series = plan_.is("overwrite")};
    if (plan_.is("overwrite")) {
      phase.seconds = 1e6;
      phase.most =
          static_cast<uint64_t>(plan_.rounds * static_cast<double>(plan_.capacity_bytes)) / record_bytes();
    }
    run(phase);
    store_.close();
    print(phase);
  }

 private:
  static constexpr uint64_t kWarmOperations = 4;

  uint64_t record_bytes() const { return store_.record_bytes(); }

  void put_all(uint64_t keys) {
    Phase phase{.kind = Phase::Kind::kPut, .most = keys, .may_be_full = keys == kMaxCount};
    store_.open("none");
    run(phase);
    store_.close();
    keys_ = phase.done.load();
  }
  void make_and_fill() {
    store_.make();
    if (plan_.keys != 0) put_all(plan_.keys);
  }
  // How many keys are there room for? So many are put in until it is full, and in a new store fewer.
  void find_fill() {
    store_.make();
    put_all(kMaxCount);
    full_keys_ = keys_;
    store_.make();
    put_all(static_cast<uint64_t>(static_cast<double>(full_keys_) * plan_.fill));
  }

  void run(Phase& phase) {
    std::vector<std::unique_ptr<Tally>> tallies;
    // Those of a worker are dealt to it as the store deals them (kv_load.cc).
    const uint64_t tally_count = plan_.by == "tasks" ? plan_.workers : plan_.depth;
    for (uint64_t i = 0; i < tally_count; ++i) tallies.push_back(std::make_unique<Tally>());
    struct Moments {
      Bench& bench;
      Phase& phase;
      void begin() {
        bench.before_ = Used::now(bench.store_.io());
        phase.began_ns = bench.before_.wall_ns;
        phase.until_ns = phase.began_ns + static_cast<uint64_t>(phase.seconds * 1e9);
      }
      void end() { bench.after_ = Used::now(bench.store_.io()); }
    } moments{*this, phase};
    store_.run(
        plan_.depth,
        [&](uint64_t i, auto& client) { work(phase, *runners_[i], *tallies[i % tally_count], client); },
        moments);
    tally_ = std::make_unique<Tally>();
    for (const auto& tally : tallies) {
      tally_->gets_ns.add(tally->gets_ns);
      tally_->puts_ns.add(tally->puts_ns);
      tally_->found += tally->found;
    }
  }

  template <class Client>
  void work(Phase& phase, Runner& runner, Tally& tally, Client& client) {
    uint64_t now_ns = cases::clock_ns(CLOCK_MONOTONIC);
    while (now_ns < phase.until_ns && !phase.is_full.load(std::memory_order_relaxed)) {
      const uint64_t ticket = phase.taken.fetch_add(1, std::memory_order_relaxed);
      if (ticket >= phase.most) return;
      if (phase.has_series && ticket == phase.most / 2) phase.half_io = store_.io();
      const bool gets = phase.kind == Phase::Kind::kGet ||
                        (phase.kind == Phase::Kind::kMixed && runner.random.below(100) < kMixedGetPercent);
      const uint64_t number =
          phase.kind == Phase::Kind::kPut ? phase.first_key + ticket : choice_->next(runner.random);
      if (gets)
        tally.found += get(number, client);
      else if (!put(phase, number, ticket + 1, runner, client))
        return;
      const uint64_t end_ns = cases::clock_ns(CLOCK_MONOTONIC);
      (gets ? tally.gets_ns : tally.puts_ns).add(end_ns - now_ns);
      now_ns = end_ns;
      if (phase.has_series)
        phase.series[std::min((now_ns - phase.began_ns) / Phase::kSeriesNs, Phase::kMaxSeries - 1)].fetch_add(
            1, std::memory_order_relaxed);
    }
  }

  template <class Client>
  bool get(uint64_t number, Client& client) {
    // Of what a put of this process has returned, a get that begins later sees no older one.
    const uint64_t least = versions_.empty() ? 0 : versions_[number].load(std::memory_order_acquire);
    const Key key(number);
    return client.get(key.view(), [&](std::string_view value, uint64_t version) {
      if (!Value::is_of(number, value) || value.size() != plan_.value_bytes)
        fail(1, "key " + std::to_string(number) + " has a value that is not its own");
      if (version < least) fail(1, "key " + std::to_string(number) + " has an old value");
    });
  }

  template <class Client>
  bool put(Phase& phase, uint64_t number, uint64_t generation, Runner& runner, Client& client) {
    const Key key(number);
    const uint64_t version = client.put(key.view(), runner.value.of(number, generation));
    if (version == kFull) {
      if (!phase.may_be_full) fail(1, "the store is full");
      phase.is_full.store(true, std::memory_order_relaxed);
      return false;
    }
    if (phase.kind == Phase::Kind::kPut) {
      phase.done.fetch_add(1, std::memory_order_relaxed);
    } else if (version != kNoVersion) {
      uint64_t old = versions_[number].load(std::memory_order_relaxed);
      while (old < version &&
             !versions_[number].compare_exchange_weak(old, version, std::memory_order_release)) {
      }
    }
    return true;
  }

  void print_fill() {
    std::printf("{\"operation\": \"fill\", \"record_bytes\": %lu, \"keys\": %lu%s}\n", record_bytes(), keys_,
                store_.more_json().c_str());
  }
  static void print_times(const char* name, const base::Histogram& times) {
    std::printf(", \"%s\": {\"mean\": %.0f, \"p50\": %lu, \"p99\": %lu, \"p999\": %lu, \"max\": %lu}", name,
                times.mean(), times.at(0.5), times.at(0.99), times.at(0.999), times.most());
  }
  void print(const Phase& phase) {
    const uint64_t gets = tally_->gets_ns.count(), puts = tally_->puts_ns.count();
    const uint64_t operations = gets + puts;
    const auto seconds = static_cast<double>(after_.wall_ns - before_.wall_ns) * 1e-9;
    const auto each = [&](const char* name, uint64_t before, uint64_t after) {
      std::printf(", \"%s\": %.4f", name,
                  static_cast<double>(after - before) / static_cast<double>(operations));
    };
    std::printf(
        "{\"operation\": \"%s\", \"record_bytes\": %lu, \"keys\": %lu, \"operations\": %lu, \"gets\": %lu, "
        "\"found\": %lu, \"puts\": %lu, \"seconds\": %.6f, \"per_second\": %.1f",
        plan_.operation.c_str(), record_bytes(), keys_, operations, gets, tally_->found, puts, seconds,
        static_cast<double>(operations) / seconds);
    print_times("get_ns", tally_->gets_ns);
    print_times("put_ns", tally_->puts_ns);
    each("user_us", before_.user_us, after_.user_us);
    each("system_us", before_.system_us, after_.system_us);
    each("worker_us", before_.worker_us, after_.worker_us);
    each("reads", before_.io.reads, after_.io.reads);
    each("read_bytes", before_.io.read_bytes, after_.io.read_bytes);
    each("writes", before_.io.writes, after_.io.writes);
    each("write_bytes", before_.io.write_bytes, after_.io.write_bytes);
    each("allocations", before_.allocations, after_.allocations);
    if (phase.has_series) print_overwrite(phase, operations);
    std::printf("%s}\n", store_.more_json().c_str());
  }
  void print_overwrite(const Phase& phase, uint64_t operations) {
    // Keys have 20 bytes in the mean.
    const auto user_bytes = static_cast<double>(operations) *
                            static_cast<double>(plan_.value_bytes + (kMinKeyBytes + kMaxKeyBytes) / 2);
    const auto amplification = [&](uint64_t before, double part) {
      return static_cast<double>(after_.io.write_bytes - before) / (user_bytes * part);
    };
    const uint64_t slots = (after_.wall_ns - phase.began_ns) / Phase::kSeriesNs;
    const uint64_t merged = slots / kSeriesPrinted + 1;
    std::printf(", \"full_keys\": %lu, \"amplification\": %.4f, \"late_amplification\": %.4f, ", full_keys_,
                amplification(before_.io.write_bytes, 1), amplification(phase.half_io.write_bytes, 0.5));
    const double part_seconds = static_cast<double>(merged * Phase::kSeriesNs) * 1e-9;
    std::printf("\"series_seconds\": %.1f, \"series\": [", part_seconds);
    for (uint64_t at = 0; at + merged <= std::min(slots, Phase::kMaxSeries); at += merged) {
      uint64_t sum = 0;
      for (uint64_t i = 0; i < merged; ++i) sum += phase.series[at + i].load();
      std::printf("%s%.0f", at == 0 ? "" : ", ", static_cast<double>(sum) / part_seconds);
    }
    std::printf("]");
  }

  static constexpr uint64_t kSeriesPrinted = 100;

  const Plan& plan_;
  Store store_;
  uint64_t keys_;
  uint64_t full_keys_ = 0;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::unique_ptr<Choice> choice_;
  std::vector<std::atomic<uint64_t>>
      versions_;  // what puts of this process have returned, the highest of each key
  Used before_, after_;
  std::unique_ptr<Tally> tally_;
};

// `open()` gives a thread its client, which `shut(client)` takes back.
template <class Open, class Shut, class Enter, class Moments>
void run_by_threads(uint64_t depth, const Open& open, const Shut& shut, const Enter& enter,
                    Moments& moments) {
  std::barrier gate(static_cast<std::ptrdiff_t>(depth) + 1);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < depth; ++i)
    threads.emplace_back([&, i] {
      auto client = open();
      gate.arrive_and_wait();
      gate.arrive_and_wait();
      enter(i, *client);
      gate.arrive_and_wait();
      shut(*client);
    });
  gate.arrive_and_wait();
  moments.begin();
  gate.arrive_and_wait();
  gate.arrive_and_wait();
  moments.end();
  for (std::thread& thread : threads) thread.join();
}

template <class Store>
int run(const char* name, int count, char** words) {
  program_name = name;
  const Plan plan = parse(count, words);
  if (plan.is("overwrite") && plan.capacity_bytes == 0) fail(2, "overwrite needs a capacity");
  Bench<Store>(plan).run();
  return 0;
}

}  // namespace load
