// SharedItems: what all workers of a server share about its items: the store, locks, isolation, counts, and the state of flushes.
//
// How all items are flushed:
//  1 all locks of updates are taken (update_locks.h), so that no update writes what follows from an earlier read
//  2 a record of the server's own is put. Its version is the floor: items with a lower version are gone (kv::Store::forget_below), and the store's
//    collector reclaims their room. From before the put until the end of 3 a cache gives no item a new version
//  3 the store is told of the floor, and the locks are given back
// For each key this happens at one moment within the call: a change that has ended before is gone, one that begins afterwards stays. At the next
// start the record says the same. A full store takes no record; there the store is told of a floor first, which makes the room.
//
// A flush that is to come at some time is kept in the record, beside the present floor. The first call of any worker after that time makes the flush
// before it does anything else, so that everything written before that time is gone, even if it was written after the command. A later command
// replaces it: a flush at once, or one at another time. A cache may drop the record, and a restart would know of no flush to come: so it is looked
// for now and then, and written anew. (If the record of a flush that was made is dropped, so is everything that is as old as the flush, or older:
// nothing comes back.)
//
// Thread contract: open() and close() by one thread or task, the rest by any.
#pragma once
#include <atomic>
#include <cstdint>

#include "kv/store.h"
#include "server/items/hot_table.h"
#include "server/items/isolation.h"
#include "server/items/update_locks.h"
#include "sys/lock.h"

namespace server {

struct ItemsOptions {
  uint64_t value_bytes_max = 1 << 20;  // up to kMaxValueBytes
  size_t hot_words = 1 << 16;          // as HotTable::open()
};
inline constexpr uint64_t kMaxValueBytes = kv::kMaxValueBytes - 16;

// How many calls there were since the server was started, by outcome, as memcached's stats count them.
enum class Count : uint8_t {
  kGetHits,
  kGetMisses,
  kSets,    // all calls that store a value, whether or not they do
  kStored,  // those that did, and gets and increments that have made an item
  kTouchHits,
  kTouchMisses,
  kDeleteHits,
  kDeleteMisses,
  kIncreaseHits,
  kIncreaseMisses,
  kDecreaseHits,
  kDecreaseMisses,
  kCasHits,
  kCasMisses,
  kCasOthers,  // the item had another cas
  kFlushes,
  kErrors,  // that clients were told (Items::note_error)
  kAnew,    // rounds of updates that began anew, because others had changed the item
};
inline constexpr size_t kCounts = static_cast<size_t>(Count::kAnew) + 1;

struct ItemCounts {
  uint64_t counts[kCounts] = {};
  uint64_t operator[](Count count) const { return counts[static_cast<size_t>(count)]; }
};

// An object has more than 64 KiB: too much for a task's stack.
class SharedItems {
 public:
  // Reads the record of flushes. The store stays open until close(). Errors: EBADMSG for a record that is damaged or of a later version, EINVAL for
  // a limit above kMaxValueBytes, ENOMEM, those of the store.
  base::Expected<void> open(kv::Store& store, const ItemsOptions& options);
  // REQUIRES: no Items are open.
  void close();

  kv::Store& store() const { return *store_; }
  // A task that is alone there has all items to itself.
  Isolation& isolation() { return isolation_; }
  // Of all Items, also those that have been closed.
  ItemCounts counts();
  // When all items are to be flushed, in ms since 1970; 0: no flush is to come.
  uint64_t flush_at_ms() const { return flush_at_ms_.load(std::memory_order_relaxed); }

 private:
  friend class Items;
  friend class Walk;
  // The counts of one Items, which alone adds to them.
  struct Place {
    std::atomic<uint64_t> counts[kCounts] = {};
    Place* next = nullptr;
  };
  void add(Place& place);
  void remove(Place& place);
  static void sum(const Place& place, ItemCounts& all);

  // Errors: those of the store; after one it is not known whether the items are gone.
  base::Expected<void> flush(kv::Session& session);
  base::Expected<void> flush_at(kv::Session& session, uint64_t at_ms);
  void keep_flush_to_come(kv::Session& session);
  // Cost while none is to come: a load.
  void flush_if_due(kv::Session& session) {
    if (flush_at_ms() != 0) flush_if_past(session);
  }
  void flush_if_past(kv::Session& session);
  base::Expected<void> flush_under_locks(kv::Session& session);
  // All changes that have ended by now have lower versions.
  uint64_t next_sequence() const { return store_->counts().log.sequence + 1; }
  bool is_past() const {
    const uint64_t at_ms = flush_at_ms();
    return at_ms != 0 && at_ms <= store_->clock().now_ms();
  }

  kv::Store* store_ = nullptr;
  ItemsOptions options_;
  UpdateLocks locks_;
  Isolation isolation_;
  HotTable hot_;
  std::atomic<uint64_t> flush_at_ms_{0};  // changed under locks_
  sys::Mutex lock_;                       // guards what follows
  Place* first_ = nullptr;
  ItemCounts ended_;
};

}  // namespace server
