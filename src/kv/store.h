// Store: keys and values on a device. One I/O for a get, 8 bytes of memory for a key. (uDepot, section 4)
//
//   Store::make(device, {});                    once
//   Store* store = *Store::open(device, {});    again and again
//   Session session;                            one for each thread, or for the tasks of each worker
//   session.open(*store);
//   session.put("key", bytes, {});
//   session.get("key")->value();
//
// How a put works: 0 while writers are paced: its turn (log.h)  1 the key's lock (key_locks.h)  2 if it depends on what is there: look that up  3 a sequence, room in the log,
// the record is written, and what is there is read meanwhile  4 by the durability, flushed  5 the index learns of it, which is when others see it; what it knew
// before is released. A remove is the same with a tombstone. A get looks into the index and reads.
//
// Who sees what: a get that begins after a put has returned sees it or something newer; what a get has seen does not go back while the
// process lives. At kSync nothing is seen that a power cut could take back.
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

// What a put or remove that has returned promises after the process was killed: it is there. And after a power cut:
enum class Durability : uint8_t {
  kNone,   // what the device's own cache keeps
  kBatch,  // all but the last StoreOptions::batch_ns
  kSync,   // it is there
};

struct MakeOptions {
  uint32_t grain_bytes = 512;  // at least the device's block
  uint64_t segment_bytes = 0;  // 0: by the capacity, 1 to 64 MiB
  uint32_t spare_percent = 10;
  uint64_t capacity_bytes = 0;  // 0: the device's
  // A store that is full drops what was written longest ago and not read since, instead of refusing puts. For good: it is made so.
  bool is_cache = false;
};

struct StoreOptions {
  Durability durability = Durability::kSync;
  uint64_t batch_ns = 10'000'000;
  uint32_t stream_count = 0;  // segments that are written at a time; 0: by the processors, up to 8
  // After so many changes there is a checkpoint, and at the end. 0: when a start has half as many to look at as there are keys, if
  // that takes long.
  uint64_t checkpoint_records = 0;
  // Nothing is written to the device, which may be one that cannot be: changes have EROFS, and what recovery would write, it forgets.
  // There is no collector and no keeper.
  bool read_only = false;
  // For copies of records that are in use, so that they need no I/O: the most there will be (Store::set_memory); 0: none.
  uint64_t memory_bytes = 0;
  // What expiry goes by. It outlives the store.
  const Clock* clock = &kMachineClock;
};

enum class When : uint8_t { kAlways, kIfAbsent, kIfPresent, kIfVersion };

struct PutOptions {
  When when = When::kAlways;
  uint64_t version = 0;     // of kIfVersion
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
  uint64_t version = 0;  // of what is there now, as far as the call knows; 0: nothing
};

class Store;

// What a get found. It keeps memory of its session, which it must not outlive; and of a large value the pieces on the medium.
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
  // A large value is read by Session::read_value(), a part at a time; any other may be.
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
  Store* store_ = nullptr;  // of a large one
  bool is_large_ = false;
  Pieces pieces_;
  storage::Buffer piece_memory_;  // the piece that was read last
  uint64_t piece_number_ = 0;
  Bytes piece_;
};

// Errors: EINVAL for what no key, or no options, may be.
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
    uint64_t expired_records = 0;  // or below the floor
    uint64_t ended_tombstones = 0;
    uint64_t damaged_records = 0;
    // Of a cache: what was dropped to make room, and what was kept since it was read.
    uint64_t dropped_records = 0;
    uint64_t dropped_bytes = 0;
    uint64_t kept_records = 0;
    uint64_t checkpoints = 0;
    uint64_t checkpoint_bytes = 0;  // in all
  } collected;
  TierCounts tier;
  // But for recovery, of which its report tells.
  UseCounts use;
};

