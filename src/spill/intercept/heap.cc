// The malloc family and the C++ operators, for instrumented code (__spill_<name>) and, under their own
// names, for everybody else: the dynamic loader, the C library and libraries that were not compiled by
// spillcc. The latter must also be able to free and resize what the former allocated.
#include <errno.h>
#include <stdint.h>

#include <bit>

#include "spill/heap.h"
#include "spill/intercept/intercept.h"

// libstdc++'s, if the program has it: calls the program's new_handler if there is no memory, and then throws std::bad_alloc.
extern "C" __attribute__((weak)) void* _Znwm(size_t);
// std::get_new_handler, of the same library.
using NewHandler = void();
extern "C" __attribute__((weak)) NewHandler* _ZSt15get_new_handlerv();

namespace spill {
namespace {

// Does the program, or one of its libraries, define operators new and delete instead of the C++ library?
constinit bool has_own_operators = false;

void* zeroed(size_t count, size_t bytes, Caller caller) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return nullptr;
  }
  return heap_allocate(total, 0, true, caller);
}

void* resized(void* block, size_t count, size_t bytes, Caller caller) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return nullptr;
  }
  return heap_resize(block, total, caller);
}

void* aligned(size_t alignment, size_t bytes, Caller caller) {
  // As in the C library: an alignment that is no power of two is rounded up.
  if (alignment > (SIZE_MAX >> 1) + 1) {
    errno = EINVAL;
    return nullptr;
  }
  if (!std::has_single_bit(alignment)) alignment = alignment == 0 ? 1 : std::bit_ceil(alignment);
  return heap_allocate(bytes, alignment, false, caller);
}

int aligned_into(void** result, size_t alignment, size_t bytes, Caller caller) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int saved_errno = errno;
  void* block = heap_allocate(bytes, alignment, false, caller);
  errno = saved_errno;
  if (block == nullptr) return ENOMEM;
  copy(result, &block, sizeof block);
  return 0;
}

// A size that is too large stays too large.
size_t whole_pages(size_t bytes) { return bytes > SIZE_MAX - 4095 ? bytes : (bytes + 4095) & ~size_t{4095}; }

// For the operators of libstdc++ that are not in every static program, after a failure: asks the new_handler, as those do. Null: there is none.
void* allocate_by_handlers(size_t bytes, size_t alignment) {
  for (;;) {
    NewHandler* const handler = _ZSt15get_new_handlerv != nullptr ? _ZSt15get_new_handlerv() : nullptr;
    if (handler == nullptr) return nullptr;
    handler();
    if (void* block = heap_allocate(bytes, alignment, false, Caller::kInstrumented)) return block;
  }
}

// operator new with more than the default alignment, after a failure. To throw, the ordinary operator is asked for more than can ever exist.
__attribute__((noinline)) void* allocate_aligned_or_throw(size_t bytes, size_t alignment) {
  void* block = allocate_by_handlers(bytes, alignment);
  return block != nullptr ? block : _Znwm(SIZE_MAX);
}

// operator new: never null. libstdc++'s own fails in turn, and throws.
void* allocate_or_throw(size_t bytes, size_t alignment) {
  void* block = heap_allocate(bytes, alignment, false, Caller::kInstrumented);
  if (__builtin_expect(block != nullptr, 1) || _Znwm == nullptr) return block;
  return alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? _Znwm(bytes)
                                                       : allocate_aligned_or_throw(bytes, alignment);
}

// operator new with std::nothrow. libstdc++'s own, if the program has it, is asked after a failure: it also catches what a new_handler throws.
template <class Library>
void* allocate_or_null(size_t bytes, size_t alignment, bool has_library, Library library) {
  void* block = heap_allocate(bytes, alignment, false, Caller::kInstrumented);
  if (__builtin_expect(block != nullptr, 1)) return block;
  return has_library ? library() : allocate_by_handlers(bytes, alignment);
}

}  // namespace

// One family for each kind of caller; `P` prefixes the names.
#define SPILL_MALLOC_FAMILY(P, caller)                                                                   \
  SPILL_EXPORT void* P##malloc(size_t bytes) { return heap_allocate(bytes, 0, false, caller); }          \
  SPILL_EXPORT void* P##calloc(size_t count, size_t bytes) { return zeroed(count, bytes, caller); }      \
  SPILL_EXPORT void* P##realloc(void* block, size_t bytes) { return heap_resize(block, bytes, caller); } \
  SPILL_EXPORT void* P##reallocarray(void* block, size_t count, size_t bytes) {                          \
    return resized(block, count, bytes, caller);                                                         \
  }                                                                                                      \
  SPILL_EXPORT void P##free(void* block) { heap_free(block, caller); }                                   \
  SPILL_EXPORT void* P##aligned_alloc(size_t alignment, size_t bytes) {                                  \
    return aligned(alignment, bytes, caller);                                                            \
  }                                                                                                      \
  SPILL_EXPORT void* P##memalign(size_t alignment, size_t bytes) {                                       \
    return aligned(alignment, bytes, caller);                                                            \
  }                                                                                                      \
  SPILL_EXPORT int P##posix_memalign(void** result, size_t alignment, size_t bytes) {                    \
    return aligned_into(result, alignment, bytes, caller);                                               \
  }                                                                                                      \
  SPILL_EXPORT void* P##valloc(size_t bytes) { return aligned(4096, bytes, caller); }                    \
  SPILL_EXPORT void* P##pvalloc(size_t bytes) { return aligned(4096, whole_pages(bytes), caller); }

