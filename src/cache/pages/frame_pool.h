// FramePool: the memory of all frames, one memory file mapped twice, and which of them are free.
//
// Frames are handed out so that neighbouring pages lie in neighbouring frames (hardware prefetch and
// large reads work across them): next to the frame of the page before or after; else at the page's
// position in its region's block (blocks.h); else within a wholly free run of kRunFrames; else anywhere.
//
// A block whose memory was never touched gets all of it at its first use, as one large OS page, where the kernel has one and
// an eighth of the budget stays free: a miss of the CPU's translation caches is the greater part of what a random access to memory
// costs, and 2 MiB come at half of the price of 512 times 4 KiB. A block is one large page until a frame of it is watched,
// mapped elsewhere or given back.
//
// The memory is mapped twice: where compiled code stores, which a WriteWatch may watch and guards may forbid, and for what
// the cache itself puts there, which leaves no trace and is never forbidden.
//
// Fork. A child has the frames as they were, and both go on:
//
//   1 lend, before fork: all memory is mapped privately, so that the kernel copies what either process stores to; the
//     memory file (the base) changes no more. Frames whose pages are kept mapped elsewhere stay as they are (kOld)
//   2 the parent goes on, and so does the child after become_child
//   3 share, by and by: some frames get memory of the pool's own file again, with their content. That file is the base
//     once nobody else needs it (take_back), else a new one
//
// A frame that is neither kOwn nor fresh works like any other, but is not watched and cannot be mapped elsewhere.
//
// Growth. Address space is reserved for more frames than there are (frame_limit); those beyond frame_count are ABSENT, and take no
// memory until grow() adds them. There are never fewer again: frames that are free and fresh cost their metadata only.
//
// Thread contract: guarded by its partition's lock. Memory: 24 bytes a frame plus one bit, plus 16
// bytes of fingerprint per OS page, and a block's.
#pragma once
#include "base/error.h"
#include "base/single_writer.h"
#include "cache/pages/blocks.h"
#include "cache/pages/budget.h"
#include "cache/pages/frame.h"
#include "sys/memory.h"
#include "sys/write_watch.h"

namespace cache {

// Pinned pages when a process forks.
struct PinsOverFork {
  // It is mapped elsewhere, and stays so.
  bool (*is_kept)(PageId page);
  // How many of its pins are the calling thread's, which is in no system call: the kernel does not store there.
  uint32_t (*of_this_thread)(PageId page);
};

class FramePool {
 public:
  static constexpr uint32_t kRunFrames = 16;
  static constexpr uint32_t kMostGuarded =
      1024;  // the kernel allows 65,530 mappings, and each of these splits one

  // Room for frame_count frames of page_bytes, and address space for frame_limit (0: no more), or for fewer, where the system has
  // less. `watch` may be closed; what it refuses to watch is not watched. `large`: in large OS pages, where there are some. Errors:
  // ENOMEM, EMFILE, EFBIG.
  base::Expected<void> open(uint32_t frame_count, size_t page_bytes, Budget& budget, sys::WriteWatch& watch,
                            bool large = false, uint32_t frame_limit = 0);
  void close();
  // Adds frames, free ones, up to so many. False: since a fork there is no memory file for them, now. REQUIRES: at most frame_limit().
  bool grow(uint32_t frame_count);

  uint32_t frame_count() const { return frame_count_; }
  uint32_t frame_limit() const { return frame_limit_; }
  // Addresses from bytes(0) on, also of frames that there are not yet.
  uint64_t memory_bytes() const { return uint64_t{frame_limit_} * page_bytes_; }
  // These may be asked without the lock: how many frames hold memory of the OS, how many are free, and how many
  // are both.
  uint32_t touched_count() const { return touched_count_.load(std::memory_order_relaxed); }
  uint32_t free_count() const { return free_count_.load(std::memory_order_relaxed); }
  uint32_t free_touched_count() const { return free_touched_count_.load(std::memory_order_relaxed); }
  size_t page_bytes() const { return page_bytes_; }
  // Of the memory file of frames that are kOwn.
  int descriptor() const { return descriptor_; }
  uint64_t file_offset(FrameId frame) const { return uint64_t{index(frame)} * page_bytes_; }

