// The quick step of an access that crosses a page's edge, for when all of its pages are in memory: what needs no I/O, lock or
// vector register. Compiled as translate_quick.c is, since saving the vector registers would take most of the time.
// Cost: about 30 instructions a page, and one for each 2 bytes, besides the thunk's pushes and pops. Pages that are adjacent in
// memory are copied as one, so that no branch depends on where the edge is.
#include <stdint.h>

#define SPILLWAY_NUMBER(name, value, doc) static const uint64_t k##name = value;
#include "spillway/abi.inc"

// Two slots for each side, HoldSlot's first four (translate.cc asserts it): interceptors hold nothing while compiled code runs.
enum { kHoldTo = kSlotCount, kHoldFrom = kSlotCount + 2, kHoldCount = 4 };

extern __thread uint64_t* __spillway_slots __attribute__((tls_model("initial-exec"), visibility("default")));
// translate_quick.c
int64_t spillway_translate_quick(uint64_t address);
_Bool spillway_is_marked(uint64_t address);

// base::statistics.spill_crossings, set by spillway_start().
uint64_t* spillway_crossing_counter;

// Copies `size` bytes between `address` and `buffer`, which is plain memory, or from `from` to `to`, which do not overlap unless
// they are the same. 0 when the blocking step is needed: it does all of the access, and stores again what was already stored.
_Bool spillway_cross_load_quick(uint64_t address, uint64_t size, char* buffer);
_Bool spillway_cross_store_quick(uint64_t address, uint64_t size, const char* buffer);
_Bool spillway_cross_copy_quick(uint64_t to, uint64_t from, uint64_t size);

#define MOVE(type, at)                                 \
  do {                                                 \
    type word;                                         \
    __builtin_memcpy(&word, from + (at), sizeof word); \
    __builtin_memcpy(to + (at), &word, sizeof word);   \
  } while (0)

// What is less than a word, or left over at the end, is moved by two words that overlap, so that it takes no loop.
static void copy(char* to, const char* from, uint64_t size) {
  if (size >= sizeof(uint64_t)) {
    const uint64_t last = size - sizeof(uint64_t);
    for (uint64_t at = 0; at < last; at += sizeof(uint64_t)) {
      MOVE(uint64_t, at);
      // Otherwise it would be taken for a call of memcpy.
      __asm__ volatile("" : "+r"(to));
    }
    MOVE(uint64_t, last);
  } else if (size >= sizeof(uint32_t)) {
    MOVE(uint32_t, 0);
    MOVE(uint32_t, size - sizeof(uint32_t));
  } else if (size >= sizeof(uint16_t)) {
    MOVE(uint16_t, 0);
    MOVE(uint16_t, size - sizeof(uint16_t));
  } else {
    *to = *from;
  }
}

// hold() of access.h, without its blocking step: the entry, or 0. A marked page is left as it is: the blocking step repeats the whole
// access, and would not see that this is the page's first use.
static int64_t hold(uint64_t address, unsigned slot) {
  __atomic_store_n(&__spillway_slots[slot], address, __ATOMIC_RELEASE);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  const int64_t entry = __atomic_load_n((int64_t*)kTableBase + (address >> kTableShift), __ATOMIC_ACQUIRE);
  if (entry > 0) return entry;
  return spillway_is_marked(address) ? 0 : spillway_translate_quick(address);
}

// How many of the `size` bytes at `address` are contiguous from *raw on, protected in `slot` and the next one; 0 if the first needs
// the blocking step.
static uint64_t hold_run(uint64_t address, uint64_t size, unsigned slot, char** raw) {
  const uint64_t page = 1ull << kTableShift;
  const uint64_t length = page - (address & (page - 1));
  const int64_t entry = hold(address, slot);
  if (entry <= 0) return 0;
  *raw = (char*)(address + (uint64_t)entry - 1);
  if (size <= length || (size <= length + page && hold(address + length, slot + 1) == entry)) return size;
  return length;
}

static _Bool finish(_Bool done) {
  for (unsigned i = 0; i < kHoldCount; ++i)
    __atomic_store_n(&__spillway_slots[kHoldTo + i], 0, __ATOMIC_RELEASE);
  if (done) __atomic_fetch_add(spillway_crossing_counter, 1, __ATOMIC_RELAXED);
  return done;
}

_Bool spillway_cross_load_quick(uint64_t address, uint64_t size, char* buffer) {
  for (uint64_t length; size > 0; address += length, buffer += length, size -= length) {
    char* raw;
    length = hold_run(address, size, kHoldFrom, &raw);
    if (length == 0) return finish(0);
    copy(buffer, raw, length);
  }
  return finish(1);
}

_Bool spillway_cross_store_quick(uint64_t address, uint64_t size, const char* buffer) {
  for (uint64_t length; size > 0; address += length, buffer += length, size -= length) {
    char* raw;
    length = hold_run(address, size, kHoldTo, &raw);
    if (length == 0) return finish(0);
    copy(raw, buffer, length);
  }
  return finish(1);
}

_Bool spillway_cross_copy_quick(uint64_t to, uint64_t from, uint64_t size) {
  for (uint64_t length; size > 0; to += length, from += length, size -= length) {
    char *raw_to, *raw_from;
    length = hold_run(to, size, kHoldTo, &raw_to);
    if (length != 0) length = hold_run(from, length, kHoldFrom, &raw_from);
    if (length == 0) return finish(0);
    copy(raw_to, raw_from, length);
  }
  return finish(1);
}
