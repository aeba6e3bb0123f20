// The C library's function behind one that the runtime exports under its own name.
#pragma once

namespace spill {

// The next definition of `name` after the runtime's, of symbol version `version` if there is one of it;
// null: the default version.
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

// A name as a template's argument.
template <unsigned long n>
struct Name {
  char text[n];
  constexpr Name(const char (&name)[n]) {
    for (unsigned long i = 0; i < n; ++i) text[i] = name[i];
  }
};

template <class Function, Name name>
Function* libc_function() {
  static constinit Function* cache = nullptr;
  return next_function(cache, name.text, nullptr);
}

}  // namespace spill

// LIBC(read)(descriptor, to, n): the C library's function, where the runtime exports one of that name.
#define LIBC(name) (::spill::libc_function<decltype(::name), #name>())
