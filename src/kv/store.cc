#include "kv/store.h"

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"
#include "kv/index/entry.h"
#include "kv/media/forgetful_device.h"
#include "kv/media/superblocks.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint64_t kSegmentsWanted = 256;
constexpr uint64_t kRetryNs = 100'000'000;
constexpr uint64_t kTellNs = 1'000'000'000;
// A store's generations begin at a random number of this many bits, so that what an older store has left on the medium almost certainly has none of
// them. That leaves enough of the 48 bits in which tombstones keep one.
constexpr unsigned kFirstGenerationBits = 40;

uint64_t segment_bytes_for(uint64_t capacity_bytes) {
  const uint64_t share = std::bit_floor(std::max<uint64_t>(capacity_bytes / kSegmentsWanted, 1));
  return std::clamp<uint64_t>(share, kMinSegmentBytes, 64 << 20);
}

// The shape of a new store. Errors: EINVAL, ENOSPC, as Store::make's.
base::Expected<Geometry> geometry_for(const storage::Device& device, const MakeOptions& options) {
  const uint64_t capacity = options.capacity_bytes != 0 ? options.capacity_bytes : device.capacity_bytes();
  if (capacity > device.capacity_bytes())
    return base::failure(EINVAL, "store: ", device.name(), " has ", device.capacity_bytes(), " bytes, not ",
                         capacity);
  Geometry geometry;
  geometry.capacity_bytes = capacity;
  geometry.grain_bytes = std::max(options.grain_bytes, device.block_bytes());
  geometry.segment_bytes = options.segment_bytes != 0 ? options.segment_bytes : segment_bytes_for(capacity);
  geometry.spare_percent = options.spare_percent;
  if (!may_be_grain_bytes(options.grain_bytes))
    return base::failure(EINVAL, "store: grains of ", options.grain_bytes,
                         " bytes; give 512, 1024, 2048 or 4096");
  if (!may_be_segment_bytes(geometry.segment_bytes))
    return base::failure(EINVAL, "store: segments of ", geometry.segment_bytes,
                         " bytes; give a power of two from 1M to 1G");
  if (geometry.spare_percent > 90)
    return base::failure(EINVAL, "store: ", geometry.spare_percent, " % to spare; give 90 or less");
  geometry.segment_count =
      capacity > kSegmentsOffset ? (capacity - kSegmentsOffset) / geometry.segment_bytes : 0;
  if (geometry.segment_count < Log::kMinSegments)
    return base::failure(ENOSPC, "store: ", device.name(), " is too small: ", capacity,
                         " bytes; a store needs ",
                         kSegmentsOffset + Log::kMinSegments * geometry.segment_bytes);
  constexpr uint64_t kMaxGrains = uint64_t{1} << EntryFormat::kMaxAddressBits;
  if (geometry.segment_count > kMaxGrains / geometry.segment_grains())
    return base::failure(EINVAL, "store: ", device.name(), " is too large for grains of ",
                         geometry.grain_bytes, " bytes; give a capacity of ",
                         base::Bytes{kMaxGrains * geometry.grain_bytes}, " or less",
                         geometry.grain_bytes < 4096 ? ", or larger grains" : "");
  return geometry;
}

uint64_t first_generation() {
  uint64_t generation = 0;
  sys::random_bytes({reinterpret_cast<unsigned char*>(&generation), sizeof generation});
  generation >>= 64 - kFirstGenerationBits;
  return generation;
}

// Writes the headers of free segments, and then the superblocks. 0, or an errno value.
int write_new(Channel& channel, const Identity& identity) {
  const Geometry& geometry = identity.geometry;
  const uint64_t generation = first_generation();
  alignas(4096) std::byte block[kSuperblockBytes] = {};
  int error = 0;
  const auto write_superblocks = [&] {
    for (uint64_t offset : kSuperblockOffsets)
      if (error == 0) error = channel.write(offset, block);
    if (error == 0) error = channel.flush();
  };
  write_superblocks();  // zeros: an old store is gone before its segments are overwritten
  for (uint64_t i = 0; i < geometry.segment_count && error == 0; ++i) {
    const std::span header(block, geometry.grain_bytes);
    write_segment_header(identity, {.generation = generation, .state = SegmentState::kFree}, header);
    for (uint64_t offset : geometry.header_offsets(i))
      if (error == 0) error = channel.write(offset, header);
  }
  if (error == 0) error = channel.flush();
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  write_superblock(identity,
                   static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec),
                   block);
  write_superblocks();
  return error;
}

