#include "batch/table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/single_writer.h"
#include "batch/cache_buckets.h"
#include "batch/partitioned.h"
#include "sys/barrier.h"

namespace batch {
namespace {

constexpr uint32_t kSlotsWanted = 16, kBucketBytesWanted = 128;
// Of a table of any keys, how full it is when it has what it was made for.
constexpr uint64_t kFullPercent = 80;
// One that is emptier than this and has no room for a record does not grow: its keys are not spread.
constexpr uint64_t kSpreadPercent = 5;

base::Expected<void> check_options(Options& options) {
  Shape& shape = options.shape;
  if (shape.key_bytes < kKeyBytesMin || shape.key_bytes > kKeyBytesMax)
    return base::failure(EINVAL, "keys have ", uint64_t{kKeyBytesMin}, " to ", uint64_t{kKeyBytesMax},
                         " bytes, not ", uint64_t{shape.key_bytes});
  if (shape.value_bytes == 0 || shape.value_bytes > kRecordBytesMax ||
      shape.record_bytes() < kRecordBytesMin || shape.record_bytes() > kRecordBytesMax)
    return base::failure(EINVAL, "a record has ", uint64_t{kRecordBytesMin}, " to ",
                         uint64_t{kRecordBytesMax}, " bytes, of which one at least is its value's; not ",
                         uint64_t{shape.key_bytes}, " and ", uint64_t{shape.value_bytes});
  if (shape.bucket_bytes == 0)
    shape.bucket_bytes = static_cast<uint32_t>(std::min<uint64_t>(
        kBucketBytesMax,
        std::max<uint64_t>(kBucketBytesWanted,
                           base::round_up(kSlotsWanted * shape.record_bytes(), base::kLineBytes))));
  if (shape.bucket_bytes % base::kLineBytes != 0 || shape.bucket_bytes < kBucketBytesMin ||
      shape.bucket_bytes > kBucketBytesMax)
    return base::failure(EINVAL, "a bucket has a multiple of ", uint64_t{base::kLineBytes}, " bytes, up to ",
                         uint64_t{kBucketBytesMax}, ", not ", uint64_t{shape.bucket_bytes});
  if (options.records == 0) return base::failure(EINVAL, "say how many records the table is made for");
  if (options.key_space == 0) return {};
  if (shape.key_bytes > sizeof(uint64_t))
    return base::failure(EINVAL, "keys that are numbers have up to 8 bytes, not ", uint64_t{shape.key_bytes});
  if (options.key_space > Spread::kKeySpaceMax)
    return base::failure(EINVAL, "a key space has up to ", Spread::kKeySpaceMax, " numbers, not ",
                         options.key_space);
  options.records = std::min(options.records, options.key_space);
  return {};
}

uint64_t divide_up(uint64_t value, uint64_t by) { return (value - 1) / by + 1; }

Spread spread_for(const Options& options) {
  const uint64_t slots = options.shape.slots();
  const uint64_t homes = divide_up(options.records, std::max<uint64_t>(slots * kFullPercent / 100, 1));
  if (options.key_space == 0) return Spread::by_hash(homes);
  // Buckets that have room for all of their numbers are never too few.
  return Spread::by_number(options.key_space, std::min(homes, divide_up(options.key_space, slots)));
}

Spread spread_twice(const Spread& spread) {
  return spread.is_by_number() ? Spread::by_number(spread.key_space(), 2 * spread.bucket_count())
                               : Spread::by_hash(2 * spread.bucket_count());
}

}  // namespace

const char* name_of(Engine engine) {
  switch (engine) {
    case Engine::kLinear: return "linear";
    case Engine::kDirect: return "direct";
    case Engine::kPrefetch: return "prefetch";
    case Engine::kTagged: return "tagged";
    case Engine::kCacheBuckets: return "cache_buckets";
    case Engine::kPartitioned: return "partitioned";
  }
  return "";
}

base::Expected<void> Table::open(const Options& options) {
  options_ = options;
  if (auto checked = check_options(options_); !checked) return checked;
  has_barrier_ = sys::register_barrier().has_value();
  kernels_ = choose_kernels(options_.shape);
  if (auto opened = buckets_.open(options_.shape, spread_for(options_)); !opened) return opened;
  auto set = set_engine(options_.engine);
  if (!set) buckets_.close();
  return set;
}

base::Expected<std::unique_ptr<Staging>> Table::make_staging(Engine engine) const {
  const uint64_t homes = buckets_.spread().bucket_count();
  if (engine == Engine::kCacheBuckets)
    return CacheBuckets::make(options_.shape, options_.cache_bytes, options_.key_space, homes);
  if (engine == Engine::kPartitioned)
    return Partitioned::make(options_.shape, options_.staging_bytes, options_.key_space, homes, has_barrier_);
  return nullptr;
}

// REQUIRES: nobody else uses it; nothing is staged.
base::Expected<void> Table::set_engine(Engine engine) {
  auto staging = make_staging(engine);
  if (!staging) return std::unexpected(staging.error());
  if (engine == Engine::kTagged || engine == Engine::kPartitioned)
    if (auto added = buckets_.add_tags(); !added) return added;
  for (Session* session = sessions_; session != nullptr; session = session->next_) session->lane_ = nullptr;
  staging_ = std::move(*staging);
  engine_.store(engine, std::memory_order_relaxed);
  choose_run();
  return {};
}

// REQUIRES: nobody else uses it.
void Table::choose_run() {
  const bool is_alone = sessions_ == nullptr || sessions_->next_ == nullptr;
  const auto of = [&](const Kernels::Pair& pair) { return is_alone ? pair.alone : pair.shared; };
  switch (engine()) {
    case Engine::kLinear: run_ = kernels_.linear; break;
    case Engine::kDirect:
    case Engine::kCacheBuckets: run_ = kernels_.direct; break;
    case Engine::kPrefetch: run_ = of(kernels_.prefetch); break;
    case Engine::kTagged:
    case Engine::kPartitioned: run_ = of(kernels_.tagged); break;
  }
}

// REQUIRES: all gates are shut.
bool Table::flush_all(Session& session) {
  while (staging_ != nullptr && !staging_->flush(session))
    if (grow_alone() != Grown::kYes) return false;
  return true;
}

base::Expected<void> Table::use(Session& session, Engine engine) {
  sys::LockGuard scope(growth_lock_);
  shut_gates();
  base::Expected<void> used = base::failure(ENOSPC, "what is staged has no room in the table");
  if (flush_all(session)) used = set_engine(engine);
  open_gates();
  return used;
}

void Table::close() {
  CHECK(sessions_ == nullptr);
  buckets_.close();
  staging_.reset();
  function_count_ = 0;
  gone_records_ = 0;
  gone_missed_ = 0;
  growths_.store(0, std::memory_order_relaxed);
}

uint8_t Table::add_function(const Change& change) {
  CHECK(sessions_ == nullptr);
  CHECK_LT(function_count_, Code::kFunctionsMax);
  functions_[function_count_] = change;
  return static_cast<uint8_t>(function_count_++);
}

uint64_t Table::record_count() {
  sys::LockGuard scope(sessions_lock_);
  int64_t count = gone_records_;
  for (const Session* session = sessions_; session != nullptr; session = session->next_)
    count += session->records_.load(std::memory_order_relaxed);
  return static_cast<uint64_t>(std::max<int64_t>(count, 0));
}

uint64_t Table::missed_count() {
  sys::LockGuard scope(sessions_lock_);
  uint64_t count = gone_missed_;
  for (const Session* session = sessions_; session != nullptr; session = session->next_)
    count += session->missed_.load(std::memory_order_relaxed);
  return count;
}

uint64_t Table::memory_bytes() {
  sys::LockGuard scope(growth_lock_);
  return buckets_.memory_bytes() + (staging_ == nullptr ? 0 : staging_->memory_bytes());
}

uint64_t Table::bucket_count() {
  sys::LockGuard scope(growth_lock_);
  return buckets_.count();
}

void Table::shut_gates() {
  sessions_lock_.lock();
  for (Session* session = sessions_; session != nullptr; session = session->next_) session->gate_.shut();
}

void Table::open_gates() {
  for (Session* session = sessions_; session != nullptr; session = session->next_) session->gate_.open();
  sessions_lock_.unlock();
}

// False: they have no room for a record.
bool Table::move_to(Buckets& to) const {
  const Shape& shape = options_.shape;
  std::byte keys[kSlotsMax * kKeyBytesMax], values[kBucketBytesMax];
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
  const uint64_t slots = buckets_.count() * options_.shape.slots();
  uint64_t records = 0;
  for (uint64_t i = 0; i < buckets_.count(); ++i)
    records += Head::of(buckets_.head(i).load(std::memory_order_relaxed)).count;
  if (!options_.grows || records * 100 < slots * kSpreadPercent) return Grown::kNo;
  Spread spread = buckets_.spread();
  // Twice is enough, but where keys are not spread.
  for (int tries = 0; tries < 4; ++tries) {
    spread = spread_twice(spread);
    Buckets larger;
    if (!larger.open(options_.shape, spread)) return Grown::kNoMemory;
    if (buckets_.has_tags() && !larger.add_tags()) return Grown::kNoMemory;
    if (!move_to(larger)) continue;
    buckets_.swap(larger);
    growths_.fetch_add(1, std::memory_order_relaxed);
    return Grown::kYes;
  }
  return Grown::kNo;
}

void Table::verify() {
  buckets_.verify();
  uint64_t count = 0;
  for (uint64_t i = 0; i < buckets_.count(); ++i)
    count += Head::of(buckets_.head(i).load(std::memory_order_relaxed)).count;
  CHECK_EQ(count, record_count());
}

Session::Session(Table& table) : table_(table), gate_(table.has_barrier_) {
  sys::LockGuard scope(table_.growth_lock_);
  table_.shut_gates();
  next_ = table_.sessions_;
  table_.sessions_ = this;
  table_.choose_run();
  table_.open_gates();
}

Session::~Session() {
  sys::LockGuard scope(table_.growth_lock_);
  table_.shut_gates();
  if (lane_ != nullptr) table_.staging_->close_lane(lane_);
  Session** at = &table_.sessions_;
  while (*at != this) at = &(*at)->next_;
  *at = next_;
  table_.gone_records_ += records_.load(std::memory_order_relaxed);
  table_.gone_missed_ += missed_.load(std::memory_order_relaxed);
  table_.choose_run();
  table_.open_gates();
}

// what() -> Did.
template <class Do>
Session::Ran Session::run_with_room(Do what) {
  for (;;) {
    gate_.enter();
    const uint64_t growths = table_.growths_.load(std::memory_order_relaxed);
    const Did did = what();
    gate_.leave();
    if (did == Did::kAll) return Ran::kAll;
    if (did == Did::kNoMemory) return Ran::kNoMemory;
    switch (table_.grow(growths)) {
      case Table::Grown::kYes: break;
      case Table::Grown::kNo: return Ran::kFull;
      case Table::Grown::kNoMemory: return Ran::kNoMemory;
    }
  }
}

void Session::apply(Job& job) {
  job.functions = table_.functions_;
  const size_t inserted = job.inserted_count, removed = job.removed_count;
  job.done_count = table_.run_(table_.buckets_, job, job.done_count);
  base::increase(records_, static_cast<int64_t>(job.inserted_count - inserted) -
                               static_cast<int64_t>(job.removed_count - removed));
}

void Session::apply_staged(Job& job) {
  apply(job);
  base::increase(missed_, uint64_t{job.absent_count});
}

Session::Ran Session::run(Job& job) {
  const Shape& shape = table_.options_.shape;
  job.key_stride = shape.key_bytes;
  job.given_stride = shape.value_bytes;
  job.codes = nullptr;
  job.done_count = job.absent_count = job.inserted_count = job.removed_count = 0;
  if (const uint64_t key_space = table_.options_.key_space; key_space != 0)
    for (size_t i = 0; i < job.count; ++i)
      if (load_key(job.keys + i * job.key_stride, shape.key_bytes).low >= key_space)
        return job.done_count = i, Ran::kOutside;
  bool is_staged = false;
  const Ran ran = run_with_room([&] {
    Staging* const staging = table_.staging_.get();
    is_staged = staging != nullptr && job.code.action != Action::kRead && job.outcomes == nullptr;
    if (is_staged) return stage(*staging, job);
    if (staging != nullptr && !staging->settle(*this, job)) return Did::kNoRoom;
    apply(job);
    return job.done_count == job.count ? Did::kAll : Did::kNoRoom;
  });
  if (!is_staged || ran != Ran::kAll || table_.options_.stale_changes_max == 0) return ran;
  stale_changes_ += job.count;
  return stale_changes_ < table_.options_.stale_changes_max ? ran : flush();
}

Session::Did Session::stage(Staging& staging, Job& job) {
  if (lane_ == nullptr) {
    auto lane = staging.open_lane();
    if (!lane) return Did::kNoMemory;
    lane_ = *lane;
  }
  return staging.put(*this, job) ? Did::kAll : Did::kNoRoom;
}

Session::Ran Session::flush() {
  stale_changes_ = 0;
  return run_with_room([&] {
    Staging* const staging = table_.staging_.get();
    return staging == nullptr || staging->flush(*this) ? Did::kAll : Did::kNoRoom;
  });
}

uint32_t Session::copy_bucket(uint64_t index, std::byte* copy) const {
  const Head head = table_.buckets_.lock(index);
  memcpy(copy, table_.buckets_.bucket(index), head.count * table_.options_.shape.record_bytes());
  table_.buckets_.unlock(index, head);
  return head.count;
}

}  // namespace batch
