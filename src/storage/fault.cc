#include "storage/fault.h"

#include "base/check.h"
#include "base/statistics.h"
#include "storage/objects.h"
#include "sys/kernel.h"

namespace storage {
namespace {

uint64_t now_us() { return sys::monotonic_ns() / 1000; }

class FaultDevice final : public Device {
 public:
  FaultDevice(Device* inner, const FaultSchedule& schedule) : inner_(inner), schedule_(schedule) {
    capacity_bytes_ = inner->capacity_bytes();
    block_bytes_ = inner->block_bytes();
    discards_ = inner->discards();
    whereabouts_ = inner->whereabouts();
    copied_by_fork_ = inner->is_copied_by_fork();
    counted_ = false;
    base::TextRef(name_, sizeof name_) << "fault:seed=" << schedule.seed << ":[" << inner->name() << ']';
  }

  // Draws the next operation's fate.
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
  base::Expected<Queue*> do_open_queue(size_t depth) override;
  void do_close() override {
    inner_->close();
    free_object(this, 0);
  }

  Device* inner_;
  FaultSchedule schedule_;
  std::atomic<uint64_t> counts_[FaultSchedule::kMaxRules] = {};
};

class FaultQueue;

// One operation under way: the caller's Io, and the inner device's for it. A slot is free, in the inner
// queue (or gathered for it), or held back until its time has come.
struct Slot {
  Io inner;
  Io* outer = nullptr;
  FaultQueue* queue = nullptr;
  Slot* next = nullptr;  // of the free ones, or of the held ones
  int forced_error = 0;
  bool split = false;
  uint64_t polls_left = 0;
  uint64_t due_us = 0;
  iovec segments[kMaxSegments];
};

class FaultQueue final : public Queue {
 public:
  FaultQueue(FaultDevice& device, Queue* inner, size_t depth)
      : Queue(device, depth), fault_(device), inner_(inner) {
    Slot* slots = static_cast<Slot*>(extra_of(this));
    for (size_t i = 0; i < depth; ++i) put_free(*new (&slots[i]) Slot);
    gathered_ = reinterpret_cast<Io**>(slots + depth);
  }
  static uint64_t extra_bytes(size_t depth) { return depth * (sizeof(Slot) + sizeof(Io*)); }

 private:
  void do_start(Io& io) override {
    Fault fault = fault_.next_fault(io.operation);
    Slot& slot = take_free();
    slot.outer = &io;
    slot.forced_error = fault.error;
    slot.polls_left = fault.delay_polls;
    slot.split = fault.split && !fault.shortened;
    slot.due_us = fault.delay_us > 0 ? now_us() + fault.delay_us : 0;
    slot.inner = Io();
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
    prepare_inner(slot, length_bytes);
    gathered_[gathered_count_++] = &slot.inner;
  }

  void do_flush_submissions() override {
    if (gathered_count_ == 0) return;
    // The inner queue is as deep as this one, and holds nothing that this one does not.
    CHECK_EQ(inner_->submit({gathered_, gathered_count_}), gathered_count_);
    gathered_count_ = 0;
  }

  void do_poll(bool block) override {
    do_flush_submissions();
    for (;;) {
      if (block && held_ == nullptr)
        inner_->wait();
      else
        inner_->poll();
      release_held();
      if (!block || has_completed()) return;
      if (held_ != nullptr) sys::syscall(SYS_sched_yield);
    }
  }

  void do_close() override {
    inner_->device().close_queue(inner_);
    free_object(this, extra_bytes(depth()));
  }

  void prepare_inner(Slot& slot, uint64_t length_bytes) {
    const Io& outer = *slot.outer;
    Io& inner = slot.inner;
    inner.operation = outer.operation;
    inner.offset_bytes = outer.offset_bytes;
    inner.length_bytes = length_bytes;
    inner.segments = slot.segments;
    for (uint64_t left = length_bytes; left > 0 && inner.segment_count < outer.segment_count;) {
      iovec segment = outer.segments[inner.segment_count];
      if (segment.iov_len > left) segment.iov_len = left;
      left -= segment.iov_len;
      slot.segments[inner.segment_count++] = segment;
    }
    inner.owner = &slot;
    inner.done = [](Io& done) {
      Slot& own = *static_cast<Slot*>(done.owner);
      own.queue->hold(own);
    };
  }

  // From here on only the delay stands between the operation and its completion.
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
    Io& outer = *slot.outer;
    outer.error = slot.forced_error != 0 ? slot.forced_error : slot.inner.error;
    outer.transferred_bytes = slot.forced_error != 0 ? 0 : slot.inner.transferred_bytes;
    const bool may_go_on = slot.split && slot.inner.whole();
    put_free(slot);
    if (may_go_on)
      complete(outer);
    else
      complete_as_is(outer);
  }

  void put_free(Slot& slot) {
    slot.queue = this;
    slot.next = free_;
    free_ = &slot;
  }
  Slot& take_free() {
    CHECK(free_ != nullptr);
    Slot& slot = *free_;
    free_ = slot.next;
    return slot;
  }

  FaultDevice& fault_;
  Queue* inner_;
  Slot* free_ = nullptr;
  Slot* held_ = nullptr;
  Io** gathered_ = nullptr;
  size_t gathered_count_ = 0;
};

base::Expected<Queue*> FaultDevice::do_open_queue(size_t depth) {
  auto inner = inner_->open_queue(depth);
  if (!inner) return inner;
  depth = (*inner)->depth();
  auto queue =
      make_object<FaultQueue>(FaultQueue::extra_bytes(depth), "a storage queue", *this, *inner, depth);
  if (queue) return *queue;
  inner_->close_queue(*inner);
  return std::unexpected(queue.error());
}

}  // namespace

base::Expected<Device*> make_fault_device(Device* inner, const FaultSchedule& schedule) {
  CHECK_LE(schedule.rule_count, FaultSchedule::kMaxRules);
  auto device = make_object<FaultDevice>(0, "a fault device", inner, schedule);
  if (device) return *device;
  inner->close();
  return std::unexpected(device.error());
}

}  // namespace storage
