// The C library's function behind one that the runtime exports under its own name (SPILLWAY_INTERPOSE); all
// others are called as they are.
//
//   LIBC(read)(descriptor, to, n)                the default version
//   LIBC_VERSION(clone, "GLIBC_2.2.5")(...)      that of a symbol version, if there is one of it
//
// Found on the first call (sys/c_library.h). Never null: the process ends when there is none.
#pragma once

namespace spill {

void* find_next(const char* name, const char* version);

// A name as a template's argument.
template <unsigned long n>
struct Name {
  char text[n];
  constexpr Name(const char (&name)[n]) {
    for (unsigned long i = 0; i < n; ++i) text[i] = name[i];
  }
};

consteval bool is_exported(const char* name) {
#define SPILLWAY_INTERCEPT(function)
#define SPILLWAY_INTERPOSE(function) \
  if (__builtin_strcmp(name, #function) == 0) return true;
#include "spillway/interceptors.inc"
  return false;
}

// An empty version is the default one.
template <class Function, Name name, Name version>
Function* libc_function() {
  static_assert(is_exported(name.text), "the runtime does not export it: call it");
  static constinit Function* cache = nullptr;
  Function* function = __atomic_load_n(&cache, __ATOMIC_RELAXED);
  if (function == nullptr) {
    function =
        reinterpret_cast<Function*>(find_next(name.text, version.text[0] != '\0' ? version.text : nullptr));
    __atomic_store_n(&cache, function, __ATOMIC_RELAXED);
  }
  return function;
}

}  // namespace spill

#define LIBC_VERSION(name, version) (::spill::libc_function<decltype(::name), #name, version>())
#define LIBC(name) LIBC_VERSION(name, "")
