#include "spill/next.h"

#include <dlfcn.h>

#include "spill/runtime.h"

namespace spill {

void* find_next(const char* name, const char* version) {
  void* found = version != nullptr ? dlvsym(RTLD_NEXT, name, version) : nullptr;
  if (found == nullptr) found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) end_process(base::Error::of(ENOSYS, "the C library has no ", name), kFatalStatus);
  return found;
}

}  // namespace spill
