// Table: records of fixed size that are updated at random places faster than one after the other could be.
// (papers/cache-aware-batch-update.txt)
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
// Thread contract: open and close alone; a session is for one call at a time, from any thread; sessions come and go at any time.
#pragma once
#include <atomic>
#include <memory>

#include "base/error.h"
#include "batch/kernels.h"
#include "batch/staging.h"
#include "sys/gate.h"
#include "sys/lock.h"

namespace batch {

// What does a job's keys.
enum class Engine : uint8_t {
  kLinear,  // one after the other, with a lock for each bucket and a search of one record after the other: the thesis's baseline (section 2.2.1)
  kDirect,  // the same, searching by vectors, as do those that follow
  kPrefetch,  // the buckets of a call's next keys are on their way meanwhile
  kTagged,    // a byte for each record tells the one line that is needed; for large buckets
  // Changes are staged, and their outcomes not known at once.
  kCacheBuckets,  // in buckets that stay in the CPU's cache: the thesis's (section 3.1; cache_buckets.h)
  kPartitioned,   // by each session for itself, in memory beside the table (partitioned.h)
};

inline constexpr Engine kEngines[] = {Engine::kLinear, Engine::kDirect,       Engine::kPrefetch,
                                      Engine::kTagged, Engine::kCacheBuckets, Engine::kPartitioned};
// "linear", "direct", "prefetch", "tagged", "cache_buckets", "partitioned"
const char* name_of(Engine engine);
constexpr bool is_staging(Engine engine) { return engine >= Engine::kCacheBuckets; }

struct Options {
  Shape shape;           // bucket_bytes 0: as many as hold 16 records, 128 at least
  uint64_t records = 0;  // that it is made for; more are welcome
  // Keys are numbers, the lowest byte first, below this; they are about evenly spread, and neighbours lie together, in their order. 0: any keys.
  uint64_t key_space = 0;
  Engine engine = Engine::kPrefetch;
  bool grows = true;
  // Memory for what is staged, without some 5 bytes for each change that partitions may need: of cache-buckets, which are to stay in the cache that processors share; and of kPartitioned, for each session. Less than
  // it takes at least is EINVAL when the engine is used.
  uint64_t cache_bytes = uint64_t{8} << 20;
  uint64_t staging_bytes = uint64_t{64} << 20;
  // After so many changes of a session all that anybody has staged is made; 0: when there is no room for it, or somebody reads it.
  uint64_t stale_changes_max = 0;
};

class Session;

class Table {
 public:
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() { close(); }

  // Errors: EINVAL, with what may be; ENOMEM.
  base::Expected<void> open(const Options& options);
  // REQUIRES: no sessions. Of one that is not open: nothing.
  void close();

  // The number of a function for kChange, for all sessions. REQUIRES: no sessions yet, fewer than Code::kFunctionsMax.
  uint8_t add_function(const Change& change);

  const Options& options() const { return options_; }
  // That of the calls that begin now.
  Engine engine() const { return engine_.load(std::memory_order_relaxed); }
  // Another one does what calls ask for that begin from now on, when all that was staged is made. Others wait meanwhile. `session` is the caller's. Errors, after
  // which all is as it was: ENOMEM; EINVAL: less staging_bytes than it takes; ENOSPC: what is staged has no room.
  base::Expected<void> use(Session& session, Engine engine);

  // Exact while nobody is in a call, and nothing is staged.
  uint64_t record_count();
  // Changes that were staged and found no record.
  uint64_t missed_count();
  // Of buckets, what is known of them, and what is staged.
  uint64_t memory_bytes();
  uint64_t bucket_count();
  uint64_t growth_count() const { return growths_.load(std::memory_order_relaxed); }

  // For tests; nobody else may use it meanwhile.
  void verify();

 private:
  friend class Session;
  enum class Grown { kYes, kNo, kNoMemory };

  base::Expected<std::unique_ptr<Staging>> make_staging(Engine engine) const;
  base::Expected<void> set_engine(Engine engine);
  void choose_run();
  bool flush_all(Session& session);
  Grown grow(uint64_t growths_seen);
  Grown grow_alone();
  bool move_to(Buckets& to) const;
  void shut_gates();
  void open_gates();

  Options options_;
  Kernels kernels_;
  // Change with all gates shut.
  std::atomic<Engine> engine_{Engine::kDirect};
  Run run_ = nullptr;  // a job on the buckets
  Change functions_[Code::kFunctionsMax];
  uint32_t function_count_ = 0;
  std::unique_ptr<Staging> staging_;  // null: nothing is staged
  Buckets buckets_;                   // changes under growth_lock_, with all gates shut
  std::atomic<uint64_t> growths_{0};
  bool has_barrier_ = false;
  sys::Mutex growth_lock_;
  sys::Mutex sessions_lock_;  // taken after growth_lock_
  Session* sessions_ = nullptr;
  // Of sessions that are gone, as theirs; under sessions_lock_.
  int64_t gone_records_ = 0;
  uint64_t gone_missed_ = 0;
};

class Session {
 public:
  explicit Session(Table& table);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  enum class Ran {
    kAll,
    kOutside,   // a key is not in the key space: nothing is done, and job.done_count says which it is
    kFull,      // job.done_count are done; the next one's record has no room, and there may be no more
    kNoMemory,  // the same, for want of memory to grow, or to stage
  };
  // Does the job's keys in their order; what it did is seen by every call that begins when it has returned, of any session. With an engine that stages
  // changes without job.outcomes are: of them job.done_count alone is told. kFull and kNoMemory may be of what was staged before; it stays. Cost: each
  // key's share of overlapping misses; of a growth, see above.
  Ran run(Job& job);
  // All that was staged when it was called, by any session, is made: also for_each() sees it. Nothing where nothing is staged.
  Ran flush();

  // Calls visit(key, value) for each record that is not only staged: those that are there all the time once. The records of a bucket are copied under its
  // lock. visit() calls nothing of the table: it does not change as a whole meanwhile.
  template <class Visit>
  void for_each(Visit visit) {
    gate_.enter();
    std::byte copy[kBucketBytesMax];
    const Shape shape = table_.options_.shape;
    for (uint64_t i = 0; i < table_.buckets_.count(); ++i) {
      const uint32_t count = copy_bucket(i, copy);
      for (uint32_t slot = 0; slot < count; ++slot) {
        const std::byte* const record = copy + slot * shape.record_bytes();
        visit(record, record + shape.key_bytes);
      }
    }
    gate_.leave();
  }

  // Of staging. In the session's gate: does the job's keys in the table, as far as there is room.
  void apply_staged(Job& job);
  const Buckets& buckets() const { return table_.buckets_; }
  StagingLane* lane() const { return lane_; }

 private:
  friend class Table;
  enum class Did { kAll, kNoRoom, kNoMemory };
  template <class Do>
  Ran run_with_room(Do what);
  Did stage(Staging& staging, Job& job);
  void apply(Job& job);
  uint32_t copy_bucket(uint64_t index, std::byte* copy) const;

  Table& table_;
  sys::Gate gate_;
  std::atomic<int64_t> records_{0};  // inserted, less removed; this session's, as the next
  std::atomic<uint64_t> missed_{0};  // of what was staged
  uint64_t stale_changes_ = 0;       // staged since the last flush
  StagingLane* lane_ = nullptr;
  Session* next_ = nullptr;  // under the table's sessions_lock_
};

}  // namespace batch