void log_not_read_whole(const storage::Device& device, const RecoveryReport& report) {
  base::log({.name = "store_not_read_whole",
             .level = base::LogLevel::kError,
             .fields = {{"unreadable_segments", report.unreadable_segments},
                        {"unreadable_grains", report.unreadable_grains},
                        {"lost_segments", report.lost_segments}}},
            "store: ", device.name(), " cannot read ", report.unreadable_segments, " segments and ",
            report.unreadable_grains, " grains of others, and ", report.lost_segments,
            " segments are damaged at both ends: of keys that were there older values may be found, or none; "
            "if it stays so, dump what is there and load it into a new store");
}

}  // namespace

base::Expected<Geometry> Store::make(storage::Device& device, const MakeOptions& options) {
  auto geometry = geometry_for(device, options);
  if (!geometry) return geometry;
  Identity identity = {.geometry = *geometry, .layout = device.layout(), .is_cache = options.is_cache};
  sys::random_bytes({reinterpret_cast<unsigned char*>(&identity.store_id), sizeof identity.store_id});
  sys::random_bytes(identity.secret.bytes);
  Channel channel;
  if (auto opened = channel.open_for_threads(device); !opened) return std::unexpected(opened.error());
  const int error = write_new(channel, identity);
  channel.close();
  if (error != 0)
    return base::failure(error, "store: cannot write ", device.name(), ": ", base::error_name(error));
  return geometry;
}

base::Expected<Store*> Store::open(storage::Device& device, const StoreOptions& options) {
  auto memory = sys::map_anonymous(sizeof(Store), "a store");
  if (!memory) return std::unexpected(memory.error());
  storage::Device* own_device = nullptr;
  if (options.read_only) {
    auto forgetful = make_forgetful_device(device);
    if (!forgetful) {
      sys::unmap(*memory, sizeof(Store));
      return std::unexpected(forgetful.error());
    }
    own_device = *forgetful;
  }
  Store* const store = new (*memory) Store(own_device != nullptr ? *own_device : device, options);
  store->own_device_ = own_device;
  if (auto started = store->start(); !started) {
    store->release();
    return std::unexpected(started.error());
  }
  return store;
}

base::Expected<void> Store::start() {
  const uint32_t streams =
      options_.stream_count != 0 ? options_.stream_count : std::min(sys::cpu_count(), 8u);
  if (streams > Log::kMaxStreams)
    return base::failure(EINVAL, "store: ", streams, " streams; give 64 or fewer");
  if (auto opened = keeper_channel_.open_for_threads(device_); !opened) return opened;
  keeper_channel_.counts_as(IoFor::kKeeper);
  Superblocks superblocks;
  auto identity = superblocks.read(device_, keeper_channel_);
  if (!identity) return std::unexpected(identity.error());
  // A device of a stripe is another store's: most records would look damaged, and what is written would harm both stores.
  if (superblocks.are_of_two_stores())
    return base::failure(EINVAL, "store: ", device_.name(),
                         " has superblocks of two stores; name the devices as they were");
  identity_ = *identity;
  // Not too many streams for a small store: each has an open segment, and what is left of that is unused room.
  const auto fitting = static_cast<uint32_t>(std::max<uint64_t>(1, identity_.geometry.segment_count / 16));
  if (auto opened = log_.open(identity_, std::min(streams, fitting)); !opened) return opened;
  auto recovered = recover(device_, identity_, log_, index_);
  if (!recovered) return std::unexpected(recovered.error());
  recovery_ = recovered->report;
  // A header that cannot be read may have a higher floor. It is better to drop everything than to find what was dropped.
  const bool has_lost_floor = identity_.is_cache && !recovery_.has_read_all();
  const uint64_t floor = has_lost_floor ? log_.last_sequence() + 1 : recovered->floor;
  lifetimes_.drop_below(floor);
  log_.drop_below(floor);
  // Only now that recovery has flushed what the last process may have left in the device's cache.
  if (const int error = superblocks.mend(device_, keeper_channel_, !options_.read_only); error != 0)
    fail(error, true);
  if (auto opened = tier_.open(options_.memory_bytes); !opened) return opened;
  snapshots_.open(log_, large_values_, identity_.geometry);
  if (!recovery_.has_read_all()) log_not_read_whole(device_, recovery_);
  if (options_.read_only) {
    fail(EROFS, true);
    return {};
  }
  if (identity_.is_cache) {
    const uint64_t grains = identity_.geometry.segment_count * identity_.geometry.segment_grains();
    if (auto opened = used_records_.open(grains); !opened) return opened;
  }
  if (auto opened = collector_.open({.device = &device_,
                                     .identity = &identity_,
                                     .index = index_,
                                     .log = &log_,
                                     .readers = &readers_,
                                     .changes = &changes_,
                                     .large_values = &large_values_,
                                     .snapshots = &snapshots_,
                                     .lifetimes = &lifetimes_,
                                     .key_locks = &key_locks_,
                                     .used = &used_records_},
                                    options_.checkpoint_records, *recovered);
      !opened)
    return opened;
  log_.meanwhile = {.act = [](void* self) { static_cast<Store*>(self)->flush_batch(); }, .self = this};
  return start_threads();
}

