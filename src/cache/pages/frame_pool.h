// FramePool: the memory of a partition's frames, and which of them are free.
//
// Placement. Neighbouring pages should lie in neighbouring frames, so that hardware prefetch and large reads work across them. So a page gets the
// frame that the caller wishes for (the one after the frame of the preceding page); else its own position in its region's block (blocks.h); else its
// position in a wholly free run of kRunFrames; else any frame.
//
// Large OS pages. A block whose memory was never touched gets all of it as one large OS page when its first frame is taken, if the kernel has one
// and an eighth of the budget stays free. Random accesses gain most, since misses in the CPU's translation caches are the greater part of their cost;
// and 2 MiB at once take half the time of 512 OS pages. A block remains one large page until one of its frames is watched, mapped elsewhere or given
// back.
//
// Mappings. The memory is one memory file, which is mapped twice:
//   bytes()            where compiled code loads and stores; a WriteWatch may watch it, and guards may forbid accesses through it
//   unwatched_bytes()  where the cache stores what it loads; the watch does not see these stores, and guards do not forbid them
//
// Fork. A child has the frames as they were, and both processes go on:
//
//   1 lend, before fork: all memory is mapped privately, so that the kernel copies an OS page for whichever process stores to it. The memory
//     file, called the base from then on, does not change any more. Frames whose pages are kept mapped elsewhere stay as they are (kOld)
//   2 the parent goes on, and so does the child after become_child
//   3 share, a few frames at a time: they get memory of the pool's own file again, with their content. That file is the base if no other process
//     needs the base any more (take_back), else a new one
//
// A frame that is not kOwn works like any other, except that it is not watched and cannot be mapped elsewhere.
//
// Growth. Address space is reserved for more frames than there are (frame_limit). Frames beyond frame_count are ABSENT and take no memory until
// grow() adds them. Their number never falls: a free and fresh frame costs only its metadata.
//
// Thread contract: guarded by its partition's lock. Memory: 24 bytes a frame plus one bit, plus 16
// bytes of fingerprint per OS page, and a block's.
#pragma once
#include "base/bits.h"
#include "base/error.h"
#include "base/single_writer.h"
#include "cache/pages/blocks.h"
#include "cache/pages/budget.h"
#include "cache/pages/frame.h"
#include "sys/memory.h"
#include "sys/write_watch.h"

namespace cache {

// What the pool's user knows about pinned pages when the process forks.
struct PinsOverFork {
  // Is the page mapped elsewhere, and does it stay so?
  bool (*is_kept)(PageId page);
  // How many of the page's pins are the calling thread's. It is in no system call, so the kernel does not store there on account of these.
  uint32_t (*of_this_thread)(PageId page);
};

class FramePool {
 public:
  static constexpr uint32_t kRunFrames = 16;
  // The kernel allows 65,530 mappings, and each guarded frame splits one.
  static constexpr uint32_t kMaxGuarded = 1024;

  // Makes frame_count frames of page_bytes each, and reserves address space for frame_limit (0: no more than frame_count); only for frame_count if
  // the system does not have that much. `watch` may be closed; memory that it refuses is not watched. `large`: take large OS pages where the kernel
  // has some. Errors: ENOMEM, EMFILE, EFBIG.
  base::Expected<void> open(uint32_t frame_count, size_t page_bytes, Budget& budget, sys::WriteWatch& watch,
                            bool large = false, uint32_t frame_limit = 0);
  void close();
  // Adds free frames until there are frame_count. False: a fork has lent the memory file, and another one cannot be had now. REQUIRES: at most
  // frame_limit().
  bool grow(uint32_t frame_count);

  uint32_t frame_count() const { return frame_count_; }
  uint32_t frame_limit() const { return frame_limit_; }
  // Bytes of address space from bytes(0) on, those of ABSENT frames included.
  uint64_t memory_bytes() const { return uint64_t{frame_limit_} * page_bytes_; }
  // How many frames hold memory of the OS, how many are free, and how many are both. May be asked without the lock.
  uint32_t touched_count() const { return touched_count_.load(std::memory_order_relaxed); }
  uint32_t free_count() const { return free_count_.load(std::memory_order_relaxed); }
  uint32_t free_touched_count() const { return free_touched_count_.load(std::memory_order_relaxed); }
  size_t page_bytes() const { return page_bytes_; }
  // Of the memory file of which kOwn frames are pieces.
  int descriptor() const { return descriptor_; }
  uint64_t file_offset(FrameId frame) const { return uint64_t{index(frame)} * page_bytes_; }

  const Frame* frames() const { return frames_; }
  Frame& operator[](FrameId frame) { return frames_[index(frame)]; }
  char* bytes(FrameId frame) const { return memory_ + uint64_t{index(frame)} * page_bytes_; }
  // The same memory at another address, where the watch does not see stores, and guards do not apply. A load may use it until it ends; all others
  // only while holding the lock, since a fork may replace the mapping.
  char* unwatched_bytes(FrameId frame) const {
    char* const memory = frames_[index(frame)].backing == Backing::kOwn ? unwatched_memory_ : memory_;
    return memory + uint64_t{index(frame)} * page_bytes_;
  }
  bool can_watch() const { return watch_ != nullptr && watch_->is_open(); }
  // WriteWatch::protect for adjacent frames. Splits a large page that they belong to: faults of 1 us map it again, OS page by OS page. REQUIRES:
  // can_watch().
  bool protect(FrameId first, uint32_t count);
  // REQUIRES: can_watch().
  const sys::WriteWatch& watch() const { return *watch_; }
  // OS pages a frame.
  uint64_t pieces() const { return page_bytes_ / base::kOsPageBytes; }
  base::Fingerprint* fingerprints(FrameId frame) { return fingerprints_ + index(frame) * pieces(); }
  // Of all OS pages in the frame.
  void set_fingerprints(FrameId frame, base::Fingerprint fingerprint) {
    for (uint64_t piece = 0; piece < pieces(); ++piece) fingerprints(frame)[piece] = fingerprint;
  }

