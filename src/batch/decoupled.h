// Decoupled: staging in cache-buckets that one thread fills while other threads empty them, without a lock for each cache-bucket.
// (cache-aware batch update, section 3.3)
//
//   cache-bucket   | half 0 | half 1 |      two cells (staged_cells.h): one half is being filled; the other is empty, or is being emptied by its flusher
//   flusher        a thread that empties a range of neighbouring cache-buckets. It has a FIFO of the halves that it has been asked to empty
//   ticket         belongs to a half that a flusher was asked to empty: this request's number among all requests to that flusher, from 1 on. The
//                  half is empty when the flusher has done that many
//
//  1 sessions take turns at being the foreground, for one call each. The foreground fills a half; when it is full, the foreground asks the flusher to
//    empty it, and goes on with the other half as soon as that one is empty
//  2 a flusher makes the changes of the halves in the order of the requests, so that the changes of a key are made in their order
//  3 a call that reads a key asks for the half that has changes of the key, and waits until it is empty
//  4 a flusher whose next change has no room in the table is stuck, and leaves its gate. A call that waits for it makes the table grow, and then lets
//    the flusher go on
//  5 flushers have sessions of their own. When somebody shuts the gates, a call that waits for a flusher leaves its gate, and comes back later
// (In the thesis there is one foreground thread, and nobody reads what is staged.)
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

  // Makes as many cache-buckets as fit into `bytes`, but not more than there are homes; and flusher_count flushers, but not more than cache-buckets.
  // Errors: ENOMEM; EAGAIN: a thread cannot be started; EINVAL: not even one cache-bucket fits.
  static base::Expected<std::unique_ptr<Staging>> make(Table& table, const Shape& shape, uint64_t bytes,
                                                       uint64_t key_space, uint64_t home_count,
                                                       uint32_t flusher_count);
  // Loses what is still staged. REQUIRES: the table's lock of growth is free.
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
  // Only the foreground uses it; but a flusher reads the count of a half that it empties.
  struct Head {
    uint64_t tickets[2];  // of the halves; 0: nobody asked to empty it
    uint32_t counts[2];
    uint32_t active;  // the half that is being filled
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
  uint32_t flusher_count_ = 0;  // of running flushers
  uint64_t regions_each_ = 0;
};

}  // namespace batch
