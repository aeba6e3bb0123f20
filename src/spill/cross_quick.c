// The quick step of an access that crosses a page's edge, where all of its pages are there: what it needs no I/O, lock or vector
// register for. Compiled as translate_quick.c is: the vector registers would have to be saved, which takes most of the time.
// Cost: about 30 instructions a page, and one for each 2 bytes, besides the thunk's pushes and pops.
#include <stdint.h>

#define SPILLWAY_NUMBER(name, value, doc) static const uint64_t k##name = value;
#include "spillway/abi.inc"

// kHoldCross of access.h (translate.cc asserts it).
enum { kHoldCross = kSlotCount + 4 };

extern __thread uint64_t* __spillway_slots __attribute__((tls_model("initial-exec"), visibility("default")));
int64_t spillway_translate_quick(uint64_t address);

// base::statistics.spill_crossings, set by spillway_start().
uint64_t* spillway_crossing_counter;

// All `size` bytes at `address` to or from `buffer`, plain memory. 0 when the blocking step is needed, for all of them: what was
// stored by then is stored again.
_Bool spillway_cross_load_quick(uint64_t address, uint64_t size, char* buffer);
_Bool spillway_cross_store_quick(uint64_t address, uint64_t size, const char* buffer);

static void copy(char* to, const char* from, uint64_t size) {
  for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t)) {
    uint64_t word;
    __builtin_memcpy(&word, from, sizeof word);
    __builtin_memcpy(to, &word, sizeof word);
    from += sizeof word;
    to += sizeof word;
    // Otherwise it would be taken for a call of memcpy.
    __asm__ volatile("" : "+r"(to));
  }
  for (; size > 0; --size) {
    *to++ = *from++;
    __asm__ volatile("" : "+r"(to));
  }
}

static _Bool cross(uint64_t address, uint64_t size, char* buffer, _Bool stores) {
  const uint64_t page = 1ull << kTableShift;
  _Bool done = 1;
  while (size > 0) {
    uint64_t length = page - (address & (page - 1));
    if (length > size) length = size;
    // hold() of access.h.
    __atomic_store_n(&__spillway_slots[kHoldCross], address, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    int64_t entry = __atomic_load_n((int64_t*)kTableBase + (address >> kTableShift), __ATOMIC_ACQUIRE);
    if (entry <= 0) entry = spillway_translate_quick(address);
    if (entry <= 0) {
      done = 0;
      break;
    }
    char* const raw = (char*)(address + (uint64_t)entry - 1);
    if (stores)
      copy(raw, buffer, length);
    else
      copy(buffer, raw, length);
    address += length;
    buffer += length;
    size -= length;
  }
  __atomic_store_n(&__spillway_slots[kHoldCross], 0, __ATOMIC_RELEASE);
  if (done) __atomic_fetch_add(spillway_crossing_counter, 1, __ATOMIC_RELAXED);
  return done;
}

_Bool spillway_cross_load_quick(uint64_t address, uint64_t size, char* buffer) {
  return cross(address, size, buffer, 0);
}

_Bool spillway_cross_store_quick(uint64_t address, uint64_t size, const char* buffer) {
  return cross(address, size, (char*)buffer, 1);
}
