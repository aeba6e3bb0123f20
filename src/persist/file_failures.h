// FileFailures: the kernel's failures to write files' mappings, of all threads.
//
// The kernel reports a failed write once, to whoever has the file written next. That may be another thread than the one whose flush is lost, which
// is then told that all is well. So each failure is noted here, and the next fence of each thread that has flushed something in the file fails, too.
// A thread that looks after the kernel has told another one, but before that one has noted it, learns of it at its next fence.
//
// Files are known by their descriptors. Files without one are taken for the same file, and so are some others: a thread may be told of a failure that
// was not in its file.
//
// Thread contract: any thread, and signal handlers.
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
    // As if told of all failures so far.
    explicit Seen(const FileFailures& failures) : failures_(failures) {
      for (size_t i = 0; i < kPlaces; ++i) last_[i] = failures.last(i);
    }
    // Returns the last failure of this file since the last call for it: an errno value; 0: there was none.
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
  // Relaxed: a thread that misses a failure learns of it at its next fence.
  uint64_t last(size_t place) const { return last_[place].load(std::memory_order_relaxed); }

  // For each place: how many failures, times kErrors, and the last one's error.
  std::atomic<uint64_t> last_[kPlaces] = {};
};

}  // namespace persist
