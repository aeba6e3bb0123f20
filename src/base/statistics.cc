#include "base/statistics.h"

#include "base/check.h"

namespace base {

constinit Statistics statistics;

uint64_t statistic_value(size_t i) {
  const Statistics::Counter* counters = &statistics.spill_allocated_bytes;
  CHECK_LT(i, kStatisticCount);
  return counters[i].get();
}

const SiteTable& statistic_sites(size_t i) {
  CHECK_LT(i, kSitesCount);
  return (&statistics.spill_fault_sites)[i];
}

const MissCurve& statistic_curve(size_t i) {
  CHECK_LT(i, kCurveCount);
  return (&statistics.cache_miss_curve)[i];
}

WordText statistic_word(size_t i) {
  CHECK_LT(i, kWordCount);
  return WordText((&statistics.chosen_policy)[i].get());
}

}  // namespace base
