// spillway check, spillway kv check: verifies a store that is not in use.
#include <cstdio>
#include <cstdlib>
#include <new>

#include "kv.h"
#include "kv/recovery/check.h"
#include "progress.h"

namespace tools {
namespace {

// A handler for the whole process, because the check's lists grow in several threads, through which no exception can go.
void end_without_memory() {
  std::fflush(stdout);
  std::fputs(
      "spillway: the store was not checked: no memory is left; give the process more memory, and check "
      "again\n",
      stderr);
  std::_Exit(1);
}

}  // namespace

int kv_check(const KvLine& line) {
  std::set_new_handler(end_without_memory);
  KvDevice device(line.device, {.store = true, .read_only = true});
  kv::CheckReport report;
  {
    Progress progress("check", Progress::Unit::kBytes);
    report = value_of(kv::check(
        *device,
        [](void* self, const char* finding) {
          static_cast<Progress*>(self)->clear();
          std::puts(printable(finding).c_str());
        },
        [](void* self, uint64_t done, uint64_t all) { static_cast<Progress*>(self)->at(done, all); },
        &progress));
  }
  std::printf("%lu segments (%lu without a summary), %lu records, %lu of them live, %lu entries: ",
              report.segments, report.unsealed_segments, report.records, report.live_records, report.entries);
  if (report.is_clean()) {
    std::puts("clean");
    return 0;
  }
  std::printf(
      "damaged: %lu superblocks, %lu segments, %lu records, %lu checkpoints; wrong: %lu entries, %lu "
      "counters\n",
      report.damaged_superblocks, report.damaged_segments, report.damaged_records, report.damaged_checkpoints,
      report.wrong_entries, report.wrong_counters);
  return 1;
}

}  // namespace tools
