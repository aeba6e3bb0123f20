// ModelDevice: a DeviceModel that threads wait for. Its time is dilated: all that a thread waits for takes `dilation` times as long as on the
// modelled device, so that dozens of threads contend for it on a few cores without keeping those busy. What it reports is a model's.
//
// Each writer has its own time of the device. What it flushes, fences and computes moves that on; so does, by the wall's clock, what it does
// between its calls. It sleeps once its time is ahead of the wall's by kAheadWallNs. A sleep that took too long is made up for by skipping the
// next ones: rates are right on average, single waits only to about kAheadWallNs plus what the kernel takes to wake a thread.
//
// A flush and a fence cost a core some microsecond. Two cores keep up with the default device at a dilation of 50 if there are 16 lines and more
// before a fence, at 100 with 4; with less, few writers come out too slow and many too fast. A rate is to be measured over many times kLateWallNs,
// since that much idle time of the device is still used for late calls when more writers begin.
//
// A writer is active while it is in a fence, and for a while after it has flushed, by the wall's clock: its own time tells nothing of others'.
//
// Invariants
//  1 when fence() or compute() returns, the writer's time is ahead of the wall's by less than kAheadWallNs, and behind it by at most
//    kLateWallNs: beyond that lost time is not made up
//  2 the model is called under one lock, with writers' own times: that is what it calls late
//
// Thread contract: any number of threads; a Writer is of one at a time. Only its own memory, which a child of fork must not use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/ids.h"
#include "persist/model/clean_lines.h"
#include "persist/model/device_model.h"
#include "persist/model/dilated_clock.h"
#include "sys/lock.h"

namespace persist {

class ModelDevice {
 public:
  // A sleep costs a core some 10 us: one stands for many fences. The kernel runs another thread for some 3 ms before it comes back to one.
  static constexpr uint64_t kAheadWallNs = 100'000;
  static constexpr uint64_t kLateWallNs = 4'000'000;

  class Writer;

  // Parameters that compare writers' times are enlarged as far as `dilation` needs it. REQUIRES: what DeviceModel does; dilation >= 1. Errors: ENOMEM.
  static base::Expected<ModelDevice*> make(const DeviceParameters& parameters, double dilation);
  // REQUIRES: no writer is open.
  void close();

  // Makes a writer for a thread; its time begins as the wall's. Null: there are DeviceModel::kMaxWriters already.
  Writer* open_writer();
  // What it has flushed and not fenced is not fenced any more.
  void close_writer(Writer* writer);

  // Reports a store: the line of this address is dirty. A line that has been flushed is cheap to flush again until a store to it is reported.
  // Cost: a load, and a store if it was clean.
  void stored(uintptr_t address) { clean_.stored(address / base::kLineBytes); }
  // Flushes the lines of these addresses. Does not sleep.
  void flush(Writer* writer, std::span<const uintptr_t> addresses);
  // Returns when the device has taken what the writer has flushed. May sleep.
  void fence(Writer* writer);
  // The writer's thread has done something that takes this long on the modelled machine. May sleep.
  void compute(Writer* writer, double ns);

  const DilatedClock& clock() const { return clock_; }
  DeviceStatistics statistics();

 private:
  ModelDevice(const DeviceParameters& parameters, double dilation) : clock_(dilation), model_(parameters) {}
  ~ModelDevice() = default;

  static constexpr double kInFence = 1e300;  // as active_until_ns: until the fence has ended

  double begin_call(Writer& writer) const;
  void end_call(Writer& writer, bool may_sleep) const;
  Writer& writer_at(uint32_t id) { return *reinterpret_cast<Writer*>(writers_[id].writer); }
  uint32_t active_writers(double now_ns);

  const DilatedClock clock_;
  CleanLines clean_;
  sys::Mutex lock_;  // of the rest
  DeviceModel model_;
  struct alignas(base::kLineBytes) Place {
    std::byte writer[base::kLineBytes];
  };
  Place writers_[DeviceModel::kMaxWriters];
  uint32_t writers_end_ = 0;
};

}  // namespace persist
