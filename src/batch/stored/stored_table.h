// StoredTable: a table of records that is larger than memory. Changes wait in memory until there are many of a region; regions are made one after the
// other, in the order in which they lie on the medium, each read and written in one piece. So a change at a random place costs its share of a
// sequential read and write instead of one of each for itself. (BOSC: cache-aware batch update, section 2.1)
//
//   StoredTable table;                            table.open(store, {.shape = ..., .records = ...});
//   StoredSession session;                        session.open(table);         // one for each thread
//   Job job{.code = {Action::kUpsert}, ...};      session.run(job);            // as batch::Session's
//   session.sync();                               // what has returned is there for good
//
// format.h has the words and what is on the medium.
//
//   a change     the log, if there is one; its region's list (staged.h). Nothing is read
//   a read       the page that may have the record, and the changes that wait for it. One read of the medium
//   a maker      takes a region's list, reads its slot, makes the changes, and writes what becomes of it to another slot; in a region that is
//                too large for a slot, to several: then there are more regions. Makers are threads of the table's, which work when little room is left,
//                and callers of flush()
//   checkpoint   when makers have no free slots: all that was written to slots is there for good, then a new map, then a superblock that
//                says so. Slots that were given up before are free after that, and so is the log before the oldest change that waits
//
// Invariants
//  1 a slot that a checkpoint or a region has is not written to
//  2 a region's slot has its changes up to `made` and no later one, which all are in its lists: `making` first, while a maker is at work, then `staged`
//  3 a region's version becomes another one when its slot or its interval does. Who has read a page without the lock looks at it again afterwards
//  4 a checkpoint has no change that the log has not: what is found after a crash is what was changed up to some moment, and all that was synced. Without
//    a log it is all that was synced, and of what came later, some
//
// One lock is held while lists, regions and the log's buffer are looked at or changed, and never during I/O, but when the first session makes what the log has.
//
// Thread contract: open, add_function and close alone; a session is for one call at a time; sessions come and go at any time.
#pragma once
#include <deque>
#include <vector>

#include "batch/bucket_store.h"
#include "batch/stored/change_log.h"
#include "batch/stored/merge.h"
#include "batch/stored/staged.h"
#include "sys/lock.h"
#include "sys/threads.h"

namespace batch {

struct StoredOptions {
  Shape shape;           // without buckets
  uint64_t records = 0;  // that a new one is made for; more are welcome
  uint64_t key_space = 0;
  uint64_t staging_bytes = uint64_t{64} << 20;  // for changes that wait
  uint32_t makers = 8;                          // threads, kMakersMax at most
  uint32_t slot_pages = kSlotPagesMax;          // of a new one
  storage::Device* log = nullptr;               // the caller's; null: none
  uint64_t log_buffer_bytes = uint64_t{1} << 20;
};

struct StoredStatistics {
  uint64_t records = 0;  // in slots
  uint64_t regions = 0, slots = 0, slots_used = 0;
  uint64_t staged = 0;  // changes
  uint64_t staging_bytes = 0;
  uint64_t keys = 0, answers = 0, missed = 0, dropped = 0;
  uint64_t regions_made = 0, changes_made = 0, checkpoints = 0;
  uint64_t log_bytes = 0;  // that a start would read
};

class StoredSession;

class StoredTable {
 public:
  static constexpr uint32_t kMakersMax = 64;

  StoredTable() = default;
  ~StoredTable();
  StoredTable(const StoredTable&) = delete;
  StoredTable& operator=(const StoredTable&) = delete;

  // Errors: EINVAL, with what may be.
  static base::Expected<void> check(const StoredOptions& options);
  // That a store takes for so many records.
  static uint64_t store_bytes_for(const Shape& shape, uint64_t records, uint32_t slot_pages = kSlotPagesMax);
  // What is in the store, or a new one, if that has only zeros. REQUIRES: it never was. Errors: EINVAL: options, another table than they say, no table, the log is missing or another
  // one; ENOSPC: the store is too small; EBADMSG: damaged; of I/O; ENOMEM.
  base::Expected<void> open(BucketStore& store, const StoredOptions& options);
  // All is made, and there for good: the log is needed no more. With an error it is closed as well, and what was synced is there when it is opened again. REQUIRES: no
  // sessions. Of one that is not open: nothing.
  base::Expected<void> close();
  // As Table's. What is in the log may need it: it has the same number each time that the table is opened.
  uint8_t add_function(const Change& change);

