// From the status of an NVMe completion to an errno value.
#pragma once
#include <cstdint>

#include "storage/device.h"

namespace storage {

// `type` and `code` as in NVM Express' completion queue entry (SCT and SC). 0 for success. Pure; unknown ones are EIO.
int error_of_nvme_status(uint32_t type, uint32_t code, Operation operation);

}  // namespace storage
