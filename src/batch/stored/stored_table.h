// StoredTable: a table of records that is larger than memory. Changes wait in memory until there are many for the same region; then the region is
// read, changed and written in one piece ("made"), one region after the other in the order in which they lie on the medium. So a change at a random
// place costs its share of a sequential read and write instead of one of each for itself. (BOSC: cache-aware batch update, section 2.1)
//
//   StoredTable table;                            table.open(store, {.shape = ..., .records = ...});
//   StoredSession session;                        session.open(table);         // one for each thread
//   Job job{.code = {Action::kUpsert}, ...};      session.run(job);            // as batch::Session's
//   session.sync();                               // what has returned is durable
//
// format.h defines the terms, and says what is on the medium.
//
//   change       is appended to the log, if there is one, and to its region's list (staged.h). Nothing is read
//   read         reads the page that may have the record, and applies the changes that wait for it: one read of the medium
//   maker        takes a region's list, reads the region's slot, makes the changes, and writes the result to another slot; or to several, if it is
//                too large for one: then these are regions of their own. The table has threads that do so when little room is left; so do callers of flush()
//   checkpoint   is taken when makers find no free slot: what was written to slots is flushed, then a new map and a superblock that names it are
//                written. After that the slots that were given up before it are free, and so is the log before the oldest change that still waits
//
// Invariants
//  1 a slot that the last checkpoint or a region refers to is not written to
//  2 a region's slot has all of its changes up to `made`, and none after it. Those are in the region's lists: first the ones in `making`, while a
//    maker works on them, then the ones in `staged`
//  3 a region's version changes when its slot or its interval does. Who has read a page without the lock compares versions before it is used
//  4 a checkpoint has no change that the log lacks: a start after a crash finds the table as it was at some moment since the last sync. Without a log
//    it finds all that was synced, and some of the later changes
//
// One lock protects lists, regions and the log's buffer. It is not held during I/O, except where the first session reads the log.
//
// Thread contract: open, add_function and close while nobody else uses the table; a session is for one call at a time; sessions come and go at any time.
#pragma once
#include <deque>
#include <vector>

#include "batch/bucket_store.h"
#include "batch/stored/change_log.h"
#include "batch/stored/merge.h"
#include "batch/stored/slots.h"
#include "batch/stored/staged.h"
#include "sys/lock.h"
#include "sys/threads.h"

namespace batch {

struct StoredOptions {
  Shape shape;           // without buckets
  uint64_t records = 0;  // how many a new table is made for; it may get more
  uint64_t key_space = 0;
  uint64_t staging_bytes = uint64_t{64} << 20;  // for changes that wait
  uint32_t makers = 8;                          // threads, kMaxMakers at most
  uint32_t slot_pages = kMaxSlotPages;          // of a new table
  storage::Device* log = nullptr;               // stays the caller's; null: no log
  uint64_t log_buffer_bytes = uint64_t{1} << 20;
};

struct StoredStatistics {
  uint64_t records = 0;  // in slots, that is without what waits
  uint64_t regions = 0, slots = 0, slots_used = 0;
  uint64_t staged = 0;  // changes
  uint64_t staging_bytes = 0;
  uint64_t keys = 0, answers = 0, missed = 0, dropped = 0;
  uint64_t regions_made = 0, changes_made = 0, checkpoints = 0;
  uint64_t log_bytes = 0;  // what a start after a crash would read
};

class StoredSession;

class StoredTable {
 public:
  static constexpr uint32_t kMaxMakers = 64;

  StoredTable() = default;
  ~StoredTable();
  StoredTable(const StoredTable&) = delete;
  StoredTable& operator=(const StoredTable&) = delete;

  // Whether there can be such a table. Errors: EINVAL, with what may be.
  static base::Expected<void> check(const StoredOptions& options);
  // How large a store for so many records has to be.
  static uint64_t store_bytes_for(const Shape& shape, uint64_t records, uint32_t slot_pages = kMaxSlotPages);
  // Opens the table in the store, or makes one, if the store has only zeros. REQUIRES: the first call for this object. Errors: EINVAL: an option is
  // wrong, or the store has a table with other ones or something else, or the log that is needed is missing, or is another one; ENOSPC: the store is
  // too small; EBADMSG: it is damaged; of I/O; ENOMEM.
  base::Expected<void> open(BucketStore& store, const StoredOptions& options);
  // Makes all changes and takes a checkpoint, after which the log is not needed. After an error the table is closed as well, and opening it again
  // finds what was synced. REQUIRES: no sessions. Does nothing if the table is not open.
  base::Expected<void> close();
  // As Table's. Changes in the log refer to functions by number: a table gets the same ones in the same order each time that it is opened.
  uint8_t add_function(const Change& change);

