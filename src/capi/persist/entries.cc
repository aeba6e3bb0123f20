#include "capi/persist/entries.h"

#include "capi/persist/objects.h"
#include "persist/own/copy.h"
#include "persist/own/own.h"

namespace {

using capi::persisting::number_of;

persist::Caches caches_of(int caches) {
  switch (caches) {
    case kCachesThrough: return persist::Caches::kThrough;
    case kCachesPast: return persist::Caches::kPast;
    default: return persist::Caches::kChoose;
  }
}

}  // namespace

extern "C" {

void __spillway_persist_flush_from(const void* address, size_t bytes, const void* site) {
  persist::own::flush(number_of(address), bytes, site);
}

int __spillway_persist_fence_from(const void* site) {
  const auto fenced = persist::own::fence(site);
  return fenced ? 0 : fenced.error().number;
}

void __spillway_persist_fence_surely_from(const void* site) { persist::own::fence_surely(site); }

void __spillway_persist_copy_from(void* to, const void* from, size_t bytes, int caches, const void* site) {
  persist::own::copy(to, from, bytes, caches_of(caches), site);
}

void __spillway_persist_set_from(void* to, int byte, size_t bytes, int caches, const void* site) {
  persist::own::set(to, byte, bytes, caches_of(caches), site);
}

void __spillway_persist_stored_from(const void* address, size_t bytes, const void* site) {
  persist::own::store(number_of(address), bytes, false, site);
}

void __spillway_persist_begin_mapping(const void* address, size_t bytes, int is_memory) {
  persist::own::begin_mapping(number_of(address), bytes, is_memory != 0);
}

void __spillway_persist_end_mapping(const void* address, size_t bytes) {
  persist::own::end_mapping(number_of(address), bytes);
}

int __spillway_persist_is_file(const void* address) {
  return persist::own::kind_at(number_of(address)) == persist::DomainKind::kFile ? 1 : 0;
}

int __spillway_persist_is_flush_on_fail(void) { return persist::own::is_flush_on_fail() ? 1 : 0; }

}  // extern "C"