  const StoredOptions& options() const { return options_; }
  uint64_t slot_bytes() const { return uint64_t{slot_pages_} * kPageBytes; }
  // The numbers are of one moment. Any thread.
  StoredStatistics statistics();

 private:
  friend class StoredSession;
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint64_t kSpareShare = 8;  // of slots, that there are more of than regions
  static constexpr uint64_t kSlotsLeft = 8;   // and so many at least
  // Chunks that sessions leave free.
  static constexpr uint32_t kChunksLeft = 4;
  // A list that is so long is made before others: who makes it has a copy of it.
  static constexpr uint32_t kLongList = 1 << 18;

  struct Region {
    // Where the log's record is that has the first change of the list.
    uint64_t staged_from = 0, making_from = 0;
    StagedChanges::List staged, making;
    uint32_t version = 0;
    bool is_making = false;
    MapEntry entry;
    uint64_t prefix = 0;                  // its first position
    uint32_t fences[kSlotPagesMax] = {};  // of pages: their first records' fence_of()

    // The first position of the next one; 0: it is the last.
    uint64_t end() const { return entry.depth == 0 ? 0 : prefix + (uint64_t{1} << (64 - entry.depth)); }
    uint64_t oldest() const {
      const uint64_t none = ~uint64_t{0};
      return std::min(making.is_empty() ? none : making_from, staged.is_empty() ? none : staged_from);
    }
  };
  // What becomes of a region: it, or several.
  struct Part {
    uint32_t depth = 0;
    uint64_t prefix = 0;
    uint64_t begin = 0, count = 0;  // records
    uint64_t slot = 0;
    uint32_t page_count = 0;
    uint32_t fences[kSlotPagesMax] = {};
  };
  // How one caller at a time makes regions.
  struct Maker {
    std::unique_ptr<BucketStore::Access> access;
    Bytes pages, records, made_records, copies, change_bytes;
    std::span<StoredChange> changes;  // in change_bytes
    std::vector<Part> parts;
    std::vector<Merge::Interval> full;  // where no records have room
  };
  struct Thread {
    StoredTable* table = nullptr;
    sys::Thread thread;
    Maker maker;
  };
  class Unlocked;

  // What is known of a position beside its region's prefix.
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
  bool take_known(uint64_t slot);
  base::Error damaged_map() const;
  base::Expected<void> open_log();
  base::Expected<void> start();
  base::Expected<void> start_alone();
  base::Expected<void> replay();
  void stop_makers();
  void forget();

  // What follows REQUIRES the lock; those that return base::Expected let go of it meanwhile. (stored_table.cc)
  const uint32_t* directory_at(uint64_t position) const {
    return &directory_[depth_ == 0 ? 0 : position >> (64 - depth_)];
  }
  uint32_t find(uint64_t position) const { return *directory_at(position); }
  // Waits for others to do something, for a while.
  void wait(uint64_t timeout_ns = 0);
  base::Expected<void> wait_for_room();
  void stage(uint32_t index, Code code, const Key& key, const std::byte* key_bytes, const std::byte* given);
  // What was staged just now is in the log, too: fill() as ChangeLog::append()'s.
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
  uint64_t find_slot();
  uint64_t find_map_slot();
  void give_back(uint64_t slot);
  void give_up(uint64_t slot);
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
  Change functions_[Code::kFunctionsMax];
  uint32_t function_count_ = 0;
  std::unique_ptr<ChangeLog> log_;
  std::unique_ptr<Merge> merge_;
  sys::Mutex start_lock_;  // of the next two; taken before the other
  bool is_started_ = false;
  base::Expected<void> started_;

