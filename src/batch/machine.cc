#include "batch/machine.h"

#include <algorithm>
#include <cstring>

#include "batch/buckets.h"
#include "batch/huge_memory.h"
#include "batch/kernels.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/nap.h"
#include "sys/streaming.h"

namespace batch {
namespace {

constexpr uint64_t kProbeBytes = 128 << 20, kSmallBytes = 256 << 10;
constexpr uint64_t kSteps = 1 << 15;
constexpr int kRepeats = 3;  // the fastest counts: other users of the machine make runs slower

// The time of the fastest of some runs of work(), in nanoseconds for each of its `steps` steps.
template <class Work>
double least_ns(int repeats, uint64_t steps, Work work) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < repeats; ++i) {
    const uint64_t begin = sys::monotonic_ns();
    work();
    least = std::min(least, sys::monotonic_ns() - begin);
  }
  return static_cast<double>(least) / static_cast<double>(steps);
}

// Lines of memory: zeros except for counts of visits.
class Probe {
 public:
  explicit Probe(std::byte* memory) : memory_(memory) {}

  // Visits the lines from front to back.
  void walk(uint64_t bytes) const {
    for (uint64_t at = 0; at < bytes; at += base::kLineBytes) visit(memory_ + at);
  }
  // Visits random lines within the first `bytes`; which one comes next is known only when the one before has arrived.
  void chase(uint64_t bytes) {
    for (uint64_t i = 0; i < kSteps; ++i) {
      const uint64_t never = load_word<uint64_t>(line(bytes) + base::kLineBytes / 2);
      state_ += base::kMixStep + never;
    }
    asm volatile("" : : "r"(state_));  // otherwise the compiler removes the loop, whose result nobody uses
  }
  // The same, but lines are fetched ahead.
  void scatter(uint64_t bytes) {
    constexpr uint64_t kAhead = 16;
    std::byte* next[kAhead];
    for (std::byte*& each : next) each = draw(bytes);
    for (uint64_t i = 0; i < kSteps; ++i) {
      visit(next[i % kAhead]);
      next[i % kAhead] = draw(bytes);
      __builtin_prefetch(next[i % kAhead], 1);
    }
  }

 private:
  static void visit(std::byte* at) {
    const uint64_t count = load_word<uint64_t>(at) + 1;
    __builtin_memcpy(at, &count, sizeof count);
  }
  std::byte* line(uint64_t bytes) const {
    const uint64_t lines = bytes / base::kLineBytes;
    return memory_ + static_cast<uint64_t>(static_cast<unsigned __int128>(base::mix(state_)) * lines >> 64) *
                         base::kLineBytes;
  }
  std::byte* draw(uint64_t bytes) {
    state_ += base::kMixStep;
    return line(bytes);
  }

  std::byte* const memory_;
  uint64_t state_ = 0;
};

double ns_per_cycle() {
  const uint64_t begin_ns = sys::monotonic_ns(), begin = sys::cycle_clock();
  sys::nap(5'000'000);
  const uint64_t end = sys::cycle_clock(), end_ns = sys::monotonic_ns();
  return static_cast<double>(end_ns - begin_ns) / static_cast<double>(end - begin);
}

Machine measure_machine() {
  // For lack of memory to measure with: about what current machines take.
  Machine machine{.latency_ns = 90, .line_ns = 12, .stream_ns = 6, .cache_bytes = 8 << 20};
  machine.ns_per_cycle = ns_per_cycle();
  HugeMemory memory;
  if (!memory.open(kProbeBytes, "measuring the machine")) return machine;
  Probe probe(memory.at<std::byte>(0));
  probe.walk(kProbeBytes);
  machine.stream_ns = least_ns(kRepeats, kProbeBytes / base::kLineBytes, [&] { probe.walk(kProbeBytes); });
  machine.line_ns = least_ns(kRepeats, kSteps, [&] { probe.scatter(kProbeBytes); });
  const auto latency = [&](uint64_t bytes) {
    probe.walk(bytes);
    return least_ns(kRepeats, kSteps, [&] { probe.chase(bytes); });
  };
  const double memory_ns = latency(kProbeBytes), cached_ns = latency(kSmallBytes);
  machine.latency_ns = std::max(memory_ns - cached_ns, machine.line_ns);
  // The share of hits says most when about half of the lines hit the cache.
  double nearest = 1;
  for (uint64_t bytes = kSmallBytes * 2; bytes < kProbeBytes; bytes *= 2) {
    const double hits = (memory_ns - latency(bytes)) / std::max(memory_ns - cached_ns, 1.0);
    const double distance = hits > 0.5 ? hits - 0.5 : 0.5 - hits;
    if (distance >= nearest) continue;
    nearest = distance;
    machine.cache_bytes = hits * static_cast<double>(bytes);
  }
  return machine;
}

}  // namespace

