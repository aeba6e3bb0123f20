// ForgetfulDevice: another device to read from; what is written to it is forgotten, and said to be done. For looking at what a store
// would do, without its doing it.
#pragma once
#include "storage/device.h"

namespace kv {

// Over `inner`, which outlives it. Errors: ENOMEM.
base::Expected<storage::Device*> make_forgetful_device(storage::Device& inner);

}  // namespace kv
