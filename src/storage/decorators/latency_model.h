// LatencyModel: when a device of a given speed would have completed a request. A model, not a measurement.
//
//   channels   servers that work in parallel. Requests are served in the order in which they come, each by the channel that is free first.
//              So a device with c channels and a mean service time t serves at most c / t requests a second, and with more than c under way
//              requests queue
//   service    how long a request is served: drawn from a distribution around the mean, plus length / bandwidth for reads and writes. Each
//              channel has the whole bandwidth
//   due        when the request came, or its channel became free if that is later, plus the service time
//
// The n-th request that is started gets the n-th number drawn from the seed, whichever thread starts it: with one thread, and requests at
// the same times, everything is repeatable. Thread-safe, without locks, so that a child of fork can continue with its copy.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace storage {

struct LatencyParameters {
  enum class Distribution : uint8_t {
    kFixed,        // the mean
    kUniform,      // from 0 to twice the mean
    kExponential,  // many short, few long: one in 100 is longer than 4.6 times the mean
  };
  static constexpr uint32_t kMaxChannels = 256;
  static constexpr uint64_t kMaxMeanUs = 10'000'000;
  static constexpr uint64_t kMaxMegabytesPerSecond = 1'000'000;

  uint64_t mean_us = 0;
  uint32_t channel_count = 1;         // at least 1
  uint64_t megabytes_per_second = 0;  // of 1,000,000 bytes; 0: no limit
  Distribution distribution = Distribution::kFixed;
  uint64_t seed = 1;
  bool sleeps = false;  // wait() only sleeps, which leaves the CPU to others, and returns later (latency.h)
};

// How long the ordinal-th request (from 0) is served. `length_bytes` is 0 for flushes and discards. Pure.
uint64_t service_ns(const LatencyParameters& parameters, uint64_t ordinal, uint64_t length_bytes);

// -ln(x). REQUIRES: 0 < x <= 1. (The C library's may be the program's own.)
double minus_logarithm(double x);

class LatencyModel {
 public:
  explicit LatencyModel(const LatencyParameters& parameters) : parameters_(parameters) {}

  // When a request that comes at `now_ns` is due. Cost: a look at each channel.
  uint64_t due_ns(uint64_t now_ns, uint64_t length_bytes);

 private:
  const LatencyParameters parameters_;
  std::atomic<uint64_t> drawn_count_{0};
  std::atomic<uint64_t> free_at_ns_[LatencyParameters::kMaxChannels] = {};
};

}  // namespace storage
