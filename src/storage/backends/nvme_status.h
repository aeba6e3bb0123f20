// Translates the status of an NVMe completion into an errno value, and into words.
#pragma once
#include <cstdint>

#include "storage/device.h"

namespace storage {

// `type` and `code` as in NVM Express' completion queue entry (SCT and SC). 0 for success. Pure; unknown ones are EIO.
int error_of_nvme_status(uint32_t type, uint32_t code, Operation operation);
// What the status means, in words: "unrecovered read error". "an error" for unknown ones.
const char* nvme_status_name(uint32_t type, uint32_t code);

}  // namespace storage
