// MemoryBound: keeps the memory of the process within a bound. All parts grow as they must, with keys and connections, except the records that the
// store keeps in memory (kv/tier/memory_tier.h): these get what is left, and give way.
//
// A thread of its own looks every kStepNs at how much the kernel says is resident. Between two looks the other parts may grow by what is held back
// for them.
//
// Thread contract: used by one thread.
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
  static constexpr uint64_t kMinBytes = uint64_t{32} << 20;
  static constexpr uint64_t kStepNs = 20'000'000;

  MemoryBound() = default;
  ~MemoryBound() { close(); }
  MemoryBound(const MemoryBound&) = delete;
  MemoryBound& operator=(const MemoryBound&) = delete;

  // The store was opened with `bytes` as its memory_bytes, and stays open until close(). Errors: EINVAL, with how much is needed, if everything else
  // takes more already; EAGAIN if there can be no thread.
  base::Expected<void> open(kv::Store& store, uint64_t bytes);
  void close();

 private:
  void keep();
  void step();
  // How much of the bound is reserved for growth between two looks.
  uint64_t held_back() const;

  kv::Store* store_ = nullptr;
  uint64_t bytes_ = 0;
  bool is_exceeded_ = false;  // and that has been logged
  sys::Thread thread_;
  bool has_thread_ = false;
  std::atomic<bool> ends_{false};
  sys::EventCount end_;
};

}  // namespace server
