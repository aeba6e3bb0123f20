// Table: records of fixed size, with updates at random places that are faster than updates one after the other.
// (cache-aware batch update)
//
//   Table table;                         table.open({.shape = {.key_bytes = 8, .value_bytes = 8}, .records = 10'000'000});
//   Session session(table);              // one for each thread
//   Job job{.code = {Action::kUpsert}, .count = 64, .keys = keys, .given = values};
//   session.run(job);                    // many keys in one call: their cache misses overlap
//
// Growth. When there is no room for a record near its home, the table is made twice as large, while all sessions wait.
//
//  1 a session's call is inside the session's gate (sys/gate.h) for as long as it uses the buckets
//  2 a call that finds no room leaves its gate, and takes the lock of growth. If the table has grown meanwhile, there is nothing more to do
//  3 otherwise it shuts the gates of all sessions, moves all records to new buckets, front to back, and opens the gates again
// So the possibility of growth costs each call a store and a load. The gates are also shut to change the engine, and to note whether several sessions are
// open: while there is only one, no buckets are locked.
//
// No room. A staged change may turn out to have no room in a table that may not grow. When its turn to be made comes, it is dropped, and counted in
// dropped_count(). The call that tried to make it returns kFull, even if another session staged it. A job that is not staged itself returns kAll.
//
// Thread contract: open and close while nobody else uses the table; a session is for one call at a time, from any thread; sessions may be opened and closed
// at any time.
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
  Shape shape;           // bucket_bytes 0: the size of 16 records, and at least 128
  uint64_t records = 0;  // how many the table is made for; there may be more
  // Keys are little-endian numbers that are less than key_space and about evenly spread; neighbours lie together, in their order. 0: any keys.
  uint64_t key_space = 0;
  // None: the table chooses one, and chooses again when circumstances change (choice.h); it chooses one that stages only if staging_bytes is not 0.
  std::optional<Engine> engine = Engine::kPrefetch;
  bool grows = true;
  // Memory for staged changes. cache_bytes is for all cache-buckets together, which should stay in the cache that processors share. staging_bytes is for
  // each session with kPartitioned, which takes some 5 bytes more for each change. An engine that needs more cannot be used: EINVAL.
  uint64_t cache_bytes = uint64_t{8} << 20;
  uint32_t cache_bucket_bytes = kCacheBucketBytes;  // a multiple of base::kLineBytes
  uint64_t staging_bytes = uint64_t{64} << 20;
  // Threads for kDecoupled.
  uint32_t flushers = 1;  // up to kMaxFlushers
  // After how many changes of a session, and after which time, all that is staged is made; 0: only when there is no room for more, or when it is needed.
  uint64_t stale_changes_max = 0;
  uint32_t stale_ms_max = 0;
};

struct Statistics {
  Engine engine = Engine::kDirect;
  uint64_t records = 0, buckets = 0, sessions = 0, growths = 0;
  uint64_t table_bytes = 0, staging_bytes = 0;
  // The keys of all calls, and those whose outcome or value was asked for.
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

  // Errors: EINVAL; the message says what is allowed; ENOMEM; EAGAIN: a thread cannot be started.
  base::Expected<void> open(const Options& options);
  // REQUIRES: no sessions. Does nothing if the table is not open.
  void close();

  // Adds a function, and returns the number by which jobs of all sessions call it. REQUIRES: no sessions yet, fewer than Code::kMaxFunctions functions.
  uint8_t add_function(const Change& change);

  const Options& options() const { return options_; }
  // The engine that a call uses if it begins now.
  Engine engine() const { return engine_.load(std::memory_order_relaxed); }
  // Makes all staged changes, and uses this engine from then on; none: the table chooses. Other calls wait meanwhile. `session` belongs to the caller.
  // Errors, after which the table has the engine that it had: ENOMEM; EINVAL: the engine needs more memory for staging than the options allow; ENOSPC: a
  // staged change has no room; EAGAIN: a thread cannot be started.
  base::Expected<void> use(Session& session, std::optional<Engine> engine);

  // Exact while nobody is in a call and nothing is staged.
  uint64_t record_count();
  // How many staged changes found no record, and how many found no room.
  uint64_t missed_count();
  uint64_t dropped_count();
  // The memory for buckets, their heads and tags, and staged changes.
  uint64_t memory_bytes();
  uint64_t bucket_count();
  uint64_t growth_count() const { return growths_.load(std::memory_order_relaxed); }
  // The numbers do not all belong to the same moment. Cost: waits for a growth; looks at each session.
  Statistics statistics();
  // Calls visit(choice) with the table's choice, which may be under way; if the table no longer chooses, with its last one. Cost: as statistics().
  template <class Visit>
  void visit_choice(Visit visit) {
    sys::LockGuard scope(growth_lock_);
    visit(std::as_const(choice_));
  }

