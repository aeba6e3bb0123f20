// Table: records of fixed size that are updated at random places faster than one after the other could be.
// (cache-aware batch update)
//
//   Table table;                         table.open({.shape = {.key_bytes = 8, .value_bytes = 8}, .records = 10'000'000});
//   Session session(table);              // one for each thread
//   Job job{.code = {Action::kUpsert}, .count = 64, .keys = keys, .given = values};
//   session.run(job);                    // many keys in a call: their misses overlap
//
// Growth. A table without room near a record's home is made twice as large: all sessions wait meanwhile.
//
//  1 a call of a session is inside its gate (sys/gate.h), from before it looks at the buckets until it has left them
//  2 who finds no room leaves its gate, and takes the lock of growth. If the table has grown meanwhile there is nothing to do
//  3 else it shuts all sessions' gates, moves all records to other buckets, front to back, and opens the gates
// So calls pay a store and a load for growth. In the same way, with the gates shut, a table gets another engine, and it becomes known whether several
// sessions are open: while there is but one, it locks no buckets.
//
// No room. A change without outcomes may be staged before it is known that its record has no room in a table that may not grow. It is dropped when it
// is to be made: dropped_count() has it, and the call that comes to it says kFull, whoever has staged it, unless it asks for something else.
//
// Thread contract: open and close alone; a session is for one call at a time, from any thread; sessions come and go at any time.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "batch/choice.h"
#include "batch/engine.h"
#include "batch/kernels.h"
#include "batch/staging.h"
#include "sys/gate.h"
#include "sys/lock.h"

namespace batch {

struct Options {
  Shape shape;           // bucket_bytes 0: as many as hold 16 records, 128 at least
  uint64_t records = 0;  // that it is made for; more are welcome
  // Keys are numbers, the lowest byte first, below this; they are about evenly spread, and neighbours lie together, in their order. 0: any keys.
  uint64_t key_space = 0;
  // None: the table chooses, and chooses again (choice.h): a staging one only with staging_bytes.
  std::optional<Engine> engine = Engine::kPrefetch;
  bool grows = true;
  // Memory for what is staged, without some 5 bytes for each change that partitions may need: of cache-buckets, which are to stay in the cache that processors share; and of kPartitioned, for each session. Less than
  // it takes at least is EINVAL when the engine is used.
  uint64_t cache_bytes = uint64_t{8} << 20;
  uint32_t cache_bucket_bytes = kCacheBucketBytes;  // a multiple of base::kLineBytes
  uint64_t staging_bytes = uint64_t{64} << 20;
  // Threads of kDecoupled.
  uint32_t flushers = 1;  // up to kFlushersMax
  // After so many changes of a session all that anybody has staged is made, and after so long; 0: when there is no room for it, or somebody reads it.
  uint64_t stale_changes_max = 0;
  uint32_t stale_ms_max = 0;
};

struct Statistics {
  Engine engine = Engine::kDirect;
  uint64_t records = 0, buckets = 0, sessions = 0, growths = 0;
  uint64_t table_bytes = 0, staging_bytes = 0;
  // Keys that calls were for, and those of them whose outcome or value was asked for.
  uint64_t keys = 0, answers = 0;
  uint64_t missed = 0, dropped = 0;
};

class Session;
class Sweeper;

class Table {
 public:
  Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table();

  // Errors: EINVAL, with what may be; ENOMEM; EAGAIN: no threads.
  base::Expected<void> open(const Options& options);
  // REQUIRES: no sessions. Of one that is not open: nothing.
  void close();

  // The number of a function for kChange, for all sessions. REQUIRES: no sessions yet, fewer than Code::kFunctionsMax.
  uint8_t add_function(const Change& change);

  const Options& options() const { return options_; }
  // That of the calls that begin now.
  Engine engine() const { return engine_.load(std::memory_order_relaxed); }
  // Another one does what calls ask for that begin from now on, when all that was staged is made; none: the one that the table chooses. Others wait
  // meanwhile. `session` is the caller's. Errors, after which all is as it was: ENOMEM; EINVAL: less staging_bytes than it takes; ENOSPC: what is staged has
  // no room; EAGAIN: no threads.
  base::Expected<void> use(Session& session, std::optional<Engine> engine);

  // Exact while nobody is in a call, and nothing is staged.
  uint64_t record_count();
  // Changes that were staged and found no record, and those that found no room.
  uint64_t missed_count();
  uint64_t dropped_count();
  // Of buckets, what is known of them, and what is staged.
  uint64_t memory_bytes();
  uint64_t bucket_count();
  uint64_t growth_count() const { return growths_.load(std::memory_order_relaxed); }
  // The numbers are not of one moment. Cost: waits for a growth; looks at each session.
  Statistics statistics();
  // Calls visit(choice): what the table has chosen, or is choosing. Cost: as statistics(). Of one that does not choose it is that of the last time
  // that it did.
  template <class Visit>
  void visit_choice(Visit visit) {
    sys::LockGuard scope(growth_lock_);
    visit(std::as_const(choice_));
  }

  // For tests; nobody else may use it meanwhile.
  void verify();

 private:
  friend class Session;
  enum class Grown { kYes, kNo, kNoMemory };
  // Of a session.
  struct Counts {
    int64_t records = 0;  // inserted, less removed
    uint64_t missed = 0, dropped = 0, keys = 0, answers = 0;

    Counts& operator+=(const Counts& more) {
      records += more.records;
      missed += more.missed;
      dropped += more.dropped;
      keys += more.keys;
      answers += more.answers;
      return *this;
    }
  };
  using OldStaging = std::unique_ptr<Staging>;  // to be destroyed when growth_lock_ is free

