// Devices as stores use them: named by device strings, and kept safe from what a misspelt name or a second process would do.
#pragma once
#include <string_view>

#include "storage/device.h"
#include "storage/device_string.h"

namespace capi {

// The files and block devices that a device string names, as they are before it is opened. Points into the string.
struct Files {
  struct Path {
    std::string_view text;
    bool is_missing = false;
    bool is_file = false;
    uint64_t bytes = 0;  // of a file
  };
  Path paths[storage::DeviceTree::kMaxNodes];
  size_t path_count = 0;
  size_t count = 0;  // of files, the missing ones too
  size_t missing_count = 0;
  uint64_t last_bytes = 0;  // size of the last one
};

// Errors: EINVAL for the text.
base::Expected<Files> look_at_files(std::string_view text);
// What was missing is so again, and no file is larger than it was. REQUIRES: the device is open and nobody else's, or was never made whole.
void leave_as_before(const Files& files);

// For a store that is there; with `read_only` also on a medium that cannot be written. A file that is not is no new one. A file, as a block
// device, is for one opener at a time. Errors: those of storage::open_device; ENOENT; EINVAL for a file that is too short for any store;
// EBUSY, which half a second has not changed.
base::Expected<storage::Device*> open_device(std::string_view text, bool read_only);
// For a store to be made. `capacity_bytes`, 0 for what there is, comes back as the store's: files have to be told. Unless `overwrite`, there
// may be nothing but zeros in files, and at the ends of devices (storage/content.h). What is refused leaves all as it was. Errors: those
// above but ENOENT, EINVAL, EEXIST, those of reading.
base::Expected<storage::Device*> make_device(std::string_view text, const Files& files, bool overwrite,
                                             uint64_t& capacity_bytes);

}  // namespace capi
