// What the runtime tells when the program ends: --stats (JSON) and --verbose (one line).
#pragma once
#include <string_view>

#include "base/statistics.h"

namespace spill {

// Is the statistic told of a program in which so many threads translated by SATC? Of most programs, nothing of that.
inline bool is_told(const base::StatisticInfo& info, uint64_t satc_threads) {
  return satc_threads != 0 || info.folder != std::string_view("satc");
}

// Sets the statistics of memory in use now.
void count_memory();

// Does what the options ask for. A file that cannot be written is reported in one line.
void write_report();

}  // namespace spill
