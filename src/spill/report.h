// What the runtime tells when the program ends: --stats (JSON) and --verbose (one line).
#pragma once
#include <string_view>

#include "base/statistics.h"

namespace spill {

// Is the statistic reported of a program in which so many threads had caches of their own (satc.h)? Those of the folder satc are left out of
// all other programs' reports.
inline bool is_told(const base::StatisticInfo& info, uint64_t satc_threads) {
  return satc_threads != 0 || info.folder != std::string_view("satc");
}

// Sets the statistics of memory in use now.
void count_memory();

// Does what the options ask for. A file that cannot be written is reported in one line.
void write_report();

}  // namespace spill
