#include "sys/c_library.h"

#include <dlfcn.h>

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#include "base/text.h"
#endif

namespace sys {

void* find_c_function(const char* name, const char* version) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  base::Text<128> interceptor;
  interceptor << "__interceptor_" << name;
  if (void* found = dlsym(RTLD_DEFAULT, interceptor.c_str())) return found;
#endif
  void* found = version != nullptr ? dlvsym(RTLD_NEXT, name, version) : nullptr;
  if (found == nullptr) found = dlsym(RTLD_NEXT, name);
  // If only a preloaded library needs the runtime, the C library comes first in the search order: nothing follows the runtime's definition, and the
  // first of all is not the runtime's.
  return found != nullptr ? found : dlsym(RTLD_DEFAULT, name);
}

}  // namespace sys
