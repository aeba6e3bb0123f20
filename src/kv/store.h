// Store: keys and values on a device. One I/O for a get, 8 bytes of memory for a key. (uDepot, section 4)
//
//   Store::make(device, {});                    once
//   Store* store = *Store::open(device, {});    again and again
//   Session session;                            one for each thread, or for the tasks of each worker
//   session.open(*store);
//   session.put("key", bytes, {});
//   session.get("key")->value();
//
// How a put works:
//  0 while writers are paced, it waits for its turn (log.h)
//  1 it takes the key's lock (key_locks.h)
//  2 if it depends on what is there, it looks that up
//  3 it gets a sequence and room in the log; the record is written. What it replaces is read meanwhile in a task, afterwards in a thread
//  4 it is flushed, as the durability says
//  5 the index learns of it, which is when others see it; the record that the index knew before is released
// A remove is the same with a tombstone. A get looks into the index and reads.
//
// Who sees what: a get that begins after a put has returned sees that put or something newer. What a get has seen is not undone for later gets while
// the process lives. At kSync nothing is seen that a power cut could take back.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "kv/calls.h"
#include "kv/collection/collector.h"
#include "kv/collection/key_locks.h"
#include "kv/collection/large_values.h"
#include "kv/collection/readers.h"
#include "kv/collection/snapshots.h"
#include "kv/collection/used_records.h"
#include "kv/index/index.h"
#include "kv/log/log.h"
#include "kv/media/channel.h"
#include "kv/media/format.h"
#include "kv/media/lifetimes.h"
#include "kv/recovery/recovery.h"
#include "kv/tier/memory_tier.h"
#include "storage/buffer_pool.h"
#include "sys/threads.h"

namespace kv {

// A put or remove that has returned is there after the process was killed. After a power cut it is there
enum class Durability : uint8_t {
  kNone,   // if the device's own cache has kept it
  kBatch,  // unless it returned within the last StoreOptions::batch_ns
  kSync,   // in any case
};

struct MakeOptions {
  uint32_t grain_bytes = 512;   // or the device's block, if that is larger
  uint64_t segment_bytes = 0;   // 0: by the capacity, 1 to 64 MiB
  uint32_t spare_percent = 10;  // of the segments: not filled with values, so that collection is cheap
  uint64_t capacity_bytes = 0;  // 0: the device's
  // A cache: when it is full, it drops what was written longest ago and not read since, instead of refusing puts. This cannot be changed later.
  bool is_cache = false;
};

struct StoreOptions {
  Durability durability = Durability::kSync;
  uint64_t batch_ns = 10'000'000;
  uint32_t stream_count = 0;  // segments that are written at a time; 0: by the processors, up to 8
  // A checkpoint is taken after this many changes, and at the end. 0: when a start would have to replay half as many records as there are keys, if
  // that takes long.
  uint64_t checkpoint_records = 0;
  // Nothing is written to the device, which may be one that cannot be written. Changes fail with EROFS, and what recovery would write is
  // forgotten. There is no collector and no keeper.
  bool read_only = false;
  // The most memory that copies of records in use may take, so that they need no I/O (Store::set_memory); 0: none.
  uint64_t memory_bytes = 0;
  // The clock that decides expiry. It outlives the store.
  const Clock* clock = &kMachineClock;
  // A failure of the device is logged even if calls have reported it: their callers may be clients somewhere else.
  bool logs_told_failures = false;
};

enum class When : uint8_t { kAlways, kIfAbsent, kIfPresent, kIfVersion };

struct PutOptions {
  When when = When::kAlways;
  uint64_t version = 0;     // for kIfVersion
  uint64_t expires_ms = 0;  // since 1970, below 2^48; 0: never
  uint32_t flags = 0;       // the user's, kept with the value
};

struct Changed {
  enum class Outcome : uint8_t {
    kDone,
    kAbsent,   // nothing was done: there is no such key
    kPresent,  // nothing was done: there is
    kVersion,  // nothing was done: it has another version
  };
  Outcome outcome = Outcome::kDone;
  uint64_t version = 0;  // of the value that is there now, as far as the call knows; 0: there is none
};

class Store;

// What a get has found. It holds memory of its session, which must outlive it, and keeps the pieces of a large value on the medium.
class Found {
 public:
  Found() = default;
  ~Found() { reset(); }
  Found(Found&& from) noexcept { swap(from); }
  Found& operator=(Found&& from) noexcept {
    swap(from);
    return *this;
  }