  const StoredOptions& options() const { return options_; }
  uint64_t slot_bytes() const { return uint64_t{slot_pages_} * kPageBytes; }
  // All of one moment. Any thread. Cost: a look at each region, under the lock.
  StoredStatistics statistics();

 private:
  friend class StoredSession;
  static constexpr uint32_t kNone = ~uint32_t{0};
  // Chunks that sessions leave free.
  static constexpr uint32_t kChunksLeft = 4;
  // A list that is so long is made before others, since a maker takes memory for each of its changes.
  static constexpr uint32_t kLongList = 1 << 18;

  struct Region {
    // Where in the log the record begins that has the list's first change.
    uint64_t staged_from = 0, making_from = 0;
    StagedChanges::List staged, making;
    uint32_t version = 0;
    bool is_making = false;
    MapEntry entry;
    uint64_t prefix = 0;                  // its first position
    uint32_t fences[kMaxSlotPages] = {};  // of pages: their first records' fence_of()

    // The first position of the next one; 0: it is the last.
    uint64_t end() const { return entry.depth == 0 ? 0 : prefix + (uint64_t{1} << (64 - entry.depth)); }
    uint64_t oldest() const {
      const uint64_t none = ~uint64_t{0};
      return std::min(making.is_empty() ? none : making_from, staged.is_empty() ? none : staged_from);
    }
  };
  // A region that results when a region is made, which may be the only one.
  struct Part {
    uint32_t depth = 0;
    uint64_t prefix = 0;
    uint64_t begin = 0, count = 0;  // records
    uint64_t slot = 0;
    uint32_t page_count = 0;
    uint32_t fences[kMaxSlotPages] = {};
  };
  // What a thread, or a session, has for making regions.
  struct Maker {
    std::unique_ptr<BucketStore::Access> access;
    Bytes pages, records, made_records, copies, change_bytes;
    std::span<StoredChange> changes;  // in change_bytes
    std::vector<Part> parts;
    std::vector<Merge::Interval> full;  // positions where no more records have room
  };
  struct Thread {
    StoredTable* table = nullptr;
    sys::Thread thread;
    Maker maker;
  };
  class Unlocked;

  // The first 32 bits of a position behind its region's prefix.
  static uint32_t fence_of(uint64_t position, uint32_t depth) {
    return static_cast<uint32_t>((position << depth) >> 32);
  }
  uint64_t slot_offset(uint64_t slot) const { return slot * slot_bytes(); }
  uint64_t records_of_slot() const { return uint64_t{slot_pages_} * page_records_; }

  // Opening. (stored_open.cc)
  base::Expected<bool> open_store(BucketStore::Access& access);
  base::Expected<bool> read_superblocks(BucketStore::Access& access);
  base::Expected<void> make_new();
  base::Expected<void> read_map(BucketStore::Access& access);
  base::Expected<std::vector<std::byte>> load_map(BucketStore::Access& access);
  base::Error damaged_map() const;
  base::Expected<void> open_log();
  base::Expected<void> start();
  base::Expected<void> start_alone();
  base::Expected<void> replay();
  void stop_makers();
  void forget();

  // The functions below REQUIRE the lock; those that return base::Expected let go of it meanwhile. (stored_table.cc)
  const uint32_t* directory_at(uint64_t position) const {
    return &directory_[depth_ == 0 ? 0 : position >> (64 - depth_)];
  }
  uint32_t find(uint64_t position) const { return *directory_at(position); }
  // Waits without the lock until another thread notifies, or for so long; 0: without limit.
  void wait(uint64_t timeout_ns = 0);
  base::Expected<void> wait_for_room();
  void stage(uint32_t index, Code code, const Key& key, const std::byte* key_bytes, const std::byte* given);
  // Gives the changes that were staged just now their sequences, and appends them to the log, if there is one; fill() as ChangeLog::append()'s.
  template <class Fill>
  void append(uint32_t count, const Fill& fill) {
    if (log_ != nullptr) {
      log_->append(count, fill);
      sequence_ = record_begin_ = log_->end();
    } else {
      sequence_ += count;
    }
  }
  base::Expected<void> make_log_room(Maker& maker);
  base::Expected<void> write_log(bool to_flush);
  base::Expected<void> sync_log();

