// Does a medium have content that would be lost if something new were made on it? Everything but zeros is content.
#pragma once
#include <string_view>

#include "storage/device.h"

namespace storage {

// Looks at all of a file except its holes, and at the first and last MiB of a block device, which others may be using. False for a
// path that leads to nothing, or to anything else. Cost: reads all of a file's data. Errors: those of reading; ENOMEM.
base::Expected<bool> path_has_content(std::string_view path);
// Looks at the first and the last MiB of a device, where file systems, partition tables, RAID labels and stores begin or have copies.
// Bytes past the medium's end are no content. Errors: those of reading; EMFILE, ENOMEM.
base::Expected<bool> device_has_content(Device& device);

}  // namespace storage
