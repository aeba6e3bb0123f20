// Regions: 2 MiB of addresses each, whose pages the cache maps at their own addresses too, beside where frames are mapped:
// the same memory file, so that both agree. Code that does not translate reaches them there, for nothing.
//
//   map     when a page of a region is loaded first of all: all pages of the region that may be mapped (Mappable) become resident at once, as
//           zeros, in frames that lie side by side, and one mapping leads to them. The budget is charged for all of them; the kernel gives
//           them memory when they are touched. Parts that may be mapped later only are mapped then
//   reach   when an access at a page's own address faults, because the page was freed and is used again, or was protected until now
//   empty   when a part that stays in use is discarded: its frames stay, and the memory file gets a hole
//   cut     when a part is freed or protected: it becomes inaccessible at its own addresses
//   unmap   before a page of the region is evicted: the whole region becomes inaccessible, and where the process has as many mappings as the
//           kernel allows, regions beside it do, too
//
// After end() no more regions are mapped. It is called when there is no room for another region, when there are as many as may be, when a page is
// about to be evicted for whatever reason, and when the cache's user says so. Regions that are mapped then stay so until they are unmapped.
//
// Invariants
//  1 a store by a page's own address leaves no trace, so a page of a mapped region is never verified, and its frame is not watched while it
//    is mapped
//  2 before anybody relies on a page's content or frame, the page's entries are locked and the page is unmapped, in this order: unmapping
//    is the barrier for accesses by the page's own address, as the scan of the slots is for translated ones
//  3 the frames of what is mapped are kOwn: everything is unmapped before a fork
//
// Thread contract: a region's state is guarded by the lock of its partition; any() and is_on() may be asked without.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/error.h"
#include "base/ids.h"

namespace cache {

using base::FrameId;

inline constexpr uint64_t kRegionBytes = uint64_t{2} << 20;

// Why no region is mapped any more. The numbers are told (spill.native_end).
enum class RegionsEnd : uint8_t {
  kMemoryFull = 1,
  kEviction = 2,
  kFork = 3,
  kGlobals = 4,
  kKernelMapping = 5,
  kFileMap = 6,
  kSinglePages = 7,
  kChaos = 8,
  kMappings = 9,
};

// What the cache's user says of addresses.
class Mappable {
 public:
  // Shrinks [begin, end), whole OS pages of one region, to the first part of it that may be reached at its own addresses. Returns false if
  // nothing of it may. Called under the partition's lock: takes no lock.
  virtual bool find(uint64_t& begin, uint64_t& end) = 0;
  // No more regions are mapped. Called once, perhaps under a partition's lock: takes no lock.
  virtual void ended(RegionsEnd why) = 0;

 protected:
  ~Mappable() = default;
};

class Regions {
 public:
  // For all addresses from 0 to address_end. Errors: ENOMEM.
  base::Expected<void> open(uint64_t address_end);
  void close();

  // No more than so many regions are mapped: the kernel has two mappings for one that stands alone, and the process needs others.
  void begin(Mappable& mappable, uint64_t most_mapped) {
    mappable_ = &mappable;
    most_mapped_ = most_mapped;
    is_on_.store(true, std::memory_order_release);
  }
  // A region that a thread is just mapping may still become mapped.
  void end(RegionsEnd why) {
    if (is_on() && is_on_.exchange(false, std::memory_order_seq_cst)) mappable_->ended(why);
  }
  bool is_on() const { return is_on_.load(std::memory_order_seq_cst); }
  // May anything be mapped? If not, nothing will be, unless begin() is called. It looks at both in this order: pairs with begin_mapping.
  bool any() const { return is_on() || mapped_count_.load(std::memory_order_seq_cst) != 0; }
  // REQUIRES: begin() was called.
  Mappable& mappable() { return *mappable_; }

  bool is_mapped(uint64_t address) const {
    return mapped_count_.load(std::memory_order_relaxed) != 0 && of(address) != 0;
  }
  // The first of the region's frames, if the region is mapped. Pages that came later need not lie there.
  FrameId first_frame(uint64_t address) const {
    const uint32_t found = of(address);
    return found == 0 ? base::kNoFrame : FrameId{found - 1};
  }
  // Comes before a region is mapped; note_mapped comes after it, or note_unmapped if that failed. False: no more regions are mapped.
  bool begin_mapping();
  void note_mapped(uint64_t address, FrameId first_frame);
  void note_unmapped(uint64_t address);
  // Addresses from the first region that was ever mapped to the end of the last. Who asks what is mapped without a lock does
  // so after a fence, if it is to see what a thread maps that has found nothing against it (Partition::map_region).
  struct Bounds {
    uint64_t begin;
    uint64_t end;
  };
  Bounds bounds() const {
    return {lowest_.load(std::memory_order_relaxed), highest_end_.load(std::memory_order_relaxed)};
  }

 private:
  uint32_t of(uint64_t address) const {
    return first_frames_[address / kRegionBytes].load(std::memory_order_relaxed);
  }

  std::atomic<uint32_t>* first_frames_ = nullptr;  // of each region, + 1; 0: not mapped
  uint64_t bytes_ = 0;
  Mappable* mappable_ = nullptr;
  uint64_t most_mapped_ = 0;
  std::atomic<bool> is_on_{false};
  std::atomic<uint64_t> mapped_count_{0};
  std::atomic<uint64_t> lowest_{~uint64_t{0}};
  std::atomic<uint64_t> highest_end_{0};
};

}  // namespace cache
