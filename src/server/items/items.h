// Items: what the commands of memcached's and Redis's clients do to a key-value store. Calls and outcomes are typed; what they look like on the wire
// is left to the protocols.
//
//   SharedItems shared;
//   shared.open(*store, {});                      one for a server
//   Items items;
//   items.open(shared);                           one for each thread, or for the tasks of each worker
//   items.set("key", bytes, {.flags = 1});
//   items.get("key")->value();
//
// How an item is changed if the change depends on the item (update()):
//  1 a flush that is due is made first (shared_items.h)
//  2 the lock of the key is taken (update_locks.h)
//  3 the item is read, and it is decided what it becomes
//  4 that is written, on the condition that the item still has the version that was read, or is still absent. If the condition does not hold, 3 and
//    4 are repeated, up to kMaxRounds times; after UpdateLocks::kRoundsAlone the update keeps others out (it is in a fight)
// So the item is read twice, the second time by the store, which compares versions. A change that does not depend on the item, or only on whether
// there is one, is a single call of the store.
//
// For its key each call happens at one moment, the same one for all clients, as the store's calls do. So does a flush, for all keys. A call with
// many keys is as many calls with one. A task that has all items to itself (isolation.h) waits for the calls that are under way, and others begin
// theirs afterwards; for it get_some() and set() of many keys are one call for each group of keys that they read or write together.
//
// Thread contract: of one thread, or of the tasks of one worker. The caller keeps the keys and values that it passes until the call returns. An item
// that was found holds memory of this object, and must be destroyed before it is closed.
//
// Errors of all calls: EINVAL for a key of more than kMaxKeyBytes bytes, EBADMSG for a value that is no item, ENOMEM, those of the store
// (kv::Session). Calls that change an item also return EBUSY, when others change it all the time.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "server/items/change.h"
#include "server/items/expiry.h"
#include "server/items/item.h"
#include "server/items/shared_items.h"

namespace server {

enum class Mode : uint8_t { kSet, kAdd, kReplace, kAppend, kPrepend };

struct SetOptions {
  Mode mode = Mode::kSet;
  // kAppend and kPrepend leave the flags and the expiry of the item as they are.
  uint32_t flags = 0;
  uint64_t expires_ms = kNever;
  bool keeps_expiry = false;  // the new item ends when the old one would have, if there is one
  // There must be an item with this cas; none has 0. Not for kAdd.
  std::optional<uint64_t> cas = std::nullopt;
  // `cas` may also be lower than the item's: then the new item is stale, and ends when the old one would have (ms with I).
  bool takes_lower_cas = false;
  uint64_t own_cas = 0;  // the cas of the new item; 0: its version
  // For kAppend and kPrepend: if there is no item, one is made that ends then.
  std::optional<uint64_t> makes_until_ms = std::nullopt;
};

// One of many items that are set by one call.
struct NewItem {
  std::string_view key;
  kv::Bytes value;
  uint32_t flags = 0;
  uint64_t expires_ms = kNever;
};

struct FetchOptions {
  // The call counts as a get, and marks the item as used. False: it only touches the item, which marks it, too; or it shows the item, or follows a
  // get of the same request.
  bool is_get = true;
  bool leaves_no_trace = false;                       // it counts, but does not mark the item as used
  std::optional<uint64_t> expires_ms = std::nullopt;  // when the item is to end from now on
  // If there is no item, an empty one is made that ends then, and that the caller has claimed (mg with N).
  std::optional<uint64_t> makes_until_ms = std::nullopt;
  uint64_t own_cas = 0;  // of the item that is made
  // The caller claims an item that nobody has claimed, if it ends before this time (mg with R), or, with claims_stale, if it is stale.
  uint64_t claims_before_ms = 0;
  bool claims_by_new_expiry = false;  // claims_before_ms is compared with when the item is to end from now on
  bool claims_stale = false;
};

struct Fetched {
  Item item;                 // as it was before the call, also in item.marks(); not found: there was none
  bool is_made = false;      // there is an empty one now
  bool has_claimed = false;  // the caller is the one that has to store it anew (W)
  // As they are after the call; 0 and kNever if there is no item.
  uint64_t cas = 0;
  uint64_t expires_ms = kNever;
  HotTable::Facts facts;  // as they were before the call
};

struct InvalidateOptions {
  std::optional<uint64_t> cas = std::nullopt;  // as of SetOptions
  uint64_t own_cas = 0;
  bool makes_stale = true;  // md with I
  bool empties = false;     // md with x: the value and the flags go, and so does the expiry
  std::optional<uint64_t> expires_ms = std::nullopt;  // when the item is to end from now on
};

struct AddOptions {
  uint64_t delta = 1;
  bool is_decrease = false;
  uint64_t cas = 0;                                   // the item must have this one; 0: any
  uint64_t own_cas = 0;                               // as of SetOptions
  std::optional<uint64_t> expires_ms = std::nullopt;  // when an item that was there is to end from now on
  // If there is no item, one is made with this number, which ends at initial_expires_ms.
  std::optional<uint64_t> initial = std::nullopt;
  uint64_t initial_expires_ms = kNever;
};

template <class Number>
struct Added {
  Outcome outcome = Outcome::kDone;
  // Of the item after the call.
  Number number = 0;
  bool is_made = false;
  uint64_t cas = 0;
  uint64_t expires_ms = kNever;
  uint64_t former_expires_ms = kNever;  // of add(): the item's before the call
};

struct ExpireOptions {
  // Conditions of Redis's EXPIRE: all that are set must hold. An item that never ends counts as one that ends later than any other.
  bool if_never = false;         // NX: so far the item never ends
  bool if_ends = false;          // XX: so far it ends some time
  bool if_later = false;         // GT: the new time is later
  bool if_sooner = false;        // LT: the new time is sooner
  bool leaves_no_trace = false;  // the item is not marked as used
};

class Items {
 public:
  // To be called by the thread that will use it, or by a task of the worker that will. `depth` and errors: as of kv::Session::open.
  base::Expected<void> open(SharedItems& shared, size_t depth = 128);
  // REQUIRES: no item that was found is left.
  void close();

