// The two software address translation caches of a thread (TriCache, section 3.3), as data and the steps on it: no I/O, no locks.
// In C and without vector registers, as the quick step (satc_quick.c) must be.
//
//   Direct    lines of {page, entry}, direct-mapped. Compiled code looks here (abi.inc, SatcThread)
//   Private   sets of kSatcWays ways, with a policy. What is here is pinned in the cache
//
// Invariants
//  1 a page in Direct is in Private. A page has one line, so Direct's references to a way number 0 or 1, as the line tells
//  2 a way whose page is in Direct is replaced only by a page that takes that very line. Such a victim always exists, as Direct
//    has no more lines than Private has ways: lines and sets are both chosen by the page number's low bits, so a set's pages have
//    at most kSatcWays lines between them, and one of these is the new page's
//  3 a line's second word is written while its first is 0, by its thread. Others may empty lines, by storing 0 in the first
//
// Thread contract: only the thread that owns it; any other thread only satc_empty_line.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { kSatcWays = 8, kSatcNoWay = -1 };

enum SatcPolicy { kSatcClock, kSatcLru, kSatcRandom };

struct SatcLine {
  uint64_t begin;  // address of the page; 0: none
  int64_t entry;   // its table entry: where its frame is
};

struct SatcSet {
  uint64_t begins[kSatcWays];  // 0: free
  int64_t entries[kSatcWays];
  uint32_t stamps[kSatcWays];  // clock: used since the hand came by; lru: when
  uint32_t hand;               // clock: the next way; lru: now
  uint32_t unused[7];
};

struct Satc {
  struct SatcLine* lines;  // null: there is no Direct
  uint64_t line_mask;      // of address >> kSatcLineShift
  struct SatcSet* sets;
  uint64_t set_mask;
  uint64_t page_bytes;
  uint32_t page_shift;
  uint32_t ways;     // of each set that are used
  bool has_private;  // false: sets are not searched for pages; they only say what is pinned
  bool counts;       // compiled code finds no line: everything is counted and timed here
  enum SatcPolicy policy;
  uint64_t random;
  uint64_t epoch;            // of invalidations (satc.h), when last read
  const void* slots;         // of the thread's first level: if it has others, a signal handler runs
  uint64_t overhead_cycles;  // of reading the clock

  uint64_t direct_hits, direct_cycles;  // with `counts` only
  uint64_t direct_misses;
  uint64_t private_hits, private_misses, private_cycles;
  uint64_t shared_accesses, shared_cycles;
  uint64_t bypasses;
};

// What compiled code sees of it (abi.inc): a thread_local of this name.
struct SatcThread {
  struct SatcLine* lines;
  uint64_t mask;
  uint64_t page_bytes;  // 0: compiled code finds no line
  struct Satc* satc;    // null: the thread has no caches yet, or none any more
};

// The time in cycles if accesses are timed, else 0; and the cycles since, minus the cost of reading the clock.
static inline uint64_t satc_cycles_now(const struct Satc* s) {
  return s->counts ? __builtin_ia32_rdtsc() : 0;
}
static inline uint64_t satc_cycles_since(const struct Satc* s, uint64_t start) {
  const uint64_t passed = satc_cycles_now(s) - start;
  return passed > s->overhead_cycles ? passed - s->overhead_cycles : 0;
}

static inline uint64_t satc_page_begin(const struct Satc* s, uint64_t address) {
  return address & -s->page_bytes;
}

enum { kSatcLineShiftInC = 8 };  // kSatcLineShift of abi.inc

static inline struct SatcLine* satc_line(const struct Satc* s, uint64_t address) {
  return (struct SatcLine*)((char*)s->lines + ((address >> kSatcLineShiftInC) & s->line_mask));
}

static inline bool satc_is_in_line(const struct Satc* s, uint64_t begin) {
  return s->lines != NULL && __atomic_load_n(&satc_line(s, begin)->begin, __ATOMIC_RELAXED) == begin;
}

static inline void satc_empty_line(struct SatcLine* line) {
  __atomic_store_n(&line->begin, 0, __ATOMIC_RELAXED);
}

// Puts a page that is in Private into Direct.
static inline void satc_promote(struct Satc* s, uint64_t begin, int64_t entry) {
  if (s->lines == NULL) return;
  struct SatcLine* line = satc_line(s, begin);
  satc_empty_line(line);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);  // a handler may come anywhere, and never return
  __atomic_store_n(&line->entry, entry, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(&line->begin, begin, __ATOMIC_RELAXED);
}

static inline struct SatcSet* satc_set(const struct Satc* s, uint64_t begin) {
  return &s->sets[(begin >> s->page_shift) & s->set_mask];
}

static inline int satc_find(const struct Satc* s, const struct SatcSet* set, uint64_t begin) {
  for (uint32_t way = 0; way < s->ways; ++way)
    if (set->begins[way] == begin) return (int)way;
  return kSatcNoWay;
}

static inline void satc_note_use(const struct Satc* s, struct SatcSet* set, int way) {
  if (s->policy == kSatcClock) set->stamps[way] = 1;
  if (s->policy == kSatcLru) set->stamps[way] = ++set->hand;
}

// The way for the page that begins at `begin`, which is in none yet: a free way, or one whose page is to be replaced.
static inline int satc_choose(struct Satc* s, struct SatcSet* set, uint64_t begin) {
  const int free = satc_find(s, set, 0);
  if (free != kSatcNoWay) return free;
  bool may_go[kSatcWays];
  for (uint32_t way = 0; way < s->ways; ++way)
    may_go[way] =
        !satc_is_in_line(s, set->begins[way]) || satc_line(s, set->begins[way]) == satc_line(s, begin);
  int chosen = kSatcNoWay;
  switch (s->policy) {
    case kSatcClock:
      for (uint32_t step = 0; step < 2 * s->ways + 1; ++step) {
        const uint32_t way = set->hand;
        set->hand = (way + 1) % s->ways;
        if (!may_go[way]) continue;
        if (set->stamps[way] == 0) return (int)way;
        set->stamps[way] = 0;
      }
      break;
    case kSatcLru:
      for (uint32_t way = 0; way < s->ways; ++way)
        if (may_go[way] && (chosen == kSatcNoWay || set->stamps[way] < set->stamps[chosen]))
          chosen = (int)way;
      break;
    case kSatcRandom:
      s->random ^= s->random << 13;
      s->random ^= s->random >> 7;
      s->random ^= s->random << 17;
      for (uint32_t i = 0; i < s->ways; ++i) {
        const uint32_t way = (uint32_t)((s->random >> 32) + i) % s->ways;
        if (may_go[way]) return (int)way;
      }
      break;
  }
  return chosen;
}

// Frees the way; its page is then in neither cache.
static inline void satc_clear_way(struct Satc* s, struct SatcSet* set, int way) {
  if (satc_is_in_line(s, set->begins[way])) satc_empty_line(satc_line(s, set->begins[way]));
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  set->begins[way] = 0;
}

static inline void satc_fill_way(struct Satc* s, struct SatcSet* set, int way, uint64_t begin,
                                 int64_t entry) {
  set->entries[way] = entry;
  set->begins[way] = begin;
  set->stamps[way] = 0;
  satc_note_use(s, set, way);
}
