// Index: where each key's record is, in 8 bytes of memory a key. (uDepot, section 4.2)
//
// The index is a directory of hopscotch tables (table.h). It knows hashes, not keys: what it finds for a hash are candidates, which the caller tells
// apart by reading the keys. How often a candidate belongs to another key depends on the length of tags: with 18 bits, in one lookup in some 100,000.
//
//   hash   | .. the tag, as long as it is .. | depth bits: which table | 15 bits: home |
//                                                                               bit 0 ^
//
// Growth is a table at a time. A table that has no room for an entry is split: a child takes the entries whose tag's next bit is 1. Inserts move
// regions one at a time: the insert that found no room moves its own region, each later one the next. A region's word says how many hash bits choose
// the table of its homes. So the right table can be reached from any table, whatever has been moved: go to a child if the hash has a 1 where the
// table's bits have a 0, and to the parent if the region has no homes here. The directory only shortens this walk, and may be out of date. Shrinking
// is the same in reverse. Nothing is ever freed except the slots of a merged child, whose memory reads as zeros afterwards, so lookups need no
// protection from that.
//
// Invariants
//  1 Lookups take no lock and store nothing. They return what was in the neighbourhood at one moment during the call
//  2 An entry is in one table. What has been inserted is found until it is removed, whatever is being moved
//  3 A change (split or merge) is made under its table's change_lock. Lock order: the parent's change_lock, its child's, a region of the parent, the
//    parent's next region, the same two of the child
//  4 A table's split begins only when no change between it and its parent is under way, and ends before the table's next one begins. Only a child
//    without children of its own is merged
//  5 While images are taken there are no merges: an entry stays in its table or moves to one with a higher number
//  6 Changing an entry, or scanning past it, takes the lock of its home's region; a split or merge that moves it holds that region's lock in both
//    tables. Hooks are called under this lock. So if only scans' hooks move a cursor, the hook of a change knows for certain whether the entry's
//    position has been passed. If not, the hook can hand over the old entry, and the scanner sees either that or the present one
//
// Insert, replace and remove lock one region, or two at a region's end; an insert that finds no room in its region locks the next one as well. No call
// does I/O, and none waits for another thread except for locks.
// Thread contract: any thread, where a call does not say otherwise.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "kv/index/hook.h"
#include "kv/index/table.h"
#include "kv/index/table_image.h"

namespace kv {

// A record's address, and its size as the entry has it.
struct Location {
  uint64_t address = 0;  // of its first grain; less than EntryFormat::addresses()
  uint32_t size = 0;     // size_code
  bool found = false;    // false: there is no candidate, and the rest is 0
};

// A step of a scan has seen all entries with positions in [begin, end), `count` of them.
struct ScanStep {
  uint64_t begin = 0;
  uint64_t end = 0;
  size_t count = 0;
};

struct IndexCounts {
  uint64_t entries = 0;
  uint64_t tables = 0;
  uint64_t memory_bytes = 0;   // of the tables in use, what describes tables, and the directory
  uint64_t regions_moved = 0;  // since the index was opened
  unsigned depth = 0;          // hash bits that index the directory
};

class Index {
 public:
  static constexpr size_t kMaxCandidates = kNeighbourhood;
  static constexpr size_t kMaxScan = kRegionSlots + kNeighbourhood - 1;
  static constexpr uint64_t kScanEnd = ~uint64_t{0};  // no hash has this position

  // An index with one empty table. It takes memory as it grows, for eight tables of 256 KiB at a time. Errors: ENOMEM.
  // REQUIRES: EntryFormat::kMinAddressBits <= address_bits <= EntryFormat::kMaxAddressBits.
  static base::Expected<Index*> open(unsigned address_bits);
  void close();

  // Gets the memory for the next eight tables in advance, unless it is there. For a background thread to call from time to time: otherwise the insert
  // that needs the memory waits some 0.2 ms for it. False: out of memory.
  bool prepare();
  // Grows until this many entries fit. False: out of memory. REQUIRES: nobody else uses the index.
  bool reserve(uint64_t entries);
  // Splits tables until the tags of new entries last as long as the index can grow, and merges these no more. It has no effect unless addresses
  // have 32 bits or more, which leave tags few. Goes as far as there is memory and the entries can be separated. REQUIRES: as reserve().
  void begin_wide();

  // The first candidate. Cost: a cache miss or two in a large index, a few dozen instructions.
  Location find(uint64_t hash) const;
  // The first candidate of each hash; their cache misses overlap. REQUIRES: found.size() == hashes.size().
  void find(std::span<const uint64_t> hashes, std::span<Location> found) const;
  // Memory for find_all(): an array of Location that is not cleared first, which would cost 2 KiB of stores for each change of a key.
  class Candidates {
   public:
    operator std::span<Location, kMaxCandidates>() {
      return std::span<Location, kMaxCandidates>(reinterpret_cast<Location*>(bytes_), kMaxCandidates);
    }
    const Location& operator[](size_t i) const { return reinterpret_cast<const Location*>(bytes_)[i]; }

   private:
    alignas(Location) std::byte bytes_[kMaxCandidates * sizeof(Location)];
  };
  // All candidates as they were at one moment. Returns how many there are.
  size_t find_all(uint64_t hash, std::span<Location, kMaxCandidates> found) const;
  // The candidate with this address, if there is one.
  Location find_at(uint64_t hash, uint64_t address) const;
  // Prefetches what a change for this hash will look at.
  void prefetch(uint64_t hash) const;

