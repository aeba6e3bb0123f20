#include "storage/latency.h"

#include <algorithm>

#include "base/check.h"
#include "storage/objects.h"
#include "sys/kernel.h"

namespace storage {
namespace {

class LatencyDevice final : public Device {
 public:
  LatencyDevice(Device* inner, const LatencyParameters& parameters) : inner_(inner), model_(parameters) {
    capacity_bytes_ = inner->capacity_bytes();
    block_bytes_ = inner->block_bytes();
    discards_ = inner->discards();
    whereabouts_ = inner->whereabouts();
    copied_by_fork_ = inner->is_copied_by_fork();
    counted_ = false;
    base::TextRef(name_, sizeof name_)
        << "latency:us=" << parameters.mean_us << ",channels=" << parameters.channel_count << ":["
        << inner->name() << ']';
  }

  LatencyModel& model() { return model_; }

 private:
  base::Expected<Queue*> do_open_queue(size_t depth) override;
  void do_close() override {
    inner_->close();
    free_object(this, 0);
  }

  Device* inner_;
  LatencyModel model_;
};

class LatencyQueue;

// One request under way. It is timed (in the heap) until it is due, then late if the inner device has not done it.
struct LatencySlot {
  Io inner;
  Io* outer = nullptr;
  LatencyQueue* queue = nullptr;
  LatencySlot* next = nullptr;  // of the free ones
  uint64_t due_ns = 0;
  bool inner_done = false;
  bool late = false;
};

class LatencyQueue final : public Queue {
 public:
  LatencyQueue(LatencyDevice& device, Queue* inner, size_t depth)
      : Queue(device, depth), model_(device.model()), inner_(inner) {
    LatencySlot* slots = static_cast<LatencySlot*>(extra_of(this));
    for (size_t i = 0; i < depth; ++i) put_free(*new (&slots[i]) LatencySlot);
    timed_ = reinterpret_cast<LatencySlot**>(slots + depth);
    gathered_ = reinterpret_cast<Io**>(timed_ + depth);
  }
  static uint64_t extra_bytes(size_t depth) {
    return depth * (sizeof(LatencySlot) + sizeof(LatencySlot*) + sizeof(Io*));
  }

 private:
  static constexpr uint64_t kSpinNs = 80'000;

  void do_start(Io& io) override {
    LatencySlot& slot = take_free();
    const bool transfers = io.operation == Operation::kRead || io.operation == Operation::kWrite;
    slot.outer = &io;
    slot.inner_done = slot.late = false;
    slot.due_ns = model_.due_ns(sys::monotonic_ns(), transfers ? io.length_bytes : 0);
    timed_[timed_count_++] = &slot;
    std::push_heap(timed_, timed_ + timed_count_, is_later);

    slot.inner = Io();
    slot.inner.operation = io.operation;
    slot.inner.offset_bytes = io.offset_bytes;
    slot.inner.segments = io.segments;
    slot.inner.segment_count = io.segment_count;
    slot.inner.length_bytes = io.length_bytes;
    slot.inner.owner = &slot;
    slot.inner.done = [](Io& done) {
      LatencySlot& own = *static_cast<LatencySlot*>(done.owner);
      own.inner_done = true;
      if (!own.late) return;
      --own.queue->late_count_;
      own.queue->finish(own);
    };
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
      inner_->poll();
      finish_due();
      if (!block || has_completed()) return;
      if (timed_count_ == 0)
        inner_->wait();
      else if (late_count_ > 0)
        nap();  // either may be next
      else
        sleep_until_about(timed_[0]->due_ns);
    }
  }

  // What is late ends when the inner device is done with it; all else not before the earliest is due.
  base::Quiet do_quiet() override {
    if (gathered_count_ > 0 || late_count_ > 0 || timed_count_ == 0) return {};
    return {.until_ns = timed_[0]->due_ns};
  }

  void do_close() override {
    inner_->device().close_queue(inner_);
    free_object(this, extra_bytes(depth()));
  }

  static bool is_later(const LatencySlot* one, const LatencySlot* other) {
    return one->due_ns > other->due_ns;
  }

  void finish_due() {
    if (timed_count_ == 0) return;
    const uint64_t now_ns = sys::monotonic_ns();
    while (timed_count_ > 0 && timed_[0]->due_ns <= now_ns) {
      LatencySlot& slot = *timed_[0];
      std::pop_heap(timed_, timed_ + timed_count_, is_later);
      --timed_count_;
      if (slot.inner_done) {
        finish(slot);
      } else {
        slot.late = true;
        ++late_count_;
      }
    }
  }

  static void nap() {
    const timespec time = {0, 20'000};
    sys::syscall(SYS_nanosleep, &time, nullptr);
  }

  // Returns when it is due, a little before or at a signal.
  static void sleep_until_about(uint64_t due_ns) {
    const uint64_t now_ns = sys::monotonic_ns();
    if (due_ns <= now_ns + kSpinNs) {
      // Not sched_yield: on a busy machine that would be a time slice.
      while (sys::monotonic_ns() < due_ns) __builtin_ia32_pause();
      return;
    }
    const uint64_t end_ns = due_ns - kSpinNs;
    const timespec end = {static_cast<time_t>(end_ns / 1'000'000'000),
                          static_cast<long>(end_ns % 1'000'000'000)};
    sys::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr);
  }

  void finish(LatencySlot& slot) {
    Io& outer = *slot.outer;
    outer.error = slot.inner.error;
    outer.transferred_bytes = slot.inner.transferred_bytes;
    put_free(slot);
    complete_as_is(outer);
  }

  void put_free(LatencySlot& slot) {
    slot.queue = this;
    slot.next = free_;
    free_ = &slot;
  }
  LatencySlot& take_free() {
    CHECK(free_ != nullptr);
    LatencySlot& slot = *free_;
    free_ = slot.next;
    return slot;
  }

  LatencyModel& model_;
  Queue* inner_;
  LatencySlot* free_ = nullptr;
  LatencySlot** timed_ = nullptr;  // a heap; the first is due first
  size_t timed_count_ = 0;
  size_t late_count_ = 0;
  Io** gathered_ = nullptr;
  size_t gathered_count_ = 0;
};

base::Expected<Queue*> LatencyDevice::do_open_queue(size_t depth) {
  auto inner = inner_->open_queue(depth);
  if (!inner) return inner;
  depth = (*inner)->depth();
  auto queue =
      make_object<LatencyQueue>(LatencyQueue::extra_bytes(depth), "a storage queue", *this, *inner, depth);
  if (queue) return *queue;
  inner_->close_queue(*inner);
  return std::unexpected(queue.error());
}

}  // namespace

base::Expected<Device*> make_latency_device(Device* inner, const LatencyParameters& parameters) {
  CHECK(parameters.channel_count >= 1 && parameters.channel_count <= LatencyParameters::kMaxChannels);
  auto device = make_object<LatencyDevice>(0, "a latency device", inner, parameters);
  if (device) return *device;
  inner->close();
  return std::unexpected(device.error());
}

}  // namespace storage
