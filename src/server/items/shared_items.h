// SharedItems: what all workers of a server share of its items: the store, locks, what is known of flushes, counts.
//
// How all items are flushed
//  1 all locks of updates are taken (update_locks.h): what was read before is not written after
//  2 a record of the server's own is put. Its version is the floor: items with a lower one are not there any more
//    (kv::Store::forget_below), and their room comes back by the store's own collection. A cache gives no item another version meanwhile
//  3 the store is told of the floor; the locks are given back
// For each key this is at one moment within the call: a change that has ended before it is gone, one that begins afterwards stays. At the
// next start the record says the same. A store that is full takes no record: there the floor comes first, and makes the room.
//
// A flush that is to come at a time is kept in the record, with the floor as it is. Whoever comes first after that time, with any call, makes
// it before anything else: what was written before the time, also after the command, is gone. The last command counts: a flush at once,
// or another time, ends one that is to come.
//
// Thread contract: open and close by one thread or task, the rest by any.
#pragma once
#include <atomic>
#include <cstdint>

#include "kv/store.h"
#include "server/items/hot_table.h"
#include "server/items/update_locks.h"
#include "sys/lock.h"

namespace server {

struct ItemsOptions {
  uint64_t value_bytes_most = 1 << 20;  // up to kValueBytesMost
  size_t hot_words = 1 << 16;           // as HotTable::open()
};
inline constexpr uint64_t kValueBytesMost = kv::kValueBytesMax - 16;

// Calls since the server was started, by what came of them, as memcached's stats have them.
enum class Count : uint8_t {
  kGetHits,
  kGetMisses,
  kSets,  // all that store a value
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
  kCasOthers,  // another cas
  kFlushes,
  kAnew,  // updates that began anew, since others had changed the item
};
inline constexpr size_t kCounts = static_cast<size_t>(Count::kAnew) + 1;

struct ItemCounts {
  uint64_t counts[kCounts] = {};
  uint64_t operator[](Count count) const { return counts[static_cast<size_t>(count)]; }
};

// 64 KiB and more: none for a task's stack.
class SharedItems {
 public:
  // Finds what was flushed, and is to be. The store outlives it. Errors: EBADMSG for a record that is damaged or of a later version, EINVAL
  // for a limit beyond kValueBytesMost, ENOMEM, those of the store.
  base::Expected<void> open(kv::Store& store, const ItemsOptions& options);
  // REQUIRES: no Items are open.
  void close();

  kv::Store& store() const { return *store_; }
  // Of all Items, open ones and those that were.
  ItemCounts counts();
  // When all items are to be flushed, ms since 1970; 0: it is not to come.
  uint64_t flush_at_ms() const { return flush_at_ms_.load(std::memory_order_relaxed); }

 private:
  friend class Items;
  friend class Walk;
  // Of one Items, which alone adds to it.
  struct Place {
    std::atomic<uint64_t> counts[kCounts] = {};
    Place* next = nullptr;
  };
  void add(Place& place);
  void remove(Place& place);
  static void sum(const Place& place, ItemCounts& all);

  // Errors: those of the store; nothing may have been flushed, or all.
  base::Expected<void> flush(kv::Session& session);
  base::Expected<void> flush_at(kv::Session& session, uint64_t at_ms);
  // Cost, while none is to come: a load.
  void flush_if_due(kv::Session& session) {
    if (flush_at_ms() != 0) flush_if_past(session);
  }
  void flush_if_past(kv::Session& session);
  base::Expected<void> flush_under_locks(kv::Session& session);
  // What has ended by now has lower ones.
  uint64_t next_sequence() const { return store_->counts().log.sequence + 1; }
  bool is_past() const {
    const uint64_t at_ms = flush_at_ms();
    return at_ms != 0 && at_ms <= store_->clock().now_ms();
  }

  kv::Store* store_ = nullptr;
  ItemsOptions options_;
  UpdateLocks locks_;
  HotTable hot_;
  std::atomic<uint64_t> flush_at_ms_{0};  // changes under the locks
  sys::Mutex lock_;                       // of what follows
  Place* first_ = nullptr;
  ItemCounts ended_;
};

}  // namespace server
