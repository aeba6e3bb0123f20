// ModelLines: a modelled device as the LineDevice of a domain, so that a runtime flushes to it. Each thread that comes is a writer of its own, as
// each core is.
//
// Thread contract: any number of threads. A thread uses one such device, and another one only after the first was closed. Only its own memory, which a
// child of fork must not use.
#pragma once
#include <atomic>

#include "persist/domain.h"
#include "persist/model/model_device.h"

namespace persist {

class ModelLines final : public LineDevice {
 public:
  // Errors: as ModelDevice::make.
  static base::Expected<ModelLines*> make(const DeviceParameters& parameters, double dilation);
  // REQUIRES: no thread is in it, or comes to it any more.
  void close();

  // For threads beyond DeviceModel::kMaxWriters the device costs nothing.
  void flush(const uintptr_t* lines, size_t count) override;
  void fence() override;

  // The lines of [address, address + bytes) are dirty.
  void stored(uintptr_t address, size_t bytes);
  // The calling thread does something that takes this long on the modelled machine. May sleep.
  void compute(double ns);

  ModelDevice& device() { return device_; }

 private:
  explicit ModelLines(ModelDevice& device);
  ~ModelLines() = default;

  ModelDevice::Writer* writer();

  ModelDevice& device_;
  const uint64_t number_;  // unique: a thread's writer may belong to a device that no longer exists
  std::atomic<uint32_t> writer_count_{0};
  std::atomic<ModelDevice::Writer*> writers_[DeviceModel::kMaxWriters] = {};
};

}  // namespace persist
