// Devices as stores use them: named by device strings, and kept safe from what a misspelt name or a second process would do.
#pragma once
#include <string_view>

#include "storage/device.h"

namespace capi {

// For a store that is there; with `read_only` also on a medium that cannot be written. A file that is not is no new one. A file, as a block
// device, is for one opener at a time. Errors: those of storage::open_device; ENOENT; EBUSY, which half a second has not changed.
base::Expected<storage::Device*> open_device(std::string_view text, bool read_only);
// For a store to be made. `capacity_bytes`, 0 for what there is, comes back as the store's: files have to be told. Unless `overwrite`,
// nothing but zeros may be where superblocks lie. Errors: those above but ENOENT, EINVAL, EEXIST, those of reading.
base::Expected<storage::Device*> make_device(std::string_view text, bool overwrite, uint64_t& capacity_bytes);

}  // namespace capi