  // Cost: one I/O; for a large value two.
  base::Expected<Item> get(std::string_view key);
  // As get(), but it is not counted, and the item is not marked as used.
  base::Expected<Item> look(std::string_view key);
  // Looks up the first keys together, until their values have kFoundBytes, since a client that asks for many may take them slowly: at least one key,
  // at most kv::MultiGet::kGroup. Then calls use(base::Expected<Item>&) for each of these keys, in their order, with what get() would return, and
  // returns how many they are; no task that wants to be alone waits for `use`. An item that `use` does not take is destroyed before the next one, so
  // that only one large value at a time has memory. REQUIRES: there is a key. Cost: as of kv::MultiGet::get.
  static constexpr uint64_t kFoundBytes = 1 << 20;
  template <class Use>
  size_t get_some(std::span<const std::string_view> keys, const Use& use) {
    return get_some(keys, &use, [](const void* context, base::Expected<Item>& item) {
      (*static_cast<const Use*>(context))(item);
    });
  }
  // All that memcached's gat and mg do. Cost: as get(), and an update if the item is changed.
  base::Expected<Fetched> fetch(std::string_view key, const FetchOptions& options);
  // Part of the value of an item that was found (item.h).
  base::Expected<size_t> read(Item& item, uint64_t offset, std::span<std::byte> to) {
    return item.read(session_, offset, to);
  }

  // Outcomes: kAbsent, kPresent, kOtherCas, kTooLong. `before`, if not null, becomes the item that was there (Redis's SET with GET), which counts as a
  // get, too. Cost: one put for kSet and kAdd without cas, keeps_expiry and `before`; else an update.
  base::Expected<Done> set(std::string_view key, kv::Bytes value, const SetOptions& options = {},
                           Item* before = nullptr);
  base::Expected<Done> set(const NewItem& item) {
    return set(item.key, item.value, {.flags = item.flags, .expires_ms = item.expires_ms});
  }
  // Each result is what set() would return, were they set one after the other. REQUIRES: as many results as items. Cost: as of kv::MultiPut::put.
  void set(std::span<const NewItem> items, std::span<base::Expected<Done>> results);
  // Redis's SETRANGE: writes the bytes over the value from `offset` on. A value that is shorter is filled up with zeros first; without bytes nothing
  // is changed. Outcomes: kTooLong.
  base::Expected<Done> set_range(std::string_view key, uint64_t offset, kv::Bytes bytes);
  // `before` is as of set(). Outcomes: kAbsent, kOtherCas. Cost: without cas and `before` one remove; else an update.
  base::Expected<Done> remove(std::string_view key, std::optional<uint64_t> cas = std::nullopt,
                              Item* before = nullptr);
  // memcached's md with I or x, after which there still is an item. Outcomes: as of remove().
  base::Expected<Done> invalidate(std::string_view key, const InvalidateOptions& options);
  // The item keeps its cas, and is marked as used. Outcomes: kAbsent.
  base::Expected<Done> touch(std::string_view key, uint64_t expires_ms);
  // The same under conditions; Redis's PERSIST is kNever with if_ends. Outcomes: kAbsent, kUnmet.
  base::Expected<Done> expire(std::string_view key, uint64_t expires_ms, const ExpireOptions& options);