  // Takes a free frame for the page, as the head of this file says; `wish` may be kNoFrame. A fresh frame, which would take more memory from
  // the OS, is taken only with `allow_fresh`. Returns kNoFrame if there is none. The caller changes the frame's state.
  FrameId take(PageId page, FrameId wish, bool allow_fresh);
  // Gives the page's region a wholly free block, and returns the block's first frame; kNoFrame if there is no such block, or if some frame of the
  // pool is not kOwn.
  FrameId find_free_block(PageId page);
  // Takes these frames, with memory that reads as zeros: one large OS page if they are a whole block and it can be had. False, and nothing is taken,
  // if one of them is not free, if some frame of the pool is not kOwn, or if the system refuses to take back the memory that they have. Cost: a
  // system call for each run of them that was used before.
  bool take_run(FrameId first, uint32_t count);
  // REQUIRES: taken. Freeing twice is a CHECK.
  void give_back(FrameId frame);
  // Gives the frame's memory back to the OS; the frame is fresh afterwards. False: the OS refuses it, or a fork has lent it and no memory file can be
  // had. REQUIRES: free.
  bool release_memory(FrameId frame);
  // The same for adjacent frames, without those that are not kOwn. Cost: a system call for each run of them that is not fresh.
  bool release_run(FrameId first, uint32_t count);
  // Any free frame that is not fresh; kNoFrame if there is none.
  FrameId find_free_touched();

  // Step 1. kLater: call again. A frame that was kept at the previous fork is being loaded or pinned by other threads; or, if `waits`, other threads
  // have pinned some frame: the kernel may still be storing through an address that it looked up earlier, and would store to the base. Cost: some
  // system calls, and unmapping all frames.
  enum class Lent { kYes, kLater, kFailed };
  Lent lend(const PinsOverFork& pins, bool waits);
  // Whether children that are made from now on inherit the memory.
  void set_inherited(bool inherited);
  // Step 2, in the child. REQUIRES: the watch was closed and opened again.
  void become_child();
  // In the child: gives a kept page's frame, and its mapping at `address`, memory of the child's own. Returns 0 or -errno. The calling thread's stack
  // may be in that memory.
  long own_kept(FrameId frame, void* address);
  // REQUIRES: the frame has stale_load, and its load has ended.
  void end_stale_load(FrameId frame);
  // No other process needs the base any more: it becomes the pool's own file again.
  void take_back() { is_base_ = false; }
  uint32_t unshared_count() const { return unshared_count_; }
  // Step 3 for [first, first + count). Returns false, and changes nothing, if no memory file or no memory can be had now. REQUIRES: none of them is
  // loading, and nobody stores there on account of a pin (Frame::storing_pins). Cost: a copy; a few system calls; threads that store to these frames
  // meanwhile fault, and wait for the partition's lock.
  bool share(FrameId first, uint32_t count);
  // The next frame that is not kOwn, for share to continue with. REQUIRES: unshared_count() > 0.
  FrameId next_unshared();

  // From now on, accesses through bytes() to the frame's i-th OS page fault unless `access` allows them. The frame is not watched any more. Does
  // nothing if the frame is not kOwn, if kMaxGuarded frames are guarded already, or if the process has as many mappings as the kernel allows. A fork
  // ends the guard. REQUIRES: the frame holds a page, no evictor looks at it, and no Io is under way.
  void guard(FrameId frame, uint64_t i, sys::Access access);
  // Allows every access to the frame again. If the process has as many mappings as the kernel allows, guards of adjacent frames may end, too.
  void end_guard(FrameId frame);

  // To be called before something is stored in the frame, which then takes memory.
  void touch(FrameId frame) {
    if (!frames_[index(frame)].fresh) return;
    frames_[index(frame)].fresh = false;
    blocks_.add_fresh(index(frame), -1);
    budget_->add(page_bytes_);
    base::increase(touched_count_, 1u);
  }

 private:
  static constexpr uint32_t kMaxLargeFailures = 4;

  bool is_free(uint32_t frame) const { return base::has_bit(free_bits_, frame); }
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
  bool has_new_memory_ = true;   // ABSENT frames have memory of the pool's own file
  Budget* budget_ = nullptr;
  long process_ = 0;             // the process in which descriptor_ is open
  int descriptor_ = -1;          // -1: a child of fork that has no file yet
  bool is_base_ = false;         // descriptor_ is the base, which is of no use until take_back
  uint32_t unshared_count_ = 0;  // frames that are not kOwn
  uint32_t share_cursor_ = 0;
  uint32_t stale_load_count_ = 0;
  uint32_t guarded_count_ = 0;
  uint32_t large_failures_ = kMaxLargeFailures;  // at kMaxLargeFailures, no more large pages are requested
  bool is_watching_ = false;                     // the memory was added to the watch
  char* memory_ = nullptr;
  char* unwatched_memory_ = nullptr;
  sys::WriteWatch* watch_ = nullptr;  // null: not watched
  Blocks blocks_;
  Frame* frames_ = nullptr;
  base::Fingerprint* fingerprints_ = nullptr;
  uint64_t* free_bits_ = nullptr;
};

}  // namespace cache