class Store {
 public:
  // Makes an empty store, of the shape that is returned; what was on the device is lost. Errors: EINVAL, ENOSPC for a device that is too
  // small, those of I/O.
  static base::Expected<Geometry> make(storage::Device& device, const MakeOptions& options);
  // A superblock that is damaged is written anew, but of one that is read only, and a line says so.
  // Errors: those of read_superblock and recovery, ENOMEM, EINVAL. The device outlives the store. These three block the thread, also
  // under a task.
  static base::Expected<Store*> open(storage::Device& device, const StoreOptions& options);
  // What was put is on the medium for good, or the error says that it may not be; not of one that is read only. A segment whose summary or
  // headers the medium does not take is no error: its records are there, and the next open reads all of it. REQUIRES: no sessions.
  base::Expected<void> close();
  // Collects until nothing would gain anything. Errors: those of I/O, ENOSPC and EROFS: it could not go on, or what failed may have been done
  // since. Waits as the three above.
  base::Expected<void> compact();
  // From now on what has a lower version is not there any more, as if it had expired; a snapshot that is open may leave it out. The store
  // does not keep this: who opens it says so again. A lower version than before changes nothing. Any thread.
  void forget_below(uint64_t version);
  // For whom that version is of something that it puts: from before the put until it has called forget_below(). A cache gives nothing that is
  // there a new version meanwhile, which could be a higher one.
  class FloorToCome {
   public:
    explicit FloorToCome(Store& store) : lifetimes_(store.lifetimes_) { lifetimes_.expect_floor(); }
    ~FloorToCome() { lifetimes_.end_expected_floor(); }
    FloorToCome(const FloorToCome&) = delete;
    FloorToCome& operator=(const FloorToCome&) = delete;

   private:
    Lifetimes& lifetimes_;
  };
  // Nothing with a lower version is there; 0: that has not been said.
  uint64_t floor() const { return lifetimes_.floor(); }
  const Clock& clock() const { return lifetimes_.clock(); }
  // What copies of records may use from now on, up to StoreOptions::memory_bytes. Any thread. Cost: of less than before, giving it back.
  void set_memory(uint64_t bytes) { tier_.set_budget(bytes); }
  // What they use now. Any thread. Cost: a load.
  uint64_t memory_in_use() const { return tier_.used_bytes(); }

  const Identity& identity() const { return identity_; }
  const RecoveryReport& recovery() const { return recovery_; }
  // Any thread, also while others open and close sessions. Cost: looks at each segment, table and session.
  StoreCounts counts();
  // Invariants of index and log, for tests; nobody else may use the store meanwhile. Its own threads are stopped for it.
  void verify();

 private:
  friend class Found;
  friend class MultiGet;
  friend class MultiPut;
  friend class Session;
  friend class Snapshot;
  friend class ValueWriter;
  // Pieces that nobody reads are the collector's to release.
  void remove_pieces(const Pieces& pieces) {
    if (large_values_.remove(pieces)) log_.collector_wanted.notify_all();
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
  // The medium does not keep what it is given: nothing is written any more. A call tells who made it; what no call has told within a second
  // is logged.
  void fail(int error, bool is_told);
  base::Error tell_failure();
  base::Error cannot_collect(int error) const;
  base::Error io_error(int error, const char* what) const;
  // That, or that it is full.
  base::Error failure() const;
  bool has_failure() const;
  void log_failure(uint64_t& at_ns);
  void log_put_off();

  storage::Device& device_;
  storage::Device* own_device_ = nullptr;  // of a store that is read only: device_, over the caller's
  StoreOptions options_;
  Lifetimes lifetimes_;
  Identity identity_;
  RecoveryReport recovery_;
  Index* index_ = nullptr;
  Log log_;
  Readers readers_;
  Readers changes_;  // those that have a sequence, until the index knows of it
  LargeValues large_values_;
  Snapshots snapshots_;
  Collector collector_;
  KeyLocks key_locks_;
  UsedRecords used_records_;  // of a cache
  MemoryTier tier_;
  SharedTimes sync_flush_times_;  // the log's flushes, one at a time
  Calls calls_;
  std::atomic<uint32_t> next_stream_{0};
  std::atomic<bool> wrote_{false};        // since the keeper's last flush; of kBatch
  uint64_t batch_end_ns_ = 0;             // the keeper's: when that is to be flushed; 0: it has not looked
  std::atomic<int> error_{0};             // why the log has failed
  std::atomic<bool> is_told_{false};      // that it has
  std::atomic<uint64_t> compactions_{0};  // calls of compact()
  // Of a step for one of them: which was the last then, and its error in the lower half.
  std::atomic<uint64_t> compaction_failure_{0};
  std::atomic<int> keeper_error_{0};  // why no segments could be prepared or sealed, when that was tried last
  Channel keeper_channel_;            // the keeper's
  uint64_t told_put_off_ = 0;         // segments; the keeper's, and close()'s
  sys::Thread keeper_, collector_thread_;
  bool has_keeper_ = false, has_collector_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> is_collected_{false};  // the collector has stopped, and the keeper may
  sys::EventCount compacted_;              // when the collector found nothing to do
};

class Session {
 public:
  // By the thread, or a task of the worker, that will use it, for `depth` calls of tasks at a time; more wait for each other. Errors:
  // those of Channel::open.
  base::Expected<void> open(Store& store, size_t depth = 128);
  void close();

