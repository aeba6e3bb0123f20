// Decoupled: staging in cache-buckets that one thread fills while others make them empty, without a lock for each.
// (cache-aware batch update, section 3.3)
//
//   cache-bucket   | half 0 | half 1 |      cells of changes (staged_cells.h): one half is being filled, the other one is empty, or its flusher's
//   flusher        a thread, to whom a region of neighbouring cache-buckets belongs, and a FIFO of their halves that it is to empty
//   ticket         how many halves a flusher has been asked for, this one included; it has been emptied when as many are done
//
//  1 sessions are the foreground by turns, a call each. Who is it fills a half, and when that is full asks for it and fills the other one, as soon
//    as that is done
//  2 a flusher makes the changes of the halves that it is asked for, in that order: so those of a key are made in theirs
//  3 who reads a key asks for the half that has something of it, and waits
//  4 a flusher for whose changes the table has no room is stuck, and leaves its gate. Who waits for it has the table grow, and sends it on
//  5 flushers have sessions of their own. While somebody shuts the gates, who waits for a flusher leaves its gate, and comes back
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

  // As many cache-buckets as `bytes` hold, but not more than homes; a flusher has one at least. Errors: ENOMEM, EAGAIN: no threads; EINVAL: too few
  // bytes for one.
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
  using Tickets = uint64_t[kFlushersMax];
  // The foreground's, but for the counts of halves that a flusher has.
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
