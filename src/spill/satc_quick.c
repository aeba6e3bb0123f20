// The quick step of a translation by SATC: for a page that is in Private and not in Direct; if everything is counted, also for a page
// in Direct. In C with the integer registers only, as translate_quick.c is, for the same reason.
// Cost: some 30 instructions besides the thunk's pushes and pops.
#include <stdint.h>

#include "spill/satc_levels.h"

#define SPILLWAY_NUMBER(name, value, doc) static const uint64_t k##name = value;
#include "spillway/abi.inc"
_Static_assert(kSatcLineShiftInC == 8, "as compiled code has it");

extern __thread struct SatcThread __spillway_satc __attribute__((tls_model("initial-exec")));
extern __thread void* __spillway_slots __attribute__((tls_model("initial-exec")));

// Incremented by each invalidation (satc.h).
uint64_t spillway_satc_epoch;

// The page's entry; 0 when the blocking step is needed.
int64_t spillway_satc_quick(uint64_t address);
int64_t spillway_satc_quick(uint64_t address) {
  struct Satc* s = __spillway_satc.satc;
  // In a signal handler nothing is replaced: the interrupted code may be using any page.
  if (s == NULL || __spillway_slots != s->slots) return 0;
  if (__atomic_load_n(&spillway_satc_epoch, __ATOMIC_ACQUIRE) != s->epoch) return 0;
  const uint64_t start = satc_cycles_now(s);
  const uint64_t begin = satc_page_begin(s, address);
  if (s->counts && satc_is_in_line(s, begin)) {
    const int64_t entry = satc_line(s, begin)->entry;
    ++s->direct_hits;
    s->direct_cycles += satc_cycles_since(s, start);
    return entry;
  }
  if (!s->has_private) return 0;
  struct SatcSet* set = satc_set(s, begin);
  const int way = satc_find(s, set, begin);
  if (way == kSatcNoWay) return 0;
  satc_note_use(s, set, way);
  const int64_t entry = set->entries[way];
  satc_promote(s, begin, entry);
  // An invalidation increments the epoch, and then empties lines: either it sees this line, or the new epoch is seen here.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (__atomic_load_n(&spillway_satc_epoch, __ATOMIC_RELAXED) != s->epoch) {
    if (s->lines != NULL) satc_empty_line(satc_line(s, begin));
    return 0;
  }
  if (s->lines != NULL) ++s->direct_misses;
  ++s->private_hits;
  if (s->counts) s->private_cycles += satc_cycles_since(s, start);
  return entry;
}
