// Next: the function that a call would have reached without the preload library: libpmem's, or the C library's.
#pragma once
#include <dlfcn.h>

#include <atomic>

namespace preload {

// Looked up at the first use. RTLD_NEXT does not find a library that a program has loaded by dlopen() with local symbols: that one is asked by its
// name. Thread contract: any thread.
template <class Function>
class Next {
 public:
  constexpr Next(const char* name, const char* library) : name_(name), library_(library) {}

  // Null: there is none.
  Function* get() {
    void* found = found_.load(std::memory_order_acquire);
    if (found == nullptr) {
      found = dlsym(RTLD_NEXT, name_);
      if (found == nullptr && library_ != nullptr)
        if (void* const loaded = dlopen(library_, RTLD_LAZY | RTLD_NOLOAD); loaded != nullptr)
          found = dlsym(loaded, name_);
      found_.store(found, std::memory_order_release);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* name_;
  const char* library_;
  std::atomic<void*> found_{nullptr};
};

inline constexpr const char* kPmem = "libpmem.so.1";
inline constexpr const char* kPmem2 = "libpmem2.so.1";

}  // namespace preload
