// How much memory a request on a descriptor accesses (control.cc).
#pragma once
#include <cstddef>

namespace spill {

// Bytes that the kernel reads or writes at an ioctl's argument, which may be spilled; 0 if that is not known.
size_t ioctl_argument_bytes(unsigned long request, const void* argument);

}  // namespace spill