  // memcached's incr and decr of unsigned numbers of 64 bits: an increase wraps, a decrease stops at 0, and a number that gets shorter is padded with
  // blanks. Outcomes: kAbsent, kNotNumber, kOtherCas.
  base::Expected<Added<uint64_t>> add(std::string_view key, const AddOptions& options);
  // Redis's INCRBY: an item that is not there counts as 0. Outcomes: kNotNumber, kOverflow, kTooLong.
  base::Expected<Added<int64_t>> add_integer(std::string_view key, int64_t delta);

  // Any other change: `decide` says what becomes of the item. It may read the item, and must call nothing else of this object. Outcomes: kTooLong,
  // those of `decide`, and kAbsent when it removes an item that is not there. Without `marks_used`, having been looked at is no reason for a cache to
  // keep the item. Errors: also those of `decide`.
  base::Expected<Done> update(std::string_view key, Decision decide, Item* before = nullptr,
                              bool marks_used = true);

  // Removes all items: flush() at once, flush_at() with the first call that anybody makes after that time. There is at most one flush to come:
  // another one replaces it. After an error it is not known whether the items are gone, or will be. Cost: one put, and a wait for the updates that
  // are under way.
  base::Expected<void> flush();
  base::Expected<void> flush_at(uint64_t at_ms);
  // To be called now and then: a cache may drop the record of the flush to come, which is then written again. Cost while none is to come: a load.
  void keep_flush_to_come();

  // Call it when a client is told of an error of a call. The error is counted if it is one of the store: of the device, a damaged record, a store
  // that is full.
  void note_error(const base::Error& error);

  const kv::Clock& clock() const { return shared_->store().clock(); }
  // As kv::Session's.
  void trim() {
    session_.trim();
    pool_.trim();
  }

 private:
  friend class Walk;
  static constexpr int kMaxRounds = 1000;
  struct Group;
  struct SetGroup;

  base::Expected<StoreKey> begin(std::string_view key);
  uint64_t hash_of(std::string_view store_key) const;
  uint64_t now_s() const { return clock().now_ms() / 1000; }
  base::Expected<Item> find(std::string_view key, bool marks_used);
  base::Expected<Item> read_item(std::string_view store_key, bool marks_used = true);
  void note_get(uint64_t hash, bool is_hit);
  using UseItem = void (*)(const void* context, base::Expected<Item>& item);
  size_t get_some(std::span<const std::string_view> keys, const void* context, UseItem use);
  size_t get_group(Group& group, std::span<const std::string_view> keys, const void* context, UseItem use);
  size_t set_group(SetGroup& group, std::span<const NewItem> items, std::span<base::Expected<Done>> results);
  base::Expected<Done> set_blindly(std::string_view key, kv::Bytes value, const SetOptions& options);
  base::Expected<std::optional<Done>> apply(std::string_view store_key, uint64_t hash, Item& item,
                                            const Change& change);
  base::Expected<kv::Changed> write(std::string_view store_key, Item& item, const Change& change,
                                    const kv::PutOptions& options);
  base::Expected<kv::Changed> write_in_parts(std::string_view store_key, Item& item, const Change& change,
                                             const kv::PutOptions& options);
  base::Expected<void> copy(Item& item, const Part& part, uint64_t offset, std::span<std::byte> to);
  void count(Count count);
  void count_get(bool is_hit);
  void count_cas(Outcome outcome);

  SharedItems* shared_ = nullptr;
  SharedItems::Place place_;
  Isolation::Place calls_;
  kv::Session session_;
  storage::BufferPool pool_;  // for keys and values that are put together
};

}  // namespace server
