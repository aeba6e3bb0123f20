#include "batch/table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "batch/cache_buckets.h"
#include "batch/decoupled.h"
#include "batch/partitioned.h"
#include "batch/sweeper.h"
#include "sys/barrier.h"

namespace batch {
namespace {

constexpr uint32_t kSlotsWanted = 16, kBucketBytesWanted = 128;
// How full a table is when it has the number of records that it was made for.
constexpr uint64_t kFullPercent = 80;
// A table that is emptier than this and yet has no room for a record does not grow: its keys are not spread.
constexpr uint64_t kSpreadPercent = 5;

base::Expected<void> check_options(Options& options) {
  Shape& shape = options.shape;
  if (auto checked = check_records(shape, options.records, options.key_space); !checked) return checked;
  if (shape.bucket_bytes == 0)
    shape.bucket_bytes = static_cast<uint32_t>(std::min<uint64_t>(
        kMaxBucketBytes,
        std::max<uint64_t>(kBucketBytesWanted,
                           base::round_up(kSlotsWanted * shape.record_bytes(), base::kLineBytes))));
  if (shape.bucket_bytes % base::kLineBytes != 0 || shape.bucket_bytes < kMinBucketBytes ||
      shape.bucket_bytes > kMaxBucketBytes)
    return base::failure(EINVAL, "a bucket has a multiple of ", uint64_t{base::kLineBytes}, " bytes, up to ",
                         uint64_t{kMaxBucketBytes}, ", not ", uint64_t{shape.bucket_bytes});
  if (options.flushers == 0 || options.flushers > kMaxFlushers)
    return base::failure(EINVAL, "a table has 1 to ", uint64_t{kMaxFlushers}, " threads, not ",
                         uint64_t{options.flushers});
  if (options.cache_bucket_bytes == 0 || options.cache_bucket_bytes % base::kLineBytes != 0)
    return base::failure(EINVAL, "a cache-bucket has a multiple of ", uint64_t{base::kLineBytes},
                         " bytes, not ", uint64_t{options.cache_bucket_bytes});
  if (options.key_space != 0) options.records = std::min(options.records, options.key_space);
  return {};
}

uint64_t divide_up(uint64_t value, uint64_t by) { return (value - 1) / by + 1; }

Spread spread_for(const Options& options) {
  const uint64_t slots = options.shape.slots();
  const uint64_t homes = divide_up(options.records, std::max<uint64_t>(slots * kFullPercent / 100, 1));
  if (options.key_space == 0) return Spread::by_hash(homes);
  // No more buckets than it takes to give each number a slot.
  return Spread::by_number(options.key_space, std::min(homes, divide_up(options.key_space, slots)));
}

Spread spread_twice(const Spread& spread) {
  return Spread::of(spread.key_space(), 2 * spread.bucket_count());
}

}  // namespace

Table::Table() = default;
Table::~Table() { close(); }

base::Expected<void> Table::open(const Options& options) {
  options_ = options;
  if (auto checked = check_options(options_); !checked) return checked;
  has_barrier_ = sys::register_barrier().has_value();
  kernels_ = choose_kernels(options_.shape);
  if (auto opened = buckets_.open(options_.shape, spread_for(options_)); !opened) return opened;
  base::Expected<void> done;
  {
    sys::LockGuard scope(growth_lock_);
    if (auto started = start(options_.engine); !started) done = std::unexpected(started.error());
  }
  if (done && options_.stale_ms_max != 0) {
    auto sweeper = Sweeper::start(*this, options_.stale_ms_max);
    if (sweeper)
      sweeper_ = std::move(*sweeper);
    else
      done = std::unexpected(sweeper.error());
  }
  if (!done) close();
  return done;
}

// Begins with this engine; none: the table chooses one. REQUIRES: growth_lock_; nobody is inside a gate; nothing is staged.
base::Expected<Table::OldStaging> Table::start(std::optional<Engine> engine) {
  if (engine) {
    auto set = set_engine(*engine);
    if (!set) return set;
    chooses_.store(false, std::memory_order_relaxed);
    choice_.stop();
    return set;
  }
  base_costs_ = measure_base_costs(options_.shape);
  choice_.want(Choice::Why::kOpened);
  choice_.begin(load(), this_machine(), base_costs_);
  for (;;) {
    auto set = set_engine(choice_.engine());
    if (set) chooses_.store(true, std::memory_order_relaxed);
    if (!set && choice_.leave_out()) continue;
    if (!set) choice_.stop();
    return set;
  }
}

base::Expected<std::unique_ptr<Staging>> Table::make_staging(Engine engine) {
  const uint64_t homes = buckets_.spread().bucket_count();
  switch (engine) {
    case Engine::kCacheBuckets:
      return CacheBuckets::make(options_.shape, options_.cache_bucket_bytes, options_.cache_bytes,
                                options_.key_space, homes);
    case Engine::kDecoupled:
      return Decoupled::make(*this, options_.shape, options_.cache_bytes, options_.key_space, homes,
                             options_.flushers);
    case Engine::kPartitioned:
      return Partitioned::make(options_.shape, options_.staging_bytes, options_.key_space, homes,
                               has_barrier_);
    default: return nullptr;
  }
}

// REQUIRES: growth_lock_; nobody is inside a gate; nothing is staged.
base::Expected<Table::OldStaging> Table::set_engine(Engine engine) {
  auto staging = make_staging(engine);
  if (!staging) return std::unexpected(staging.error());
  if (engine == Engine::kTagged || engine == Engine::kPartitioned)
    if (auto added = buckets_.add_tags(); !added) return std::unexpected(added.error());
  for (Session* session = sessions_; session != nullptr; session = session->next_) session->area_ = nullptr;
  std::swap(staging_, *staging);
  engine_.store(engine, std::memory_order_relaxed);
  choose_run();
  return std::move(*staging);
}

// Sets run_. REQUIRES: nobody else uses the table.
void Table::choose_run() {
  const bool is_alone = sessions_ == nullptr || sessions_->next_ == nullptr;
  const auto of = [&](const Kernels::Pair& pair) { return is_alone ? pair.alone : pair.shared; };
  switch (engine()) {
    case Engine::kLinear: run_ = kernels_.linear; break;
    case Engine::kDirect:
    case Engine::kCacheBuckets:
    case Engine::kDecoupled: run_ = kernels_.direct; break;
    case Engine::kPrefetch: run_ = of(kernels_.prefetch); break;
    case Engine::kTagged:
    case Engine::kPartitioned: run_ = of(kernels_.tagged); break;
  }
}

// REQUIRES: all gates are shut.
bool Table::flush_all(Session& session) {
  while (staging_ != nullptr && !staging_->flush_alone(session))
    if (grow_alone() != Grown::kYes) return false;
  return true;
}

base::Expected<void> Table::use(Session& session, std::optional<Engine> engine) {
  OldStaging old;
  sys::LockGuard scope(growth_lock_);
  shut_gates();
  base::Expected<void> used;
  if (!flush_all(session))
    used = base::failure(ENOSPC, "what is staged has no room in the table");
  else if (auto started = start(engine))
    old = std::move(*started);
  else
    used = std::unexpected(started.error());
  open_gates();
  return used;
}

void Table::close() {
  sweeper_.reset();
  staging_.reset();
  CHECK(sessions_ == nullptr);
  buckets_.close();
  function_count_ = 0;
  gone_ = {};
  growths_.store(0, std::memory_order_relaxed);
}

uint8_t Table::add_function(const Change& change) {
  CHECK_EQ(callers_sessions_, 0u);
  CHECK_LT(function_count_, Code::kMaxFunctions);
  functions_[function_count_] = change;
  return static_cast<uint8_t>(function_count_++);
}

// The sum over all sessions, including closed ones. REQUIRES: sessions_lock_.
Table::Counts Table::count_all() const {
  Counts all = gone_;
  for (const Session* session = sessions_; session != nullptr; session = session->next_)
    all += session->counts();
  return all;
}

Table::Counts Table::counts() {
  sys::LockGuard scope(sessions_lock_);
  return count_all();
}

uint64_t Table::record_count() { return static_cast<uint64_t>(std::max<int64_t>(counts().records, 0)); }
uint64_t Table::missed_count() { return counts().missed; }
uint64_t Table::dropped_count() { return counts().dropped; }

uint64_t Table::memory_bytes() {
  sys::LockGuard scope(growth_lock_);
  return buckets_.memory_bytes() + (staging_ == nullptr ? 0 : staging_->memory_bytes());
}

uint64_t Table::bucket_count() {
  sys::LockGuard scope(growth_lock_);
  return buckets_.count();
}

Statistics Table::statistics() {
  sys::LockGuard scope(growth_lock_);
  const Counts all = counts();
  return {.engine = engine(),
          .records = static_cast<uint64_t>(std::max<int64_t>(all.records, 0)),
          .buckets = buckets_.count(),
          .sessions = callers_sessions_,
          .growths = growth_count(),
          .table_bytes = buckets_.memory_bytes(),
          .staging_bytes = staging_ == nullptr ? 0 : staging_->memory_bytes(),
          .keys = all.keys,
          .answers = all.answers,
          .missed = all.missed,
          .dropped = all.dropped};
}

void Table::shut_gates() {
  sessions_lock_.lock();
  for (Session* session = sessions_; session != nullptr; session = session->next_)
    session->gate_.begin_shut();
  sys::pass_seldom(has_barrier_);
  for (Session* session = sessions_; session != nullptr; session = session->next_) session->gate_.end_shut();
}

void Table::open_gates() {
  for (Session* session = sessions_; session != nullptr; session = session->next_) session->gate_.open();
  sessions_lock_.unlock();
}

// Copies all records to these buckets. False: a record has no room there.
bool Table::move_to(Buckets& to) const {
  const Shape& shape = options_.shape;
  std::byte keys[kMaxSlots * kMaxKeyBytes], values[kMaxBucketBytes];
  for (uint64_t i = 0; i < buckets_.count(); ++i) {
    const Head head = Head::of(buckets_.head(i).load(std::memory_order_relaxed));
    for (uint32_t slot = 0; slot < head.count; ++slot) {
      const std::byte* const record = buckets_.record(i, slot);
      memcpy(keys + slot * shape.key_bytes, record, shape.key_bytes);
      memcpy(values + slot * shape.value_bytes, record + shape.key_bytes, shape.value_bytes);
    }
    Job job{.code = {Action::kUpsert},
            .count = head.count,
            .keys = keys,
            .given = values,
            .key_stride = shape.key_bytes,
            .given_stride = shape.value_bytes};
    if (run_(to, job, 0) != job.count) return false;
  }
  return true;
}

Table::Grown Table::grow(uint64_t growths_seen) {
  sys::LockGuard scope(growth_lock_);
  if (growths_.load(std::memory_order_relaxed) != growths_seen) return Grown::kYes;
  shut_gates();
  const Grown grown = grow_alone();
  open_gates();
  return grown;
}

// REQUIRES: all gates are shut.
Table::Grown Table::grow_alone() {
  if (!options_.grows) return Grown::kNo;
  const uint64_t slots = buckets_.count() * options_.shape.slots();
  // Staged changes count, too: one part of the table may get all of its records before other parts get any.
  uint64_t records = staging_ == nullptr ? 0 : staging_->staged_count();
  for (uint64_t i = 0; i < buckets_.count(); ++i)
    records += Head::of(buckets_.head(i).load(std::memory_order_relaxed)).count;
  if (records * 100 < slots * kSpreadPercent) return Grown::kNo;
  Spread spread = buckets_.spread();
  // Twice as large is enough, unless keys are not spread.
  for (int tries = 0; tries < 4; ++tries) {
    spread = spread_twice(spread);
    Buckets larger;
    if (!larger.open(options_.shape, spread)) return Grown::kNoMemory;
    if (buckets_.has_tags() && !larger.add_tags()) return Grown::kNoMemory;
    if (!move_to(larger)) continue;
    buckets_.swap(larger);
    growths_.fetch_add(1, std::memory_order_relaxed);
    want_choice(Choice::Why::kGrown);
    return Grown::kYes;
  }
  return Grown::kNo;
}

Load Table::load() const {
  return {.shape = options_.shape,
          .buckets = buckets_.count(),
          .tag_bytes = buckets_.tag_bytes(),
          .cache_bytes = options_.cache_bytes,
          .cache_bucket_bytes = options_.cache_bucket_bytes,
          .staging_bytes = options_.staging_bytes,
          .sessions = std::max<uint32_t>(callers_sessions_, 1)};
}

// REQUIRES: growth_lock_; nobody is inside a gate.
void Table::want_choice(Choice::Why why) {
  if (chooses_.load(std::memory_order_relaxed)) choice_.want(why);
}

// REQUIRES: the same as want_choice().
void Table::note_session_count() {
  const uint64_t before = choice_.load().sessions, now = std::max<uint32_t>(callers_sessions_, 1);
  if (now >= 2 * before || 2 * now <= before) want_choice(Choice::Why::kSessions);
}

// Looks at what all sessions together have asked for since the last look: a session that only reads, besides one that only writes, is no change.
void Table::look_at_answers() {
  double share = 0;
  {
    sys::LockGuard scope(sessions_lock_);
    const Counts all = count_all();
    // Another session has just looked.
    if (all.keys - seen_keys_ < Session::kRecentKeys) return;
    share = static_cast<double>(all.answers - seen_answers_) / static_cast<double>(all.keys - seen_keys_);
    seen_keys_ = all.keys;
    seen_answers_ = all.answers;
  }
  if (choice_.is_trying() || !choice_.has_other_answers(share)) return;
  sys::LockGuard scope(growth_lock_);
  shut_gates();
  if (!choice_.is_trying()) want_choice(Choice::Why::kAnswers);
  open_gates();
}

// How many keys were timed since the choice's last step. REQUIRES: sessions_lock_.
uint64_t Table::count_tried() const {
  uint64_t count = 0;
  for (const Session* session = sessions_; session != nullptr; session = session->next_)
    count += session->tried_keys_.load(std::memory_order_relaxed);
  return count;
}

// Takes the choice's next step, if it is time for one.
void Table::go_on_with_choice(Session& session) {
  {
    sys::LockGuard scope(sessions_lock_);
    if (count_tried() < choice_.keys_of_phase()) return;
  }
  OldStaging old;
  sys::LockGuard scope(growth_lock_);
  shut_gates();
  // Another session may have gone on meanwhile.
  if (choice_.is_trying() && count_tried() >= choice_.keys_of_phase()) old = step_choice(session);
  open_gates();
}

// REQUIRES: growth_lock_; nobody is inside a gate.
Table::OldStaging Table::step_choice(Session& session) {
  const auto take = [&](std::atomic<uint64_t> Session::* count) {
    uint64_t total = 0;
    for (Session* one = sessions_; one != nullptr; one = one->next_)
      total += (one->*count).exchange(0, std::memory_order_relaxed);
    return static_cast<double>(total);
  };
  const double keys = std::max(take(&Session::tried_keys_), 1.0), cycles = take(&Session::tried_cycles_),
               answers = take(&Session::tried_answers_);
  if (choice_.is_wanted())
    choice_.begin(load(), this_machine(), base_costs_);
  else
    choice_.step(cycles * choice_.machine().ns_per_cycle / keys, answers / keys);
  while (choice_.engine() != engine()) {
    if (flush_all(session))
      if (auto set = set_engine(choice_.engine())) return std::move(*set);
    // The engine cannot be used. If it was the choice's result, or no other is left to try, the table stays with what it has.
    if (!choice_.is_trying() || !choice_.leave_out()) choice_.stay(engine());
  }
  return nullptr;
}

void Table::verify() {
  buckets_.verify();
  uint64_t count = 0;
  for (uint64_t i = 0; i < buckets_.count(); ++i)
    count += Head::of(buckets_.head(i).load(std::memory_order_relaxed)).count;
  CHECK_EQ(count, record_count());
}

}  // namespace batch
