// Opens a device from a device string.
#pragma once
#include "storage/opening/device_string.h"
#include "storage/opening/open_medium.h"

namespace storage {

// Opens the device that `text` (device_string.h) describes, by the rules of open_medium.h; the caller closes it. Blocks. Errors: EINVAL for
// the text; those of open_medium and of the devices in it; ENOMEM. Each has one line for the user.
base::Expected<Device*> open_device(std::string_view text, const OpenParameters& parameters);

}  // namespace storage