  // Errors: EINVAL for the key, EBADMSG for a damaged record, EIO and others of the device. What cannot be read is there until a put or a
  // remove without a condition; with one that depends on it these have the same errors. Cost: one I/O.
  base::Expected<Found> get(std::string_view key);
  // Copies what there is of a found value from `offset` on; how much. It is of the version that was found, whatever others do. Errors: as
  // get; of a cache ESTALE: what is left of a large value was dropped meanwhile. Cost: one I/O for each piece of a large value that is not
  // the last one's.
  base::Expected<size_t> read_value(Found& found, uint64_t offset, std::span<std::byte> to);
  // A value of up to kValueBytesMax; a ValueWriter takes one in parts. Errors: EINVAL, E2BIG, ENOSPC when the store is full, EROFS when
  // it is read only, those of I/O.
  // With an error of I/O it is not known whether it was done.
  base::Expected<Changed> put(std::string_view key, Bytes value, const PutOptions& options = {});
  base::Expected<Changed> remove(std::string_view key, When when = When::kAlways, uint64_t version = 0);

 private:
  friend class MultiGet;
  friend class MultiPut;
  friend class Snapshot;
  friend class ValueWriter;
  // The key's record, as far as a change knows it.
  struct Current {
    Location location;
    uint64_t generation = 0;  // of its segment, when it was read there
    uint64_t version = 0;     // 0: there is none
    bool is_alive = false;
    bool is_head = false;
    bool is_damaged = false;  // there is none, or one that cannot be read
    PiecesOf pieces;
  };
  struct New {
    RecordKind kind = RecordKind::kValue;
    std::string_view key;
    Bytes value;
    PutOptions options;
    uint64_t sequence = 0;  // a piece's; else it gets one of its own
  };
  // A record's kind that a lookup is about: pieces are found as such alone.
  enum class About { kKey, kPiece };
  enum class Match { kYes, kNo, kDamaged };
  // What a change has to know for certain of the key's record, besides where it is.
  enum class Need { kKey, kExpiry, kAll };

  // What get and put do, but counting.
  base::Expected<Found> do_get(std::string_view key);
  base::Expected<Changed> do_put(std::string_view key, Bytes value, const PutOptions& options);
  uint64_t count_found(std::string_view key, const base::Expected<Found>& found);
  base::Expected<Changed> change(const New& next, bool* has_room = nullptr);
  base::Expected<Match> read(const Location& location, std::string_view key, About about, bool whole,
                             IoFor purpose, storage::Buffer& memory, Record& record);
  base::Expected<Match> read_for_change(const Location& location, std::string_view key, Need need,
                                        storage::Buffer& memory, Record& record);
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
  base::Expected<bool> find(const KeyHash& hash, std::string_view key, Found& found);
  bool is_current(const KeyHash& hash, uint64_t address) const;
  base::Expected<void> read_piece(Found& found, uint64_t number);
  base::Expected<void> write_piece(const PieceKey& key, Bytes value);
  base::Expected<void> flush();
  base::Error damaged() const;
  base::Expected<void> look(const KeyHash& hash, std::string_view key, Need need, Current& current);
  // Where the record of a change goes.
  struct Written {
    Extent extent;
    uint64_t sequence = 0;
    uint32_t size = 0;  // size_code
    std::optional<Readers::Reading> change;
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

// A value that comes in parts, up to kValueBytesMax, in the memory of one piece. It is there when commit() has returned that it is, and
// never in part.
class ValueWriter {
 public:
  ValueWriter() = default;
  ~ValueWriter() { abandon(); }
  ValueWriter(const ValueWriter&) = delete;
  ValueWriter& operator=(const ValueWriter&) = delete;

  // The session outlives it, and is used by the same thread or worker. Errors: EINVAL, ENOMEM.
  base::Expected<void> open(Session& session, std::string_view key);
  // Errors: as of put. After one only abandon() is left.
  base::Expected<void> append(Bytes part);
  // Errors, and outcomes: as of put.
  base::Expected<Changed> commit(const PutOptions& options = {});
  // What was appended is forgotten. Of one that is not open: nothing.
  void abandon();

 private:
  friend class Session;
  base::Expected<Changed> do_commit(const PutOptions& options);  // but counting
  base::Expected<void> write_piece();
  PieceKey piece_key() const;

  Session* session_ = nullptr;
  storage::Buffer key_memory_, memory_;
  std::string_view key_;
  size_t filled_bytes_ = 0;
  Pieces pieces_;
  uint64_t number_ = 0;  // of pieces that were written
};

}  // namespace kv