  // For tests. REQUIRES: nobody else uses the table.
  void verify();

 private:
  friend class Session;
  enum class Grown { kYes, kNo, kNoMemory };
  // What a session counts.
  struct Counts {
    int64_t records = 0;  // inserted minus removed
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
  using OldStaging = std::unique_ptr<Staging>;  // must be destroyed after growth_lock_ is released

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
  // The next members are changed only with all gates shut.
  std::atomic<Engine> engine_{Engine::kDirect};
  Run run_ = nullptr;  // does a job on the buckets
  Change functions_[Code::kMaxFunctions];
  uint32_t function_count_ = 0;
  std::unique_ptr<Staging> staging_;  // null: nothing is staged
  Buckets buckets_;                   // changed under growth_lock_, with all gates shut
  std::atomic<bool> chooses_{false};
  Choice choice_;  // used only if the table chooses, as the next one
  BaseCosts base_costs_;
  std::atomic<uint64_t> growths_{0};
  bool has_barrier_ = false;
  sys::Mutex growth_lock_;
  sys::Mutex sessions_lock_;  // taken after growth_lock_
  Session* sessions_ = nullptr;
  uint32_t callers_sessions_ = 0;  // how many of them do not belong to the table's threads
  Counts gone_;                    // of closed sessions; under sessions_lock_
  // The sums over all sessions when look_at_answers() last looked; under sessions_lock_.
  uint64_t seen_keys_ = 0, seen_answers_ = 0;
  std::unique_ptr<Sweeper> sweeper_;
};

class Session {
 public:
  // Who uses the session. The table's threads have sessions, too, with which they make what others have staged.
  enum class Whose : bool { kCallers, kTables };
  explicit Session(Table& table, Whose whose = Whose::kCallers);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  enum class Ran {
    kAll,
    kOutside,  // a key is not in the key space: nothing was done, and job.done_count is its number
    // The first job.done_count keys are done; there is no room for the next one's record, and the table may not grow. If all keys are done, or if it is the
    // result of a flush: staged changes had no room, and were dropped.
    kFull,
    kNoMemory,  // the first job.done_count keys are done; for the rest there is no memory to grow or to stage
  };
  // Does the job's keys in their order. Every call of any session that begins after run() has returned sees the effect. An engine that stages stages the
  // changes of jobs that want no answers: in that case job.done_count is the only count that is set. kNoMemory may concern changes that were staged before;
  // they stay staged. Cost: for each key its share of overlapping cache misses; now and then a growth.
  Ran run(Job& job);
  // Makes all changes that any session had staged when flush() was called, so that for_each() sees them. Does nothing if nothing is staged.
  Ran flush();

  // Calls visit(key, value) for each record in the buckets, not for those that are only staged; a record that exists all the time is visited once. The
  // records of a bucket are copied under its lock. visit() must not call the table, which cannot grow or change its engine meanwhile; it returns whether
  // to go on. Returns whether all calls of visit() did.
  template <class Visit>
  bool for_each(Visit visit) {
    gate_.enter();
    std::byte copy[kMaxBucketBytes];
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

  // Stagings call it inside the session's gate: does the job's keys in the table until one has no room; if drops(), drops those that have no room.
  void apply_staged(Job& job);
  // Should staged changes that have no room be dropped now?
  bool drops() const { return drops_; }
  void set_drops(bool drops) { drops_ = drops; }
  // Is somebody shutting the session's gate?
  bool must_leave() const { return gate_.is_shut(); }
  template <class Do>
  void inside(Do what) {
    gate_.enter();
    what();
    gate_.leave();
  }
  const Buckets& buckets() const { return table_.buckets_; }
  StagingArea* area() const { return area_; }

 private:
  friend class Table;
  enum class Did {
    kAll,
    kNoRoom,        // for the job's next record
    kNoStagedRoom,  // for a staged change
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
  // What this session has counted.
  std::atomic<int64_t> records_{0};
  std::atomic<uint64_t> missed_{0}, dropped_{0}, keys_{0}, answers_{0};
  // Counted since the last step of the choice, which sets them to 0 with the gate shut.
  std::atomic<uint64_t> tried_cycles_{0}, tried_keys_{0}, tried_answers_{0};
  uint64_t recent_keys_ = 0;    // since this session last called look_at_answers()
  uint64_t stale_changes_ = 0;  // staged since the last flush
  bool drops_ = false;
  StagingArea* area_ = nullptr;
  Session* next_ = nullptr;  // under the table's sessions_lock_
};

}  // namespace batch