SPILL_MALLOC_FAMILY(__spill_, Caller::kInstrumented)
SPILL_MALLOC_FAMILY(, foreign_caller(__builtin_return_address(0)))
#undef SPILL_MALLOC_FAMILY

SPILL_EXPORT size_t __spill_malloc_usable_size(void* block) { return heap_usable_bytes(block); }

void find_own_operators() {
  has_own_operators = is_replaced(reinterpret_cast<const void*>(&_Znwm),
                                  reinterpret_cast<const void*>(&_ZSt15get_new_handlerv));
}

// The C++ operators, by mangled name: std::nothrow_t and std::align_val_t are a reference and a size_t. If the program has its own, all
// calls go to those, as natively.
#define SPILL_NEW(name, parameters, arguments, ours)      \
  extern "C" __attribute__((weak)) void* name parameters; \
  SPILL_EXPORT void* __spill_##name parameters {          \
    if (has_own_operators) [[unlikely]]                   \
      return name arguments;                              \
    return ours;                                          \
  }
#define SPILL_DELETE(name, parameters, arguments)        \
  extern "C" __attribute__((weak)) void name parameters; \
  SPILL_EXPORT void __spill_##name parameters {          \
    if (has_own_operators) [[unlikely]]                  \
      return name arguments;                             \
    heap_free(block, Caller::kInstrumented);             \
  }

#define SPILL_NEW_OR_NULL(name, parameters, arguments, alignment) \
  SPILL_NEW(name, parameters, arguments,                          \
            allocate_or_null(bytes, alignment, name != nullptr, [=] { return name arguments; }))

SPILL_NEW(_Znwm, (size_t bytes), (bytes), allocate_or_throw(bytes, 0))
SPILL_NEW(_Znam, (size_t bytes), (bytes), allocate_or_throw(bytes, 0))
SPILL_NEW_OR_NULL(_ZnwmRKSt9nothrow_t, (size_t bytes, const void* nothrow), (bytes, nothrow), 0)
SPILL_NEW_OR_NULL(_ZnamRKSt9nothrow_t, (size_t bytes, const void* nothrow), (bytes, nothrow), 0)
SPILL_NEW(_ZnwmSt11align_val_t, (size_t bytes, size_t alignment), (bytes, alignment),
          allocate_or_throw(bytes, alignment))
SPILL_NEW(_ZnamSt11align_val_t, (size_t bytes, size_t alignment), (bytes, alignment),
          allocate_or_throw(bytes, alignment))
SPILL_NEW_OR_NULL(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t bytes, size_t alignment, const void* nothrow),
                  (bytes, alignment, nothrow), alignment)
SPILL_NEW_OR_NULL(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t bytes, size_t alignment, const void* nothrow),
                  (bytes, alignment, nothrow), alignment)
SPILL_DELETE(_ZdlPv, (void* block), (block))
SPILL_DELETE(_ZdaPv, (void* block), (block))
SPILL_DELETE(_ZdlPvm, (void* block, size_t bytes), (block, bytes))
SPILL_DELETE(_ZdaPvm, (void* block, size_t bytes), (block, bytes))
SPILL_DELETE(_ZdlPvRKSt9nothrow_t, (void* block, const void* nothrow), (block, nothrow))
SPILL_DELETE(_ZdaPvRKSt9nothrow_t, (void* block, const void* nothrow), (block, nothrow))
SPILL_DELETE(_ZdlPvSt11align_val_t, (void* block, size_t alignment), (block, alignment))
SPILL_DELETE(_ZdaPvSt11align_val_t, (void* block, size_t alignment), (block, alignment))
SPILL_DELETE(_ZdlPvmSt11align_val_t, (void* block, size_t bytes, size_t alignment), (block, bytes, alignment))
SPILL_DELETE(_ZdaPvmSt11align_val_t, (void* block, size_t bytes, size_t alignment), (block, bytes, alignment))

}  // namespace spill

// Memory that is never spilled (include/spillway/spill.h).
SPILL_EXPORT void* __spillway_malloc_resident(size_t bytes);
SPILL_EXPORT void* __spillway_malloc_resident(size_t bytes) {
  return spill::heap_allocate_resident(bytes, 0, false);
}
SPILL_EXPORT void* __spillway_calloc_resident(size_t count, size_t bytes);
SPILL_EXPORT void* __spillway_calloc_resident(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) total = SIZE_MAX;
  return spill::heap_allocate_resident(total, 0, true);
}
SPILL_EXPORT void* __spillway_realloc_resident(void* block, size_t bytes);
SPILL_EXPORT void* __spillway_realloc_resident(void* block, size_t bytes) {
  return spill::heap_resize_resident(block, bytes);
}
SPILL_EXPORT void* __spillway_aligned_alloc_resident(size_t alignment, size_t bytes);
SPILL_EXPORT void* __spillway_aligned_alloc_resident(size_t alignment, size_t bytes) {
  return spill::heap_allocate_resident(bytes, alignment, false);
}
