// A stand-in for libspillway_persist.so. Counts the calls of compiled code, and keeps a copy of the region that is
// written by reported stores alone: what differs from the region at the end was stored without a report. Writes a
// line of JSON to $STAND_IN_REPORT then.
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "region.h"

enum { kSamplePeriod = 100 };

// As abi.inc says. Nothing is open unless the program opens it.
static const struct put_off {
  uint64_t mark, entries[256];
} none = {.mark = 3};
__attribute__((tls_model("initial-exec"))) _Thread_local struct {
  uint64_t ranges[3];
  const struct put_off* put_off;
  uint32_t pending;
  int32_t fences;
} __spillway_persist_thread = {.put_off = &none};
__attribute__((tls_model("initial-exec"))) _Thread_local int32_t __spillway_persist_countdown;

static atomic_uint flushes, flushes_ordered, fences, stores, samples, outside;
static char copy[kRegionBytes];

static void check_address(const void* address) {
  if ((uintptr_t)address - (uintptr_t)REGION >= kRegionBytes) atomic_fetch_add(&outside, 1);
}

void __spillway_persist_flush(const void* address) {
  check_address(address);
  atomic_fetch_add(&flushes, 1);
  __spillway_persist_thread.pending = 1;
}
void __spillway_persist_flush_ordered(const void* address) {
  check_address(address);
  atomic_fetch_add(&flushes_ordered, 1);
  __spillway_persist_thread.pending = 1;
}
void __spillway_persist_fence(void) {
  atomic_fetch_add(&fences, 1);
  __spillway_persist_thread.pending = 0;
}
void __spillway_persist_store(const void* address, size_t bytes) {
  if (bytes == 0) return;
  atomic_fetch_add(&stores, 1);
  const uintptr_t offset = (uintptr_t)address - (uintptr_t)REGION;
  if (offset < kRegionBytes) memcpy(copy + offset, address, bytes);
}
void __spillway_persist_store_past_caches(const void* address, size_t bytes) {
  __spillway_persist_store(address, bytes);
}
void __spillway_persist_sampled(const void* address) {
  (void)address;
  atomic_fetch_add(&samples, 1);
  __spillway_persist_countdown = kSamplePeriod - 1;
}

void stand_in_counts(unsigned counts[3]) {
  counts[0] = flushes;
  counts[1] = flushes_ordered;
  counts[2] = fences;
}

__attribute__((destructor)) static void report(void) {
  const char* path = getenv("STAND_IN_REPORT");
  FILE* file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  unsigned missed = 0;
  for (int i = 0; i < kRegionBytes; ++i) missed += REGION[i] != copy[i];
  fprintf(file,
          "{\"flushes\": %u, \"flushes_ordered\": %u, \"fences\": %u, \"stores\": %u, \"samples\": %u, "
          "\"outside\": %u, \"missed_bytes\": %u}\n",
          flushes, flushes_ordered, fences, stores, samples, outside, missed);
  fclose(file);
}
