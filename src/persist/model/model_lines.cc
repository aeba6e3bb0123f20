#include "persist/model/model_lines.h"

#include <new>

#include "sys/memory.h"

namespace persist {
namespace {

constinit std::atomic<uint64_t> made{0};
// Of the calling thread: the device that it came to last, and its writer there.
constinit thread_local uint64_t own_number = 0;
constinit thread_local ModelDevice::Writer* own_writer = nullptr;

}  // namespace

ModelLines::ModelLines(ModelDevice& device)
    : device_(device), number_(made.fetch_add(1, std::memory_order_relaxed) + 1) {}

base::Expected<ModelLines*> ModelLines::make(const DeviceParameters& parameters, double dilation) {
  const auto device = ModelDevice::make(parameters, dilation);
  if (!device) return std::unexpected(device.error());
  const auto memory = sys::map_anonymous(sizeof(ModelLines), "a modelled device's writers");
  if (memory) return new (*memory) ModelLines(**device);
  (*device)->close();
  return std::unexpected(memory.error());
}

void ModelLines::close() {
  for (std::atomic<ModelDevice::Writer*>& writer : writers_)
    if (auto* const open = writer.load(std::memory_order_relaxed); open != nullptr)
      device_.close_writer(open);
  device_.close();
  this->~ModelLines();
  sys::unmap(this, sizeof(ModelLines));
}

ModelDevice::Writer* ModelLines::writer() {
  if (own_number == number_) [[likely]]
    return own_writer;
  own_number = number_;
  own_writer = device_.open_writer();
  if (own_writer != nullptr)
    writers_[writer_count_.fetch_add(1, std::memory_order_relaxed)].store(own_writer,
                                                                          std::memory_order_relaxed);
  return own_writer;
}

void ModelLines::flush(const uintptr_t* lines, size_t count) {
  if (ModelDevice::Writer* const own = writer(); own != nullptr) device_.flush(own, {lines, count});
}

void ModelLines::fence() {
  if (ModelDevice::Writer* const own = writer(); own != nullptr) device_.fence(own);
}

void ModelLines::stored(uintptr_t address, size_t bytes) {
  for (uintptr_t line = base::round_down(address, base::kLineBytes); line < address + bytes;
       line += base::kLineBytes)
    device_.stored(line);
}

void ModelLines::compute(double ns) {
  if (ModelDevice::Writer* const own = writer(); own != nullptr) device_.compute(own, ns);
}

}  // namespace persist
