// libpmem's calls, through the runtime.
//
// Some are passed on to libpmem: pmem_map_file and pmem_unmap, whose mappings are domains in between; pmem_msync where the runtime does not have the
// kernel write; what a deep drain does beyond a fence. Calls that are not defined here reach libpmem as before: pmem_is_pmem, pmem_has_hw_drain,
// pmem_errormsg, pmem_check_version.
#include "capi/persist/preload/pmem.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "capi/persist/entries.h"
#include "capi/persist/preload/next.h"

// The process's runtime looks for this symbol to know whether this library is preloaded.
extern "C" SPILLWAY_EXPORT const char __spillway_persist_preloaded[] = "libspillway_persist_preload";

namespace preload {
namespace {

using MapFile = void*(const char*, size_t, int, mode_t, size_t*, int*);
using Unmap = int(void*, size_t);
using Sync = int(const void*, size_t);
using Ask = int();

constinit Next<MapFile> next_map_file("pmem_map_file", kPmem);
constinit Next<Unmap> next_unmap("pmem_unmap", kPmem);
constinit Next<Sync> next_msync("pmem_msync", kPmem);
constinit Next<Sync> next_deep_drain("pmem_deep_drain", kPmem);
constinit Next<Ask> next_has_auto_flush("pmem_has_auto_flush", kPmem);

int caches_of(unsigned flags) {
  if ((flags & (kNonTemporal | kWriteCombining)) != 0) return kCachesPast;
  if ((flags & (kTemporal | kWriteBack)) != 0) return kCachesThrough;
  return kCachesChoose;
}

int fail(int number) {
  errno = number;
  return -1;
}

// Answers like those of libpmem's calls that can fail.
int fence(const void* site) {
  const int number = __spillway_persist_fence_from(site);
  return number == 0 ? 0 : fail(number);
}

int deep_drain(const void* address, size_t bytes, const void* site) {
  if (fence(site) != 0) return -1;
  Sync* const next = next_deep_drain.get();
  return next == nullptr ? fail(ENOSYS) : next(address, bytes);
}

}  // namespace

void copy(void* to, const void* from, size_t bytes, unsigned flags, const void* site) {
  if ((flags & kNoFlush) != 0) {
    memmove(to, from, bytes);
    return __spillway_persist_stored_from(to, bytes, site);
  }
  __spillway_persist_copy_from(to, from, bytes, caches_of(flags), site);
  if ((flags & kNoDrain) == 0) __spillway_persist_fence_surely_from(site);
}

void set(void* to, int byte, size_t bytes, unsigned flags, const void* site) {
  if ((flags & kNoFlush) != 0) {
    memset(to, byte, bytes);
    return __spillway_persist_stored_from(to, bytes, site);
  }
  __spillway_persist_set_from(to, byte, bytes, caches_of(flags), site);
  if ((flags & kNoDrain) == 0) __spillway_persist_fence_surely_from(site);
}

}  // namespace preload

using namespace preload;

