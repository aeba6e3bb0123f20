// Index: where each key's record is, in 8 bytes of memory a key. (uDepot, section 4.2)
//
// A directory of hopscotch tables (table.h). The index knows hashes, not keys: what it finds for a hash are candidates, which the
// caller tells apart by reading the keys. With whole tags one lookup in a million or fewer finds a wrong one.
//
//   hash   | .. the tag, as long as it is .. | depth bits: which table | 15 bits: home |
//                                                                               bit 0 ^
//
// Growth, a table at a time. A table that has no room for an entry is split: a child takes those whose next bit of the tag is 1.
// They are moved a region at a time, by inserts: the one that found no room moves its own region, and each later one the
// next. A region's word says by how many bits its homes are chosen, so that everybody finds the right table whatever has been
// moved, from any table, by going to a child where the hash has a 1 that the table has not, and to the parent where the region has
// no homes: the directory only shortens this walk, and may be behind. Shrinking is the same in reverse. Nothing is ever freed but
// the memory behind slots of a merged child, which reads as zeros then: lookups need no protection from that.
//
// Invariants
//  1 lookups take no lock and store nothing. Theirs is what stood in the neighbourhood at one time during the call
//  2 an entry is in one table, and what has been inserted is found until it is removed, whatever is being moved
//  3 a change (split or merge) is under its table's change_lock. Locks are taken in the order: a parent's change_lock, its
//    child's, a region's of the parent, the next region's, those of the child
//  4 a table's split begins when no change between it and its parent is under way, and ends before the next one; a merge takes a
//    child that has no children of its own
//  5 while images are taken there are no merges: an entry is in the same table as before, or in a later one
//  6 an entry changes, and a scan passes it, under the lock of its home's region; a split or merge that moves it holds this lock of both
//    tables. Hooks are called under it. So of a cursor that only scans' hooks move, the hook of a change finds out for good whether the
//    entry's position has been passed: if not, it can hand over what was there, and whoever scans sees that or what is there then
//
// Insert, replace and remove lock one region, or two at its end. No call does I/O, and none waits for another thread but for these
// locks. All may be called by any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "kv/index/hook.h"
#include "kv/index/table.h"
#include "kv/index/table_image.h"

namespace kv {

// A record's place, and its size as its entry tells it.
struct Location {
  uint64_t address = 0;  // of its first grain; less than EntryFormat::addresses()
  uint32_t size = 0;     // size_code
  bool found = false;    // else there is no candidate, and the rest is 0
};

// What a step of a scan has seen: all entries with positions in [begin, end).
struct ScanStep {
  uint64_t begin = 0;
  uint64_t end = 0;
  size_t count = 0;
};

struct IndexCounts {
  uint64_t entries = 0;
  uint64_t tables = 0;
  uint64_t memory_bytes = 0;   // of the tables in use, and what describes them
  uint64_t regions_moved = 0;  // since the index was opened
  unsigned depth = 0;          // bits of the hash that the directory goes by
};

class Index {
 public:
  static constexpr size_t kCandidatesMax = kNeighbourhood;
  static constexpr size_t kScanMax = kRegionSlots + kNeighbourhood - 1;
  static constexpr uint64_t kScanEnd = ~uint64_t{0};  // no hash's position

  // An index with one empty table. 18 <= address_bits <= 40. Errors: ENOMEM.
  // It takes memory as it grows, for eight tables of 256 KiB at a time.
  static base::Expected<Index*> open(unsigned address_bits);
  void close();

  // Gets the memory for the next eight tables, if it is not there. For a thread in the background, from time to time: the insert
  // that needs it waits some 0.2 ms for it otherwise. Returns false when there is none.
  bool prepare();
  // Grows until so many entries fit. REQUIRES: nobody else uses the index. Returns false when there is no memory.
  bool reserve(uint64_t entries);

