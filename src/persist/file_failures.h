// FileFailures: what the kernel could not write of files' mappings, of all threads.
//
// The kernel tells of a failure once, to whoever has it write the file next: that may be another thread than the one whose flush is lost, which is told that all is well. So
// each failure is noted here, and each thread's next fence that has something of the file fails too. One that looks between what the kernel said to another thread and the
// note learns of it at the fence after.
//
// Files are known by their descriptors; those without one are taken for one file, and so are some others, of which a thread may be told once too often.
//
// Thread contract: any thread; handlers of signals, too.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace persist {

class FileFailures {
 public:
  static constexpr size_t kPlaces = 64;

  // `error`: an errno value.
  void note(int descriptor, int error) {
    std::atomic<uint64_t>& last = last_[place_of(descriptor)];
    uint64_t before = last.load(std::memory_order_relaxed);
    while (!last.compare_exchange_weak(
        before, (before / kErrors + 1) * kErrors + static_cast<uint64_t>(error), std::memory_order_relaxed)) {
    }
  }

  // What one thread has been told of.
  class Seen {
   public:
    // All that there were.
    explicit Seen(const FileFailures& failures) : failures_(failures) {
      for (size_t i = 0; i < kPlaces; ++i) last_[i] = failures.last(i);
    }
    // The error of the last failure of this file that it has not been told of; 0: there is none. It has been told now.
    int take(int descriptor) {
      const size_t place = place_of(descriptor);
      const uint64_t last = failures_.last(place);
      return std::exchange(last_[place], last) == last ? 0 : static_cast<int>(last % kErrors);
    }

   private:
    const FileFailures& failures_;
    uint64_t last_[kPlaces];
  };

 private:
  static constexpr uint64_t kErrors = 1 << 12;

  static size_t place_of(int descriptor) { return static_cast<size_t>(descriptor + 1) % kPlaces; }
  // Relaxed: whoever has come too early looks again.
  uint64_t last(size_t place) const { return last_[place].load(std::memory_order_relaxed); }

  // Of each place: how many, and the last one's error.
  std::atomic<uint64_t> last_[kPlaces] = {};
};

}  // namespace persist
