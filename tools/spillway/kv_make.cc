// spillway kv make: an empty store, on a device or in a file that it makes if there is none.
//
// 1 what is refused leaves everything as it was, the file's existence and size included, and what another process has made meanwhile
// 2 content is asked for in files as a whole, and on devices at both ends (storage/content.h)
#include <algorithm>
#include <cstdio>

#include "base/ids.h"
#include "kv.h"
#include "kv/media/channel.h"
#include "storage/content.h"
#include "storage/store_files.h"

namespace tools {
namespace {

constexpr const char* kContent = "; pass --overwrite to lose all of it";

kv::Geometry geometry_of(storage::Device& device) {
  kv::Channel channel;
  value_of(channel.open_for_threads(device));
  alignas(4096) std::byte block[kv::kSuperblockBytes] = {};
  const int error = channel.read(kv::kSuperblockOffsets[0], block);
  channel.close();
  if (error != 0)
    throw_error(
        base::Error::of(error, "kv make: cannot read ", device.name(), ": ", base::error_name(error)));
  return value_of(kv::read_superblock(block, device.capacity_bytes())).geometry;
}

kv::MakeOptions make_options(const KvLine& line) {
  kv::MakeOptions options;
  constexpr uint64_t kMost = uint64_t{1} << 31;
  if (line.has("--grain")) options.grain_bytes = static_cast<uint32_t>(std::min(line.size("--grain"), kMost));
  if (line.has("--segment")) options.segment_bytes = line.size("--segment");
  if (line.has("--spare")) options.spare_percent = static_cast<uint32_t>(line.number("--spare", 0, 90));
  if (line.has("--capacity")) {
    options.capacity_bytes = base::round_down(line.size("--capacity"), base::kOsPageBytes);
    if (options.capacity_bytes == 0) line.refuse("--capacity: that is no room for a store; see docs/kv.md");
  }
  if (!kv::may_be_grain_bytes(options.grain_bytes)) line.refuse("--grain: give 512, 1K, 2K or 4K");
  if (line.has("--segment") && options.segment_bytes == 0)
    line.refuse("--segment: 0 bytes; give a power of two from 1M to 1G");
  return options;
}

}  // namespace

int kv_make(const KvLine& line) {
  const kv::MakeOptions options = make_options(line);
  const bool overwrite = line.has("--overwrite");
  storage::StoreFiles files;
  value_of(files.open(line.words[0]));
  if (!overwrite)
    if (const std::string_view path = value_of(files.path_with_content()); !path.empty())
      line.refuse(concat('\'', printable(path), "' has content", kContent));
  if (files.needs_capacity() && options.capacity_bytes == 0)
    line.refuse(concat('\'', printable(line.words[0]),
                       "' has no size yet; say how large it is to be: --capacity SIZE"));
  value_of(files.set_sizes(options.capacity_bytes));
  KvDevice device(line.words[0], {.store = true, .is_locked = true});
  if (!overwrite && value_of(storage::device_has_content(*device)))
    line.refuse(concat(printable(device->name()), " has content", kContent));
  value_of(kv::Store::make(*device, options));
  files.keep();
  const kv::Geometry geometry = geometry_of(*device);
  std::printf("made a store of %lu segments of %s; values of more than %s are kept in pieces\n",
              geometry.segment_count, readable_bytes(geometry.segment_bytes).c_str(),
              readable_bytes(geometry.value_bytes_max()).c_str());
  return 0;
}

}  // namespace tools