  // The first candidate. Cost: a cache miss or two in a large index, a few dozen instructions.
  Location find(uint64_t hash) const;
  // The first candidate of each, whose cache misses overlap. REQUIRES: found.size() == hashes.size().
  void find(std::span<const uint64_t> hashes, std::span<Location> found) const;
  // Memory for find_all(), which is not cleared first: two KiB of it for each change of a key would be.
  class Candidates {
   public:
    operator std::span<Location, kCandidatesMax>() {
      return std::span<Location, kCandidatesMax>(reinterpret_cast<Location*>(bytes_), kCandidatesMax);
    }
    const Location& operator[](size_t i) const { return reinterpret_cast<const Location*>(bytes_)[i]; }

   private:
    alignas(Location) std::byte bytes_[kCandidatesMax * sizeof(Location)];
  };
  // All candidates as they were at one time. Returns how many there are.
  size_t find_all(uint64_t hash, std::span<Location, kCandidatesMax> found) const;
  // That of these with this address, if there is one.
  Location find_at(uint64_t hash, uint64_t address) const;
  // Begins to bring what a change for this hash will look at into the cache.
  void prefetch(uint64_t hash) const;

  enum class Inserted {
    kDone,
    kOther,  // nothing was done: there is a candidate whose address is not among `known`; its key may be the same
    kFull,  // nothing was done: no room, and growth cannot tell the entries apart, or has no memory
  };
  // The hook of these three is called if the change is made, once, with what was there (insert: nothing), before anybody sees that.
  Inserted insert(uint64_t hash, uint64_t address, uint32_t size, std::span<const uint64_t> known,
                  const Hook<Location>& hook = {});
  // The entry with this address gets another one, and a whole tag. False if it is not there any more.
  bool replace(uint64_t hash, uint64_t address, uint64_t new_address, uint32_t new_size,
               const Hook<Location>& hook = {});
  bool remove(uint64_t hash, uint64_t address, const Hook<Location>& hook = {});

  // A scan of all entries while other threads do what they like, by positions: hashes ordered by their home's region, then by the
  // bits that growth goes by, the first one first. What a region of a table holds is an interval of these, which a split halves and a merge
  // doubles.
  //
  //   for (uint64_t at = 0; at != Index::kScanEnd; at = step.end) {
  //     step = index.scan(at, found);
  //     for (const Location& location : found.first(step.count))
  //       if (Index::position_of(hash) >= at) use(location);   // hash is that of the key in the record there
  //   }
  //
  // A merge may bring positions below `at` back, which earlier steps have seen. A key that is there throughout is seen once.
  // Fills `found` with all entries of the region that has the position, and calls the hook. REQUIRES: `at` is 0 or an earlier step's end
  // but kScanEnd, found.size() >= kScanMax. Others wait for this region meanwhile, some 5 us.
  ScanStep scan(uint64_t at, std::span<Location> found, const Hook<ScanStep>& hook = {}) const;
  static uint64_t position_of(uint64_t hash);

  // Images of all tables, one after the other, while other threads do what they like:
  //
  //   index.begin_images();
  //   for (uint32_t number = 0; number < index.table_count(); ++number)
  //     if (index.image(number, image)) keep(image);
  //   index.end_images();
  //
  // What is in the index all the time is in one of them, or in two that a split has brought it through. What is in an image was in
  // the index when its region was copied. Tables are not merged meanwhile; end_images() makes up for it. One thread at a time.
  void begin_images();
  void end_images();
  // All that there have been, and may still be: children have higher numbers than their parents.
  uint32_t table_count() const { return table_count_.load(std::memory_order_acquire); }
  // Copies a table, 256 KiB. False: it has no homes, and there is nothing to keep. Where others change it all the time, they wait some
  // 20 us. REQUIRES: number < table_count(), begin_images().
  bool image(uint32_t number, TableImage& to) const;

