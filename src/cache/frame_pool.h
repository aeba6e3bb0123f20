// FramePool: the memory of all frames, one memory file mapped once, and which of them are free.
//
// Frames are handed out so that neighbouring pages lie in neighbouring frames (hardware prefetch and
// large reads work across them): next to the frame of the page before or after; else at the page's
// position within a wholly free run of kRunFrames; else anywhere.
//
// The memory is mapped twice: where compiled code stores, which a WriteWatch may watch, and for what the cache
// itself puts there, which leaves no trace.
//
// Thread contract: guarded by its partition's lock. Memory: 24 bytes a frame plus one bit, plus 16
// bytes of fingerprint per OS page.
#pragma once
#include "base/error.h"
#include "cache/budget.h"
#include "cache/frame.h"
#include "sys/write_watch.h"

namespace cache {

class FramePool {
 public:
  static constexpr uint32_t kRunFrames = 16;

  // Reserves room for frame_count frames of page_bytes. `watch` may be closed; what it refuses to watch is not
  // watched. Errors: ENOMEM, EMFILE.
  base::Expected<void> open(uint32_t frame_count, size_t page_bytes, Budget& budget, sys::WriteWatch& watch);
  void close();

  uint32_t frame_count() const { return frame_count_; }
  // These may be asked without the lock: how many frames hold memory of the OS, how many are free, and how many
  // are both.
  uint32_t touched_count() const { return touched_count_.load(std::memory_order_relaxed); }
  uint32_t free_count() const { return free_count_.load(std::memory_order_relaxed); }
  uint32_t free_touched_count() const { return free_touched_count_.load(std::memory_order_relaxed); }
  size_t page_bytes() const { return page_bytes_; }
  int descriptor() const { return descriptor_; }
  uint64_t file_offset(FrameId frame) const { return uint64_t{index(frame)} * page_bytes_; }

  const Frame* frames() const { return frames_; }
  Frame& operator[](FrameId frame) { return frames_[index(frame)]; }
  char* bytes(FrameId frame) const { return memory_ + uint64_t{index(frame)} * page_bytes_; }
  // The same memory by an address where stores leave no trace in the watch: for what is loaded.
  char* unwatched_bytes(FrameId frame) const {
    return unwatched_memory_ + uint64_t{index(frame)} * page_bytes_;
  }
  bool can_watch() const { return watch_ != nullptr; }
  // REQUIRES: can_watch().
  sys::WriteWatch& watch() { return *watch_; }
  base::Fingerprint* fingerprints(FrameId frame) {
    return fingerprints_ + uint64_t{index(frame)} * (page_bytes_ / base::kOsPageBytes);
  }

  // Takes a free frame for a page: `wish` if it is free (kNoFrame: no wish); else one at position
  // page % kRunFrames of a free run; else any. kNoFrame when none is free. A fresh frame is refused
  // unless `allow_fresh` (it would take more memory from the OS). The frame's state is the caller's to change.
  FrameId take(PageId page, FrameId wish, bool allow_fresh);
  // REQUIRES: taken. Freeing twice is a CHECK.
  void give_back(FrameId frame);
  // Gives the frame's memory back to the OS; it is fresh afterwards. REQUIRES: free.
  void release_memory(FrameId frame);
  // Any free frame that is not fresh; kNoFrame if there is none.
  FrameId find_free_touched();

  // The frame is about to be written: it takes memory from now on.
  void touch(FrameId frame) {
    if (!frames_[index(frame)].fresh) return;
    frames_[index(frame)].fresh = false;
    budget_->add(page_bytes_);
    add(touched_count_, 1);
  }

 private:
  bool is_free(uint32_t frame) const { return (free_bits_[frame / 64] >> (frame % 64) & 1) != 0; }
  bool acceptable(uint32_t frame, bool allow_fresh) const {
    return frame < frame_count_ && is_free(frame) && (allow_fresh || !frames_[frame].fresh);
  }
  // Only the lock's holder changes a count: no atomic addition is needed.
  static void add(std::atomic<uint32_t>& count, uint32_t n) {
    count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  FrameId taken(uint32_t frame);
  FrameId find_in_free_run(PageId page, bool allow_fresh);
  FrameId find_any(bool allow_fresh);

  uint32_t frame_count_ = 0;
  std::atomic<uint32_t> free_count_{0};
  std::atomic<uint32_t> touched_count_{0};       // frames that are not fresh
  std::atomic<uint32_t> free_touched_count_{0};  // free ones that are not fresh
  uint32_t run_cursor_ = 0;                      // word of free_bits_ where the search for a free run goes on
  uint32_t any_cursor_ = 0;
  uint32_t free_runs_ = 0;  // upper bound of wholly free runs, to skip hopeless searches
  size_t page_bytes_ = 0;
  uint64_t metadata_bytes_ = 0;
  Budget* budget_ = nullptr;
  int descriptor_ = -1;
  char* memory_ = nullptr;
  char* unwatched_memory_ = nullptr;
  sys::WriteWatch* watch_ = nullptr;  // null: not watched
  Frame* frames_ = nullptr;
  base::Fingerprint* fingerprints_ = nullptr;
  uint64_t* free_bits_ = nullptr;
};

}  // namespace cache
