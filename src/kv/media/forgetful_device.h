// ForgetfulDevice: a device that reads from another one and only pretends to write: writes succeed, and are forgotten. For recovery where nothing may
// be written.
#pragma once
#include "storage/device.h"

namespace kv {

// Over `inner`, which outlives it. Errors: ENOMEM.
base::Expected<storage::Device*> make_forgetful_device(storage::Device& inner);

}  // namespace kv
