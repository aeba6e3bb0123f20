#include "kv/collection/readers.h"

#include "base/check.h"
#include "base/linked.h"
#include "sys/nap.h"

namespace kv {
namespace {

constexpr uint64_t kNapNs = 20'000;

}  // namespace

void Readers::add(Place& place) {
  sys::LockGuard scope(lock_);
  base::link(first_, place);
}

void Readers::remove(Place& place) {
  sys::LockGuard scope(lock_);
  base::unlink(first_, place);
  CHECK_EQ(place.counts[0].load(std::memory_order_relaxed), 0u);
  CHECK_EQ(place.counts[1].load(std::memory_order_relaxed), 0u);
}

void Readers::wait() {
  // Orders the caller's changes before the reads of the counts, in the single total order that Reading's additions are part of.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t phase = phase_.load(std::memory_order_relaxed) & 1;
  wait_for(phase ^ 1);
  phase_.fetch_add(1, std::memory_order_seq_cst);
  wait_for(phase);
}

void Readers::wait_for(uint32_t phase) {
  for (;;) {
    bool has_any = false;
    {
      sys::LockGuard scope(lock_);
      for (Place* place = first_; place != nullptr; place = place->next)
        // Pairs with the release of a reader that has ended.
        has_any = has_any || place->counts[phase].load(std::memory_order_seq_cst) != 0;
    }
    if (!has_any) return;
    sys::nap(kNapNs);
  }
}

}  // namespace kv