const Machine& this_machine() {
  static constinit sys::Mutex lock;
  static constinit Machine machine;
  sys::LockGuard scope(lock);
  if (machine.ns_per_cycle == 0) machine = measure_machine();
  return machine;
}

BaseCosts measure_base_costs(const Shape& shape) {
  constexpr uint64_t kTableBytes = 64 << 10, kGroup = 256, kGroups = 8;
  constexpr int kTries = 10;
  BaseCosts costs;
  Buckets buckets;
  const uint64_t homes = std::max<uint64_t>(kTableBytes / shape.bucket_bytes, 1),
                 records = homes * shape.slots() * 3 / 4;
  if (!buckets.open(shape, Spread::by_hash(homes)) || !buckets.add_tags()) return costs;
  const Kernels kernels = choose_kernels(shape);
  std::byte keys[kGroup * kMaxKeyBytes] = {}, values[kGroup * kMaxRecordBytes] = {};
  Job job{.code = {Action::kUpsert},
          .keys = keys,
          .given = values,
          .key_stride = shape.key_bytes,
          .given_stride = shape.value_bytes};
  const auto set_key = [&](uint64_t i, uint32_t number) {
    memcpy(keys + i * shape.key_bytes, &number, sizeof number);
  };
  for (uint32_t number = 0; number < records; ++number) {
    set_key(0, number);
    job.count = 1;
    kernels.direct(buckets, job, 0);
  }
  uint64_t state = 1;
  for (uint64_t i = 0; i < kGroup; ++i) {
    state += base::kMixStep;
    set_key(i, static_cast<uint32_t>(base::mix(state) % std::max<uint64_t>(records, 1)));
  }
  job.code = {Action::kUpdate};
  job.count = kGroup;
  const auto time = [&](Run run) {
    return least_ns(kTries, kGroup * kGroups, [&] {
      for (uint64_t i = 0; i < kGroups; ++i) run(buckets, job, 0);
    });
  };
  costs.direct_ns = time(kernels.direct);
  costs.prefetch_ns = time(kernels.prefetch.shared);
  costs.tagged_ns = time(kernels.tagged.shared);
  // Copies records to the ends of what their regions have staged.
  constexpr uint64_t kRegions = 256;
  alignas(base::kLineBytes) std::byte lines[kRegions][base::kLineBytes];
  uint8_t ends[kRegions] = {};
  const Spread regions = Spread::by_hash(kRegions);
  costs.stage_ns = least_ns(kTries, kGroup * kGroups, [&] {
    for (uint64_t i = 0; i < kGroup * kGroups; ++i) {
      const std::byte* const key = keys + i % kGroup * shape.key_bytes;
      const uint64_t region = regions.home(load_key(key, shape.key_bytes));
      if (ends[region] + shape.record_bytes() > base::kLineBytes) ends[region] = 0;
      std::byte* const to = lines[region] + ends[region];
      memcpy(to, key, shape.key_bytes);
      memcpy(to + shape.key_bytes, values, shape.value_bytes);
      ends[region] = static_cast<uint8_t>(ends[region] + shape.record_bytes());
      asm volatile("" : : "r"(to) : "memory");
    }
  });
  return costs;
}

}  // namespace batch
