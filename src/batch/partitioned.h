// Partitioned: staging by each session for itself, without locks, in buffers that are written past the CPU's cache; a region's are merged when one of
// them is full, and made together while its part of the table is in the cache.
//
//   lane            of a session, one after the other: for each region
//     lines         what comes next, in the CPU's cache, until a line is full: two in turns, so that who looks at one finds out by the count that it
//                   was written over
//     buffer        | record 0 | record 1 | ...         |   whole lines, streamed; only the last, open one is not there yet
//     stamps        when each was staged: the CPU's clock at the begin of its call, counted from the region's first one; only where there are several
//                   lanes
//     codes         what is to be done with each
//
//  1 a session appends to its own lane, and publishes the count. Nobody waits for anybody
//  2 who makes a region's changes has its lock. It takes the changes of all lanes, by their stamps: what had returned before another call began
//    comes first. Those of calls that have not returned yet, or that began since it looks, it leaves for later
//  3 a call drains its streams before it says that it has ended. Where the lane of a call that is under way has something in the region, its lines
//    of earlier calls may still be on their way: who wants to read them has all processors pass a barrier
//  4 the owner alone empties a lane's region: when all of it has been made, with the region's lock
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
  // Of a lane, at least.
  static constexpr uint64_t kLaneBytesMin = 64 << 10;
  // Errors: EINVAL: less than that; ENOMEM.
  static base::Expected<std::unique_ptr<Staging>> make(const Shape& shape, uint64_t lane_bytes,
                                                       uint64_t key_space, uint64_t home_count,
                                                       bool has_barrier);
  ~Partitioned() override;

  Staged put(Session& session, Job& job) override;
  Staged settle(Session& session, const Job& job) override;
  Staged flush(Session& session) override;
  base::Expected<StagingLane*> open_lane() override;
  void close_lane(StagingLane* lane) override;
  uint64_t staged_count() const override;
  uint64_t memory_bytes() const override;

 private:
  static constexpr uint32_t kLanesMax = 256;
  struct Region;
  struct Lane;
  struct Part;

  Partitioned(const Shape& shape, const Spread& regions) : shape_(shape), regions_(regions) {}
  template <class Sizes>
  bool put_all(Session& session, Job& job, Lane& lane, uint64_t stamp);
  static void note_code(Region& region, uint8_t* codes, uint32_t count, uint32_t code);
  void begin_stamps();
  bool look(Lane& lane, uint64_t number, const Lane* own, uint64_t limit, Part& part) const;
  uint32_t look_at_all(uint64_t number, const Lane* own, Part* parts) const;
  void fetch(const Session& session, uint64_t number, uint32_t changes) const;
  bool make_own(Session& session, Lane& own, uint64_t number, Part& part) const;
  template <class Sizes>
  bool make_merged(Session& session, std::span<Part> parts) const;
  bool make_region(Session& session, uint64_t number);
  bool may_have(uint64_t number, const Key& key, const Lane* own);

  const Shape shape_;
  const Spread regions_;
  bool (Partitioned::*make_merged_)(Session&, std::span<Part>) const = nullptr;
  bool (Partitioned::*put_)(Session&, Job&, Lane&, uint64_t) = nullptr;
  std::atomic<bool> has_stamps_{false};  // from the second lane on
  bool streams_ = false;                 // with the kernel's barriers alone
  uint32_t capacity_ = 0;                // entries of a region in a lane
  uint64_t buffer_bytes_ = 0;            // of these
  HugeMemory locks_memory_;
  sys::Mutex* locks_ = nullptr;  // of regions
  sys::Mutex lanes_lock_;
  std::atomic<uint32_t> lane_count_{0};  // lanes come, and none goes
  Lane* lanes_[kLanesMax] = {};
};

}  // namespace batch