  const Frame* frames() const { return frames_; }
  Frame& operator[](FrameId frame) { return frames_[index(frame)]; }
  char* bytes(FrameId frame) const { return memory_ + uint64_t{index(frame)} * page_bytes_; }
  // The same memory by an address where stores leave no trace in the watch, and guards do not matter. For what is loaded;
  // a fork may take it away: else only as long as the lock is held.
  char* unwatched_bytes(FrameId frame) const {
    char* const memory = frames_[index(frame)].backing == Backing::kOwn ? unwatched_memory_ : memory_;
    return memory + uint64_t{index(frame)} * page_bytes_;
  }
  bool can_watch() const { return watch_ != nullptr && watch_->is_open(); }
  // As WriteWatch's, of frames that lie side by side. Takes a large page apart that they are of: what it holds is mapped again OS
  // page by OS page, by faults of 1 us. REQUIRES: can_watch().
  bool protect(FrameId first, uint32_t count);
  // REQUIRES: can_watch().
  const sys::WriteWatch& watch() const { return *watch_; }
  base::Fingerprint* fingerprints(FrameId frame) {
    return fingerprints_ + uint64_t{index(frame)} * (page_bytes_ / base::kOsPageBytes);
  }

  // Takes a free frame for a page: `wish` if it is free (kNoFrame: no wish); else one at position
  // page % kRunFrames of a free run; else any. kNoFrame when none is free. A fresh frame is refused
  // unless `allow_fresh` (it would take more memory from the OS). The frame's state is the caller's to change.
  FrameId take(PageId page, FrameId wish, bool allow_fresh);
  // The first frame of a block that is wholly free, which the page's region is given; kNoFrame if there is none, or not all
  // frames are kOwn.
  FrameId find_free_block(PageId page);
  // Takes these frames; their memory is zeros, one large OS page if it is a whole block and that can be had. False, and nothing is taken: one is not free or not kOwn, or the system does
  // not drop what it has. Cost: a system call for each run of them that was used before.
  bool take_run(FrameId first, uint32_t count);
  // REQUIRES: taken. Freeing twice is a CHECK.
  void give_back(FrameId frame);
  // Gives the frame's memory back to the OS; it is fresh afterwards. False: the system does not take it, or since a fork there is no
  // memory file to be had. REQUIRES: free.
  bool release_memory(FrameId frame);
  // The same of frames side by side. Cost: a system call for each run of them that is not fresh.
  bool release_run(FrameId first, uint32_t count);
  // Any free frame that is not fresh; kNoFrame if there is none.
  FrameId find_free_touched();

  // Step 1. kLater: call again, since a frame that was kept before has an Io under way, or, if `waits`, others have
  // pins: the kernel may go on to store by an address that it looked up before, and then in the base.
  // Cost: some system calls, and the page tables' size.
  enum class Lent { kYes, kLater, kFailed };
  Lent lend(const PinsOverFork& pins, bool waits);
  // The memory is inherited by children made now, or not.
  void set_inherited(bool inherited);
  // Step 2 in the child. The watch was opened anew.
  void become_child();
  // In the child: a kept page's frame, and the mapping of it at `address`, get memory of its own. Returns 0 or -errno.
  // The calling thread may run on that memory.
  long own_kept(FrameId frame, void* address);
  // The load of a frame with stale_load has ended.
  void end_stale_load(FrameId frame);
  // No other process has the base any more.
  void take_back() { is_base_ = false; }
  uint32_t unshared_count() const { return unshared_count_; }
  // Step 3 for [first, first + count). Returns false if there is no memory file to be had now, or no memory; then all
  // is as it was. REQUIRES: none of them is loading, and nobody stores there because of a pin (Frame::storing_pins). Cost: a copy; a few
  // system calls; threads that store to these frames meanwhile fault, and wait for the partition's lock.
  bool share(FrameId first, uint32_t count);
  // Where share may go on: the next frame that is not kOwn. REQUIRES: unshared_count() > 0.
  FrameId next_unshared();