  // Making. (stored_make.cc)
  static void run_maker(void* argument);
  void make_while_needed(Maker& maker);
  bool wants_making() const {
    return flusher_count_ > 0 || staged_.free_count() < low_water_ || long_list_ != kNone;
  }
  bool has_room() const { return staged_.free_count() > kChunksLeft + reserved_chunks_; }
  uint32_t choose();
  base::Expected<void> make(uint32_t index, Maker& maker);
  base::Expected<Merge::Result> make_parts(const Region& region, Maker& maker);
  base::Expected<void> write_parts(const Region& region, uint64_t made, Maker& maker);
  void put_back(Region& region, const Maker& maker);
  base::Expected<void> make_all(Maker& maker);
  base::Expected<void> make_others(uint32_t index, Maker& maker);
  base::Expected<void> tell_dropped();
  base::Expected<Merge::Result> make_records(uint64_t prefix, const MapEntry& entry, Maker& maker) const;
  base::Expected<uint64_t> read_records(const MapEntry& entry, Maker& maker) const;
  bool gather(const StagedChanges::List& list, const StagedChanges::List& more, Maker& maker) const;
  bool cut(Maker& maker, uint64_t begin, uint64_t end, uint32_t depth, uint64_t prefix) const;
  base::Expected<void> write_part(Part& part, uint64_t made, Maker& maker) const;
  base::Error damaged(uint64_t offset) const;
  void install(uint32_t index, Maker& maker, uint64_t made);
  void set_directory(const Region& region, uint32_t index);
  base::Expected<void> take_slots(Maker& maker);
  base::Expected<void> checkpoint(BucketStore::Access& access, bool is_last = false);
  uint64_t map_bytes_most() const;
  uint64_t map_slot_count() const;
  uint64_t log_tail() const;
  std::vector<std::byte> make_map() const;
  base::Expected<void> write_map(BucketStore::Access& access, std::span<const std::byte> map,
                                 std::span<const uint64_t> slots, uint64_t number) const;
  base::Expected<void> write_superblock(BucketStore::Access& access, Superblock superblock) const;

  BucketStore* store_ = nullptr;
  StoredOptions options_;
  Shape shape_;
  Positions positions_;
  uint32_t page_records_ = 0, slot_pages_ = 0;
  Change functions_[Code::kMaxFunctions];
  uint32_t function_count_ = 0;
  std::unique_ptr<ChangeLog> log_;
  std::unique_ptr<Merge> merge_;
  sys::Mutex start_lock_;  // of the next two members; taken before lock_
  bool is_started_ = false;
  base::Expected<void> started_;

  sys::Mutex lock_;  // of all members below
  sys::EventCount event_;
  Superblock superblock_;  // the newest
  StagedChanges staged_;
  std::deque<Region> regions_;
  std::vector<uint32_t> directory_;  // by the first depth_ bits of a position
  uint32_t depth_ = 0;
  uint64_t sequence_ = 0;      // of the last change
  uint64_t record_begin_ = 0;  // where the next change's record begins in the log
  // While the changes of the log are made again.
  bool is_replaying_ = false;
  uint64_t replayed_ = 0;  // the sequence of the last one that was taken

  Slots slots_;
  std::vector<uint64_t> map_slots_;  // of the last checkpoint
  bool is_checkpointing_ = false;

  std::vector<std::unique_ptr<Thread>> threads_;
  bool ends_ = false;
  uint32_t low_water_ = 0;        // makers begin when fewer chunks are free
  uint32_t reserved_chunks_ = 0;  // for parts of regions that are being written
  uint32_t writing_count_ = 0;    // makers that have slots which are no region's yet
  uint32_t long_list_ = kNone;    // a region that has one
  bool has_dropped_ = false;      // a change had no room, and nobody has been told yet
  uint32_t flusher_count_ = 0;    // callers that have all regions made
  uint64_t cursor_ = 0;           // the position at which makers go on
  // Of makers: how many errors they have met, and the last one.
  uint64_t error_count_ = 0;
  base::Error error_;
  StoredStatistics counts_;
};

// Releases the lock for a scope.
class StoredTable::Unlocked {
 public:
  explicit Unlocked(StoredTable& table) : table_(table) { table_.lock_.unlock(); }
  ~Unlocked() { table_.lock_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  StoredTable& table_;
};

class StoredSession {
 public:
  StoredSession() = default;
  StoredSession(const StoredSession&) = delete;
  StoredSession& operator=(const StoredSession&) = delete;

