// Opens the character device of an NVMe namespace.
#pragma once
#include "storage/opening/open_medium.h"
#include "storage/opening/opened.h"

namespace storage {

// Is it one?
bool is_nvme(const struct statx& facts);

// What becomes of one by the rules of open_medium.h. The character device itself cannot be locked against who uses the namespace otherwise, so its block device (/dev/nvme0n1)
// is: it is held open exclusively as long as the medium, as file systems, volumes and Spillway itself do, and whoever has
// it already is EBUSY. Where there is none, or it may not be opened, so may the medium not be: ENODEV and others. Blocks with
// metadata: ENOTSUP.
base::Expected<Medium> open_nvme(const Path& path, const OpenParameters& parameters);

}  // namespace storage
