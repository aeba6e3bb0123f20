#include "server/net/memory.h"

#include "sys/memory.h"

namespace server {

base::Expected<void> Memory::take(storage::BufferPool& pool, size_t bytes) {
  reset();
  if (bytes > storage::BufferPool::kMaxBytes) {
    auto mapped = sys::map_anonymous(bytes, "what a client sends");
    if (!mapped) return std::unexpected(mapped.error());
    bytes_ = {reinterpret_cast<std::byte*>(*mapped), bytes};
    pool_ = nullptr;
    return {};
  }
  bytes_ = pool.take(bytes);
  pool_ = &pool;
  if (bytes_.empty()) return base::failure(ENOMEM, "no memory for a client's ", bytes, " bytes");
  return {};
}

void Memory::reset() {
  if (bytes_.empty()) return;
  if (pool_ != nullptr)
    pool_->give(bytes_);
  else
    sys::unmap(bytes_.data(), bytes_.size());
  bytes_ = {};
}

}  // namespace server
