#include "storage/decorators/fault_schedule.h"

#include "base/check.h"
#include "base/mix.h"

namespace storage {
bool fault_fires(const FaultSchedule& schedule, size_t rule_index, uint64_t ordinal) {
  CHECK_LT(rule_index, schedule.rule_count);
  const FaultRule& rule = schedule.rules[rule_index];
  switch (rule.when) {
    case FaultRule::When::kAt: return ordinal == rule.n;
    case FaultRule::When::kFrom: return ordinal >= rule.n;
    case FaultRule::When::kEvery: return ordinal % rule.n == 0;
    case FaultRule::When::kChance:
      return base::mix(base::mix(schedule.seed + rule_index) + ordinal) % rule.m < rule.n;
  }
  return false;
}

void apply_fault(const FaultRule& rule, Fault& fault) {
  switch (rule.effect) {
    case FaultRule::Effect::kTorn: fault.torn = true; [[fallthrough]];
    case FaultRule::Effect::kError:
      if (fault.error == 0) fault.error = rule.error;
      break;
    case FaultRule::Effect::kShort: fault.shortened = true; break;
    case FaultRule::Effect::kSplit: fault.split = true; break;
    case FaultRule::Effect::kDelayPolls: fault.delay_polls += rule.amount; break;
    case FaultRule::Effect::kDelayUs: fault.delay_us += rule.amount; break;
  }
}

}  // namespace storage
