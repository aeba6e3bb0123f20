// StoredTable: a table of records that is larger than memory. Changes wait in memory until there are many for the same region; then the region is
// read, changed and written in one piece ("made"), one region after the other in the order of their positions. So a change at a random place costs a
// share of a sequential read and write, instead of a read and a write of its own. (BOSC: cache-aware batch update, section 2.1)
//
//   StoredTable table;                            table.open(store, {.shape = ..., .records = ...});
//   StoredSession session;                        session.open(table);         // one for each thread
//   Job job{.code = {Action::kUpsert}, ...};      session.run(job);            // like batch::Session::run()
//   session.sync();                               // the changes of all calls that have returned are durable
//
// format.h defines the terms, and says what is on the medium.
//
//   change       is appended to the log, if there is one, and to its region's list (staged.h). Nothing is read
//   read         reads the page that may have the record, and applies the waiting changes of its key: one read of the medium
//   maker        takes a region's list, reads the region's slot, makes the changes, and writes the result to another slot; or, if it is too large for one
//                slot, to several, each of which becomes a region. The table's own threads do this when little room is left, and callers of flush() do it
//   checkpoint   is taken when makers find no free slot: what was written to slots is flushed, then a new map is written, and a superblock that refers to
//                it. After that, the slots that were given up before are free, and so is the log before the oldest change that still waits
//
// Invariants
//  1 a slot that the last checkpoint or a region refers to is not written to
//  2 a region's slot has all of the region's changes up to `made`, and none after it. Those are in the region's lists: first the ones in `making`, while a
//    maker works on them, then the ones in `staged`
//  3 a region's version changes when its slot or its interval changes. A thread that has read a page without the lock compares versions before it uses it
//  4 a checkpoint has no change that the log lacks: a start after a crash finds the table as it was at some moment since the last sync. Without a log it
//    finds everything that was synced, and some of the later changes
//
// One lock protects lists, regions and the log's buffer. It is not held during I/O, except when the first session reads the log.
//
// Thread contract: open, add_function and close while nobody else uses the table; a session is for one call at a time; sessions may be opened and closed at
// any time.
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
  Shape shape;           // bucket_bytes is not used
  uint64_t records = 0;  // how many a new table is made for; there may be more
  uint64_t key_space = 0;
  uint64_t staging_bytes = uint64_t{64} << 20;  // for changes that wait
  uint32_t makers = 8;                          // threads, kMaxMakers at most
  uint32_t slot_pages = kMaxSlotPages;          // for a new table
  storage::Device* log = nullptr;               // still belongs to the caller; null: no log
  uint64_t log_buffer_bytes = uint64_t{1} << 20;
};

struct StoredStatistics {
  uint64_t records = 0;  // in slots, that is without the changes that wait
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

  // Checks whether there can be such a table. Errors: EINVAL; the message says what is allowed.
  static base::Expected<void> check(const StoredOptions& options);
  // How large a store for this many records has to be.
  static uint64_t store_bytes_for(const Shape& shape, uint64_t records, uint32_t slot_pages = kMaxSlotPages);
  // Opens the table in the store; makes one if the store has only zeros. REQUIRES: the first call for this object. Errors: EINVAL: an option is wrong, or
  // the store has a table with other options, or something else, or the needed log is missing, or another log is given; ENOSPC: the store is too small;
  // EBADMSG: it is damaged; of I/O; ENOMEM.
  base::Expected<void> open(BucketStore& store, const StoredOptions& options);
  // Makes all changes and takes a checkpoint, after which the log is not needed. After an error the table is closed, too, and opening it again finds what
  // was synced. REQUIRES: no sessions. Does nothing if the table is not open.
  base::Expected<void> close();
  // Like Table::add_function(). Changes in the log refer to functions by number: add the same ones in the same order each time that the table is opened.
  uint8_t add_function(const Change& change);

  const StoredOptions& options() const { return options_; }
  uint64_t slot_bytes() const { return uint64_t{slot_pages_} * kPageBytes; }
  // All numbers belong to the same moment. Any thread. Cost: a look at each region, under the lock.
  StoredStatistics statistics();

 private:
  friend class StoredSession;
  static constexpr uint32_t kNone = ~uint32_t{0};
  // How many chunks sessions leave free.
  static constexpr uint32_t kChunksLeft = 4;
  // A list of this length is made before others, since a maker needs memory for each change.
  static constexpr uint32_t kLongList = 1 << 18;

  struct Region {
    // Where the log's record with the list's first change begins.
    uint64_t staged_from = 0, making_from = 0;
    StagedChanges::List staged, making;
    uint32_t version = 0;
    bool is_making = false;
    MapEntry entry;
    uint64_t prefix = 0;                  // its first position
    uint32_t fences[kMaxSlotPages] = {};  // for each page: fence_of() its first record

    // The first position of the next region; 0: this is the last one.
    uint64_t end() const { return entry.depth == 0 ? 0 : prefix + (uint64_t{1} << (64 - entry.depth)); }
    uint64_t oldest() const {
      const uint64_t none = ~uint64_t{0};
      return std::min(making.is_empty() ? none : making_from, staged.is_empty() ? none : staged_from);
    }
  };
  // When a region is made, it becomes one or more parts; each is a region afterwards.
  struct Part {
    uint32_t depth = 0;
    uint64_t prefix = 0;
    uint64_t begin = 0, count = 0;  // records
    uint64_t slot = 0;
    uint32_t page_count = 0;
    uint32_t fences[kMaxSlotPages] = {};
  };
  // What a thread or a session needs for making regions.
  struct Maker {
    std::unique_ptr<BucketStore::Access> access;
    Bytes pages, records, made_records, copies, change_bytes;
    std::span<StoredChange> changes;  // in change_bytes
    std::vector<Part> parts;
    std::vector<Merge::Interval> full;  // positions where there is no room for more records
  };
  struct Thread {
    StoredTable* table = nullptr;
    sys::Thread thread;
    Maker maker;
  };
  class Unlocked;

