// What every kind of runtime does first: options, storage, secrets. All of it goes into the one `runtime` (runtime.h).
#pragma once
#include "base/error.h"

namespace spill {

// Sets runtime.options from runtime.environment; from then on messages are written as the options say. Errors: EINVAL, with one line for the user.
base::Expected<void> read_settings();

// Sets runtime.plain_limit_bytes from the options: a share of the budget, but not much. REQUIRES: read_settings.
void set_plain_limit();

// Opens runtime.device. Ends the process with one line if it cannot be opened.
void open_storage();

// Draws the secrets of fingerprints.
void draw_fingerprint_secrets();

}  // namespace spill
