// How the calls of the persistence runtime's C API answer. (include/spillway/persist.h is the contract)
//
// Invariants
//  1 no C++ type, exception or symbol but spillway_persist* and what compiled code calls (spillway/abi.inc) leaves the library
//  2 every call checks what it is given, but for addresses
#pragma once
#include <cstdint>

#include "base/error.h"
#include "capi/common.h"
#include "spillway/persist.h"

namespace capi::persisting {

int status_of(const base::Error& error);
// Keeps the error's line for the calling thread, and returns its status.
int refuse(const base::Error& error);
// The same of a mistake of the caller.
template <class... Parts>
int refuse_invalid(const Parts&... parts) {
  return refuse(base::Error::of(EINVAL, parts...));
}
// Of how something has ended, OK or with a line.
int answer(const base::Expected<void>& ended);
// The same, of the kernel's writing: OK, FULL or IO.
int answer_written(const base::Expected<void>& ended);

inline uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace capi::persisting
