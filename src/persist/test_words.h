// A LineDevice for tests of handlers: without locks, since handlers come while the thread is inside it.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>

#include "base/ids.h"
#include "persist/domain.h"

namespace persist {

// A line's first word is durable when it is flushed. Words only grow, so that a flush that was interrupted after its read does not overwrite a newer word.
class WordDevice final : public LineDevice {
 public:
  static constexpr size_t kLines = 64;

  void flush(const uintptr_t* lines, size_t count) override {
    for (size_t i = 0; i < count; ++i) {
      raise(durable[index(lines[i])], word(index(lines[i])).load());
      if (interrupt) interrupt(lines[i]);
    }
  }
  void fence() override {}

  // Stores the value, unless a newer one is there.
  static void raise(std::atomic<uint64_t>& to, uint64_t value) {
    for (uint64_t before = to.load(); before < value && !to.compare_exchange_weak(before, value);) {
    }
  }
  std::atomic<uint64_t>& word(size_t i) { return *reinterpret_cast<std::atomic<uint64_t>*>(line(i)); }
  uintptr_t line(size_t i) const { return begin() + i * base::kLineBytes; }
  size_t index(uintptr_t line) const { return (line - begin()) / base::kLineBytes; }
  Domain domain() {
    return {.begin = begin(), .end = begin() + sizeof memory_, .kind = DomainKind::kDevice, .device = this};
  }

  std::atomic<uint64_t> durable[kLines] = {};
  std::function<void(uintptr_t line)> interrupt;  // stands for a handler that comes after a line's write-back

 private:
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(memory_); }

  alignas(base::kLineBytes) char memory_[kLines * base::kLineBytes] = {};
};

}  // namespace persist
