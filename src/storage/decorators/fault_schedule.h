// FaultSchedule: which operations a fault device harms, and how. Pure: the same schedule and the same order of operations always give the
// same faults.
//
// Each rule counts the operations of its kinds, from 1, and fires on some of them:
//   kAt     on the n-th            "@5"
//   kFrom   on the n-th and later  "@5+"   (a device that filled up)
//   kEvery  on every n-th          "%5"
//   kChance on n of m, at random   "1/1000"; drawn from seed, the rule's number and the count alone
#pragma once
#include <cstddef>
#include <cstdint>

#include "storage/device.h"

namespace storage {

inline constexpr uint8_t kAllOperations = 0xf;
constexpr uint8_t operation_bit(Operation operation) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(operation));
}

struct FaultRule {
  enum class When : uint8_t { kAt, kFrom, kEvery, kChance };
  enum class Effect : uint8_t {
    kError,  // fails with `error`; the medium is not touched
    kTorn,   // writes the first half, then fails with `error`
    kShort,  // transfers the first half in whole blocks (nothing of a single block), as if the medium ended there
    kSplit,  // transfers the first half, then the rest as an operation of its own, to which rules apply again
    kDelayPolls,  // completes `amount` polls later than it would
    kDelayUs,     // completes no earlier than `amount` microseconds after submission
  };
  uint8_t operations = kAllOperations;  // operation_bit()s
  Effect effect = Effect::kError;
  When when = When::kEvery;
  int error = 0;
  uint64_t n = 1;       // at least 1
  uint64_t m = 1;       // kChance: n of m; n <= m
  uint64_t amount = 0;  // of the delays
};

struct FaultSchedule {
  static constexpr size_t kMaxRules = 16;
  uint64_t seed = 1;
  size_t rule_count = 0;
  FaultRule rules[kMaxRules];

  // REQUIRES: rule_count < kMaxRules.
  void add(const FaultRule& rule) { rules[rule_count++] = rule; }
};

// What happens to one operation: the effects of all rules that fire on it.
struct Fault {
  int error = 0;
  bool torn = false;
  bool shortened = false;
  bool split = false;
  uint64_t delay_polls = 0;
  uint64_t delay_us = 0;
};

// Does rule `rule_index` fire on the `ordinal`-th (from 1) of its operations?
bool fault_fires(const FaultSchedule& schedule, size_t rule_index, uint64_t ordinal);
// Adds the rule's effect. Of several errors the first one counts; delays add up.
void apply_fault(const FaultRule& rule, Fault& fault);

}  // namespace storage
