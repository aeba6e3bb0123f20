// Opens the character device of an NVMe namespace.
#pragma once
#include "storage/opening/open_medium.h"
#include "storage/opening/opened.h"

namespace storage {

// Is the character device with these facts that of an NVMe namespace?
bool is_nvme(const struct statx& facts);

// Opens one by the rules of open_medium.h. The character device itself cannot be locked against other users of the namespace. So its block
// device (/dev/nvme0n1) is held open exclusively as long as the medium is open, as file systems, volumes and Spillway itself do. Errors:
// EBUSY if somebody else has it; ENODEV and others if there is no block device, or it may not be opened; ENOTSUP for blocks with metadata;
// those of open_medium.
base::Expected<Medium> open_nvme(const Path& path, const OpenParameters& parameters);

}  // namespace storage
