// For tests: a runtime that ends with its test, and what its tests share.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "persist/runtime.h"

namespace persist {

inline constexpr Way kOwnWays[] = {Way::kInline, Way::kEpoch, Way::kDecoupled, Way::kProactive, Way::kAuto};

// A runtime for a test; its flushers end with it.
class Own {
 public:
  explicit Own(Way way = Way::kEpoch, uint32_t flushers = 2) {
    runtime_->configure({.way = way,
                         .instruction = sys::best_line_flush(),
                         .flushers = {.least = 1, .most = flushers, .period_ns = 20'000'000}});
  }
  ~Own() { runtime_->flushers().stop(); }
  Runtime& operator*() { return *runtime_; }
  Runtime* operator->() { return runtime_.get(); }

 private:
  std::unique_ptr<Runtime> runtime_ = std::make_unique<Runtime>();
};

#if __has_feature(thread_sanitizer)
inline constexpr bool kIsThreadSanitizer = true;
#else
inline constexpr bool kIsThreadSanitizer = false;
#endif

inline void store(char* at, uint64_t value) {
  reinterpret_cast<std::atomic<uint64_t>*>(at)->store(value, std::memory_order_relaxed);
}

}  // namespace persist
