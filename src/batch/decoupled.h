// Decoupled: staging in cache-buckets that one thread fills while others empty them, without a lock for each.
// (cache-aware batch update, section 3.3)
//
//   cache-bucket   | half 0 | half 1 |      cells of changes (staged_cells.h): one half is being filled; the other one is empty, or its flusher empties it
//   flusher        a thread that empties a region of neighbouring cache-buckets, with a FIFO of the halves that it has been asked to empty
//   ticket         of a half: how many halves its flusher had been asked for when it was asked for this one. The half is empty when the flusher has
//                  done so many
//
//  1 sessions take turns at being the foreground, a call each. The foreground fills a half; when that is full, it asks for it, and goes on with the
//    other half as soon as that is empty
//  2 a flusher makes the changes of the halves in the order in which it is asked for them, so that the changes of a key are made in their order
//  3 a call that reads a key asks for the half that has changes of it, and waits for that
//  4 a flusher whose next change has no room in the table is stuck, and leaves its gate. Whoever waits for it has the table grow, and sends it on
//  5 flushers have sessions of their own. While somebody shuts the gates, a call that waits for a flusher leaves its gate, and comes back
// (The thesis has one foreground thread, and nobody reads what is staged.)
#pragma once
#include <atomic>
#include <memory>

#include "base/error.h"
#include "batch/engine.h"
#include "batch/spread.h"
#include "batch/staged_cells.h"
#include "batch/staging.h"
#include "sys/lock.h"

namespace batch {

class Table;

class Decoupled final : public Staging {
 public:
  static constexpr uint32_t kHalfBytes = 512;

  // Makes as many cache-buckets as `bytes` hold, but not more than there are homes, and so many flushers, but not more than cache-buckets. Errors:
  // ENOMEM; EAGAIN: no threads; EINVAL: `bytes` do not hold one.
  static base::Expected<std::unique_ptr<Staging>> make(Table& table, const Shape& shape, uint64_t bytes,
                                                       uint64_t key_space, uint64_t home_count,
                                                       uint32_t flusher_count);
  // What is staged is lost. REQUIRES: the table's lock of growth is free.
  ~Decoupled() override;

  Staged put(Session& session, Job& job) override;
  Staged settle(Session& session, const Job& job) override;
  Staged flush(Session& session) override;
  bool flush_alone(Session& session) override;
  uint64_t staged_count() const override;
  uint64_t memory_bytes() const override { return cells_.memory_bytes(); }

 private:
  struct Flusher;
  using Tickets = uint64_t[kMaxFlushers];
  // The foreground's alone, except the count of a half that a flusher empties, which it reads.
  struct Head {
    uint64_t tickets[2];  // 0: it is not asked for
    uint32_t counts[2];
    uint32_t active;  // is being filled
  };

  Decoupled(Table& table, const Shape& shape, const Spread& regions);
  base::Expected<void> start_flushers(uint32_t count);
  static void run_flusher(void* flusher);
  Flusher& flusher_of(uint64_t region) const;
  uint64_t ask(uint64_t region);
  bool has(uint64_t region, uint32_t half, const Key& key) const;
  static Staged wait(const Session& session, Flusher& flusher, uint64_t ticket);
  Staged wait_for(const Session& session, const Tickets& tickets) const;
  void ask_all();
  bool empty_next(Session& session, Flusher& flusher) const;

  Table& table_;
  const Shape shape_;
  const Spread regions_;
  StagedCells cells_;  // two for each region
  Head* heads_ = nullptr;
  sys::Mutex foreground_;
  std::unique_ptr<Flusher[]> flushers_;
  uint32_t flusher_count_ = 0;  // that are running
  uint64_t regions_each_ = 0;
};

}  // namespace batch
