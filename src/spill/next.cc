#include "spill/next.h"

#include "spill/runtime.h"
#include "sys/c_library.h"

namespace spill {

void* find_next(const char* name, const char* version) {
  void* found = sys::find_c_function(name, version);
  if (found == nullptr) end_process(base::Error::of(ENOSYS, "the C library has no ", name), kFatalStatus);
  return found;
}

}  // namespace spill