  bool found() const { return !memory_.bytes().empty(); }
  // A large value is read by Session::read_value(), a part at a time. Other values may be, too.
  bool is_large() const { return is_large_; }
  uint64_t value_bytes() const { return is_large_ ? pieces_.of.value_bytes : record_.value.size(); }
  // REQUIRES: not large.
  Bytes value() const { return is_large_ ? Bytes() : record_.value; }
  uint64_t version() const { return record_.header.sequence(); }
  uint64_t expires_ms() const { return record_.header.expiry(); }
  uint32_t flags() const { return record_.header.flags; }

 private:
  friend class MultiGet;
  friend class Session;
  friend class Snapshot;
  void swap(Found& other) noexcept;
  void reset();

  storage::Buffer memory_;
  Record record_;
  // For a large value.
  Store* store_ = nullptr;
  bool is_large_ = false;
  Pieces pieces_;
  storage::Buffer piece_memory_;  // the piece that was read last
  uint64_t piece_number_ = 0;
  Bytes piece_;
};

// Errors: EINVAL for what cannot be a key, or options.
base::Expected<void> check_key(std::string_view key);
base::Expected<void> check_options(const PutOptions& options);

struct StoreCounts {
  LogCounts log;
  IndexCounts index;
  // Since the store was opened.
  struct Collected {
    uint64_t victims = 0;
    uint64_t moved_records = 0;
    uint64_t moved_bytes = 0;
    uint64_t read_bytes = 0;
    uint64_t expired_records = 0;  // and those below the floor
    uint64_t ended_tombstones = 0;
    uint64_t damaged_records = 0;
    // For a cache: dropped to make room, and kept since they had been read.
    uint64_t dropped_records = 0;
    uint64_t dropped_bytes = 0;
    uint64_t kept_records = 0;
    uint64_t checkpoints = 0;
    uint64_t checkpoint_bytes = 0;  // in all
  } collected;
  TierCounts tier;
  // Without recovery's, which are in its report.
  UseCounts use;
  int error = 0;  // why writes to the device fail, as an errno value; 0: they do not, as far as is known
};

class Store {
 public:
  // make(), open(), close() and compact() block the thread, also in a task.

  // Makes an empty store and returns its shape; what was on the device is lost. Errors: EINVAL, ENOSPC for a device that is too small, those of
  // I/O.
  static base::Expected<Geometry> make(storage::Device& device, const MakeOptions& options);
  // The device outlives the store. A damaged superblock is logged, and written anew unless the store is read only. Errors: those of
  // read_superblock and recovery, ENOMEM, EINVAL, also where the two superblocks are of different stores.
  static base::Expected<Store*> open(storage::Device& device, const StoreOptions& options);
  // What was put is durable, or the error says that it may not be (no error if the store is read only). If the medium does not accept a
  // segment's summary or headers, that is no error: its records are durable, and the next open reads the whole segment. REQUIRES: no sessions.
  base::Expected<void> close();
  // Collects until nothing would gain anything. Errors: those of I/O, ENOSPC, EROFS: collection could not go on; what failed may have succeeded
  // since. Any thread, also several at a time. REQUIRES: tasks of the calling thread have no calls of the store under way, since collection
  // waits for these.
  base::Expected<void> compact();
  // From now on all records of lower versions are gone, as if they had expired; open snapshots may leave them out. The store does not save
  // this: whoever opens it has to say so again. A lower version than before changes nothing. Any thread.
  void forget_below(uint64_t version);
  // For a caller whose floor will be the version of something that it puts: exists from before that put until after forget_below(). Meanwhile a
  // cache gives no existing record a new version, which could be above the floor.
  class FloorToCome {
   public:
    explicit FloorToCome(Store& store) : lifetimes_(store.lifetimes_) { lifetimes_.expect_floor(); }
    ~FloorToCome() { lifetimes_.end_expected_floor(); }
    FloorToCome(const FloorToCome&) = delete;
    FloorToCome& operator=(const FloorToCome&) = delete;

