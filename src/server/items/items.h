// Items: what the commands of memcached's and Redis's clients mean, over a key-value store. Typed calls with typed outcomes; what they look
// like on the wire is the protocols' own.
//
//   SharedItems shared;
//   shared.open(*store, {});                      one for a server
//   Items items;
//   items.open(shared);                           one for each thread, or for the tasks of each worker
//   items.set("key", bytes, {.flags = 1});
//   items.get("key")->value();
//
// How what depends on what is there is changed (update())
//  1 a flush that is due comes first (shared_items.h)
//  2 the lock of the key is taken (update_locks.h)
//  3 the item is read, and what it is to become is decided
//  4 that is written, if the item has still the same version, or is still absent; else again from 3, after some times as who is in a fight,
//    and kRoundsMost times in all
// It is read twice, the second time by the store, which compares versions. What does not depend on what is there, or only on whether
// something is, is one call of the store.
//
// Each call is at one moment for its key, for all clients, as the store's are, and flushes too. Many keys at once are each for itself.
//
// Thread contract: of one thread, or the tasks of one worker. Values that calls are given outlive the call; what they find is in memory of
// this, which it must not outlive.
//
// Errors of all calls: EINVAL for a key of more than kKeyBytesMost, EBADMSG for what is no item, those of the store (kv::Session), ENOMEM;
// of those that change an item EBUSY, if it is changed by others all the time.
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
  uint32_t flags = 0;  // of the three that replace a value; the others, and what follows, leave the item's
  uint64_t expires_ms = kNever;
  bool keeps_expiry = false;  // instead, if there is an item
  std::optional<uint64_t> cas =
      std::nullopt;  // that of the item, which must be there then; 0 is none's. Not of kAdd
  // It may be one lower than the item's: then that stays stale, and ends when it did (ms with I).
  bool takes_lower_cas = false;
  uint64_t own_cas = 0;  // what it is to be; 0: the version
  // Of kAppend and kPrepend, when there is no item: one is made that ends then.
  std::optional<uint64_t> makes_until_ms = std::nullopt;
};

// For many that are set at once.
struct NewItem {
  std::string_view key;
  kv::Bytes value;
  uint32_t flags = 0;
  uint64_t expires_ms = kNever;
};

struct FetchOptions {
  // It counts as a get, and marks the item as used. False: it only touches or shows the item, or follows a get of the same request.
  bool is_get = true;
  bool leaves_no_trace = false;                       // it counts, but does not mark the item as used
  std::optional<uint64_t> expires_ms = std::nullopt;  // from now on
  // When there is none, an empty one is made, claimed by the caller, that ends then (mg with N).
  std::optional<uint64_t> makes_until_ms = std::nullopt;
  uint64_t own_cas = 0;  // of what is made
  // Who asks claims it, if nobody has, if it ends before this time (R), or if it is stale.
  uint64_t claims_before_ms = 0;
  bool claims_stale = false;
};

struct Fetched {
  Item item;                 // as it was before; not found: there was none
  bool is_made = false;      // there is an empty one now
  bool has_claimed = false;  // the caller is to store it anew (W). That another has before: item.marks()
  uint64_t cas = 0;          // as it is now, 0: there is none; and when it ends
  uint64_t expires_ms = kNever;
  HotTable::Facts facts;  // before the call
};

struct InvalidateOptions {
  std::optional<uint64_t> cas = std::nullopt;  // as of SetOptions
  uint64_t own_cas = 0;
  bool makes_stale = true;  // (md with I)
  bool empties = false;     // its value and flags go, and it never ends but by expires_ms (md with x)
  std::optional<uint64_t> expires_ms = std::nullopt;  // from now on
};

struct AddOptions {
  uint64_t delta = 1;
  bool is_decrease = false;
  uint64_t cas = 0;  // that of the item; 0: any
  uint64_t own_cas = 0;
  std::optional<uint64_t> expires_ms = std::nullopt;  // from now on, of an item that was there
  // When there is none, one is made with this number, that ends then.
  std::optional<uint64_t> initial = std::nullopt;
  uint64_t initial_expires_ms = kNever;
};

template <class Number>
struct Added {
  Outcome outcome = Outcome::kDone;
  Number number = 0;  // as it is now
  bool is_made = false;
  uint64_t cas = 0;
  uint64_t expires_ms = kNever;
};

// Of Redis's EXPIRE: all that are set must be met. An item that never ends counts as one that ends later than any.
struct ExpireConditions {
  bool if_never = false;   // NX: it does not end
  bool if_ends = false;    // XX: it does
  bool if_later = false;   // GT: it is to end later than it would
  bool if_sooner = false;  // LT: sooner
};

