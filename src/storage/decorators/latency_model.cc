#include "storage/decorators/latency_model.h"

#include <bit>

#include "base/mix.h"

namespace storage {

double minus_logarithm(double x) {
  // x = m * 2^e with m from sqrt(1/2) to sqrt(2); ln m = 2 artanh((m - 1) / (m + 1)).
  constexpr double kLn2 = 0.69314718055994530942, kSqrt2 = 1.41421356237309504880;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & ((uint64_t{1} << 52) - 1)) | (uint64_t{1023} << 52));
  if (mantissa > kSqrt2) {
    mantissa /= 2;
    ++exponent;
  }
  const double t = (mantissa - 1) / (mantissa + 1);
  double power = t, sum = 0;
  for (int i = 1; i <= 19; i += 2, power *= t * t) sum += power / i;
  return -(2 * sum + exponent * kLn2);
}

uint64_t service_ns(const LatencyParameters& parameters, uint64_t ordinal, uint64_t length_bytes) {
  // From 1 to 2^53; `part` is its fraction of 2^53.
  const uint64_t drawn = (base::mix(base::mix(parameters.seed) + ordinal) >> 11) + 1;
  const double part = static_cast<double>(drawn) / static_cast<double>(uint64_t{1} << 53);
  const double mean_ns = static_cast<double>(parameters.mean_us) * 1000;
  double service = mean_ns;
  switch (parameters.distribution) {
    case LatencyParameters::Distribution::kFixed: break;
    case LatencyParameters::Distribution::kUniform: service = 2 * mean_ns * part; break;
    case LatencyParameters::Distribution::kExponential: service = mean_ns * minus_logarithm(part); break;
  }
  uint64_t transfer_ns = 0;
  if (parameters.megabytes_per_second > 0)
    transfer_ns = length_bytes * 1000 / parameters.megabytes_per_second;  // bytes / (MB/s) = us
  return static_cast<uint64_t>(service) + transfer_ns;
}

uint64_t LatencyModel::due_ns(uint64_t now_ns, uint64_t length_bytes) {
  // Relaxed, here and below: only the numbers matter.
  const uint64_t service =
      service_ns(parameters_, drawn_count_.fetch_add(1, std::memory_order_relaxed), length_bytes);
  for (;;) {
    std::atomic<uint64_t>* first = &free_at_ns_[0];
    uint64_t free_at = first->load(std::memory_order_relaxed);
    for (uint32_t i = 1; i < parameters_.channel_count && free_at > now_ns; ++i) {
      const uint64_t at = free_at_ns_[i].load(std::memory_order_relaxed);
      if (at < free_at) {
        first = &free_at_ns_[i];
        free_at = at;
      }
    }
    const uint64_t due = (free_at > now_ns ? free_at : now_ns) + service;
    // If that fails, another thread has taken the channel meanwhile.
    if (first->compare_exchange_strong(free_at, due, std::memory_order_relaxed)) return due;
  }
}

}  // namespace storage