   private:
    Lifetimes& lifetimes_;
  };
  // Records of lower versions are gone; 0: no floor has been set.
  uint64_t floor() const { return lifetimes_.floor(); }
  const Clock& clock() const { return lifetimes_.clock(); }
  // The memory that copies of records may use from now on, up to StoreOptions::memory_bytes. Any thread. Cost: if it is less than before, that of
  // giving memory back.
  void set_memory(uint64_t bytes) { tier_.set_budget(bytes); }
  // The memory that they use now. Any thread. Cost: a load.
  uint64_t memory_in_use() const { return tier_.used_bytes(); }

  const Identity& identity() const { return identity_; }
  const RecoveryReport& recovery() const { return recovery_; }
  // Any thread, also while others open and close sessions. Cost: looks at each segment, table and session.
  StoreCounts counts();
  // Checks the invariants of index, log and memory, for tests; stops the store's threads for it. REQUIRES: nobody else uses the store.
  void verify();

 private:
  friend class Found;
  friend class MultiGet;
  friend class MultiPut;
  friend class Session;
  friend class Snapshot;
  friend class ValueWriter;
  // The collector releases pieces that nobody reads.
  void remove_pieces(const Pieces& pieces) {
    if (large_values_.remove(pieces)) log_.collector_wanted.notify_all();
  }
  void abandon_pieces(const Pieces& pieces) {
    large_values_.abandon_write(pieces);
    log_.collector_wanted.notify_all();
  }
  Store(storage::Device& device, const StoreOptions& options)
      : device_(device), options_(options), lifetimes_(*options.clock) {}

  base::Expected<void> start();
  void release();
  base::Expected<void> start_threads();
  void stop_threads();
  void keep();
  uint64_t flush_batch();
  void tell_keeper_error(int error);
  void collect();
  // From now on the store takes no writes. A call that meets the failure reports it to its caller (`is_told`); a failure that no call has reported
  // within a second is logged, with StoreOptions::logs_told_failures every one.
  void fail(int error, bool is_told);
  void note_told();
  base::Error tell_failure();
  // What to do about the error: the end of a message.
  const char* remedy_of(int error) const;
  base::Error cannot_collect(int error) const;
  base::Error io_error(int error, const char* what) const;
  // Why the log takes no writes, or that it is full.
  base::Error failure() const;
  bool has_failure() const;
  void log_failure(uint64_t& at_ns);
  void log_put_off();

  storage::Device& device_;
  // For a read-only store: device_, a ForgetfulDevice over the caller's.
  storage::Device* own_device_ = nullptr;
  StoreOptions options_;
  Lifetimes lifetimes_;
  Identity identity_;
  RecoveryReport recovery_;
  Index* index_ = nullptr;
  Log log_;
  Readers readers_;
  Readers changes_;  // calls that have taken a sequence, until the index knows it
  LargeValues large_values_;
  Snapshots snapshots_;
  Collector collector_;
  KeyLocks key_locks_;
  UsedRecords used_records_;  // open if the store is a cache
  MemoryTier tier_;
  SharedTimes sync_flush_times_;  // the log's flushes, one at a time
  Calls calls_;
  std::atomic<uint32_t> next_stream_{0};
  std::atomic<bool> wrote_{false};        // at kBatch: something was written since the keeper's last flush
  uint64_t batch_end_ns_ = 0;             // the keeper's: when that is to be flushed; 0: not known yet
  std::atomic<int> error_{0};             // why the log has failed
  std::atomic<bool> is_told_{false};      // a call, or the log of events, has reported the failure
  std::atomic<uint64_t> compactions_{0};  // calls of compact()
  // The last step of collection that failed for compact(): the upper half is compactions_ by then, the lower half its errno value.
  std::atomic<uint64_t> compaction_failure_{0};
  std::atomic<uint64_t> idle_steps_{0};  // of the collector, that found nothing to do or failed
  std::atomic<int> keeper_error_{0};     // why segments could not be prepared or sealed at the last try
  Channel keeper_channel_;               // the keeper's
  uint64_t told_put_off_ = 0;  // segments that were put off when that was logged; the keeper's, and close()'s
  sys::Thread keeper_, collector_thread_;
  bool has_keeper_ = false, has_collector_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> is_collected_{false};  // the collector has stopped, so that the keeper may
  sys::EventCount compacted_;              // notified with each change of idle_steps_
};

class Session {
 public:
  // Called by the thread that will use it, or by a task of the worker whose tasks will. `depth`: how many calls of tasks may be under way at a time;
  // further ones wait. Errors: those of Channel::open.
  base::Expected<void> open(Store& store, size_t depth = 128);
  void close();

