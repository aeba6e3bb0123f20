// The calls that layer 0 needs from the operating system, declared here and defined by sys/.
#pragma once
#include <cstddef>
#include <cstdint>

namespace base {

// Writes all bytes to the process's original standard error. Errors are ignored, and raise no signal. Async-signal-safe.
void platform_write_error(const char* text, size_t length_bytes);

// The time since 1970, by the system's clock. Async-signal-safe.
uint64_t platform_time_ms();

// Ends the process with SIGABRT, even if the program catches, ignores or blocks that.
[[noreturn]] void platform_abort();

}  // namespace base
