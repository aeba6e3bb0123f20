#include "persist/model/model_device.h"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "base/check.h"
#include "sys/memory.h"

namespace persist {

class ModelDevice::Writer {
 public:
  uint32_t id = 0;
  double own_ns = 0;   // its time of the device
  double left_ns = 0;  // the wall's, when its last call ended
  // Until when it is active, by the wall. Relaxed: others only count.
  std::atomic<double> active_until_ns{0};
};

namespace {

// Returns at that time or later. Signals that come do not end it.
void sleep_until(uint64_t wall_ns) {
  const timespec end = {static_cast<time_t>(wall_ns / 1'000'000'000),
                        static_cast<long>(wall_ns % 1'000'000'000)};
  // The kernel may wake a thread later by its slack, to wake several at once; the thread's own slack is restored afterwards.
  const long slack_ns = sys::syscall(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0);
  sys::syscall(SYS_prctl, PR_SET_TIMERSLACK, 1, 0, 0, 0);
  while (sys::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == -EINTR) {
  }
  if (slack_ns > 0) sys::syscall(SYS_prctl, PR_SET_TIMERSLACK, slack_ns, 0, 0, 0);
}

}  // namespace

base::Expected<ModelDevice*> ModelDevice::make(const DeviceParameters& parameters, double dilation) {
  CHECK(dilation >= 1);
  // The times of two threads may differ by this much although both are at work.
  DeviceParameters dilated = parameters;
  dilated.active_ns = std::max(dilated.active_ns, 4 * kAheadWallNs / dilation);
  dilated.late_most_ns = kLateWallNs / dilation;
  const auto memory = sys::map_anonymous(sizeof(ModelDevice), "a modelled device");
  if (!memory) return std::unexpected(memory.error());
  return new (*memory) ModelDevice(dilated, dilation);
}

void ModelDevice::close() {
  this->~ModelDevice();
  sys::unmap(this, sizeof(ModelDevice));
}

ModelDevice::Writer* ModelDevice::open_writer() {
  static_assert(sizeof(Writer) <= sizeof(Place));
  sys::LockGuard scope(lock_);
  const uint32_t id = model_.open_writer();
  if (id == DeviceModel::kMaxWriters) return nullptr;
  writers_end_ = std::max(writers_end_, id + 1);
  const double now_ns = clock_.now_ns();
  return new (writers_[id].writer) Writer{.id = id, .own_ns = now_ns, .left_ns = now_ns};
}

void ModelDevice::close_writer(Writer* writer) {
  sys::LockGuard scope(lock_);
  model_.close_writer(writer->id);
  writer->active_until_ns.store(0, std::memory_order_relaxed);
}

uint32_t ModelDevice::active_writers(double now_ns) {
  uint32_t count = 0;
  for (uint32_t id = 0; id < writers_end_; ++id)
    count += writer_at(id).active_until_ns.load(std::memory_order_relaxed) >= now_ns;
  return count;
}

void ModelDevice::flush(Writer* writer, std::span<const uintptr_t> addresses) {
  const double now_ns = begin_call(*writer);
  writer->active_until_ns.store(now_ns + model_.parameters().active_ns, std::memory_order_relaxed);
  {
    sys::LockGuard scope(lock_);
    const uint32_t active = active_writers(now_ns);
    for (const uintptr_t address : addresses) {
      const uint64_t line = address / base::kLineBytes;
      writer->own_ns = model_.flush(writer->id, line, clean_.flush(line), writer->own_ns, active);
    }
  }
  end_call(*writer, false);
}

void ModelDevice::fence(Writer* writer) {
  begin_call(*writer);
  const bool is_active = writer->active_until_ns.load(std::memory_order_relaxed) != 0;
  if (is_active) writer->active_until_ns.store(kInFence, std::memory_order_relaxed);
  {
    sys::LockGuard scope(lock_);
    writer->own_ns = model_.fence(writer->id, writer->own_ns);
  }
  end_call(*writer, true);
  if (is_active)
    writer->active_until_ns.store(writer->left_ns + model_.parameters().active_ns, std::memory_order_relaxed);
}

void ModelDevice::compute(Writer* writer, double ns) {
  begin_call(*writer);
  writer->own_ns += ns;
  end_call(*writer, true);
}

DeviceStatistics ModelDevice::statistics() {
  sys::LockGuard scope(lock_);
  return model_.statistics();
}

// Returns the wall's time.
double ModelDevice::begin_call(Writer& writer) const {
  const double now_ns = clock_.now_ns();
  writer.own_ns += now_ns - writer.left_ns;
  return now_ns;
}

void ModelDevice::end_call(Writer& writer, bool may_sleep) const {
  writer.left_ns = clock_.now_ns();
  if (may_sleep &&
      (writer.own_ns - writer.left_ns) * clock_.dilation() >= static_cast<double>(kAheadWallNs)) {
    sleep_until(clock_.wall_ns(writer.own_ns));
    writer.left_ns = clock_.now_ns();
  }
  writer.own_ns =
      std::max(writer.own_ns, writer.left_ns - static_cast<double>(kLateWallNs) / clock_.dilation());
}

}  // namespace persist
