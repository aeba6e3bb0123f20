// Snapshot: all keys as they were at one moment, one after the other, while others write. (What keeps them: snapshots.h)
//
//   Snapshot snapshot;
//   snapshot.open(session);
//   for (Snapshot::Entry entry; *snapshot.next(entry);) use(entry.key, entry.value);
//   snapshot.close();
//
// How keys are read, a group at a time, up to kGroup, all under way together:
//  1 as a reader (readers.h), from before the rest: what is kept is taken first, so that its segments can be collected; else what the last
//    step of the scan has found and has not been read; else the next step is made
//  2 of a large record first only the beginning: it may be a piece of a large value, which is none of the keys
//  3 what is not part of the snapshot is left out. So is what was changed while it was read: it is kept then, and comes later
//  4 large values are held, until the next entry is asked for. What was too much for the memory goes back to what has not been read
//
// In no order. Thread contract: as the session's.
#pragma once
#include "kv/store.h"

namespace kv {

class Snapshot {
 public:
  struct Entry {
    std::string_view key;
    Bytes value;               // none of a large value
    uint64_t value_bytes = 0;  // of a large one too
    uint64_t version = 0;
    uint64_t expires_ms = 0;
    uint32_t flags = 0;
    bool is_large = false;
  };

  Snapshot() = default;
  ~Snapshot() { close(); }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // The moment is within this call: what was put or removed before it is so for the snapshot, what is after it is not. Keys that expire
  // afterwards may be left out. The session outlives it. Errors: EBUSY when Snapshots::kMost are open in the store, ENOMEM. No I/O.
  base::Expected<void> open(Session& session);
  // The next key, and its value, which are there until the next call; false after the last one. Errors: ECANCELED when others have
  // changed more than can be kept, or need the room: it is over. EBADMSG for a damaged record, EIO and others of the device, ENOMEM: a
  // call after one of these goes on behind what could not be read. Cost: an I/O for each key, kGroup at a time.
  base::Expected<bool> next(Entry& entry);
  // Copies what there is of the value of the last entry from `offset` on; how much. Errors: as of next(), and as Session::read_value.
  base::Expected<size_t> read_value(uint64_t offset, std::span<std::byte> to);
  // Of one that is not open: nothing.
  void close();

 private:
  static constexpr size_t kGroup = 64;
  // Of a group's records, or one.
  static constexpr uint64_t kGroupBytes = 4 << 20;
  struct Group;
  struct Item;

  base::Expected<void> fill();
  void take();
  bool scan();
  void read();
  void run(std::span<Item* const> items, bool whole);
  bool is_piece(const Item& item) const;
  void examine(Item& item, const storage::Io& io);
  bool finish();
  bool is_to_stay(Item& item);
  void reset(Item& item);
  static void make_empty(Item& item);
  base::Error canceled() const;
  base::Error failed(const Item& item) const;

  Session* session_ = nullptr;
  Store* store_ = nullptr;
  Snapshots::Member member_;
  std::vector<Location> found_;  // by a step of the scan
  storage::Buffer memory_;       // the group's
  Group* group_ = nullptr;
};

}  // namespace kv
