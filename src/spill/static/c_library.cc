// The C library's functions that the runtime replaces, in a statically linked program: the linker provides them as
// __real_<name> (CMakeLists.txt).
#include "sys/c_library.h"

#include <string_view>

#define SPILLWAY_INTERCEPT(name)
#define SPILLWAY_INTERPOSE(name) extern "C" void __real_##name();
#include "spillway/interceptors.inc"
// sys/threads.cc.
extern "C" void __real_pthread_join();

namespace sys {
namespace {

struct Function {
  const char* name;
  void (*address)();
};

constexpr Function kFunctions[] = {
#define SPILLWAY_INTERCEPT(name)
#define SPILLWAY_INTERPOSE(name) {#name, __real_##name},
#include "spillway/interceptors.inc"
    {"pthread_join", __real_pthread_join},
};

}  // namespace

// There is one version of each.
void* find_c_function(const char* name, const char*) {
  for (const Function& function : kFunctions)
    if (std::string_view(function.name) == name) return reinterpret_cast<void*>(function.address);
  return nullptr;
}

}  // namespace sys
