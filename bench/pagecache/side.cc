#include "side.h"

#include <sys/mman.h>

#include "base/statistics.h"
#include "sys/huge_pages.h"

namespace load {

std::span<std::byte> memory_of(uint64_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail(2, "there is no memory of " + std::to_string(bytes) + " bytes");
  sys::prefer_huge_pages(memory, bytes);
  return {static_cast<std::byte*>(memory), bytes};
}

DevicePages counted_pages() {
  return {.reads = base::statistics.storage_read_bytes.get() / kPageBytes,
          .writes = base::statistics.storage_write_bytes.get() / kPageBytes};
}

storage::Device& open_device(const Plan& plan) {
  auto device = storage::open_device(plan.place, {});
  if (!device) fail(2, device.error().message);
  if ((*device)->capacity_bytes() < plan.bytes)
    fail(2, std::string((*device)->name()) + " has only " + std::to_string((*device)->capacity_bytes()) +
                " bytes");
  return **device;
}

}  // namespace load