  sys::Mutex lock_;  // of all that follows
  sys::EventCount event_;
  Superblock superblock_;  // the newest
  StagedChanges staged_;
  std::deque<Region> regions_;
  std::vector<uint32_t> directory_;  // by the first depth_ bits of a position
  uint32_t depth_ = 0;
  uint64_t sequence_ = 0;
  uint64_t record_begin_ = 0;  // of the change that comes next, in the log
  // While the log is made again: that of the last change.
  bool is_replaying_ = false;
  uint64_t replayed_ = 0;

  // Slots: one bit each.
  std::vector<uint64_t> used_;
  uint64_t slot_count_ = 0, used_count_ = 0;
  uint64_t slot_limit_ = 0;  // of those below it some are tried first
  uint64_t next_slot_ = 1;
  std::vector<uint64_t> given_up_;   // since the last checkpoint
  std::vector<uint64_t> map_slots_;  // of the last one
  bool is_checkpointing_ = false;

  std::vector<std::unique_ptr<Thread>> threads_;
  bool ends_ = false;
  uint32_t low_water_ = 0;
  uint32_t reserved_chunks_ = 0;  // for parts of regions that are being written
  uint32_t writing_count_ = 0;    // makers that have slots which are no region's yet
  uint32_t long_list_ = kNone;    // a region that has one
  bool has_dropped_ = false;      // since somebody was told
  uint32_t flusher_count_ = 0;
  uint64_t cursor_ = 0;  // a position: where makers are
  uint64_t error_count_ = 0;
  base::Error error_;
  StoredStatistics counts_;
};

// Lets go of the lock for a scope.
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

  // The first one of a table makes again what the log has. Errors: EINVAL: that needs a function which was not added; of I/O, ENOMEM.
  base::Expected<void> open(StoredTable& table);

  // As batch::Session's, but that what cannot be done is an error: job.done_count are done. Errors: EINVAL: the key number done_count is not in the key space, and
  // nothing is done; ENOSPC: the store is full; EBADMSG: a page is damaged; of I/O. Cost: of changes whose outcome nobody asks for a copy or two, and, on average, their
  // share of what makers do; of others a read of the medium, some of which overlap.
  base::Expected<void> run(Job& job);
  // All that was staged when it was called is made, but for what had no room (ENOSPC, once).
  base::Expected<void> flush();
  // All that had returned when it was called is there for good, but for what had no room (ENOSPC, once). Cost: with a log a write and a flush of that, which callers share; else a flush, and a checkpoint.
  base::Expected<void> sync();
  // Calls visit(key, value) for each record, in the order of positions, as each region was at some moment. It returns whether to go on. False: it did not want to.
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
  static constexpr uint32_t kWindow = 64;        // keys, and pages
  static constexpr uint64_t kStretch = 4096;     // keys that are staged without letting go of the lock
  static constexpr uint64_t kAhead = 8;          // keys that staging is ahead with, in each of its steps
  static constexpr uint64_t kRing = 4 * kAhead;  // of their positions
  // Of a key whose outcome or value is asked for.
  struct Wanted {
    uint32_t region = 0;
    uint32_t version = 0;
    uint64_t position = 0;
    // Pages that may have it; none where a change that waits says what it is.
    uint32_t first_page = 0, page_count = 0;  // in the window
    uint64_t offset = 0;
    uint64_t made = 0;
    uint64_t damaged_at = 0;            // 0: none is
    const std::byte* record = nullptr;  // in a page; null: none has it
  };

  base::Expected<void> stage(Job& job);
  base::Expected<void> answer(Job& job);
  base::Expected<void> answer_window(Job& job, uint32_t count);
  uint32_t look_for(const Job& job, uint32_t most);
  void find_in_pages(const std::byte* key_bytes, Wanted& wanted) const;
  void answer_one(Job& job, const Wanted& wanted);
  // Of the region with this position, with all changes; sets `position` to what follows on the region; 0: nothing does.
  base::Expected<uint64_t> read_region(uint64_t& position);

  StoredTable* table_ = nullptr;
  StoredTable::Maker maker_;
  Bytes pages_;  // kWindow of them
  Wanted wanted_[kWindow];
  // What answers have changed, for the log.
  std::vector<std::byte> entries_;
};

}  // namespace batch
