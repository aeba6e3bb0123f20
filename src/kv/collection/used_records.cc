#include "kv/collection/used_records.h"

#include "sys/memory.h"

namespace kv {

base::Expected<void> UsedRecords::open(uint64_t grains) {
  bytes_ = (grains + 63) / 64 * sizeof(uint64_t);
  auto memory = sys::map_anonymous(bytes_, "what has been read of a cache");
  if (!memory) return std::unexpected(memory.error());
  words_ = reinterpret_cast<std::atomic<uint64_t>*>(*memory);
  return {};
}

void UsedRecords::close() {
  sys::unmap(words_, bytes_);
  words_ = nullptr;
}

}  // namespace kv
