// What every kind of runtime does first: options, storage, secrets. Into the one `runtime` (runtime.h).
#pragma once
#include "base/error.h"

namespace spill {

// runtime.options, from runtime.environment; messages are written as they say from then on. Errors: EINVAL, with one line for the user.
base::Expected<void> read_settings();

// runtime.plain_limit_bytes, from the options: a share of the budget, but not much. REQUIRES: read_settings.
void set_plain_limit();

// runtime.device. Ends the process with one line when it cannot be opened.
void open_storage();

// For fingerprints.
void draw_fingerprint_secrets();

}  // namespace spill
