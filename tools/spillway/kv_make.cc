// spillway kv make: makes an empty store on a device, or in a file, which it makes if there is none.
#include <algorithm>
#include <cstdio>

#include "base/ids.h"
#include "kv.h"
#include "kv/make_at.h"

namespace tools {
namespace {

kv::MakeOptions make_options(const KvLine& line) {
  kv::MakeOptions options;
  constexpr uint64_t kMax = uint64_t{1} << 31;
  if (line.has("--grain")) options.grain_bytes = static_cast<uint32_t>(std::min(line.size("--grain"), kMax));
  if (line.has("--segment")) options.segment_bytes = line.size("--segment");
  if (line.has("--spare")) options.spare_percent = static_cast<uint32_t>(line.number("--spare", 0, 90));
  options.is_cache = line.has("--cache");
  if (line.has("--capacity")) {
    options.capacity_bytes = base::round_down(line.size("--capacity"), base::kOsPageBytes);
    if (options.capacity_bytes == 0)
      line.refuse("--capacity: that is too little for a store; see docs/kv.md");
  }
  if (!kv::may_be_grain_bytes(options.grain_bytes)) line.refuse("--grain: give 512, 1K, 2K or 4K");
  if (line.has("--segment") && options.segment_bytes == 0)
    line.refuse("--segment: 0 bytes; give a power of two from 1M to 1G");
  return options;
}

}  // namespace

int kv_make(const KvLine& line) {
  const kv::Geometry geometry =
      value_of(kv::make_store_at(line.device, {.store = make_options(line),
                                               .overwrite = line.has("--overwrite"),
                                               .overwrite_advice = "pass --overwrite",
                                               .capacity_advice = "--capacity SIZE"}));
  std::printf("made a %s of %lu segments of %s; values of more than %s are kept in pieces\n",
              line.has("--cache") ? "cache" : "store", geometry.segment_count,
              readable_bytes(geometry.segment_bytes).c_str(),
              readable_bytes(geometry.value_bytes_max()).c_str());
  return 0;
}

}  // namespace tools