class Items {
 public:
  // By the thread, or a task of the worker, that will use it; `depth` as of kv::Session::open. Errors: those of that.
  base::Expected<void> open(SharedItems& shared, size_t depth = 128);
  // REQUIRES: nothing that was found is left.
  void close();

  // Cost: one I/O, or two of a large value.
  base::Expected<Item> get(std::string_view key);
  // As get(), but nothing counts it, nor the item as used.
  base::Expected<Item> look(std::string_view key);
  // Each is what get() would return. REQUIRES: as many results as keys. Cost: as of kv::MultiGet::get.
  void get(std::span<const std::string_view> keys, std::span<base::Expected<Item>> results);
  // All that memcached's gat and mg do. Cost: as get(), and, if it changes the item, an update.
  base::Expected<Fetched> fetch(std::string_view key, const FetchOptions& options);
  // Of an item that was found.
  base::Expected<size_t> read(Item& item, uint64_t offset, std::span<std::byte> to) {
    return item.read(session_, offset, to);
  }

  // Outcomes: kAbsent, kPresent, kOtherCas, kTooLong. `before`: if not null, gets what was there (Redis's SET with GET). Cost: of kSet
  // and kAdd without more one put; else an update.
  base::Expected<Done> set(std::string_view key, kv::Bytes value, const SetOptions& options = {},
                           Item* before = nullptr);
  base::Expected<Done> set(const NewItem& item) {
    return set(item.key, item.value, {.flags = item.flags, .expires_ms = item.expires_ms});
  }
  // Each is what set() would return of it, one after the other. REQUIRES: as many results as items. Cost: as of kv::MultiPut::put.
  void set(std::span<const NewItem> items, std::span<base::Expected<Done>> results);
  // Writes it from byte `offset` of the value on, which is made longer by zeros if it must be; of an empty `bytes` nothing (Redis's
  // SETRANGE). Outcomes: kTooLong.
  base::Expected<Done> set_range(std::string_view key, uint64_t offset, kv::Bytes bytes);
  // Outcomes: kAbsent, kOtherCas. Cost: without cas and `before`, which is as of set(), one remove; else an update.
  base::Expected<Done> remove(std::string_view key, std::optional<uint64_t> cas = std::nullopt,
                              Item* before = nullptr);
  // memcached's md, where it leaves an item. Outcomes: as of remove().
  base::Expected<Done> invalidate(std::string_view key, const InvalidateOptions& options);
  // Its cas stays. Outcomes: kAbsent.
  base::Expected<Done> touch(std::string_view key, uint64_t expires_ms);
  // Outcomes: kAbsent, kUnmet. PERSIST is kNever with if_ends.
  base::Expected<Done> expire(std::string_view key, uint64_t expires_ms, const ExpireConditions& conditions);

  // memcached's incr and decr: unsigned numbers of 64 bits; an increase wraps, a decrease ends at 0; a value that gets shorter is filled up
  // with blanks. Outcomes: kAbsent, kNotNumber, kOtherCas.
  base::Expected<Added<uint64_t>> add(std::string_view key, const AddOptions& options);
  // Redis's INCRBY: what is not there is 0. Outcomes: kNotNumber, kOverflow, kTooLong.
  base::Expected<Added<int64_t>> add_integer(std::string_view key, int64_t delta);

  // Any other change: what `decide` says of the item as it is. It may read it, and calls nothing else of this. Outcomes: kTooLong, those of
  // `decide`; kAbsent for the removal of what is not there. Errors of `decide` too.
  base::Expected<Done> update(std::string_view key, Decision decide, Item* before = nullptr);

  // All items are gone: at once, or, after this time, when anybody next calls anything; at most one is to come. With an error it is not
  // known whether they are, or will be. Cost: one put, and a wait for the updates that are under way.
  base::Expected<void> flush();
  base::Expected<void> flush_at(uint64_t at_ms);

  const kv::Clock& clock() const { return shared_->store().clock(); }

 private:
  friend class Walk;
  static constexpr int kRoundsMost = 1000;
  struct Group;
  struct SetGroup;

  base::Expected<StoreKey> begin(std::string_view key);
  uint64_t hash_of(std::string_view store_key) const;
  uint64_t now_s() const { return clock().now_ms() / 1000; }
  base::Expected<Item> read_item(std::string_view store_key);
  void note_get(uint64_t hash, bool is_hit);
  void get_group(Group& group, std::span<const std::string_view> keys,
                 std::span<base::Expected<Item>> results);
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
  void count_cas(Outcome outcome);

  SharedItems* shared_ = nullptr;
  SharedItems::Place place_;
  kv::Session session_;
  storage::BufferPool pool_;  // for keys and values that are put together
};

}  // namespace server
