#include "storage/decorators/latency.h"

#include <algorithm>

#include "base/check.h"
#include "storage/decorators/decorator.h"
#include "sys/kernel.h"
#include "sys/nap.h"

namespace storage {
namespace {

class LatencyQueue;

class LatencyDevice final : public Decorator<LatencyDevice, LatencyQueue> {
 public:
  LatencyDevice(Device* inner, const LatencyParameters& parameters)
      : Decorator(inner), model_(parameters), sleeps_(parameters.sleeps) {
    base::TextRef(name_, sizeof name_)
        << "latency:us=" << parameters.mean_us << ",channels=" << parameters.channel_count << ":["
        << inner->name() << ']';
  }

  LatencyModel& model() { return model_; }
  bool sleeps() const { return sleeps_; }

 private:
  LatencyModel model_;
  const bool sleeps_;
};

// One request under way. Until it is due it is timed, in the heap; afterwards it is late if the inner device has not completed it.
struct LatencySlot : DecoratorSlot<LatencyQueue, LatencySlot> {
  uint64_t due_ns = 0;
  bool inner_done = false;
  bool late = false;
};

class LatencyQueue final : public DecoratorQueue<LatencyQueue, LatencySlot> {
 public:
  LatencyQueue(LatencyDevice& device, Queue* inner, size_t depth)
      : DecoratorQueue(device, inner, depth, this + 1), model_(device.model()), sleeps_(device.sleeps()) {
    const auto extra = reinterpret_cast<char*>(this + 1);
    timed_ = reinterpret_cast<LatencySlot**>(extra + DecoratorQueue::extra_bytes(depth));
  }
  static uint64_t extra_bytes(size_t depth) {
    return DecoratorQueue::extra_bytes(depth) + depth * sizeof(LatencySlot*);
  }

  void inner_done(LatencySlot& slot) {
    slot.inner_done = true;
    if (!slot.late) return;
    --late_count_;
    complete_as_is(take_result(slot));
  }

 private:
  static constexpr uint64_t kSpinNs = 80'000;
  static constexpr uint64_t kNapNs = 20'000;

  void do_start(Io& io) override {
    LatencySlot& slot = take_slot(io);
    const bool transfers = io.operation == Operation::kRead || io.operation == Operation::kWrite;
    slot.inner_done = slot.late = false;
    slot.due_ns = model_.due_ns(sys::monotonic_ns(), transfers ? io.length_bytes : 0);
    timed_[timed_count_++] = &slot;
    std::push_heap(timed_, timed_ + timed_count_, is_later);
    gather(slot);
  }

  void do_poll(bool block) override {
    do_flush_submissions();
    for (;;) {
      inner().poll();
      finish_due();
      if (!block || has_completed()) return;
      if (timed_count_ == 0)
        inner().wait();
      else if (late_count_ > 0)
        sys::nap(kNapNs);  // a late one may end first, or the next one may become due
      else
        wait_until_about(timed_[0]->due_ns);
    }
  }

  // Late requests complete when the inner device completes them; the others no earlier than the earliest is due.
  base::Quiet do_quiet() override {
    base::Quiet quiet = DecoratorQueue::do_quiet();
    if (timed_count_ > 0) quiet.no_longer_than(timed_[0]->due_ns);
    return quiet;
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
        complete_as_is(take_result(slot));
      } else {
        slot.late = true;
        ++late_count_;
      }
    }
  }

  // Returns when it is due, a little before that, or when a signal comes.
  void wait_until_about(uint64_t due_ns) const {
    const uint64_t now_ns = sys::monotonic_ns();
    if (!sleeps_ && due_ns <= now_ns + kSpinNs) {
      // Not sched_yield: on a busy machine that would be a time slice.
      while (sys::monotonic_ns() < due_ns) __builtin_ia32_pause();
      return;
    }
    const uint64_t end_ns = sleeps_ ? due_ns : due_ns - kSpinNs;
    const timespec end = {static_cast<time_t>(end_ns / 1'000'000'000),
                          static_cast<long>(end_ns % 1'000'000'000)};
    sys::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr);
  }

  LatencyModel& model_;
  const bool sleeps_;
  LatencySlot** timed_ = nullptr;  // a heap; the first element is due first
  size_t timed_count_ = 0;
  size_t late_count_ = 0;
};

}  // namespace

base::Expected<Device*> make_latency_device(Device* inner, const LatencyParameters& parameters) {
  CHECK(parameters.channel_count >= 1 && parameters.channel_count <= LatencyParameters::kMaxChannels);
  return make_decorator<LatencyDevice>("a latency device", inner, parameters);
}

}  // namespace storage
