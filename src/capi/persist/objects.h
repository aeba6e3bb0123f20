// How the calls of the persistence runtime's C API answer. (include/spillway/persist.h is the contract)
//
// Invariants
//  1 no C++ type or exception leaves the library, and no symbol but spillway_persist*, what compiled code calls (spillway/abi.inc), and what the
//    preload library calls (entries.h)
//  2 every call checks what it is given, except addresses
#pragma once
#include <cstdint>

#include "base/error.h"
#include "capi/common.h"
#include "spillway/persist.h"

namespace capi::persisting {

int status_of(const base::Error& error);
// Keeps the error's line for the calling thread, and returns its status.
int refuse(const base::Error& error);
// The same for a mistake of the caller.
template <class... Parts>
int refuse_invalid(const Parts&... parts) {
  return refuse(base::Error::of(EINVAL, parts...));
}
// Answers for how something has ended: OK, or a line and its status.
int answer(const base::Expected<void>& ended);
// The same for something that the kernel writes: OK, FULL or IO.
int answer_written(const base::Expected<void>& ended);

inline uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace capi::persisting