  // Whoever has an address in the frame's i-th OS page may do only what `access` says from now on: other accesses fault
  // there. Does nothing for a frame that is not kOwn, or beyond kMostGuarded frames; a fork ends it. Not watched any more. REQUIRES: holds a page, nobody
  // looks at it, no Io is under way.
  void guard(FrameId frame, uint64_t i, sys::Access access);
  // All of the frame may be accessed again.
  void end_guard(FrameId frame);

  // The frame is about to be written: it takes memory from now on.
  void touch(FrameId frame) {
    if (!frames_[index(frame)].fresh) return;
    frames_[index(frame)].fresh = false;
    blocks_.add_fresh(index(frame), -1);
    budget_->add(page_bytes_);
    base::increase(touched_count_, 1u);
  }

 private:
  static constexpr uint32_t kMostLargeFailures = 4;

  bool is_free(uint32_t frame) const { return (free_bits_[frame / 64] >> (frame % 64) & 1) != 0; }
  bool acceptable(uint32_t frame, bool allow_fresh) const {
    return frame < frame_count_ && is_free(frame) && (allow_fresh || !frames_[frame].fresh);
  }
  base::Expected<void> map_memory();
  base::Expected<void> map_unwatched();
  uint64_t charged_bytes() const;
  void add_frames(uint32_t end);
  void adopt(char* memory, uint64_t length);
  bool open_own();
  void set_backing(FrameId frame, Backing backing);
  void share_free_neighbours(FrameId frame);
  void drop_content(FrameId frame);
  FrameId taken(uint32_t frame);
  void fill_block(uint32_t block);
  FrameId find_in_block(PageId page, bool allow_fresh);
  FrameId find_in_free_run(PageId page, bool allow_fresh);
  FrameId find_any(bool allow_fresh);

  std::atomic<uint32_t> frame_count_{0};  // grows under the lock; may be asked without
  uint32_t frame_limit_ = 0;
  std::atomic<uint32_t> free_count_{0};
  std::atomic<uint32_t> touched_count_{0};       // frames that are not fresh
  std::atomic<uint32_t> free_touched_count_{0};  // free ones that are not fresh
  uint32_t run_cursor_ = 0;                      // word of free_bits_ where the search for a free run goes on
  uint32_t any_cursor_ = 0;
  uint32_t free_runs_ = 0;  // upper bound of wholly free runs, to skip hopeless searches
  size_t page_bytes_ = 0;
  uint64_t metadata_bytes_ = 0;  // for frame_limit_ frames
  bool has_new_memory_ = true;   // frames that there are not yet: by the pool's own file
  Budget* budget_ = nullptr;
  long process_ = 0;             // whose descriptor that is
  int descriptor_ = -1;          // -1: none yet since a fork
  bool is_base_ = false;         // since a fork: of step 1, of use only after take_back
  uint32_t unshared_count_ = 0;  // frames that are not kOwn
  uint32_t share_cursor_ = 0;
  uint32_t stale_load_count_ = 0;
  uint32_t guarded_count_ = 0;
  uint32_t large_failures_ = kMostLargeFailures;  // so many: no large pages are asked for any more
  bool is_watching_ = false;                      // the memory was added to the watch
  char* memory_ = nullptr;
  char* unwatched_memory_ = nullptr;
  sys::WriteWatch* watch_ = nullptr;  // null: not watched
  Blocks blocks_;
  Frame* frames_ = nullptr;
  base::Fingerprint* fingerprints_ = nullptr;
  uint64_t* free_bits_ = nullptr;
};

}  // namespace cache