base::Expected<void> Store::start_threads() {
  auto keeper = sys::start_thread([](void* self) { static_cast<Store*>(self)->keep(); }, this, "kv-keeper");
  if (!keeper) return std::unexpected(keeper.error());
  keeper_ = *keeper;
  has_keeper_ = true;
  auto collector =
      sys::start_thread([](void* self) { static_cast<Store*>(self)->collect(); }, this, "kv-collector");
  if (!collector) return std::unexpected(collector.error());
  collector_thread_ = *collector;
  has_collector_ = true;
  return {};
}

// The collector is stopped first: it may have to wait for what the keeper does.
void Store::stop_threads() {
  stopping_.store(true, std::memory_order_release);
  log_.collector_wanted.notify_all();
  if (has_collector_) sys::join_thread(collector_thread_);
  is_collected_.store(true, std::memory_order_release);
  log_.keeper_wanted.notify_all();
  if (has_keeper_) sys::join_thread(keeper_);
  has_keeper_ = has_collector_ = false;
}

// Gives back what start() has taken, as far as it got, and the store's own memory.
void Store::release() {
  stop_threads();
  collector_.close();
  log_.close();
  used_records_.close();
  tier_.close();
  if (index_ != nullptr) index_->close();
  keeper_channel_.close();
  if (own_device_ != nullptr) own_device_->close();
  this->~Store();  // its parts have memory of the C++ library's heap
  sys::unmap(this, sizeof(Store));
}

void Store::keep() {
  uint64_t log_at_ns = 0;
  while (!is_collected_.load(std::memory_order_acquire)) {
    const uint32_t key = log_.keeper_wanted.prepare();
    bool did = false;
    const int error = log_.has_failed() ? 0 : log_.keep(keeper_channel_, did);
    tell_keeper_error(error);
    log_put_off();
    log_failure(log_at_ns);
    index_->prepare();
    const uint64_t batch_ns = flush_batch();
    if ((did && error == 0) || is_collected_.load(std::memory_order_acquire)) {
      log_.keeper_wanted.cancel();
      continue;
    }
    log_.keeper_wanted.wait(key, batch_ns != 0    ? batch_ns
                                 : error != 0     ? kRetryNs
                                 : log_at_ns != 0 ? kTellNs
                                                  : 0);
    flush_batch();
  }
}

// The keeper's, at kBatch. Whoever writes first after a flush wakes the keeper, and what others write in the next batch_ns shares its flush. Returns
// the time until that flush; 0: there is nothing to flush.
uint64_t Store::flush_batch() {
  if (options_.durability != Durability::kBatch || log_.has_failed()) return 0;
  if (!wrote_.load(std::memory_order_relaxed)) return 0;
  const uint64_t now_ns = sys::monotonic_ns();
  if (batch_end_ns_ == 0) batch_end_ns_ = now_ns + options_.batch_ns;
  if (now_ns < batch_end_ns_) return batch_end_ns_ - now_ns;
  batch_end_ns_ = 0;
  // Pairs with the release in Session::keep_promise().
  wrote_.exchange(false, std::memory_order_acquire);
  if (const int error = log_.flush(keeper_channel_); error != 0) fail(error, false);
  return 0;
}