  // Errors: EINVAL for the key, EBADMSG for a damaged record, EIO and others of the device. A record that cannot be read stays until a put or a
  // remove without a condition; changes with a condition that depends on it fail with the same errors. Cost: one I/O, none if the record is in memory.
  base::Expected<Found> get(std::string_view key);
  // The same, but it does not count as a read for a cache, which therefore does not keep the value any longer.
  base::Expected<Found> peek(std::string_view key);
  // Copies what there is of a found value from `offset` on, and returns how much that is. It is of the version that was found, whatever others do.
  // Errors: as of get; for a cache ESTALE: what is left of a large value was dropped meanwhile. Cost: one I/O for each piece of a large value,
  // except the piece that was read last.
  base::Expected<size_t> read_value(Found& found, uint64_t offset, std::span<std::byte> to);
  // Puts a value of up to kMaxValueBytes; a ValueWriter takes one in parts. Errors: EINVAL, E2BIG, ENOSPC when the store is full, EROFS when it is
  // read only, those of I/O. After an error of I/O, and ENOMEM, it is not known whether the change was made.
  base::Expected<Changed> put(std::string_view key, Bytes value, const PutOptions& options = {});
  base::Expected<Changed> remove(std::string_view key, When when = When::kAlways, uint64_t version = 0);
  // Gives back memory that calls have used and nobody has needed since the last time (BufferPool::trim).
  void trim() { pool_.trim(); }

 private:
  friend class MultiGet;
  friend class MultiPut;
  friend class Snapshot;
  friend class ValueWriter;
  // What a change knows about the key's record.
  struct Current {
    Location location;
    uint64_t generation = 0;  // of its segment when it was read
    uint64_t version = 0;     // 0: there is no record
    bool is_alive = false;    // it has not ended (lifetimes.h)
    bool is_head = false;
    bool is_damaged = false;  // no record was found, but one that cannot be read may be the key's
    PiecesOf pieces;          // of a head
  };
  // What a change writes.
  struct New {
    RecordKind kind = RecordKind::kValue;
    std::string_view key;
    Bytes value;
    PutOptions options;
    uint64_t sequence = 0;  // a piece's; other records get one of their own
  };
  // What a lookup is for: the records of keys and those of pieces are never taken for each other.
  enum class About { kKey, kPiece };
  enum class Match { kYes, kNo, kDamaged };
  // What a change must know for certain about the key's record, besides where it is.
  enum class Need { kKey, kExpiry, kAll };

