// For tests: memory behind a pmem device that loses power. A line that was flushed and fenced is there afterwards; of any other, each 8 bytes are as
// they were when it was fenced last, or as they are in memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "storage/backends/pmem.h"
#include "sys/memory.h"

namespace storage {

class PmemCut final : public persist::LineDevice {
 public:
  // Its content is `medium`. Power goes off at the call number `ends_at` of those for lines and fences; 0: never. What is called later changes the
  // memory alone.
  PmemCut(std::vector<std::byte> medium, uint64_t ends_at)
      : ends_at_(ends_at),
        durable_(std::move(medium)),
        memory_(*sys::map_anonymous(durable_.size(), "a test")) {
    memcpy(memory_, durable_.data(), durable_.size());
    device_ = *make_pmem_device(memory_, durable_.size(), *this);
  }

  // The device closes its memory; this stays.
  Device& device() { return *device_; }
  bool is_off() {
    std::lock_guard scope(lock_);
    return !at_end_.empty();
  }
  // Lines and fences so far.
  uint64_t count() {
    std::lock_guard scope(lock_);
    return count_;
  }
  // What is there after the power has gone off, 8 bytes that were not fenced with a chance of kept_percent. REQUIRES: it has, or the device is open.
  std::vector<std::byte> medium(uint64_t seed, unsigned kept_percent) {
    std::lock_guard scope(lock_);
    std::mt19937_64 random(seed);
    std::vector<std::byte> medium = durable_;
    const auto* const last = at_end_.empty() ? reinterpret_cast<const std::byte*>(memory_) : at_end_.data();
    for (size_t at = 0; at < medium.size(); at += kWordBytes)
      if (memcmp(&medium[at], last + at, kWordBytes) != 0 && random() % 100 < kept_percent)
        memcpy(&medium[at], last + at, kWordBytes);
    return medium;
  }

  void flush(const uintptr_t* lines, size_t count) override {
    std::lock_guard scope(lock_);
    if (ends()) return;
    for (size_t i = 0; i < count; ++i) begun_[std::this_thread::get_id()].push_back(lines[i]);
  }
  void fence() override {
    std::lock_guard scope(lock_);
    if (ends()) return;
    for (const uintptr_t line : begun_[std::this_thread::get_id()]) {
      const size_t offset = line - reinterpret_cast<uintptr_t>(memory_);
      memcpy(&durable_[offset], memory_ + offset, base::kLineBytes);
    }
    begun_[std::this_thread::get_id()].clear();
  }

 private:
  static constexpr size_t kWordBytes = 8;

  // Counts a call. Is there no power any more?
  bool ends() {
    if (!at_end_.empty()) return true;
    if (++count_ != ends_at_) return false;
    const auto* const bytes = reinterpret_cast<const std::byte*>(memory_);
    at_end_.assign(bytes, bytes + durable_.size());
    return true;
  }

  std::mutex lock_;
  const uint64_t ends_at_;
  uint64_t count_ = 0;
  std::vector<std::byte> durable_, at_end_;
  std::map<std::thread::id, std::vector<uintptr_t>> begun_;
  char* const memory_;
  Device* device_;
};

}  // namespace storage