// Tells those who wait for room of the keeper's error. They may try again, as the keeper does.
void Store::tell_keeper_error(int error) {
  const int before = keeper_error_.exchange(error, std::memory_order_relaxed);
  if (error == 0) return;
  if (log_.flush_error() != 0) {
    fail(error, false);
    return;
  }
  if (before == 0) is_told_.store(false, std::memory_order_relaxed);
  log_.refuse_waiting();
}

void Store::collect() {
  bool has_told = false;
  while (!stopping_.load(std::memory_order_acquire)) {
    const uint32_t key = log_.collector_wanted.prepare();
    bool did = false;
    const uint64_t compaction = collector_.wants_all() ? compactions_.load(std::memory_order_relaxed) : 0;
    const Collector::Failure failure = collector_.step(did);
    if (failure.is_of_flush) fail(failure.error, false);
    if (compaction != 0 && failure.error != 0)
      compaction_failure_.store(compaction << 32 | static_cast<uint32_t>(failure.error),
                                std::memory_order_relaxed);
    if (failure.error != 0 && !has_told && !log_.has_failed() && !collector_.wants_all())
      base::log({.name = "store_not_collected",
                 .level = base::LogLevel::kError,
                 .fields = {{"error", failure.error}}},
                cannot_collect(failure.error).message);
    has_told = failure.error != 0;
    if (failure.error != 0) log_.tell_waiting();
    if ((did && failure.error == 0) || stopping_.load(std::memory_order_acquire)) {
      log_.collector_wanted.cancel();
      continue;
    }
    if (!did || failure.error != 0) {
      idle_steps_.fetch_add(1);
      compacted_.notify_all();
    }
    // What is put off or left is tried again after a while, even if nobody asks for anything.
    const bool retries = failure.error != 0 || log_.put_off_count() != 0 || large_values_.has_left();
    log_.collector_wanted.wait(key, retries ? kRetryNs : 0);
  }
}

const char* Store::remedy_of(int error) const {
  if (error != ENOSPC) return "";
  const bool goes_on = error_.load(std::memory_order_relaxed) == 0;
  return goes_on ? "; make room where its file is" : "; make room where its file is, and open it again";
}

base::Error Store::cannot_collect(int error) const {
  return base::Error::of(error, "store: ", device_.name(), " cannot be collected: ", base::error_name(error),
                         remedy_of(error));
}

base::Error Store::io_error(int error, const char* what) const {
  return base::Error::of(error, "store: cannot ", what, " ", device_.name(), ": ", base::error_name(error),
                         remedy_of(error));
}

base::Expected<void> Store::compact() {
  const uint64_t compaction = compactions_.fetch_add(1, std::memory_order_relaxed) + 1;
  const Collector::AllWanted all(collector_);
  // The first step that finds nothing may have begun before this call, so two of them are waited for. A signal handler may also end a wait.
  const uint64_t end = idle_steps_.load() + 2;
  while (idle_steps_.load() < end && !log_.has_failed()) {
    const uint32_t key = compacted_.prepare();
    log_.collector_wanted.notify_all();
    compacted_.wait(key);
  }
  if (log_.has_failed()) return std::unexpected(tell_failure());
  const uint64_t failure = compaction_failure_.load(std::memory_order_relaxed);
  // A failure of a step that began before this call does not count.
  if (failure >> 32 < compaction) return {};
  return std::unexpected(cannot_collect(static_cast<int>(static_cast<uint32_t>(failure))));
}

void Store::forget_below(uint64_t version) {
  lifetimes_.raise_floor(version);
  log_.collector_wanted.notify_all();  // writers may wait for the room that this makes
}

void Store::fail(int error, bool is_told) {
  if (is_told) note_told();
  int known = 0;
  if (!error_.compare_exchange_strong(known, error, std::memory_order_relaxed)) return;
  log_.fail();
  log_.keeper_wanted.notify_all();
}

void Store::note_told() {
  if (!options_.logs_told_failures) is_told_.store(true, std::memory_order_relaxed);
}

