#include "spill/report.h"

#include "base/json_text.h"
#include "base/log.h"
#include "base/statistics.h"
#include "cache/pages/regions.h"
#include "spill/code_place.h"
#include "spill/runtime.h"
#include "sys/statistics_file.h"

namespace spill {
namespace {

// How many sites of faults --verbose lists.
constexpr uint32_t kSitesLogged = 3;

base::MissCurve::Point point_of(const base::MissCurve& curve, size_t step) {
  return curve.point(step, base::statistics.memory_budget_bytes.get(),
                     base::statistics.memory_frames_bytes.get(), base::statistics.cache_misses.get());
}

void write_sites(const base::StatisticInfo& info, const base::SiteTable& table, sys::StatisticsFile& file) {
  base::SiteTable::Site sites[base::kSitesTold];
  const uint32_t count = table.hottest(sites);
  base::Text<128> head;
  head << ",\n    \"" << info.name << "\": [";
  file.put(head);
  for (uint32_t i = 0; i < count; ++i) {
    CodePlace place;
    find_code_place(sites[i].address, place);
    base::Text<4096> line;  // each byte of the names may take six
    line << (i == 0 ? "\n" : ",\n") << "      {\"count\": " << sites[i].count
         << ", \"over\": " << sites[i].over << ", \"module\": ";
    base::put_json_string(place.module.view(), 0, line);
    line << ", \"offset\": \"" << base::Hex{place.offset} << "\", \"symbol\": ";
    base::put_json_string(place.symbol.view(), 0, line);
    line << '}';
    file.put(line);
  }
  base::Text<16> tail;
  tail << (count > 0 ? "\n    ]" : "]");
  file.put(tail);
}

void write_curve(const base::StatisticInfo& info, const base::MissCurve& curve, sys::StatisticsFile& file) {
  base::Text<128> head;
  head << ",\n    \"" << info.name << "\": [";
  file.put(head);
  const size_t count = curve.is_empty() ? 0 : base::MissCurve::kStepCount;
  for (size_t i = 0; i < count; ++i) {
    const auto point = point_of(curve, i);
    base::Text<128> line;
    line << (i == 0 ? "\n" : ",\n") << "      {\"memory_bytes\": " << point.memory_bytes
         << ", \"misses\": " << point.misses << '}';
    file.put(line);
  }
  base::Text<16> tail;
  tail << (count > 0 ? "\n    ]" : "]");
  file.put(tail);
}

void write_word(const base::StatisticInfo& info, base::WordText word, sys::StatisticsFile& file) {
  base::Text<128> line;
  line << ",\n    \"" << info.name << "\": \"" << word.view() << '"';
  file.put(line);
}

void write_json(sys::StatisticsFile& file) {
  for (size_t i = 0; i < base::kStatisticCount; ++i) {
    const base::StatisticInfo& info = base::kStatisticInfo[i];
    const std::string_view folder = info.folder;
    if (!is_told(info, base::statistics.satc_threads.get())) continue;
    base::Text<256> line;
    if (i == 0)
      line << "{\n  \"" << folder << "\": {";
    else if (folder != base::kStatisticInfo[i - 1].folder)
      line << "\n  },\n  \"" << folder << "\": {";
    else
      line << ',';
    line << "\n    \"" << info.name << "\": " << base::statistic_value(i);
    file.put(line);
    if (i + 1 < base::kStatisticCount && folder == base::kStatisticInfo[i + 1].folder) continue;
    for (size_t list = 0; list < base::kSitesCount; ++list)
      if (folder == base::kSitesInfo[list].folder)
        write_sites(base::kSitesInfo[list], base::statistic_sites(list), file);
    for (size_t curve = 0; curve < base::kCurveCount; ++curve)
      if (folder == base::kCurveInfo[curve].folder)
        write_curve(base::kCurveInfo[curve], base::statistic_curve(curve), file);
    for (size_t word = 0; word < base::kWordCount; ++word)
      if (folder == base::kWordInfo[word].folder)
        write_word(base::kWordInfo[word], base::statistic_word(word), file);
  }
  base::Text<16> end;
  end << "\n  }\n}\n";
  file.put(end);
}

void write_statistics_file() {
  sys::StatisticsFile file(runtime.options.stats.view());
  write_json(file);
  if (auto finished = file.finish(); !finished)
    base::log({.name = "statistics_not_written",
               .level = base::LogLevel::kError,
               .fields = {{"file", file.path()}, {"error", finished.error().number}}},
              "cannot write statistics to ", file.path(), ": ", finished.error().message);
}

void log_summary() {
  // Each is read once: the background thread goes on counting.
  const base::Statistics& s = base::statistics;
  const uint64_t budget_bytes = s.memory_budget_bytes.get(), peak_bytes = s.memory_peak_bytes.get();
  const uint64_t misses = s.cache_misses.get(), evictions = s.cache_evictions.get();
  const uint64_t read_bytes = s.storage_read_bytes.get(), write_bytes = s.storage_write_bytes.get();
  const uint64_t faults = s.spill_faults.get(), translations_slow = s.spill_translations_slow.get();
  const char* const device = runtime.device->name();
  base::log({.name = "summary",
             .level = base::LogLevel::kInfo,
             .fields = {{"budget_bytes", budget_bytes},
                        {"peak_bytes", peak_bytes},
                        {"misses", misses},
                        {"evictions", evictions},
                        {"read_bytes", read_bytes},
                        {"write_bytes", write_bytes},
                        {"device", device},
                        {"faults", faults},
                        {"translations_slow", translations_slow}}},
            "budget ", base::Bytes{budget_bytes}, ", peak ", peak_bytes >> 20, "M; misses ", misses,
            ", evictions ", evictions, ", read ", read_bytes >> 20, "M, written ", write_bytes >> 20, "M on ",
            device, "; faults ", faults, ", slow translations ", translations_slow);
}

void log_fault_sites() {
  base::SiteTable::Site sites[kSitesLogged];
  const uint32_t count = base::statistics.spill_fault_sites.hottest(sites);
  for (uint32_t i = 0; i < count; ++i) {
    CodePlace place;
    find_code_place(sites[i].address, place);
    const std::string_view path = place.module.view();
    base::Text<400> text;
    text << (path.empty() ? "code of no file" : path.substr(path.rfind('/') + 1)) << '+'
         << base::Hex{place.offset};
    if (!place.symbol.view().empty()) text << " (" << place.symbol.view() << ')';
    base::log({.name = "fault_site",
               .level = base::LogLevel::kInfo,
               .fields = {{"site", text.view()}, {"faults", sites[i].count}}},
              sites[i].count, " of ", base::statistics.spill_faults.get(), " faults at ", text.view());
  }
}

// Why native bodies ended; null if they still run.
const char* native_end_text() {
  switch (static_cast<cache::RegionsEnd>(base::statistics.spill_native_end.get())) {
    case cache::RegionsEnd::kMemoryFull: return "memory was full";
    case cache::RegionsEnd::kEviction: return "a page was to leave memory";
    case cache::RegionsEnd::kFork: return "the process forked";
    case cache::RegionsEnd::kGlobals: return "globals were spilled";
    case cache::RegionsEnd::kKernelMapping: return "something else was mapped among spilled memory";
    case cache::RegionsEnd::kFileMap: return "a file was mapped";
    case cache::RegionsEnd::kSinglePages: return "too many pages were mapped one by one";
    case cache::RegionsEnd::kChaos: return "chaos mode wanted it";
    case cache::RegionsEnd::kMappings: return "there were as many mappings as the kernel allows";
  }
  return nullptr;
}

void log_native() {
  const uint64_t milliseconds = base::statistics.spill_native_ms.get();
  if (milliseconds == 0) return;
  const char* const end = native_end_text();
  const uint64_t mapped_count = base::statistics.cache_regions_mapped.get();
  const uint64_t unmapped_count = base::statistics.cache_regions_unmapped.get();
  base::log({.name = "native_bodies",
             .level = base::LogLevel::kInfo,
             .fields = {{"native_ms", milliseconds},
                        {"regions_mapped", mapped_count},
                        {"regions_unmapped", unmapped_count}}},
            "native bodies ran for ", milliseconds, " ms, ", end != nullptr ? "until " : "to the end",
            end != nullptr ? end : "", "; ", mapped_count, " regions of 2M, ", unmapped_count,
            " of them unmapped again");
}

// How much memory would help: the least that saves half of the misses that memory can save, and the least that saves about all of them.
void log_miss_curve() {
  const base::MissCurve& curve = base::statistics.cache_miss_curve;
  if (curve.is_empty()) return;
  const size_t last = base::MissCurve::kStepCount - 1;
  const uint64_t all = point_of(curve, 0).misses;
  const uint64_t least = point_of(curve, last).misses;
  if (all - least < all / 10) return;  // more memory would not help
  const auto find = [&](uint64_t misses) {
    size_t step = 1;
    while (step < last && point_of(curve, step).misses > misses) ++step;
    return point_of(curve, step);
  };
  const auto half = find(least + (all - least) / 2), enough = find(least + (all - least) / 50);
  base::Text<128> more;
  if (enough.memory_bytes != half.memory_bytes)
    more << ", with " << (enough.memory_bytes >> 20) << "M " << enough.misses;
  base::log({.name = "more_memory",
             .level = base::LogLevel::kInfo,
             .fields = {{"memory_bytes", half.memory_bytes}, {"misses", half.misses}}},
            "with ", half.memory_bytes >> 20, "M of memory there would be about ", half.misses, " misses",
            more.view(), "; ", all, " were");
}

}  // namespace

void count_memory() {
  if (runtime.cache == nullptr) return;  // preload mode counts itself
  const uint64_t frames_bytes = runtime.cache->frames_bytes();
  base::statistics.memory_frames_bytes.set(frames_bytes);
  const uint64_t used_bytes = runtime.cache->budget().used_bytes();
  base::statistics.memory_metadata_bytes.set(used_bytes > frames_bytes ? used_bytes - frames_bytes : 0);
}

void write_report() {
  count_memory();
  if (!runtime.options.stats.view().empty()) write_statistics_file();
  if (runtime.options.verbose == 0) return;
  log_summary();
  log_native();
  log_miss_curve();
  log_fault_sites();
}

}  // namespace spill