extern "C" {

SPILLWAY_EXPORT void pmem_flush(const void* address, size_t bytes) {
  __spillway_persist_flush_from(address, bytes, SPILLWAY_SITE);
}

SPILLWAY_EXPORT void pmem_deep_flush(const void* address, size_t bytes) {
  __spillway_persist_flush_from(address, bytes, SPILLWAY_SITE);
}

SPILLWAY_EXPORT void pmem_drain(void) { __spillway_persist_fence_surely_from(SPILLWAY_SITE); }

SPILLWAY_EXPORT void pmem_persist(const void* address, size_t bytes) {
  __spillway_persist_flush_from(address, bytes, SPILLWAY_SITE);
  __spillway_persist_fence_surely_from(SPILLWAY_SITE);
}

SPILLWAY_EXPORT int pmem_deep_drain(const void* address, size_t bytes) {
  return deep_drain(address, bytes, SPILLWAY_SITE);
}

SPILLWAY_EXPORT int pmem_deep_persist(const void* address, size_t bytes) {
  __spillway_persist_flush_from(address, bytes, SPILLWAY_SITE);
  return deep_drain(address, bytes, SPILLWAY_SITE);
}

// The program wants the kernel to write the range. Where the runtime has it do so, that is a flush and a fence; elsewhere it is libpmem's own call,
// since writing back lines would be less than was asked for.
SPILLWAY_EXPORT int pmem_msync(const void* address, size_t bytes) {
  if (__spillway_persist_is_file(address)) {
    __spillway_persist_flush_from(address, bytes, SPILLWAY_SITE);
    return fence(SPILLWAY_SITE);
  }
  Sync* const next = next_msync.get();
  return next == nullptr ? fail(ENOSYS) : next(address, bytes);
}

SPILLWAY_EXPORT void* pmem_memcpy(void* to, const void* from, size_t bytes, unsigned flags) {
  copy(to, from, bytes, flags, SPILLWAY_SITE);
  return to;
}

SPILLWAY_EXPORT void* pmem_memmove(void* to, const void* from, size_t bytes, unsigned flags) {
  copy(to, from, bytes, flags, SPILLWAY_SITE);
  return to;
}

SPILLWAY_EXPORT void* pmem_memset(void* to, int byte, size_t bytes, unsigned flags) {
  set(to, byte, bytes, flags, SPILLWAY_SITE);
  return to;
}

SPILLWAY_EXPORT void* pmem_memcpy_persist(void* to, const void* from, size_t bytes) {
  copy(to, from, bytes, 0, SPILLWAY_SITE);
  return to;
}

SPILLWAY_EXPORT void* pmem_memmove_persist(void* to, const void* from, size_t bytes) {
  copy(to, from, bytes, 0, SPILLWAY_SITE);
  return to;
}

SPILLWAY_EXPORT void* pmem_memset_persist(void* to, int byte, size_t bytes) {
  set(to, byte, bytes, 0, SPILLWAY_SITE);
  return to;
}

SPILLWAY_EXPORT void* pmem_memcpy_nodrain(void* to, const void* from, size_t bytes) {
  copy(to, from, bytes, kNoDrain, SPILLWAY_SITE);
  return to;
}

SPILLWAY_EXPORT void* pmem_memmove_nodrain(void* to, const void* from, size_t bytes) {
  copy(to, from, bytes, kNoDrain, SPILLWAY_SITE);
  return to;
}

SPILLWAY_EXPORT void* pmem_memset_nodrain(void* to, int byte, size_t bytes) {
  set(to, byte, bytes, kNoDrain, SPILLWAY_SITE);
  return to;
}

SPILLWAY_EXPORT int pmem_has_auto_flush(void) {
  if (__spillway_persist_is_flush_on_fail()) return 1;
  Ask* const next = next_has_auto_flush.get();
  return next == nullptr ? fail(ENOSYS) : next();
}

SPILLWAY_EXPORT void* pmem_map_file(const char* path, size_t bytes, int flags, mode_t mode,
                                    size_t* mapped_bytes, int* is_memory) {
  MapFile* const next = next_map_file.get();
  if (next == nullptr) {
    errno = ENOSYS;
    return nullptr;
  }
  size_t own_bytes = 0;
  int own_is_memory = 0;
  void* const address = next(path, bytes, flags, mode, &own_bytes, &own_is_memory);
  if (address == nullptr) return nullptr;
  if (mapped_bytes != nullptr) *mapped_bytes = own_bytes;
  if (is_memory != nullptr) *is_memory = own_is_memory;
  __spillway_persist_begin_mapping(address, own_bytes, own_is_memory);
  return address;
}

SPILLWAY_EXPORT int pmem_unmap(void* address, size_t bytes) {
  __spillway_persist_end_mapping(address, bytes);
  Unmap* const next = next_unmap.get();
  return next == nullptr ? fail(ENOSYS) : next(address, bytes);
}

}  // extern "C"