void Store::log_put_off() {
  const uint64_t count = log_.put_off_count();
  if (count > told_put_off_)
    base::log({.name = "segments_put_off", .fields = {{"segments", count}}}, "store: ", device_.name(),
              " does not take the headers or the summaries of ", count,
              " segments: what they hold can be read, and they are tried again");
  told_put_off_ = count;
}

// The keeper's: logs a failure that no call has reported for a while. `at_ns`: when it will be logged; 0: there is nothing to log.
void Store::log_failure(uint64_t& at_ns) {
  const bool is_untold = has_failure() && !is_told_.load(std::memory_order_relaxed);
  const uint64_t now_ns = is_untold ? sys::monotonic_ns() : 0;
  if (is_untold && at_ns == 0)
    at_ns = now_ns + kTellNs;
  else if (!is_untold)
    at_ns = 0;
  if (at_ns == 0 || now_ns < at_ns) return;
  at_ns = 0;
  if (is_told_.exchange(true, std::memory_order_relaxed)) return;
  const base::Error error = failure();
  base::log({.name = "store_failed", .level = base::LogLevel::kError, .fields = {{"error", error.number}}},
            error.message);
}

base::Expected<void> Store::close() {
  stop_threads();
  int error = 0;
  if (!options_.read_only) {
    error = error_.load(std::memory_order_relaxed);
    if (error == 0) error = log_.seal_all(keeper_channel_);
    if (error == 0) collector_.end();
    log_put_off();
  }
  base::Expected<void> closed;
  if (error != 0)
    closed = base::failure(error, "store: ", device_.name(),
                           " may lack the last writes: ", base::error_name(error));
  release();
  return closed;
}

base::Error Store::tell_failure() {
  // A full store is no failure that has to be logged.
  if (has_failure()) note_told();
  return failure();
}

bool Store::has_failure() const {
  return error_.load(std::memory_order_relaxed) != 0 || keeper_error_.load(std::memory_order_relaxed) != 0;
}

base::Error Store::failure() const {
  const int error = error_.load(std::memory_order_relaxed);
  if (options_.read_only)
    return base::Error::of(EROFS, "store: ", device_.name(),
                           " is open for reading only; open it for writing");
  if (error != 0)
    return base::Error::of(error, "store: ", device_.name(),
                           " takes no writes any more: ", base::error_name(error), remedy_of(error));
  const int keeper_error = keeper_error_.load(std::memory_order_relaxed);
  if (keeper_error != 0) return io_error(keeper_error, "write");
  return base::Error::of(ENOSPC, "store: ", device_.name(), " is full; remove keys or use a larger device");
}

StoreCounts Store::counts() {
  const auto get = [](const std::atomic<uint64_t>& count) { return count.load(std::memory_order_relaxed); };
  const CollectorCounts& collector = collector_.counts();
  UseCounts use = calls_.counts();
  keeper_channel_.add_io(use.io);
  collector_.channel().add_io(use.io);
  Times flushes;
  flushes.add(sync_flush_times_);
  use.latencies[static_cast<size_t>(CallKind::kSyncFlush)] = latency_of(flushes);
  const int error = error_.load(std::memory_order_relaxed);
  return {.log = log_.counts(),
          .index = index_->counts(),
          .collected = {.victims = get(collector.victims),
                        .moved_records = get(collector.moved_records),
                        .moved_bytes = get(collector.moved_bytes),
                        .read_bytes = get(collector.read_bytes),
                        .expired_records = get(collector.expired_records),
                        .ended_tombstones = get(collector.ended_tombstones),
                        .damaged_records = get(collector.damaged_records),
                        .dropped_records = get(collector.dropped_records),
                        .dropped_bytes = get(collector.dropped_bytes),
                        .kept_records = get(collector.kept_records),
                        .checkpoints = get(collector.checkpoints),
                        .checkpoint_bytes = get(collector.checkpoint_bytes)},
          .tier = tier_.counts(),
          .use = use,
          .error = error != 0 ? error : keeper_error_.load(std::memory_order_relaxed)};
}

void Store::verify() {
  const bool has_threads = has_collector_;
  if (has_threads) stop_threads();
  index_->verify();
  log_.verify();
  tier_.verify();
  if (!has_threads) return;
  stopping_.store(false, std::memory_order_relaxed);
  is_collected_.store(false, std::memory_order_relaxed);
  CHECK(start_threads().has_value());
}

}  // namespace kv
