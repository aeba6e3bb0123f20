// Regions: 2 MiB of addresses each, whose pages the cache maps at their own addresses too, beside where frames are mapped:
// the same memory file, so that both agree. Code that does not translate reaches them there, for nothing.
//
//   map     the first load of a page of a region of which no page is known: all pages of it that may be mapped (Mappable)
//           become resident at once, zeros, in frames that lie side by side, and one mapping leads to them. The budget
//           is charged for all of them; the kernel gives memory when they are touched. What may be mapped later comes later
//   reach   an access at its own address found a page that is not mapped there: freed and used again, protected until now
//   empty   a part is discarded that stays in use: its frames stay, the memory file gets a hole
//   cut     a part is freed or protected: it becomes inaccessible at its own addresses
//   unmap   the whole region does, before a page of it is evicted
//
// No region is mapped any more after end(): when there is no room for another one, when a page is about to be evicted for
// whatever reason, and when the cache's user says so. Those that are mapped then stay until they are unmapped.
//
// Invariants
//  1 whoever stores to a page by its own address leaves no trace, so that a page of a mapped region is never verified, and
//    its frame is not watched while it is mapped
//  2 a page is locked, for whatever reason, and then unmapped, before anybody relies on its content or frame: the unmapping
//    is the barrier for accesses at its own address, as the scan of the slots is for translated ones
//  3 what is mapped lies in frames that are kOwn: all is unmapped before a fork
//
// Thread contract: a region's state is guarded by the lock of its partition; what is any() and is_on() anybody may ask.
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
};

// What the cache's user says of addresses.
class Mappable {
 public:
  // Makes [begin, end), whole OS pages of one region, the first part of it that may be reached at its own addresses. False if
  // nothing of it may. Asked under the partition's lock: takes no lock.
  virtual bool find(uint64_t& begin, uint64_t& end) = 0;
  // No region is mapped any more; told once. As find.
  virtual void ended(RegionsEnd why) = 0;

 protected:
  ~Mappable() = default;
};

class Regions {
 public:
  // Of all addresses from 0 to address_end. Errors: ENOMEM.
  base::Expected<void> open(uint64_t address_end);
  void close();

  void begin(Mappable& mappable) {
    mappable_ = &mappable;
    is_on_.store(true, std::memory_order_release);
  }
  // A region that somebody is about to map may still become mapped.
  void end(RegionsEnd why) {
    if (is_on() && is_on_.exchange(false, std::memory_order_seq_cst)) mappable_->ended(why);
  }
  bool is_on() const { return is_on_.load(std::memory_order_seq_cst); }
  // May anything be mapped? Not, if so, for good, unless is_on(). Pairs with begin_mapping, in this order.
  bool any() const { return is_on() || mapped_count_.load(std::memory_order_seq_cst) != 0; }
  // REQUIRES: begin() was called.
  Mappable& mappable() { return *mappable_; }

  bool is_mapped(uint64_t address) const {
    return mapped_count_.load(std::memory_order_relaxed) != 0 && of(address) != 0;
  }
  // The first of the region's frames, if it is mapped. Later pages of it need not lie there.
  FrameId first_frame(uint64_t address) const {
    const uint32_t found = of(address);
    return found == 0 ? base::kNoFrame : FrameId{found - 1};
  }
  // Around mapping a region: false if that is over. note_mapped, or note_unmapped if it failed, comes after it.
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
  std::atomic<bool> is_on_{false};
  std::atomic<uint64_t> mapped_count_{0};
  std::atomic<uint64_t> lowest_{~uint64_t{0}};
  std::atomic<uint64_t> highest_end_{0};
};

}  // namespace cache
