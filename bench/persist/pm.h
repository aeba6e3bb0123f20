// What a thread of the model's programs does to memory that keeps its content: stores, flushes, fences, and the time of what it computes meanwhile.
#pragma once
#include <cstdint>
#include <cstring>

#include "persist/model/model_lines.h"
#include "persist/thread.h"

namespace load {

class Pm {
 public:
  // Modelled, of lines that others have claimed from the FIFO: each of them 5 ns, since its place there is written and read by two cores in turn, eight places to a line of the
  // cache; and once for a fence with any such lines 120 ns, which waits for two lines of the cache, the end of the FIFO to be seen by a flusher, and then what is done by the
  // thread. They come behind what the fence has waited. What the thread's own fence executes stays in its core's cache, and costs the device's time alone. An assumption.
  static constexpr double kHandOverLineNs = 5, kHandOverFenceNs = 120;

  Pm(persist::Thread& thread, persist::ModelLines& lines, uint32_t sample_stores)
      : thread_(thread), lines_(lines), sample_stores_(sample_stores), countdown_(sample_stores) {}

  // Until then only memory changes: nothing is flushed, and takes no time. A structure has its size before anything of it is looked at.
  void begin() { has_begun_ = true; }

  // Takes that time on the modelled machine.
  void compute(double ns) {
    if (has_begun_) waiting_ns_ += ns;
  }

  // As many stores as there are words.
  void store(void* to, const void* from, size_t bytes) {
    std::memcpy(to, from, bytes);
    stored(to, bytes);
  }
  void store(uint64_t& to, uint64_t value) {
    to = value;
    stored(&to, sizeof to);
  }
  void move(void* to, const void* from, size_t bytes) {
    std::memmove(to, from, bytes);
    stored(to, bytes);
  }

  void flush(const void* at, size_t bytes) {
    if (!has_begun_) return;
    pass();
    const auto address = reinterpret_cast<uintptr_t>(at);
    const uint64_t lines = (address + bytes + 63) / 64 - address / 64;
    flushed_lines_ += lines;
    thread_.flush(address, bytes);
  }
  void fence() {
    if (!has_begun_) return;
    pass();
    ++fences_;
    if (!thread_.fence()) __builtin_trap();  // no device of a model fails
    const persist::Counts counts = thread_.counts();
    const uint64_t handed_over = counts.pushed_lines - counts.fence_lines;
    if (handed_over != handed_over_lines_)
      waiting_ns_ +=
          kHandOverFenceNs + kHandOverLineNs * static_cast<double>(handed_over - handed_over_lines_);
    handed_over_lines_ = handed_over;
    dirty_bytes_ += dirty_now_bytes_;
    dirty_now_bytes_ = 0;
  }

  uint64_t flushed_lines() const { return flushed_lines_; }
  uint64_t dirty_bytes() const { return dirty_bytes_; }
  uint64_t fences() const { return fences_; }

 private:
  void pass() {
    if (waiting_ns_ == 0) return;
    lines_.compute(waiting_ns_);
    waiting_ns_ = 0;
  }
  void stored(void* at, size_t bytes) {
    if (!has_begun_) return;
    lines_.stored(reinterpret_cast<uintptr_t>(at), bytes);
    dirty_now_bytes_ += bytes;
    const auto stores = static_cast<uint32_t>((bytes + 7) / 8);
    if (countdown_ > stores) {
      countdown_ -= stores;
      return;
    }
    countdown_ = sample_stores_;
    thread_.sample_store(reinterpret_cast<uintptr_t>(at));
  }

  persist::Thread& thread_;
  persist::ModelLines& lines_;
  const uint32_t sample_stores_;
  uint32_t countdown_;
  bool has_begun_ = false;
  double waiting_ns_ = 0;
  uint64_t flushed_lines_ = 0, fences_ = 0, dirty_bytes_ = 0, dirty_now_bytes_ = 0;
  uint64_t handed_over_lines_ = 0;
};

}  // namespace load
