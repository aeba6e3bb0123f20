// Ends domains before the program unmaps their memory, so that nothing that was put off is executed where nothing is mapped any more.
//
// If such a call fails, its domain has ended all the same: the next flush there finds the mapping anew, as one that nobody has announced.
//
// Calls of the C library's functions by the program and its libraries are seen. What is not seen: what the C library itself unmaps (stacks of
// threads, blocks of malloc), system calls that a program makes by itself, shmdt, and files that become shorter while they are mapped. What has gone
// that way is not mistaken for what is mapped there next.
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "capi/persist/entries.h"
#include "capi/persist/preload/next.h"
#include "capi/persist/preload/pmem.h"

namespace preload {
namespace {

using Map = void*(void*, size_t, int, int, int, off_t);
using Unmap = int(void*, size_t);
using Remap = void*(void*, size_t, size_t, int, ...);
using Protect = int(void*, size_t, int);

constinit Next<Map> next_mmap("mmap", nullptr);
constinit Next<Unmap> next_munmap("munmap", nullptr);
constinit Next<Remap> next_mremap("mremap", nullptr);
constinit Next<Protect> next_mprotect("mprotect", nullptr);

}  // namespace
}  // namespace preload

using namespace preload;

extern "C" {

SPILLWAY_EXPORT void* mmap(void* address, size_t bytes, int protection, int flags, int descriptor,
                           off_t offset) noexcept {
  if ((flags & MAP_FIXED) != 0) __spillway_persist_end_mapping(address, bytes);
  void* const mapped = next_mmap.get()(address, bytes, protection, flags, descriptor, offset);
  if ((flags & MAP_FIXED) == 0 && mapped != MAP_FAILED) __spillway_persist_end_mapping(mapped, bytes);
  return mapped;
}

SPILLWAY_EXPORT void* mmap64(void* address, size_t bytes, int protection, int flags, int descriptor,
                             off64_t offset) noexcept {
  return mmap(address, bytes, protection, flags, descriptor, offset);
}

SPILLWAY_EXPORT int munmap(void* address, size_t bytes) noexcept {
  __spillway_persist_end_mapping(address, bytes);
  return next_munmap.get()(address, bytes);
}

SPILLWAY_EXPORT void* mremap(void* address, size_t bytes, size_t new_bytes, int flags, ...) noexcept {
  va_list more;
  va_start(more, flags);
  void* const new_address = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  __spillway_persist_end_mapping(address, bytes);
  if ((flags & MREMAP_FIXED) != 0) __spillway_persist_end_mapping(new_address, new_bytes);
  void* const mapped = next_mremap.get()(address, bytes, new_bytes, flags, new_address);
  if ((flags & MREMAP_FIXED) == 0 && mapped != MAP_FAILED) __spillway_persist_end_mapping(mapped, new_bytes);
  return mapped;
}

// What cannot be read cannot be written back.
SPILLWAY_EXPORT int mprotect(void* address, size_t bytes, int protection) noexcept {
  if ((protection & PROT_READ) == 0) __spillway_persist_end_mapping(address, bytes);
  return next_mprotect.get()(address, bytes, protection);
}

}  // extern "C"
