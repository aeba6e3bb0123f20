// The next definitions of the functions that the preloaded library replaces.
#pragma once
#include "base/check.h"
#include "spill/abi.h"
#include "sys/c_library.h"

// NEXT(f) is the C library's f, or another library's that comes after ours; PASS jumps to it, so that it sees the
// original caller. DECLARE_NEXT(f) must come before either, in the same file.
#define DECLARE_NEXT(name) constinit decltype(::name)* cached_##name = nullptr;
#define NEXT(name) (::spill::preload::next(cached_##name, #name))
#define PASS(name, ...) [[clang::musttail]] return NEXT(name)(__VA_ARGS__)

namespace spill::preload {

template <class Function>
Function* next(Function*& cache, const char* name) {
  Function* function = __atomic_load_n(&cache, __ATOMIC_RELAXED);
  if (function == nullptr) {
    function = reinterpret_cast<Function*>(sys::find_c_function(name, nullptr));
    CHECK(function != nullptr);
    __atomic_store_n(&cache, function, __ATOMIC_RELAXED);
  }
  return function;
}

}  // namespace spill::preload
