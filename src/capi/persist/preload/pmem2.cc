// libpmem2's calls, through the runtime.
//
// A mapping becomes a domain by its granularity: with that of cache lines (or bytes), lines are written back; with that of pages, the kernel writes.
// So all mappings have the same functions here; only a mapping of pages that could not become a domain keeps libpmem2's. What pmem2_memcpy_async and
// its kin copy, libpmem2 flushes itself.
#include <errno.h>

#include "capi/persist/entries.h"
#include "capi/persist/preload/next.h"
#include "capi/persist/preload/pmem.h"

struct pmem2_map;
struct pmem2_config;
struct pmem2_source;
struct pmem2_vm_reservation;

extern "C" {
typedef void (*pmem2_persist_fn)(const void*, size_t);
typedef void (*pmem2_flush_fn)(const void*, size_t);
typedef void (*pmem2_drain_fn)(void);
typedef void* (*pmem2_memmove_fn)(void*, const void*, size_t, unsigned);
typedef void* (*pmem2_memset_fn)(void*, int, size_t, unsigned);
}

namespace preload {
namespace {

constinit Next<int(pmem2_map**, const pmem2_config*, const pmem2_source*)> next_map_new("pmem2_map_new",
                                                                                        kPmem2);
constinit Next<int(pmem2_map**, const pmem2_source*, void*, size_t, int)> next_map_from_existing(
    "pmem2_map_from_existing", kPmem2);
constinit Next<int(pmem2_map**)> next_map_delete("pmem2_map_delete", kPmem2);
constinit Next<int(pmem2_map*, void*, size_t)> next_deep_flush("pmem2_deep_flush", kPmem2);
constinit Next<void*(pmem2_map*)> map_address("pmem2_map_get_address", kPmem2);
constinit Next<size_t(pmem2_map*)> map_bytes("pmem2_map_get_size", kPmem2);
constinit Next<int(pmem2_map*)> map_granularity("pmem2_map_get_store_granularity", kPmem2);
constinit Next<pmem2_persist_fn(pmem2_map*)> next_persist("pmem2_get_persist_fn", kPmem2);
constinit Next<pmem2_flush_fn(pmem2_map*)> next_flush("pmem2_get_flush_fn", kPmem2);
constinit Next<pmem2_drain_fn(pmem2_map*)> next_drain("pmem2_get_drain_fn", kPmem2);
constinit Next<pmem2_memmove_fn(pmem2_map*)> next_memmove("pmem2_get_memmove_fn", kPmem2);
constinit Next<pmem2_memmove_fn(pmem2_map*)> next_memcpy("pmem2_get_memcpy_fn", kPmem2);
constinit Next<pmem2_memset_fn(pmem2_map*)> next_memset("pmem2_get_memset_fn", kPmem2);

void begin(pmem2_map* map) {
  __spillway_persist_begin_mapping(map_address.get()(map), map_bytes.get()(map),
                                   map_granularity.get()(map) != kPage);
}

// Does the runtime do what the mapping needs?
bool is_ours(pmem2_map* map) {
  return map_granularity.get()(map) != kPage || __spillway_persist_is_file(map_address.get()(map));
}

void persist(const void* address, size_t bytes) {
  __spillway_persist_flush_from(address, bytes, SPILLWAY_SITE);
  __spillway_persist_fence_surely_from(SPILLWAY_SITE);
}

void flush(const void* address, size_t bytes) {
  __spillway_persist_flush_from(address, bytes, SPILLWAY_SITE);
}

void drain() { __spillway_persist_fence_surely_from(SPILLWAY_SITE); }

void* move(void* to, const void* from, size_t bytes, unsigned flags) {
  copy(to, from, bytes, flags, SPILLWAY_SITE);
  return to;
}

void* fill(void* to, int byte, size_t bytes, unsigned flags) {
  set(to, byte, bytes, flags, SPILLWAY_SITE);
  return to;
}

}  // namespace
}  // namespace preload

using namespace preload;

extern "C" {

SPILLWAY_EXPORT int pmem2_map_new(pmem2_map** map, const pmem2_config* config, const pmem2_source* source) {
  auto* const next = next_map_new.get();
  if (next == nullptr) return -ENOSYS;
  const int result = next(map, config, source);
  if (result == 0) begin(*map);
  return result;
}

SPILLWAY_EXPORT int pmem2_map_from_existing(pmem2_map** map, const pmem2_source* source, void* address,
                                            size_t bytes, int granularity) {
  auto* const next = next_map_from_existing.get();
  if (next == nullptr) return -ENOSYS;
  const int result = next(map, source, address, bytes, granularity);
  if (result == 0) begin(*map);
  return result;
}

SPILLWAY_EXPORT int pmem2_map_delete(pmem2_map** map) {
  auto* const next = next_map_delete.get();
  if (next == nullptr) return -ENOSYS;
  __spillway_persist_end_mapping(map_address.get()(*map), map_bytes.get()(*map));
  return next(map);
}

// What the thread has put off is made durable before libpmem2 does its own, deeper flush.
SPILLWAY_EXPORT int pmem2_deep_flush(pmem2_map* map, void* address, size_t bytes) {
  auto* const next = next_deep_flush.get();
  if (next == nullptr) return -ENOSYS;
  __spillway_persist_flush_from(address, bytes, SPILLWAY_SITE);
  const int number = __spillway_persist_fence_from(SPILLWAY_SITE);
  return number != 0 ? -number : next(map, address, bytes);
}

SPILLWAY_EXPORT pmem2_persist_fn pmem2_get_persist_fn(pmem2_map* map) {
  return is_ours(map) ? persist : next_persist.get()(map);
}

SPILLWAY_EXPORT pmem2_flush_fn pmem2_get_flush_fn(pmem2_map* map) {
  return is_ours(map) ? flush : next_flush.get()(map);
}

SPILLWAY_EXPORT pmem2_drain_fn pmem2_get_drain_fn(pmem2_map* map) {
  return is_ours(map) ? drain : next_drain.get()(map);
}

SPILLWAY_EXPORT pmem2_memmove_fn pmem2_get_memmove_fn(pmem2_map* map) {
  return is_ours(map) ? move : next_memmove.get()(map);
}

SPILLWAY_EXPORT pmem2_memmove_fn pmem2_get_memcpy_fn(pmem2_map* map) {
  return is_ours(map) ? move : next_memcpy.get()(map);
}

SPILLWAY_EXPORT pmem2_memset_fn pmem2_get_memset_fn(pmem2_map* map) {
  return is_ours(map) ? fill : next_memset.get()(map);
}

}  // extern "C"
