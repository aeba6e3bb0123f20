#include "base/statistics.h"

#include "base/check.h"

namespace base {

constinit Statistics statistics;

uint64_t statistic_value(size_t i) {
  const Statistics::Counter* counters = &statistics.spill_allocated_bytes;
  CHECK_LT(i, sizeof kStatisticInfo / sizeof kStatisticInfo[0]);
  static_assert(sizeof(Statistics) ==
                sizeof(Statistics::Counter) * (sizeof kStatisticInfo / sizeof kStatisticInfo[0]));
  return counters[i].get();
}

}  // namespace base
