// For tests. History: what calls of a store said, and whether there is an order of them, one after the other, that says the same.
//
// Each call took effect at one moment between its beginning and its end, or the store is wrong (Herlihy, Wing: Linearizability,
// TOPLAS 1990). A history is such if the part of each key is, so keys are looked at alone (Horn, Kroening: Faster linearizability
// checking via P-compositionality, FORTE 2015). The search takes calls in all orders that their times allow, and no two ways
// to the same set of calls and the same state (Wing, Gong 1993; Lowe: Testing for linearizability, 2017, section 3). Versions tell
// the order of puts, and what has changed nothing need not be tried later: with both it is rarely in doubt.
//
// The model of a key: there is no value, or a value and its version.
//  1 a get tells the value and its version
//  2 a put that is done has a version above all earlier ones of its key, which the value has from then on
//  3 whether a conditional change is done depends on what is there; one that is not done tells the version of that
//  4 a change that ended with an error was done at any moment from its beginning on, or never. Its version may be known to nobody
//    until a call tells it
// After a crash nothing of before is done any more: what calls with errors did, they did until then, which is their end.
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
  uint64_t if_version = 0;                             // of kIfVersion
  bool is_known = true;                                // else it ended with an error; not of gets
  Changed::Outcome outcome = Changed::Outcome::kDone;  // of a get: kDone or kAbsent
  uint64_t value = 0;    // that was put, or that a get found. No two puts have the same; not 0
  uint64_t version = 0;  // that it said
  uint64_t began = 0;    // stamps of its clock
  uint64_t ended = kNever;
};

// The order of what all threads do.
class StampClock {
 public:
  // Relaxed, so that the thread sanitizer does not take for an order of the store what is one of its test. On x86 the
  // instruction orders all the same, and calls of the store are not inlined.
  uint64_t stamp() { return stamp_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  std::atomic<uint64_t> stamp_{0};
};

// Empty: the calls, in any order, are linearizable, from a store without values on. Else a text for people: the key, how far an order goes,
// and the calls of which none can be next. Cost: little more than linear in calls, but exponential in how many of a key are at
// the same time; it gives up, and says so, after some millions of steps. REQUIRES: no two stamps are the same.
std::string violation_of(std::span<const Call> calls);

inline bool is_linearizable(std::span<const Call> calls) { return violation_of(calls).empty(); }

}  // namespace kv
