// For tests: is the history of a store, which is its calls and what they returned, linearizable?
//
// It is if each call can have taken effect at one moment between its beginning and its end (Herlihy, Wing: Linearizability, TOPLAS 1990):
// if there is an order of the calls, one after the other, in which they return the same. A history is linearizable if the part of each key
// is, so each key is looked at alone (Horn, Kroening: Faster linearizability checking via P-compositionality, FORTE 2015). The search tries
// all orders that the times of the calls allow, but does not go on twice from the same set of calls and the same state (Wing, Gong 1993;
// Lowe: Testing for linearizability, 2017, section 3). Two rules leave it little to try: versions tell the order of puts, and a call that
// changes nothing, if it fits here, need not be tried at a later place.
//
// The model of a key: it has no value, or a value with a version.
//  1 a get returns the value and its version
//  2 a put that is done returns a version above all earlier ones of its key; the value has it from then on
//  3 whether a conditional change is done depends on the value that is there; if it is not done, it returns that value's version
//  4 a change that ended with an error was done at any moment from its beginning on, or never. Nobody may know its version until a later
//    call returns it
// After a crash, changes of the time before it are done no more: whoever records them gives those with errors the crash as their end.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kv/store.h"

namespace kv {

struct Call {
  enum class Kind : uint8_t { kGet, kPut, kRemove };
  static constexpr uint64_t kNever = ~uint64_t{0};

  uint32_t key = 0;
  Kind kind = Kind::kGet;
  When when = When::kAlways;
  uint64_t if_version = 0;                             // for kIfVersion
  bool is_known = true;                                // false: it ended with an error. Always true for gets
  Changed::Outcome outcome = Changed::Outcome::kDone;  // a get has kDone or kAbsent
  uint64_t value = 0;    // what was put or found. Not 0; no two puts have the same
  uint64_t version = 0;  // what it returned
  uint64_t began = 0;    // stamps of the history's clock
  uint64_t ended = kNever;
};

// Numbers the beginnings and ends of all threads' calls in the order in which they happen.
class StampClock {
 public:
  // Relaxed, so that the thread sanitizer does not believe that the store orders what only its test orders. On x86 the instruction is a
  // full barrier all the same, and calls of the store are not inlined, so that the compiler cannot move them past it.
  uint64_t stamp() { return stamp_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  std::atomic<uint64_t> stamp_{0};
};

// Returns "" if the calls, which may be given in any order, are linearizable from an empty store on. Otherwise returns a text for people:
// the key, how far an order goes, and the calls of which none can be next. Cost: little more than linear in the number of calls, but
// exponential in how many calls of a key overlap; gives up, and says so, after some millions of steps. REQUIRES: no two stamps are the same.
std::string violation_of(std::span<const Call> calls);

inline bool is_linearizable(std::span<const Call> calls) { return violation_of(calls).empty(); }

}  // namespace kv
