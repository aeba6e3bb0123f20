// MemoryBound: what the process uses stays within a bound. All but one of its parts grow as they must, by keys and connections; what is left
// is for records that the store keeps in memory (kv/tier/memory_tier.h), which give way.
//
// A thread of its own looks every kStepNs, by what the kernel says is resident. In between others may grow by what is held back for them.
//
// Thread contract: of one thread.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/error.h"
#include "kv/store.h"
#include "sys/lock.h"
#include "sys/threads.h"

namespace server {

class MemoryBound {
 public:
  static constexpr uint64_t kBytesLeast = uint64_t{32} << 20;
  static constexpr uint64_t kStepNs = 20'000'000;

  MemoryBound() = default;
  ~MemoryBound() { close(); }
  MemoryBound(const MemoryBound&) = delete;
  MemoryBound& operator=(const MemoryBound&) = delete;

  // The store was opened with `bytes` as its memory_bytes, and outlives it. Errors: EINVAL: what is in use besides is more already; with how
  // much it takes. EAGAIN: no thread.
  base::Expected<void> open(kv::Store& store, uint64_t bytes);
  void close();

 private:
  void keep();
  void step();
  // Of the bound, for what grows between two steps.
  uint64_t held_back() const;

  kv::Store* store_ = nullptr;
  uint64_t bytes_ = 0;
  bool is_exceeded_ = false;  // and that has been said
  sys::Thread thread_;
  bool has_thread_ = false;
  std::atomic<bool> ends_{false};
  sys::EventCount end_;
};

}  // namespace server
