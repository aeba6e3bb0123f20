// The quick step of a translation: what needs no I/O, lock or vector register. In C, because this
// file is compiled with -mgeneral-regs-only (thunk.S saves the integer registers only around it), which
// the C++ library's headers do not survive.
// Cost: about 20 instructions besides the thunk's pushes and pops.
#include <stdint.h>

#define SPILLWAY_NUMBER(name, value, doc) static const uint64_t k##name = value;
#include "spillway/abi.inc"

// base::statistics.spill_rearms, set by spillway_start().
uint64_t* spillway_rearm_counter;
// If set, any address may be a global's (globals.h).
_Bool spillway_has_globals;

// Pages that were loaded ahead, and whose first use is to be noticed (ahead/prefetch.h): `count` entries from `first` on.
__thread struct {
  uint64_t first, count;
} spillway_marks[4];

// Is the page at this address marked?
_Bool spillway_is_marked(uint64_t address);
_Bool spillway_is_marked(uint64_t address) {
  const uint64_t number = address >> kTableShift;
  _Bool found = 0;
  for (int i = 0; i < 4; ++i) found |= number - spillway_marks[i].first < spillway_marks[i].count;
  return found;
}

// The entry if it is positive or can be made so at once; 0 when the blocking step is needed, as after the first use of a marked page.
int64_t spillway_translate_quick(uint64_t address);
int64_t spillway_translate_quick(uint64_t address) {
  int64_t* entry = (int64_t*)kTableBase + (address >> kTableShift);
  int64_t value = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
  for (;;) {
    if (value > 0) return value;
    if (value == 0 && address - kRangeBegin >= kRangeEnd - kRangeBegin) {
      if (__atomic_load_n(&spillway_has_globals, __ATOMIC_RELAXED)) return 0;
      // Not spill memory: record that. Relaxed: the entry says nothing about other memory, and a thread that
      // does not see it comes here too.
      __atomic_store_n(entry, 1, __ATOMIC_RELAXED);
      return 1;
    }
    if (value >= -1) return 0;
    // Cooling: take it back. Fails when the owner locked it meanwhile (exchange in Table::lock).
    if (__atomic_compare_exchange_n(entry, &value, -value, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      __atomic_fetch_add(spillway_rearm_counter, 1, __ATOMIC_RELAXED);
      return spillway_is_marked(address) ? 0 : -value;
    }
  }
}
