// The C library's function behind one that the runtime exports under its own name.
#pragma once

namespace spill {

// The next definition of `name` after the runtime's, of symbol version `version` if there is one of it.
// Resolved on every call: keep the result. Never null: the process ends when there is none.
void* find_next(const char* name, const char* version);

// find_next once: `cache` is a static of the caller.
template <class Function>
Function* next_function(Function*& cache, const char* name, const char* version) {
  Function* function = __atomic_load_n(&cache, __ATOMIC_RELAXED);
  if (function == nullptr) {
    function = reinterpret_cast<Function*>(find_next(name, version));
    __atomic_store_n(&cache, function, __ATOMIC_RELAXED);
  }
  return function;
}

}  // namespace spill