  // The first session of a table makes again what the log has. Errors: EINVAL: the log needs a function that was not added; EBADMSG: it is damaged;
  // ENOSPC; of I/O; ENOMEM. After an error no session of the table can be opened.
  base::Expected<void> open(StoredTable& table);

  // As batch::Session's, but what cannot be done is an error; the first job.done_count keys are done then. Errors: EINVAL: the key number done_count
  // is not in the key space, and nothing was done; ENOSPC: the store is full; EBADMSG: a page is damaged; of I/O. Cost: for changes whose outcome
  // nobody asks for, a copy or two, and on average their share of what makers do; for other keys a read of the medium each, of which up to kWindow overlap.
  base::Expected<void> run(Job& job);
  // Makes all changes that had been staged when it was called. Errors: ENOSPC: some had no room and were dropped, which is told once; or the store is
  // full; EBADMSG, ENOMEM, of I/O: what could not be made stays staged.
  base::Expected<void> flush();
  // Returns when all changes that had returned when it was called are durable. Errors: of the log's I/O; without a log flush()'s. Cost: with a log a
  // write and a flush of it, which callers share; without one a flush(), and a checkpoint.
  base::Expected<void> sync();
  // Calls visit(key, value) for each record, in the order of positions; each region is seen as it was at some moment. visit() returns whether to go
  // on. Returns whether it always did.
  template <class Visit>
  base::Expected<bool> for_each(const Visit& visit) {
    bool goes_on = true;
    for (uint64_t position = 0; goes_on;) {
      auto count = read_region(position);
      if (!count) return std::unexpected(count.error());
      const Shape& shape = table_->shape_;
      const std::byte* const records = maker_.made_records.data();
      for (uint64_t i = 0; goes_on && i < *count; ++i) {
        const std::byte* const record = records + i * shape.record_bytes();
        goes_on = visit(record, record + shape.key_bytes);
      }
      if (position == 0) break;
    }
    return goes_on;
  }

 private:
  // Keys that are answered together, and the pages that are read for them.
  static constexpr uint32_t kWindow = 64;
  static constexpr uint64_t kStretch = 4096;     // keys that are staged without releasing the lock
  static constexpr uint64_t kAhead = 8;          // keys between the steps of fetching ahead
  static constexpr uint64_t kRing = 4 * kAhead;  // positions of the keys that are fetched ahead
  // A key whose outcome or value is asked for.
  struct Wanted {
    uint32_t region = 0;
    uint32_t version = 0;
    uint64_t position = 0;
    // The pages that may have it; none where a waiting change says what the record is.
    uint32_t first_page = 0, page_count = 0;  // in the window
    uint64_t offset = 0;
    uint64_t made = 0;
    uint64_t damaged_at = 0;            // offset of a page that is damaged; 0: none is
    const std::byte* record = nullptr;  // in a page; null: no page has it
  };

  base::Expected<void> stage(Job& job);
  base::Expected<void> answer(Job& job);
  base::Expected<void> answer_window(Job& job, uint32_t count);
  uint32_t look_for(const Job& job, uint32_t most);
  void find_in_pages(const std::byte* key_bytes, Wanted& wanted) const;
  void answer_one(Job& job, const Wanted& wanted);
  // Reads the region with this position to maker_.made_records, with all changes made; returns how many records it has. Sets `position` to where the
  // next region begins; 0: there is none.
  base::Expected<uint64_t> read_region(uint64_t& position);

  StoredTable* table_ = nullptr;
  StoredTable::Maker maker_;
  Bytes pages_;  // kWindow of them
  Wanted wanted_[kWindow];
  // What was changed for answers, as entries of the log.
  std::vector<std::byte> entries_;
};

}  // namespace batch
