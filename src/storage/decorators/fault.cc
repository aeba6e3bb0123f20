#include "storage/decorators/fault.h"

#include "base/check.h"
#include "base/statistics.h"
#include "storage/decorators/decorator.h"
#include "sys/kernel.h"

namespace storage {
namespace {

uint64_t now_us() { return sys::monotonic_ns() / 1000; }

class FaultQueue;

class FaultDevice final : public Decorator<FaultDevice, FaultQueue> {
 public:
  FaultDevice(Device* inner, const FaultSchedule& schedule) : Decorator(inner), schedule_(schedule) {
    base::TextRef(name_, sizeof name_) << "fault:seed=" << schedule.seed << ":[" << inner->name() << ']';
  }

  // Decides what happens to the next operation.
  Fault next_fault(Operation operation) {
    Fault fault;
    for (size_t i = 0; i < schedule_.rule_count; ++i) {
      const FaultRule& rule = schedule_.rules[i];
      if ((rule.operations & operation_bit(operation)) == 0) continue;
      // Relaxed: only the number matters.
      uint64_t ordinal = counts_[i].fetch_add(1, std::memory_order_relaxed) + 1;
      if (fault_fires(schedule_, i, ordinal)) apply_fault(rule, fault);
    }
    return fault;
  }

 private:
  FaultSchedule schedule_;
  std::atomic<uint64_t> counts_[FaultSchedule::kMaxRules] = {};
};

// One operation under way. Its slot is gathered for the inner queue, or in it, and then held back until its delay is over.
struct Slot : DecoratorSlot<FaultQueue, Slot> {  // `next` also links the slots that are held back
  int forced_error = 0;
  bool split = false;
  uint64_t polls_left = 0;
  uint64_t due_us = 0;
  iovec segments[kMaxSegments];
};

class FaultQueue final : public DecoratorQueue<FaultQueue, Slot> {
 public:
  FaultQueue(FaultDevice& device, Queue* inner, size_t depth)
      : DecoratorQueue(device, inner, depth, this + 1), fault_(device) {}

  void inner_done(Slot& slot) { hold(slot); }

 private:
  void do_start(Io& io) override {
    Fault fault = fault_.next_fault(io.operation);
    Slot& slot = take_slot(io);
    slot.forced_error = fault.error;
    slot.polls_left = fault.delay_polls;
    slot.split = fault.split && !fault.shortened;
    slot.due_us = fault.delay_us > 0 ? now_us() + fault.delay_us : 0;
    if (fault.error != 0) base::statistics.storage_errors.add();

    bool transfers = io.operation == Operation::kRead || io.operation == Operation::kWrite;
    bool cut = transfers && (fault.shortened || fault.torn || fault.split);
    uint64_t length_bytes = cut ? io.length_bytes / 2 & ~uint64_t{fault_.block_bytes() - 1} : io.length_bytes;
    if (slot.split && length_bytes == 0) length_bytes = io.length_bytes;
    bool reaches_medium = (fault.error == 0 || fault.torn) && !(cut && length_bytes == 0);
    if (!reaches_medium) {
      hold(slot);
      return;
    }
    shorten(slot, length_bytes);
    gather(slot);
  }

  void do_poll(bool block) override {
    do_flush_submissions();
    for (;;) {
      if (block && held_ == nullptr)
        inner().wait();
      else
        inner().poll();
      release_held();
      if (!block || has_completed()) return;
      if (held_ != nullptr) sys::syscall(SYS_sched_yield);
    }
  }

  base::Quiet do_quiet() override {
    base::Quiet quiet = DecoratorQueue::do_quiet();
    for (const Slot* slot = held_; slot != nullptr; slot = slot->next)
      quiet.no_longer_than(slot->polls_left > 0 ? 0 : slot->due_us * 1000);
    return quiet;
  }

  // Makes the inner Io ask for the front of what the caller wants.
  static void shorten(Slot& slot, uint64_t length_bytes) {
    const Io& outer = *slot.outer;
    Io& inner = slot.inner;
    inner.length_bytes = length_bytes;
    inner.segments = slot.segments;
    inner.segment_count = 0;
    for (uint64_t left = length_bytes; left > 0 && inner.segment_count < outer.segment_count;) {
      iovec segment = outer.segments[inner.segment_count];
      if (segment.iov_len > left) segment.iov_len = left;
      left -= segment.iov_len;
      slot.segments[inner.segment_count++] = segment;
    }
  }

  // Holds the operation back: it completes as soon as its delay is over.
  void hold(Slot& slot) {
    slot.next = held_;
    held_ = &slot;
  }

  void release_held() {
    Slot* slot = held_;
    held_ = nullptr;
    while (slot != nullptr) {
      Slot* next = slot->next;
      if (slot->polls_left > 0) {
        --slot->polls_left;
        hold(*slot);
      } else if (slot->due_us != 0 && now_us() < slot->due_us) {
        hold(*slot);
      } else {
        finish(*slot);
      }
      slot = next;
    }
  }

  void finish(Slot& slot) {
    const bool may_go_on = slot.split && slot.inner.whole();
    const int forced_error = slot.forced_error;
    Io& outer = take_result(slot);
    if (forced_error != 0) {
      outer.error = forced_error;
      outer.transferred_bytes = 0;
    }
    if (may_go_on)
      complete(outer);
    else
      complete_as_is(outer);
  }

  FaultDevice& fault_;
  Slot* held_ = nullptr;
};

}  // namespace

base::Expected<Device*> make_fault_device(Device* inner, const FaultSchedule& schedule) {
  CHECK_LE(schedule.rule_count, FaultSchedule::kMaxRules);
  return make_decorator<FaultDevice>("a fault device", inner, schedule);
}

}  // namespace storage
