// What the C++ compiler and headers expect of a C++ library, which the runtime does not load.
#include "base/check.h"

extern "C" void __cxa_pure_virtual();
extern "C" void __cxa_pure_virtual() {
  base::check_failed("runtime", 0, "no pure virtual function is called");
}

namespace std {

// string_view::substr past the end.
__attribute__((noreturn)) void __throw_out_of_range_fmt(const char* format, ...);
void __throw_out_of_range_fmt(const char* format, ...) { base::check_failed("runtime", 0, format); }

}  // namespace std
