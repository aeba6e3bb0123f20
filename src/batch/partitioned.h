// Partitioned: each session stages for itself, without locks, in buffers that it writes with stores that bypass the CPU's cache. When a session's buffer
// for a region is full, the changes that all sessions have staged for the region are merged and made together, while that part of the table is cached.
//
//   area            belongs to one session at a time, and has for each region:
//     lines         the open line, which is filled in the CPU's cache, and the line before it. The two take turns, so that a reader of the open line can
//                   find out from the count whether the line was overwritten meanwhile
//     buffer        | record 0 | record 1 | ...         |   whole lines, streamed past the cache; the open line is not there yet
//     stamps        when each change was staged: the CPU's clock at the beginning of the call, minus that of the region's first stamped change. Changes
//                   have stamps only if there are several areas
//     codes         what each change does
//
//  1 a session appends to its own area, and publishes the count. Nobody waits for anybody
//  2 a thread that makes a region's changes holds the region's lock, and takes the changes of all areas in the order of their stamps: if one call had
//    returned before another began, its changes come first. Changes of calls that have not returned yet, or that began after the thread looked at the
//    clock, are left for later
//  3 a call drains its streamed stores before it publishes that it has ended. While an area has a call under way, lines that it has streamed to the
//    region may not have arrived yet: a thread that reads them first makes all processors pass a barrier
//  4 only the owner of an area empties a region there: under the region's lock, when all of its changes have been made
#pragma once
#include <atomic>
#include <memory>
#include <span>

#include "base/error.h"
#include "batch/huge_memory.h"
#include "batch/spread.h"
#include "batch/staging.h"
#include "sys/lock.h"

namespace batch {

class Partitioned final : public Staging {
 public:
  // The smallest size of an area.
  static constexpr uint64_t kMinAreaBytes = 64 << 10;
  // Errors: EINVAL: area_bytes is less than kMinAreaBytes; ENOMEM.
  static base::Expected<std::unique_ptr<Staging>> make(const Shape& shape, uint64_t area_bytes,
                                                       uint64_t key_space, uint64_t home_count,
                                                       bool has_barrier);
  ~Partitioned() override;

  Staged put(Session& session, Job& job) override;
  Staged settle(Session& session, const Job& job) override;
  Staged flush(Session& session) override;
  base::Expected<StagingArea*> open_area() override;
  void close_area(StagingArea* area) override;
  uint64_t staged_count() const override;
  uint64_t memory_bytes() const override;

 private:
  static constexpr uint32_t kMaxAreas = 256;
  struct Region;
  struct Area;
  struct Part;

  Partitioned(const Shape& shape, const Spread& regions) : shape_(shape), regions_(regions) {}
  template <class Sizes>
  bool put_all(Session& session, Job& job, Area& area, uint64_t stamp);
  static void note_code(Region& region, uint8_t* codes, uint32_t count, uint32_t code);
  void begin_stamps();
  bool look(Area& area, uint64_t number, const Area* own, uint64_t limit, Part& part) const;
  uint32_t look_at_all(uint64_t number, const Area* own, Part* parts) const;
  void fetch(const Session& session, uint64_t number, uint32_t changes) const;
  bool make_own(Session& session, Area& own, uint64_t number, Part& part) const;
  template <class Sizes>
  bool make_merged(Session& session, std::span<Part> parts) const;
  bool make_region(Session& session, uint64_t number);
  bool may_have(uint64_t number, const Key& key, const Area* own);

  const Shape shape_;
  const Spread regions_;
  bool (Partitioned::*make_merged_)(Session&, std::span<Part>) const = nullptr;
  bool (Partitioned::*put_)(Session&, Job&, Area&, uint64_t) = nullptr;
  std::atomic<bool> has_stamps_{false};  // from the second area on
  bool streams_ = false;                 // only if the kernel has barriers (3)
  uint32_t capacity_ = 0;                // how many changes of one region fit into an area
  uint64_t buffer_bytes_ = 0;            // the size of their records
  HugeMemory locks_memory_;
  sys::Mutex* locks_ = nullptr;  // one for each region
  sys::Mutex areas_lock_;
  std::atomic<uint32_t> area_count_{0};  // never becomes smaller
  Area* areas_[kMaxAreas] = {};
};

}  // namespace batch
