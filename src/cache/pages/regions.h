// Regions: 2 MiB of addresses each, whose pages the cache also maps at their own addresses, from the same memory file as
// the frames, so that both mappings agree. Code that does not translate accesses them there at no cost.
//
//   map     when the first page of a region is loaded: all pages of the region that may be mapped (Mappable) become resident at once, as zeros, in
//           adjacent frames, and are mapped by one mapping. The budget is charged for all of them; the kernel gives them memory when they are
//           touched. Parts that may be mapped only later are mapped then
//   reach   when an access at a page's own address faults, because the page was freed and is used again, or was protected until now
//   empty   when a part that stays in use is discarded: its frames stay, and a hole is punched into the memory file
//   cut     when a part is freed or protected: it becomes inaccessible at its own addresses
//   unmap   before a page of the region is evicted: the whole region becomes inaccessible, and, if the process has as many mappings as the kernel
//           allows, so do adjacent regions
//
// After end() no more regions are mapped. It is called when there is no room for another region, when their number has reached its limit, when a page
// is about to be evicted for whatever reason, and when the cache's user says so. Regions that are mapped by then stay so until they are unmapped.
//
// Invariants
//  1 a store through a page's own address leaves no trace, so a page of a mapped region is never verified, and its frame is not watched while it is
//    mapped
//  2 before anybody relies on a page's content or frame, the page's entries are locked and the page is unmapped, in this order: unmapping is the
//    barrier for accesses through the page's own address, as the scan of the slots is for translated ones
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

// Why no more regions are mapped. The numbers are reported (spill.native_end).
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

// What the cache's user says about addresses.
class Mappable {
 public:
  // Shrinks [begin, end), whole OS pages of one region, to its first part that may be mapped at its own addresses. Returns false if there is none.
  // Called under the partition's lock: must take no lock.
  virtual bool find(uint64_t& begin, uint64_t& end) = 0;
  // No more regions are mapped. Called once, perhaps under a partition's lock: must take no lock.
  virtual void ended(RegionsEnd why) = 0;

 protected:
  ~Mappable() = default;
};

class Regions {
 public:
  // For all addresses from 0 to address_end. Errors: ENOMEM.
  base::Expected<void> open(uint64_t address_end);
  void close();

  // At most `most_mapped` regions are mapped: an isolated one takes two of the kernel's mappings, and the process needs others.
  void begin(Mappable& mappable, uint64_t most_mapped) {
    mappable_ = &mappable;
    most_mapped_ = most_mapped;
    is_on_.store(true, std::memory_order_release);
  }
  // A region that a thread is just mapping may still become mapped afterwards.
  void end(RegionsEnd why) {
    if (is_on() && is_on_.exchange(false, std::memory_order_seq_cst)) mappable_->ended(why);
  }
  bool is_on() const { return is_on_.load(std::memory_order_seq_cst); }
  // May anything be mapped? If not, nothing will be, unless begin() is called. The order of the two loads matters: it pairs with begin_mapping.
  bool any() const { return is_on() || mapped_count_.load(std::memory_order_seq_cst) != 0; }
  // REQUIRES: begin() was called.
  Mappable& mappable() { return *mappable_; }

  bool is_mapped(uint64_t address) const {
    return mapped_count_.load(std::memory_order_relaxed) != 0 && of(address) != 0;
  }
  // The first of the region's frames; kNoFrame if it is not mapped. Pages that were loaded later need not lie in these frames.
  FrameId first_frame(uint64_t address) const {
    const uint32_t found = of(address);
    return found == 0 ? base::kNoFrame : FrameId{found - 1};
  }
  // To be called before a region is mapped; then note_mapped. False: no more regions are mapped.
  bool begin_mapping();
  void note_mapped(uint64_t address, FrameId first_frame);
  void note_unmapped(uint64_t address);
  // From the lowest region that was ever mapped to the end of the highest. A caller without the lock that must see regions
  // which other threads are just mapping needs a fence before it asks (Partition::map_region).
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
