#include "spill/report.h"

#include <fcntl.h>

#include "base/log.h"
#include "base/statistics.h"
#include "spill/runtime.h"
#include "sys/kernel.h"

namespace spill {
namespace {

constexpr size_t kStatisticCount = sizeof base::kStatisticInfo / sizeof base::kStatisticInfo[0];

void compose_json(base::TextRef& text) {
  std::string_view folder;
  text << '{';
  for (size_t i = 0; i < kStatisticCount; ++i) {
    const auto& info = base::kStatisticInfo[i];
    if (folder != info.folder) {
      text << (folder.empty() ? "\n  \"" : "\n  },\n  \"") << info.folder << "\": {";
      folder = info.folder;
    } else {
      text << ',';
    }
    text << "\n    \"" << info.name << "\": " << base::statistic_value(i);
  }
  text << "\n  }\n}\n";
}

// The option with %p replaced by the process id.
void compose_path(base::TextRef& path) {
  std::string_view option = runtime.options.stats.view();
  for (size_t i = 0; i < option.size(); ++i) {
    if (option.substr(i).starts_with("%p")) {
      path << sys::syscall(SYS_getpid);
      ++i;
    } else {
      path << option[i];
    }
  }
}

void write_statistics_file() {
  base::Text<1024> path;
  compose_path(path);
  base::Text<8192> json;
  compose_json(json);
  // Written beside and renamed, so that a reader never sees half of it.
  base::Text<1100> beside;
  beside << path.view() << ".new";
  long file =
      sys::syscall(SYS_openat, AT_FDCWD, beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (!sys::failed(file)) {
    long written = sys::syscall(SYS_write, file, json.c_str(), json.size());
    sys::syscall(SYS_close, file);
    file = written == static_cast<long>(json.size()) ? sys::syscall(SYS_rename, beside.c_str(), path.c_str())
                                                     : (sys::failed(written) ? written : -ENOSPC);
  }
  if (sys::failed(file))
    base::log("cannot write statistics to ", path.view(), ": ", base::error_name(static_cast<int>(-file)));
}

}  // namespace

void write_report() {
  const uint64_t frames_bytes = runtime.cache->frames_bytes();
  base::statistics.memory_frames_bytes.set(frames_bytes);
  base::statistics.memory_metadata_bytes.set(runtime.cache->budget().used_bytes() - frames_bytes);
  if (!runtime.options.stats.view().empty()) write_statistics_file();
  if (runtime.options.verbose == 0) return;
  const base::Statistics& s = base::statistics;
  base::log("budget ", base::Bytes{runtime.options.memory}, ", peak ", s.memory_peak_bytes.get() >> 20,
            "M; misses ", s.cache_misses.get(), ", evictions ", s.cache_evictions.get(), ", read ",
            s.storage_read_bytes.get() >> 20, "M, written ", s.storage_write_bytes.get() >> 20, "M on ",
            runtime.device->name(), "; faults ", s.spill_faults.get(), ", slow translations ",
            s.spill_translations_slow.get());
}

}  // namespace spill