  // The 32 bits of a position that follow its region's prefix.
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

  // The functions below REQUIRE the lock; those that return base::Expected release it meanwhile. (stored_table.cc)
  const uint32_t* directory_at(uint64_t position) const {
    return &directory_[depth_ == 0 ? 0 : position >> (64 - depth_)];
  }
  uint32_t find(uint64_t position) const { return *directory_at(position); }
  // Releases the lock, and waits until another thread notifies, or for this long; 0: without limit.
  void wait(uint64_t timeout_ns = 0);
  base::Expected<void> wait_for_room();
  void stage(uint32_t index, Code code, const Key& key, const std::byte* key_bytes, const std::byte* given);
  // Gives the `count` changes that were just staged their sequences, and appends them to the log, if there is one; fill() as for ChangeLog::append().
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
  sys::Mutex start_lock_;  // for the next two members; taken before lock_
  bool is_started_ = false;
  base::Expected<void> started_;

  sys::Mutex lock_;  // for all members below
  sys::EventCount event_;
  Superblock superblock_;  // the newest
  StagedChanges staged_;
  std::deque<Region> regions_;
  std::vector<uint32_t> directory_;  // the index of the region, by the first depth_ bits of a position
  uint32_t depth_ = 0;
  uint64_t sequence_ = 0;      // of the last change
  uint64_t record_begin_ = 0;  // where the next change's record begins in the log
  // The log's changes are being made again.
  bool is_replaying_ = false;
  uint64_t replayed_ = 0;  // the sequence of the last change that was read from the log

  Slots slots_;
  std::vector<uint64_t> map_slots_;  // of the last checkpoint
  bool is_checkpointing_ = false;

  std::vector<std::unique_ptr<Thread>> threads_;
  bool ends_ = false;
  uint32_t low_water_ = 0;        // makers begin when fewer chunks are free
  uint32_t reserved_chunks_ = 0;  // for parts of regions that are being written
  uint32_t writing_count_ = 0;    // makers with slots that do not belong to a region yet
  uint32_t long_list_ = kNone;    // a region with a list of kLongList changes
  bool has_dropped_ = false;      // a change had no room, which has not been reported yet
  uint32_t flusher_count_ = 0;    // callers that are making all regions
  uint64_t cursor_ = 0;           // the position at which makers go on
  // How many errors makers have met, and the last one.
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

  // The first session of a table makes the log's changes again. Errors: EINVAL: a change in the log needs a function that was not added; EBADMSG: the log
  // is damaged; ENOSPC; of I/O; ENOMEM. After an error no session of the table can be opened.
  base::Expected<void> open(StoredTable& table);

  // Like batch::Session::run(), but fails if something cannot be done; the first job.done_count keys are done in that case. Errors: EINVAL: key number
  // done_count is not in the key space, and nothing was done; ENOSPC: the store is full; EBADMSG: a page is damaged; of I/O. Cost: for a change whose
  // outcome nobody asks for, a copy or two, and on average a share of what makers do; for other keys a read of the medium each; up to kWindow overlap.
  base::Expected<void> run(Job& job);
  // Makes all changes that had been staged when it was called. Errors: ENOSPC: some had no room and were dropped (this is reported once), or the store is
  // full; EBADMSG, ENOMEM, of I/O: what could not be made stays staged.
  base::Expected<void> flush();
  // Returns when the changes of all calls that had returned before it was called are durable. Errors: of the log's I/O; without a log those of flush().
  // Cost: with a log, a write and a flush of the log, which callers share; without one, a flush() and a checkpoint.
  base::Expected<void> sync();
  // Calls visit(key, value) for each record, in the order of positions; each region is seen as it was at some moment. visit() returns whether to go
  // on. Returns whether all calls of visit() did.
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
  // How many keys are answered together at most, and how many pages are read for them.
  static constexpr uint32_t kWindow = 64;
  static constexpr uint64_t kStretch = 4096;     // how many keys are staged without releasing the lock
  static constexpr uint64_t kAhead = 8;          // how many keys lie between the steps of fetching ahead
  static constexpr uint64_t kRing = 4 * kAhead;  // positions of the keys that are fetched ahead
  // A key whose outcome or value is asked for.
  struct Wanted {
    uint32_t region = 0;
    uint32_t version = 0;
    uint64_t position = 0;
    // The pages that may have it; none if a waiting change says what the record is.
    uint32_t first_page = 0, page_count = 0;  // in the window
    uint64_t offset = 0;
    uint64_t made = 0;
    uint64_t damaged_at = 0;            // offset of a damaged page; 0: none is damaged
    const std::byte* record = nullptr;  // in a page; null: no page has it
  };

  base::Expected<void> stage(Job& job);
  base::Expected<void> answer(Job& job);
  base::Expected<void> answer_window(Job& job, uint32_t count);
  uint32_t look_for(const Job& job, uint32_t most);
  void find_in_pages(const std::byte* key_bytes, Wanted& wanted) const;
  void answer_one(Job& job, const Wanted& wanted);
  // Reads the region with this position into maker_.made_records, with all changes made; returns how many records it has. Sets `position` to the beginning
  // of the next region; 0: there is none.
  base::Expected<uint64_t> read_region(uint64_t& position);

  StoredTable* table_ = nullptr;
  StoredTable::Maker maker_;
  Bytes pages_;  // kWindow of them
  Wanted wanted_[kWindow];
  // The changes of answered keys, as entries of the log.
  std::vector<std::byte> entries_;
};

}  // namespace batch
