#include "spill/budget.h"

#include <errno.h>

#include "base/log.h"
#include "base/probe.h"
#include "spill/abi.h"
#include "spill/mapped_pages.h"
#include "spill/pressure_plan.h"
#include "spill/published.h"
#include "spill/runtime.h"
#include "spill/satc.h"
#include "spill/standing_pins.h"
#include "sys/kernel.h"
#include "sys/memory.h"
#include "sys/memory_pressure.h"

namespace spill {
namespace {

// Held by whoever changes the budget.
constinit sys::Mutex budget_mutex;
constinit PressurePlan plan;  // guarded by it
constinit sys::MemoryPressure pressure;
constinit uint64_t answered_number = 0;

Published& published() { return *reinterpret_cast<Published*>(kPublished); }

// How many frames may be held in any one partition.
uint64_t held_frames() {
  constexpr uint64_t kHeldPerThread = 4;
  return (thread_count() + loop_task_count.load(std::memory_order_relaxed)) * kHeldPerThread +
         kept_page_count() + satc_most_pinned_in_partition();
}

// REQUIRES: budget_mutex.
base::Expected<void> change(uint64_t bytes) {
  const uint64_t before_bytes = runtime.cache->budget().limit_bytes();
  if (auto set = runtime.cache->set_memory(bytes, held_frames(), standing_pin_count()); !set) return set;
  adjust_mapped_pages();
  base::statistics.memory_budget_bytes.set(bytes);
  base::probes::budget(before_bytes, bytes);
  return {};
}

void answer_request() {
  BudgetRequest& request = published().budget_request;
  const uint64_t number = __atomic_load_n(&request.number, __ATOMIC_ACQUIRE);
  if (number == answered_number) return;
  answered_number = number;
  const uint64_t bytes = __atomic_load_n(&request.bytes, __ATOMIC_RELAXED);
  BudgetAnswer& answer = published().budget_answer;
  answer.was_bytes = runtime.cache->budget().limit_bytes();
  auto set = set_memory(bytes);
  answer.error = set ? 0 : set.error().number;
  answer.bytes = runtime.cache->budget().limit_bytes();
  base::TextRef text(answer.message, sizeof answer.message);
  if (!set) text << set.error().message;
  __atomic_store_n(&answer.number, number, __ATOMIC_RELEASE);
}

void heed_pressure() {
  if (!pressure.is_open()) return;
  const bool is_short = pressure.take();
  if (is_short) base::statistics.memory_pressures.add();
  sys::LockGuard guard(budget_mutex);
  if (!is_short && !plan.is_lowered()) return;
  const uint64_t now = runtime.cache->budget().limit_bytes();
  const uint64_t wanted = plan.step(is_short, sys::monotonic_ns(),
                                    runtime.cache->least_memory_bytes(held_frames(), standing_pin_count()));
  if (wanted == now) return;
  if (!change(wanted)) {
    plan.refused(now);
    return;
  }
  (wanted < now ? base::statistics.memory_budget_lowered : base::statistics.memory_budget_raised).add();
}

}  // namespace

base::Expected<void> set_memory(uint64_t bytes) {
  base::Options asked;
  asked.memory = bytes;
  if (bytes == 0) return base::failure(EINVAL, "memory: a budget of 0 bytes is too small");
  if (auto checked = base::check_options(asked, sys::machine_memory_bytes()); !checked) return checked;
  sys::LockGuard guard(budget_mutex);
  if (auto set = change(bytes); !set) return set;
  plan.ask(bytes);
  return {};
}

void begin_budget() {
  {
    sys::LockGuard guard(budget_mutex);
    if (plan.asked_bytes() == 0) plan.ask(runtime.cache->budget().limit_bytes());
  }
  pressure.close();
  if (runtime.options.pressure == 0) return;
  auto opened = pressure.open();
  if (!opened && !runtime.is_fork_child.load(std::memory_order_relaxed))
    base::log({.name = "pressure_unknown", .fields = {{"error", opened.error().number}}},
              "pressure: ", opened.error().message, "; the budget stays what it is");
}

void freeze_budget() { budget_mutex.lock(); }
void thaw_budget() { budget_mutex.unlock(); }

void budget_step() {
  answer_request();
  heed_pressure();
}

}  // namespace spill

// include/spillway/spill.h. Returns 0 or an errno.
SPILL_EXPORT int __spillway_set_memory(uint64_t bytes);
int __spillway_set_memory(uint64_t bytes) {
  if (!spill::runtime.started.load(std::memory_order_acquire)) return EAGAIN;
  spill::InRuntime inside;
  auto set = spill::set_memory(bytes);
  return set ? 0 : set.error().number;
}