  enum class Inserted {
    kDone,
    kOther,  // nothing was done: there is a candidate whose address is not among `known`; its key may be the same
    kFull,  // nothing was done: there is no room, and growth cannot separate the entries, or has no memory
  };
  // These three call their hook once if they make the change, with what was there before (insert: nothing), before anybody can see the change.
  Inserted insert(uint64_t hash, uint64_t address, uint32_t size, std::span<const uint64_t> known,
                  const Hook<Location>& hook = {});
  // The entry with this address gets the new address and size, and a whole tag. False: there is no such entry any more.
  bool replace(uint64_t hash, uint64_t address, uint64_t new_address, uint32_t new_size,
               const Hook<Location>& hook = {});
  bool remove(uint64_t hash, uint64_t address, const Hook<Location>& hook = {});

  // A scan of all entries, by position, while other threads do what they like. Positions order hashes by their home's region, then by the bits that
  // growth uses, in the order in which it uses them. A region of a table holds an interval of positions, which a split halves and a merge doubles.
  //
  //   for (uint64_t at = 0; at != Index::kScanEnd; at = step.end) {
  //     step = index.scan(at, found);
  //     for (const Location& location : found.first(step.count))
  //       if (Index::position_of(hash) >= at) use(location);   // hash is that of the key in the record there
  //   }
  //
  // This sees a key that is there throughout once: the comparison skips what earlier steps have seen, since a merge may bring back positions below `at`.
  // Fills `found` with all entries of the region that has the position, and calls the hook. Others wait for this region meanwhile, some 5 us.
  // REQUIRES: `at` is 0, or an earlier step's end other than kScanEnd; found.size() >= kMaxScan.
  ScanStep scan(uint64_t at, std::span<Location> found, const Hook<ScanStep>& hook = {}) const;
  static uint64_t position_of(uint64_t hash);

  // Images of all tables, one after the other, while other threads do what they like:
  //
  //   index.begin_images();
  //   for (uint32_t number = 0; number < index.table_count(); ++number)
  //     if (index.image(number, image)) keep(image);
  //   index.end_images();
  //
  // An entry that is in the index throughout is in one image, or in two if a split has moved it meanwhile. An image holds what was in the table when it
  // was copied. Tables are not merged meanwhile; end_images() makes up for that. One thread at a time.
  void begin_images();
  void end_images();
  // How many tables have been made; some may have been merged since. A child has a higher number than its parent.
  uint32_t table_count() const { return table_count_.load(std::memory_order_acquire); }
  // Copies a table, 256 KiB. False: it has no homes, so there is nothing to keep. Others who keep changing the table may have to wait some 20 us.
  // REQUIRES: number < table_count(); between begin_images() and end_images().
  bool image(uint32_t number, TableImage& to) const;

  // Restoring an index from a set of images, in steps that several threads share:
  //  1 restore_shape() for each image, in any order, by one thread at a time; restore_slots() once for each whose shape is known, by any thread
  //  2 join_images(), by one thread
  //  3 sift() for each number < table_count(), by any thread
  //  4 end_restore(), by one thread
  // Images are not trusted. Errors: EBADMSG: one that no table can have, or images that do not fit together; ENOMEM. After an error the index must be
  // closed. REQUIRES: the index has just been opened, and nobody else uses it.
  base::Expected<void> restore_shape(const TableShape& shape);
  base::Expected<void> restore_slots(const TableImage& image);
  base::Expected<void> join_images();
  // Calls stays(address, size) -> bool for each entry, and drops the entry if it returns false. An entry that was replaced while images were taken may
  // be there twice, with both addresses: the caller, who knows what was written since, chooses.
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

  // Checks the invariants of all tables, for tests; ends the process where one does not hold. REQUIRES: nobody else uses the index.
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

  // Growth and shrinking. Functions that continue or end a change REQUIRE the table's change_lock.
  Table* new_table(Table* parent, uint64_t prefix, unsigned depth);
  Table* child_of(Table& table, unsigned bit);
  Chunk* new_chunk(bool huge);
  char* map_slots();
  static void free_chunk(Chunk* chunk);
  Table& table(uint32_t number) const;
  bool grow_to(unsigned depth);
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
  std::atomic<uint64_t> directory_mask_{0};  // only grows; published after the entries it makes reachable
  std::atomic<Table*>* directory_ = nullptr;
  Chunk** chunks_ = nullptr;
  std::atomic<uint32_t> table_count_{0};  // how many have been made
  std::atomic<uint32_t> live_count_{0};   // those that have homes
  std::atomic<uint64_t> regions_moved_{0};
  // Images are being taken, so no merge may begin. Set before a table's change_lock is taken, read under it.
  std::atomic<bool> is_imaged_{false};
  uint32_t image_count_ = 0;  // images restored so far
  unsigned least_depth_ = 0;  // no table is merged to less; set before others use the index
  sys::Mutex memory_lock_;    // guards what follows, and changes of the directory; last in the lock order
  std::atomic<Chunk*> spare_{nullptr};      // for tables to come; read without the lock as a hint
  std::atomic<char*> last_slots_{nullptr};  // of the latest chunk; relaxed: a hint
};

}  // namespace kv
