#include "kv/make_at.h"

#include "storage/opening/content.h"
#include "storage/opening/open.h"
#include "storage/opening/store_files.h"

namespace kv {
namespace {

std::unexpected<base::Error> has_content(std::string_view what, const MakeAtOptions& options) {
  return base::failure(EEXIST, "store: '", what, "' has content, maybe a store; ", options.overwrite_advice,
                       " to lose all of it");
}

base::Expected<Geometry> make_on(storage::Device& device, const MakeAtOptions& options) {
  if (!options.overwrite) {
    auto content = storage::device_has_content(device);
    if (!content) return std::unexpected(content.error());
    if (*content) return has_content(device.name(), options);
  }
  return Store::make(device, options.store);
}

}  // namespace

base::Expected<Geometry> make_store_at(std::string_view text, const MakeAtOptions& options) {
  storage::StoreFiles files;
  if (auto locked = files.open(text); !locked) return std::unexpected(locked.error());
  if (!options.overwrite) {
    auto path = files.path_with_content();
    if (!path) return std::unexpected(path.error());
    if (!path->empty()) return has_content(*path, options);
  }
  const uint64_t capacity_bytes = options.store.capacity_bytes;
  if (files.needs_capacity() && capacity_bytes == 0)
    return base::failure(EINVAL, "store: '", text,
                         "' has no size yet; say how large it is to be: ", options.capacity_advice);
  if (auto set = files.set_sizes(capacity_bytes); !set) return std::unexpected(set.error());
  auto device = storage::open_device(text, {.store = true, .is_locked = true});
  if (!device) return std::unexpected(device.error());
  auto made = make_on(**device, options);
  (*device)->close();
  if (made) files.keep();
  return made;
}

}  // namespace kv
