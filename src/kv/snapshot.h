// Snapshot: all keys as they were at one moment, one after the other, while others write. (What keeps them: snapshots.h)
//
//   Snapshot snapshot;
//   snapshot.open(session);
//   for (Snapshot::Entry entry; *snapshot.next(entry);) use(entry.key, entry.value);
//   snapshot.close();
//
// Keys come in no order. They are read in groups of up to kGroup, whose reads are under way together:
//  1 The caller is first counted as a reader (readers.h). Records that are kept are taken first, so that their segments can be collected; if there are
//    none, those that the scan's last step has found and that have not been read; if there are none either, the scan makes its next step
//  2 Of a long record only the beginning is read at first: it may be a piece of a large value, which is no key's record
//  3 Records that are not part of the snapshot are left out. So are those that were changed while they were read: they are kept then, and come later
//  4 Large values are held until the next entry is asked for. Records for which there was not enough memory are read with a later group
//
// Thread contract: the session's.
#pragma once
#include "kv/store.h"

namespace kv {

class Snapshot {
 public:
  struct Entry {
    std::string_view key;
    Bytes value;               // empty for a large value
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

  // The snapshot's moment is within this call: it shows changes made before the call, and none made after it. Keys that expire later may be left out.
  // The session outlives it. Errors: EBUSY when Snapshots::kMax are open in the store, ENOMEM. Cost: no I/O.
  base::Expected<void> open(Session& session);
  // The next key and its value, valid until the next call of next() or close(); false after the last one. Errors: ECANCELED: others have changed
  // more than can be kept, or need the room, and the snapshot is over; EBADMSG for a damaged record, EIO and others of the device, ENOMEM: the
  // next call goes on after what could not be read. Cost: an I/O for each key, kGroup at a time.
  base::Expected<bool> next(Entry& entry);
  // Copies what there is of the last entry's value from `offset` on, and returns how much that is. Errors: as of next() and Session::read_value.
  base::Expected<size_t> read_value(uint64_t offset, std::span<std::byte> to);
  // Does nothing if it is not open.
  void close();

 private:
  static constexpr size_t kGroup = 64;
  // Memory for the records of a group.
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
  std::vector<Location> found_;  // by the scan's step
  storage::Buffer memory_;       // the group's
  Group* group_ = nullptr;
};

}  // namespace kv
