// A LineDevice for tests: memory, and what would be left of it after a power failure.
//
// A line that is flushed is read at some moment between the flush and the next fence of the same caller: here at the flush, and, if a coin says so,
// again at the fence. What was read reaches the medium at the fence, unless something newer of the line is there. No other lines reach it: durable()
// is a state that a crash may leave.
#pragma once
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "persist/domain.h"

namespace persist {

class ShadowDevice final : public LineDevice {
 public:
  explicit ShadowDevice(size_t bytes, uint64_t seed = 1)
      : bytes_(bytes),
        memory_(static_cast<char*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        durable_(bytes),
        random_(seed) {}
  ~ShadowDevice() { munmap(memory_, bytes_); }
  ShadowDevice(const ShadowDevice&) = delete;
  ShadowDevice& operator=(const ShadowDevice&) = delete;

  char* memory() { return memory_; }
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(memory_); }
  size_t bytes() const { return bytes_; }
  Domain domain() {
    return {.begin = begin(), .end = begin() + bytes_, .kind = DomainKind::kDevice, .device = this};
  }

  void flush(const uintptr_t* lines, size_t count) override {
    const std::scoped_lock scope(lock_);
    for (size_t i = 0; i < count; ++i) {
      begun_[std::this_thread::get_id()][lines[i]] = read(lines[i]);
      ++flushed_lines_;
    }
  }
  void fence() override {
    const std::scoped_lock scope(lock_);
    for (const auto& [line, content] : begun_[std::this_thread::get_id()]) {
      const Content at_last = random_() % 2 == 0 ? content : read(line);
      uint64_t& newest = newest_[line];
      if (at_last.read_number < newest) continue;
      newest = at_last.read_number;
      memcpy(&durable_[line - begin()], at_last.bytes.data(), base::kLineBytes);
    }
    begun_[std::this_thread::get_id()].clear();
    ++fences_;
  }

  // Would a crash leave at `address` what is there in memory, whatever else happens?
  bool is_durable(const void* address, size_t bytes) {
    const std::scoped_lock scope(lock_);
    const size_t offset = reinterpret_cast<uintptr_t>(address) - begin();
    return memcmp(&durable_[offset], memory_ + offset, bytes) == 0;
  }
  std::vector<char> durable() {
    const std::scoped_lock scope(lock_);
    return durable_;
  }
  uint64_t flushed_lines() {
    const std::scoped_lock scope(lock_);
    return flushed_lines_;
  }
  uint64_t fences() {
    const std::scoped_lock scope(lock_);
    return fences_;
  }

 private:
  struct Content {
    std::array<char, base::kLineBytes> bytes;
    uint64_t read_number;  // of all reads
  };
  Content read(uintptr_t line) {
    // Whole words, as they are at some moment: the owner may store to the line meanwhile.
    Content content;
    content.read_number = ++reads_;
    const auto* const words = reinterpret_cast<const std::atomic<uint64_t>*>(line);
    for (size_t i = 0; i < base::kLineBytes / sizeof *words; ++i) {
      const uint64_t word = words[i].load(std::memory_order_relaxed);
      memcpy(&content.bytes[i * sizeof word], &word, sizeof word);
    }
    return content;
  }

  const size_t bytes_;
  char* const memory_;
  std::mutex lock_;
  std::vector<char> durable_;
  std::map<std::thread::id, std::map<uintptr_t, Content>> begun_;
  std::mt19937_64 random_;
  std::map<uintptr_t, uint64_t> newest_;  // the read that a line on the medium comes from
  uint64_t flushed_lines_ = 0, fences_ = 0, reads_ = 0;
};

}  // namespace persist
