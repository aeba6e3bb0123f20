#include "server/front/memory_bound.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "sys/memory.h"

namespace server {
namespace {

// How much memory the process has. A sanitizer itself needs several times what the rest has, so under one only the store's records
// are counted.
uint64_t counted_bytes([[maybe_unused]] const kv::Store& store) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return store.memory_in_use();
#else
  return sys::resident_bytes();
#endif
}

}  // namespace

uint64_t MemoryBound::held_back() const { return std::max<uint64_t>(bytes_ / 64, 2 << 20); }

base::Expected<void> MemoryBound::open(kv::Store& store, uint64_t bytes) {
  store_ = &store;
  bytes_ = bytes;
  const uint64_t used = counted_bytes(store) + held_back();
  if (used > bytes)
    return base::failure(EINVAL, "--memory ", base::Bytes{bytes}, " is too little for the ",
                         store.counts().index.entries, " items of the store; give at least ",
                         base::Bytes{used + used / 4});
  step();
  ends_.store(false, std::memory_order_relaxed);
  auto started =
      sys::start_thread([](void* self) { static_cast<MemoryBound*>(self)->keep(); }, this, "memory-bound");
  if (!started) return std::unexpected(started.error());
  thread_ = *started;
  has_thread_ = true;
  return {};
}

void MemoryBound::close() {
  if (!has_thread_) return;
  ends_.store(true, std::memory_order_release);
  end_.notify_all();
  sys::join_thread(thread_);
  has_thread_ = false;
}

void MemoryBound::keep() {
  for (;;) {
    const uint32_t key = end_.prepare();
    if (ends_.load(std::memory_order_acquire)) return end_.cancel();
    end_.wait(key, kStepNs);
    step();
  }
}

void MemoryBound::step() {
  const uint64_t resident = counted_bytes(*store_), kept = store_->memory_in_use();
  const uint64_t others = (resident > kept ? resident - kept : 0) + held_back();
  store_->set_memory(others < bytes_ ? bytes_ - others : 0);
  const bool is_exceeded = resident > bytes_ && others > bytes_;
  if (is_exceeded && !is_exceeded_)
    base::log({.name = "memory_exceeded", .fields = {{"resident_bytes", resident}, {"memory_bytes", bytes_}}},
              "server: items and connections need ", base::Bytes{resident}, ", more than the ",
              base::Bytes{bytes_}, " of --memory; nothing is kept in memory of values");
  is_exceeded_ = is_exceeded;
}

}  // namespace server