  // Restores what a set of images holds, in parts that several threads share: restore_shape() of each image, in any order, by one thread at a
  // time; restore_slots() of those whose shape is known, once each, by any. Then, by one thread, join_images(); sift() for each
  // number < table_count(), by any; by one, end_restore(). Images may come from anywhere: errors are EBADMSG, one that no table can have, or
  // images that do not fit together, and ENOMEM. The index is to be closed then. REQUIRES: it is as it was opened, and nobody else uses it.
  base::Expected<void> restore_shape(const TableShape& shape);
  base::Expected<void> restore_slots(const TableImage& image);
  base::Expected<void> join_images();
  // Calls stays(address, size) -> bool for each entry. One that was replaced while images were taken may be there twice, with both
  // addresses: the caller knows what was written since.
  template <class Stays>
  void sift(uint32_t number, const Stays& stays) {
    sift(
        number,
        [](const void* context, uint64_t address, uint32_t size) {
          return static_cast<bool>((*static_cast<const Stays*>(context))(address, size));
        },
        &stays);
  }
  void end_restore();

  IndexCounts counts() const;
  const EntryFormat& format() const { return format_; }

  // Invariants of all tables, for tests; nobody else may use the index meanwhile. Ends the process where one does not hold.
  void verify() const;

 private:
  explicit Index(unsigned address_bits) : format_(address_bits) {}

  struct Chunk;

  // Lookups and changes of entries.
  Table* guess(uint64_t hash) const;
  static void prefetch_lookup(const Table& table, uint32_t home);
  template <class Look>
  void search(uint64_t hash, const Look& look) const;
  template <class Do>
  auto locked(uint64_t hash, bool both, const Do& act) const;
  template <class Take>
  void candidates(const Table& table, uint64_t hash, unsigned depth, const Take& take) const;
  Location location(uint64_t entry) const;

  using Keep = bool (*)(const void* context, uint64_t address, uint32_t size);
  Table* restored_child(Table& table, unsigned bit);
  bool set_goals(Table& table);
  bool deepen(Table& table, uint32_t region);
  void sift(uint32_t number, Keep keep, const void* context);

  // Growth and shrinking. REQUIRES of those that name a change: the table's change_lock.
  Table* new_table(Table* parent, uint64_t prefix, unsigned depth);
  Table* child_of(Table& table, unsigned bit);
  static Chunk* new_chunk(bool huge);
  static void free_chunk(Chunk* chunk);
  Table& table(uint32_t number) const;
  bool grow(Table& table, uint32_t region, unsigned depth);
  void help(Table& table);
  void shrink(Table& table);
  void try_merge(Table& parent, Table& child);
  bool split(Table& table, uint32_t region, unsigned depth);
  bool begin_split(Table& table);
  void begin_merge(Table& table, Table& child);
  bool move_region(Table& table, uint32_t region);
  bool finish_split(Table& table);
  static bool is_to_move(const Table& table, uint32_t region);
  void end_change(Table& table, Table& child);
  bool move_out(Table& table, Table& child, uint32_t region);
  bool move_back(Table& table, Table& child, uint32_t region);
  void publish(Table& child, Table& table);

  const EntryFormat format_;
  std::atomic<uint64_t> directory_mask_{0};  // grows only; published after what it lets be read
  std::atomic<Table*>* directory_ = nullptr;
  Chunk** chunks_ = nullptr;
  std::atomic<uint32_t> table_count_{0};  // all that there have been
  std::atomic<uint32_t> live_count_{0};   // those with homes
  std::atomic<uint64_t> regions_moved_{0};
  // No merge begins. Stored before, and read under, a table's change_lock.
  std::atomic<bool> is_imaged_{false};
  uint32_t image_count_ = 0;  // restored
  sys::Mutex memory_lock_;    // of what follows, and of the directory's changes; the last lock taken
  std::atomic<Chunk*> spare_{nullptr};  // for tables to come; without the lock, a hint
};

}  // namespace kv
