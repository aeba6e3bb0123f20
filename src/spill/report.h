// What the runtime tells when the program ends: --stats (JSON) and --verbose (one line).
#pragma once
#include <string_view>

#include "base/statistics.h"

namespace spill {

// Is the statistic reported, if `satc_threads` threads had translation caches (satc.h)? If none had, those of the folder satc are left out.
inline bool is_told(const base::StatisticInfo& info, uint64_t satc_threads) {
  return satc_threads != 0 || info.folder != std::string_view("satc");
}

// Sets the statistics of memory in use now.
void count_memory();

// Does what the options ask for. A file that cannot be written is reported in one line.
void write_report();

}  // namespace spill