  base::Expected<Found> counted_get(std::string_view key, bool marks_read);
  // get and put without counting.
  base::Expected<Found> do_get(std::string_view key, bool marks_read = true);
  base::Expected<Changed> do_put(std::string_view key, Bytes value, const PutOptions& options);
  uint64_t count_found(std::string_view key, const base::Expected<Found>& found);
  base::Expected<Changed> change(const New& next, bool* has_room = nullptr);
  base::Expected<Match> read(const Location& location, std::string_view key, About about, bool whole,
                             IoFor purpose, storage::Buffer& memory, Record& record);
  base::Expected<Match> read_for_change(const Location& location, std::string_view key, Need need,
                                        storage::Buffer& memory, Record& record);
  int read_alone(const Location& location, int error, IoFor purpose, std::span<std::byte>& to);
  bool read_from_memory(const Location& location, std::string_view key, bool whole, std::span<std::byte> to,
                        Record& record) const;
  std::span<std::byte> room_for(const Location& location, size_t key_bytes, bool whole,
                                storage::Buffer& memory);
  Match judge(const Location& location, std::string_view key, About about, bool whole, Bytes bytes,
              Record& record) const;
  uint64_t generation_at(uint64_t address) const;
  bool note_read(const Location& location, std::string_view key, Bytes bytes, Current& current) const;
  bool note_from_memory(const Location& location, std::string_view key, std::span<std::byte> to,
                        Current& current) const;
  void note(const Location& location, const Record& record, Current& current) const;
  base::Expected<bool> find(const KeyHash& hash, std::string_view key, bool marks_read, Found& found);
  bool is_current(const KeyHash& hash, uint64_t address) const;
  base::Expected<void> read_piece(Found& found, uint64_t number);
  base::Expected<void> write_piece(const PieceKey& key, Bytes value);
  base::Expected<void> flush();
  base::Error damaged() const;
  base::Expected<void> look(const KeyHash& hash, std::string_view key, Need need, Current& current);
  // Where a change's record goes.
  struct Written {
    Extent extent;
    uint64_t sequence = 0;
    uint32_t size = 0;                       // size_code
    std::optional<Readers::Reading> change;  // counted from before it has a sequence until the index knows it
  };
  Log::Request request_for(const New& next) const;
  Log::Room allocate_now(const KeyHash& hash, const New& next, Log::Request& request, Written& written);
  base::Expected<void> allocate(const KeyHash& hash, const New& next, Log::Request& request,
                                Written& written);
  base::Expected<void> write(const KeyHash& hash, const New& next, Log::Request& request, Current& current,
                             Written& written);
  void fill_record(const New& next, const Written& written, std::span<std::byte> record) const;
  void keep_in_memory(const New& next, const Written& written, Bytes record) const;
  int keep_promise();
  base::Expected<Changed> conclude(const KeyHash& hash, const New& next, Current& current,
                                   const Written& written, KeyLocks::Hold& hold);
  int write_and_look(const KeyHash& hash, std::string_view key, uint64_t offset_bytes, Bytes record,
                     Current& current);
  base::Expected<const Location*> find_own(const Index::Candidates& all, size_t count, std::string_view key,
                                           storage::Buffer& memory, Current& current);
  base::Expected<void> install(const KeyHash& hash, const New& next, Current& current,
                               const Written& written);
  base::Error io_error(int number, const char* what) const;

  Store* store_ = nullptr;
  Channel channel_;
  Readers::Place place_, change_place_;
  Calls::Place calls_;
  storage::BufferPool pool_;
  uint32_t stream_ = 0;
};

// Puts a value that comes in parts, up to kMaxValueBytes, with the memory of one piece. The value is there once commit() has returned kDone, and
// never in part.
class ValueWriter {
 public:
  ValueWriter() = default;
  ~ValueWriter() { abandon(); }
  ValueWriter(const ValueWriter&) = delete;
  ValueWriter& operator=(const ValueWriter&) = delete;

  // The session outlives it, and is used by the same thread or worker. Errors: EINVAL, ENOMEM, EROFS.
  base::Expected<void> open(Session& session, std::string_view key);
  // Errors: as of put. After an error it can only be abandoned.
  base::Expected<void> append(Bytes part);
  // Errors and outcomes: as of put. REQUIRES: no call has failed.
  base::Expected<Changed> commit(const PutOptions& options = {});
  // Forgets what was appended. Does nothing if it is not open.
  void abandon();

 private:
  friend class Session;
  base::Expected<Changed> do_commit(const PutOptions& options);  // without counting
  base::Expected<void> write_piece();
  PieceKey piece_key() const;

  Session* session_ = nullptr;
  storage::Buffer key_memory_, memory_;
  std::string_view key_;
  size_t filled_bytes_ = 0;
  Pieces pieces_;
  uint64_t number_ = 0;  // how many pieces were written
};

}  // namespace kv