  base::Expected<OldStaging> start(std::optional<Engine> engine);
  base::Expected<std::unique_ptr<Staging>> make_staging(Engine engine);
  base::Expected<OldStaging> set_engine(Engine engine);
  void choose_run();
  bool flush_all(Session& session);
  Grown grow(uint64_t growths_seen);
  Grown grow_alone();
  bool move_to(Buckets& to) const;
  void shut_gates();
  void open_gates();
  Load load() const;
  void want_choice(Choice::Why why);
  void note_session_count();
  void look_at_answers();
  void go_on_with_choice(Session& session);
  OldStaging step_choice(Session& session);
  uint64_t count_tried() const;
  Counts count_all() const;
  Counts counts();

  Options options_;
  Kernels kernels_;
  // Change with all gates shut.
  std::atomic<Engine> engine_{Engine::kDirect};
  Run run_ = nullptr;  // a job on the buckets
  Change functions_[Code::kFunctionsMax];
  uint32_t function_count_ = 0;
  std::unique_ptr<Staging> staging_;  // null: nothing is staged
  Buckets buckets_;                   // changes under growth_lock_, with all gates shut
  std::atomic<bool> chooses_{false};
  Choice choice_;  // for a table that does, as the next
  BaseCosts base_costs_;
  std::atomic<uint64_t> growths_{0};
  bool has_barrier_ = false;
  sys::Mutex growth_lock_;
  sys::Mutex sessions_lock_;  // taken after growth_lock_
  Session* sessions_ = nullptr;
  uint32_t callers_sessions_ = 0;  // those that are not the table's
  Counts gone_;                    // of sessions that are gone; under sessions_lock_
  // When answers were looked at, by all sessions; under sessions_lock_.
  uint64_t seen_keys_ = 0, seen_answers_ = 0;
  std::unique_ptr<Sweeper> sweeper_;
};

class Session {
 public:
  // Whose the session is: the table's own do what others have staged.
  enum class Whose : bool { kCallers, kTables };
  explicit Session(Table& table, Whose whose = Whose::kCallers);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  enum class Ran {
    kAll,
    kOutside,  // a key is not in the key space: nothing is done, and job.done_count says which it is
    // job.done_count are done; the next one's record has no room, and there may be no more. If all are, of a job that is staged or a flush: of what was
    // staged some had none, and are dropped.
    kFull,
    kNoMemory,  // the same, for want of memory to grow, or to stage
  };
  // Does the job's keys in their order; what it did is seen by every call that begins when it has returned, of any session. With an engine that stages
  // changes without job.outcomes are: of them job.done_count alone is told. kNoMemory may be of what was staged before; it stays. Cost: each
  // key's share of overlapping misses; of a growth, see above.
  Ran run(Job& job);
  // All that was staged when it was called, by any session, is made: also for_each() sees it. Nothing where nothing is staged.
  Ran flush();

  // Calls visit(key, value) for each record that is not only staged: those that are there all the time once. The records of a bucket are copied under its
  // lock. visit() calls nothing of the table: it does not change as a whole meanwhile; it returns whether to go on. False: it did not want to.
  template <class Visit>
  bool for_each(Visit visit) {
    gate_.enter();
    std::byte copy[kBucketBytesMax];
    const Shape shape = table_.options_.shape;
    bool goes_on = true;
    for (uint64_t i = 0; goes_on && i < table_.buckets_.count(); ++i) {
      const uint32_t count = copy_bucket(i, copy);
      for (uint32_t slot = 0; goes_on && slot < count; ++slot) {
        const std::byte* const record = copy + slot * shape.record_bytes();
        goes_on = visit(record, record + shape.key_bytes);
      }
    }
    gate_.leave();
    return goes_on;
  }

  // Of staging. In the session's gate: does the job's keys in the table, as far as there is room, or all but what has none.
  void apply_staged(Job& job);
  // Is what is staged and has no room to be dropped now?
  bool drops() const { return drops_; }
  void set_drops(bool drops) { drops_ = drops; }
  // Somebody shuts the session's gate.
  bool must_leave() const { return gate_.is_shut(); }
  template <class Do>
  void inside(Do what) {
    gate_.enter();
    what();
    gate_.leave();
  }
  const Buckets& buckets() const { return table_.buckets_; }
  StagingLane* lane() const { return lane_; }

 private:
  friend class Table;
  enum class Did {
    kAll,
    kNoRoom,        // for the job's next record
    kNoStagedRoom,  // for something that is staged
    kNoMemory,
    kWait,
  };
  static constexpr uint64_t kRecentKeys = 1 << 20;
  template <class Do>
  Ran run_with_room(Do what);
  static Did did_of(Staged staged);
  Table::Counts counts() const;
  Did stage(Staging& staging, Job& job);
  Did settle_and_apply(Staging* staging, Job& job);
  void apply(Job& job);
  void note_keys(uint64_t keys, bool want_answers);
  uint32_t copy_bucket(uint64_t index, std::byte* copy) const;

  Table& table_;
  sys::Gate gate_;
  const Whose whose_;
  // This session's.
  std::atomic<int64_t> records_{0};
  std::atomic<uint64_t> missed_{0}, dropped_{0}, keys_{0}, answers_{0};
  // Since the choice's step; set to 0 with the gate shut.
  std::atomic<uint64_t> tried_cycles_{0}, tried_keys_{0}, tried_answers_{0};
  uint64_t recent_keys_ = 0;    // since the table looked at answers
  uint64_t stale_changes_ = 0;  // staged since the last flush
  bool drops_ = false;
  StagingLane* lane_ = nullptr;
  Session* next_ = nullptr;  // under the table's sessions_lock_
};

}  // namespace batch
