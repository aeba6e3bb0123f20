// Opens and closes a stored table: reads the map, replays the log, starts and ends the threads.
#include <algorithm>

#include "base/ids.h"
#include "batch/stored/stored_table.h"
#include "sys/files.h"

namespace batch {
namespace {

constexpr uint32_t kMinChunkBytes = 256, kMaxChunkBytes = 16 << 10;
// Which share of a slot is filled, in a table with the number of records that it is made for.
constexpr double kFilled = 0.8;

uint64_t random_word() {
  uint64_t word = 0;
  sys::random_bytes({reinterpret_cast<unsigned char*>(&word), sizeof word});
  return word | 1;  // not 0, which means none
}

uint32_t depth_for(uint64_t records, uint64_t records_of_slot) {
  uint32_t depth = 0;
  while (depth < kMaxDepth &&
         static_cast<double>(records_of_slot << depth) * kFilled < static_cast<double>(records))
    ++depth;
  return depth;
}

base::Expected<void> not_a_table(const BucketStore& store) {
  return base::failure(EINVAL, "table: ", store.name(),
                       " has content, and is not a table; name another file");
}

}  // namespace

StoredTable::~StoredTable() { static_cast<void>(close()); }

uint64_t StoredTable::store_bytes_for(const Shape& shape, uint64_t records, uint32_t slot_pages) {
  const uint64_t slot_bytes = slot_pages * kPageBytes;
  const uint32_t depth = depth_for(records, uint64_t{slot_pages} * records_of_page(shape));
  const uint64_t regions = uint64_t{1} << depth;
  return (regions + regions / Slots::kSpareShare + Slots::kMinSpare) * slot_bytes;
}

base::Expected<void> StoredTable::check(const StoredOptions& options) {
  if (auto checked = check_records(options.shape, options.records, options.key_space); !checked)
    return checked;
  if (options.makers == 0 || options.makers > kMaxMakers)
    return base::failure(EINVAL, "a table has 1 to ", uint64_t{kMaxMakers}, " threads, not ",
                         uint64_t{options.makers});
  if (!std::has_single_bit(options.slot_pages) || options.slot_pages < kMinSlotPages ||
      options.slot_pages > kMaxSlotPages)
    return base::failure(EINVAL, "a slot has ", kMinSlotPages, " to ", kMaxSlotPages,
                         " pages, a power of two, not ", options.slot_pages);
  return {};
}

base::Expected<void> StoredTable::open(BucketStore& store, const StoredOptions& options) {
  CHECK(store_ == nullptr && regions_.empty());
  if (auto checked = check(options); !checked) return checked;
  options_ = options;
  store_ = &store;
  shape_ = options.shape;
  positions_ = Positions(options.key_space);
  page_records_ = records_of_page(shape_);
  merge_.reset(new (std::nothrow) Merge(shape_, positions_, functions_));
  if (merge_ == nullptr) return base::failure(ENOMEM, "table: no memory");
  auto access = store.open_access();
  base::Expected<void> opened;
  bool is_new = false;
  if (!access) {
    opened = std::unexpected(access.error());
  } else if (auto found = open_store(**access); !found) {
    opened = std::unexpected(found.error());
  } else {
    is_new = !*found;
  }
  if (opened) opened = open_log();
  // Number 0 says that the table is still being made; the first checkpoint ends that.
  if (opened && is_new) opened = write_superblock(**access, superblock_);
  if (opened && is_new) {
    sys::LockGuard scope(lock_);
    opened = checkpoint(**access);
  }
  if (!opened) forget();
  return opened;
}

void StoredTable::forget() {
  store_ = nullptr;
  log_ = nullptr;
}

// Returns whether there is a table in the store. False: the object is a new table, and nothing of it is on the medium yet.
base::Expected<bool> StoredTable::open_store(BucketStore::Access& access) {
  auto found = read_superblocks(access);
  if (!found) return found;
  if (!*found) {
    if (auto made = make_new(); !made) return std::unexpected(made.error());
  }
  slots_.open(store_->bytes() / slot_bytes());
  if (*found) {
    if (auto read = read_map(access); !read) return std::unexpected(read.error());
  }
  sequence_ = superblock_.sequence;
  for (uint32_t i = 0; i < regions_.size(); ++i) set_directory(regions_[i], i);
  slots_.set_limit();

  const uint64_t share =
      options_.staging_bytes / std::max<uint64_t>(8 * regions_.size(), 2 * StagedChanges::kMinChunks);
  const uint32_t most = static_cast<uint32_t>(std::min<uint64_t>(kMaxChunkBytes, slot_bytes() / 4));
  const uint32_t chunk_bytes =
      static_cast<uint32_t>(std::clamp<uint64_t>(std::bit_floor(share), kMinChunkBytes, most));
  if (auto staged = staged_.open(shape_, options_.staging_bytes, chunk_bytes); !staged)
    return std::unexpected(staged.error());
  low_water_ = std::max(2 * kChunksLeft, staged_.chunk_count() / 8);
  return found;
}

// Returns whether there is a table. False: the store has only zeros, or a table that was never finished.
base::Expected<bool> StoredTable::read_superblocks(BucketStore::Access& access) {
  if (store_->bytes() < Slots::kMinSpare * kMinSlotPages * kPageBytes)
    return base::failure(ENOSPC, "table: ", store_->name(), " has ", store_->bytes(),
                         " bytes, which is too small for a table");
  Bytes pages;
  if (!pages.reserve(2 * kPageBytes)) return base::failure(ENOMEM, "table: no memory");
  const BucketStore::Piece piece = {.offset = 0, .to = pages.first(2 * kPageBytes)};
  if (auto read = access.read({&piece, 1}); !read) return std::unexpected(read.error());
  bool is_found = false;
  for (uint64_t i = 0; i < 2; ++i) {
    Superblock one;
    memcpy(&one, pages.data() + i * kPageBytes, sizeof one);
    if (!one.is_sealed() || (is_found && one.number < superblock_.number)) continue;
    superblock_ = one;
    is_found = true;
  }
  if (!is_found) {
    auto has_content = store_->has_content();
    if (has_content && *has_content) return std::unexpected(not_a_table(*store_).error());
    return has_content;
  }
  if (superblock_.number == 0) return false;
  const Superblock& it = superblock_;
  if (it.version != Superblock::kVersion)
    return base::failure(EINVAL, "table: ", store_->name(), " has format ", it.version, "; this is for ",
                         Superblock::kVersion);
  if (it.key_bytes != shape_.key_bytes || it.value_bytes != shape_.value_bytes ||
      it.key_space != options_.key_space)
    return base::failure(EINVAL, "table: ", store_->name(), " has keys of ", it.key_bytes,
                         " bytes, values of ", it.value_bytes, " and the key space ", it.key_space, "; not ",
                         shape_.key_bytes, ", ", shape_.value_bytes, " and ", options_.key_space);
  if (!std::has_single_bit(it.slot_pages) || it.slot_pages < kMinSlotPages || it.slot_pages > kMaxSlotPages)
    return std::unexpected(not_a_table(*store_).error());
  slot_pages_ = it.slot_pages;
  return true;
}

base::Expected<void> StoredTable::make_new() {
  superblock_ = {};
  superblock_.key_bytes = shape_.key_bytes;
  superblock_.value_bytes = shape_.value_bytes;
  superblock_.slot_pages = slot_pages_ = options_.slot_pages;
  superblock_.key_space = options_.key_space;
  superblock_.id = {{random_word(), random_word()}};
  const uint64_t needed = store_bytes_for(shape_, options_.records, options_.slot_pages);
  if (store_->bytes() < needed)
    return base::failure(ENOSPC, "table: ", store_->name(), " has ", store_->bytes(), " bytes; ",
                         options_.records, " records take ", needed);
  const uint32_t depth = depth_for(options_.records, records_of_slot());
  for (uint64_t i = 0; i < uint64_t{1} << depth; ++i) {
    Region& region = regions_.emplace_back();
    region.entry.depth = depth;
    region.prefix = depth == 0 ? 0 : i << (64 - depth);
  }
  return {};
}

base::Expected<void> StoredTable::read_map(BucketStore::Access& access) {
  auto map = load_map(access);
  if (!map) return std::unexpected(map.error());
  MapReader reader(
      *map, {.sequence = superblock_.sequence, .slot_pages = slot_pages_, .page_records = page_records_});
  for (MapRegion next;;) {
    switch (reader.next(next)) {
      case MapReader::Next::kRegion: break;
      case MapReader::Next::kEnd: return {};
      case MapReader::Next::kDamaged: return std::unexpected(damaged_map());
    }
    const MapEntry& entry = next.entry;
    if (entry.slot >= slots_.count() || (entry.slot != 0 && !slots_.mark_used(entry.slot)))
      return std::unexpected(damaged_map());
    Region& region = regions_.emplace_back();
    region.entry = entry;
    region.prefix = next.prefix;
    memcpy(region.fences, next.fences, entry.page_count * sizeof(uint32_t));
    counts_.records += entry.count;
  }
}

// Reads the map, slot after slot.
base::Expected<std::vector<std::byte>> StoredTable::load_map(BucketStore::Access& access) {
  std::vector<std::byte> map;
  Bytes slot;
  if (!slot.reserve(slot_bytes())) return base::failure(ENOMEM, "table: no memory");
  for (uint64_t at = superblock_.map_slot; at != 0;) {
    if (at >= slots_.count() || !slots_.mark_used(at)) return std::unexpected(damaged_map());
    const BucketStore::Piece piece = {.offset = slot_offset(at), .to = slot.first(slot_bytes())};
    if (auto read = access.read({&piece, 1}); !read) return std::unexpected(read.error());
    MapHeader header;
    if (!read_map_slot(piece.to, superblock_.number, header)) return std::unexpected(damaged_map());
    const std::byte* const begin = piece.to.data() + sizeof header;
    map.insert(map.end(), begin, begin + header.bytes);
    map_slots_.push_back(at);
    at = header.next_slot;
  }
  if (map.size() != superblock_.map_bytes) return std::unexpected(damaged_map());
  return map;
}

base::Error StoredTable::damaged_map() const {
  return base::Error::of(EBADMSG, "table: the map of ", store_->name(), " is damaged; restore the file");
}

base::Expected<void> StoredTable::open_log() {
  const bool is_needed = superblock_.log_id != 0;
  if (options_.log == nullptr) {
    if (!is_needed) return {};
    return base::failure(EINVAL, "table: ", store_->name(),
                         " was not closed, and its log has changes that are not in it; name the log");
  }
  auto log = ChangeLog::open(*options_.log, shape_, options_.log_buffer_bytes);
  if (!log) return std::unexpected(log.error());
  log_ = std::move(*log);
  const ChangeLog::Header& header = log_->header();
  if (is_needed && (header.id != superblock_.log_id || header.table != superblock_.id))
    return base::failure(EINVAL, "table: ", store_->name(), " was not closed, and ", log_->name(),
                         " is not its log; name that");
  if (!is_needed && header.id != 0 && header.table != superblock_.id)
    return base::failure(EINVAL, "table: ", log_->name(),
                         " is the log of another table, which was not closed");
  return {};
}

uint8_t StoredTable::add_function(const Change& change) {
  CHECK_LT(function_count_, Code::kMaxFunctions);
  functions_[function_count_] = change;
  return static_cast<uint8_t>(function_count_++);
}

// Starts the table for its first session. If this fails, it is not tried again: some changes of the log may have been staged by then.
base::Expected<void> StoredTable::start() {
  sys::LockGuard scope(start_lock_);
  if (!is_started_) {
    is_started_ = true;
    started_ = start_alone();
    if (!started_) stop_makers();
  }
  return started_;
}

base::Expected<void> StoredTable::start_alone() {
  ends_ = false;
  for (uint32_t i = 0; i < options_.makers; ++i) {
    auto made = std::make_unique<Thread>();
    made->table = this;
    auto access = store_->open_access();
    if (!access) return std::unexpected(access.error());
    made->maker.access = std::move(*access);
    auto thread = sys::start_thread(&StoredTable::run_maker, made.get(), "batch-maker");
    if (!thread) return std::unexpected(thread.error());
    made->thread = *thread;
    threads_.push_back(std::move(made));
  }
  if (log_ == nullptr) return {};
  auto access = store_->open_access();
  if (!access) return std::unexpected(access.error());
  sys::LockGuard scope(lock_);
  if (superblock_.log_id != 0) {
    // What is found in the log is valid from now on. So the log has to be durable before slots have any of its changes.
    if (auto flushed = log_->flush(); !flushed) return flushed;
    is_replaying_ = true;
    replayed_ = superblock_.log_tail;
    if (auto replayed = replay(); !replayed) return replayed;
    Maker maker;
    maker.access = std::move(*access);
    if (auto made = make_all(maker); !made) return made;
    access = std::move(maker.access);
  } else {
    const uint64_t id = random_word();
    if (auto begun = log_->begin(superblock_.id, id); !begun) return begun;
    superblock_.log_id = id;
    // Another table may have used this log before, and may have left records at the same positions.
    superblock_.incarnation = static_cast<uint32_t>(id >> 32);
  }
  // All changes are in slots: once the checkpoint is durable none of the log's records is needed.
  while (is_checkpointing_) wait();
  has_dropped_ = false;  // the dropped changes were made before the table was opened
  ++superblock_.incarnation;
  log_->go_on(sequence_, superblock_.incarnation);
  record_begin_ = log_->end();
  is_replaying_ = false;
  return checkpoint(**access);
}

// Stages those changes of the log that no slot has. REQUIRES: the lock.
base::Expected<void> StoredTable::replay() {
  const uint32_t entry_bytes = log_->entry_bytes();
  const auto make = [&](uint64_t at, const std::byte* entries, uint32_t count) -> base::Expected<void> {
    record_begin_ = at;
    for (uint32_t i = 0; i < count; ++i) {
      const std::byte* const entry = entries + uint64_t{i} * entry_bytes;
      const Code code = Code::of(static_cast<uint8_t>(*entry));
      const Key key = load_key(entry + 1, shape_.key_bytes);
      if (code.action == Action::kRead || code.action > Action::kMerge || !positions_.has(key))
        return base::failure(EBADMSG, "table: the log ", log_->name(), " has something that is not a change");
      if (calls_function(code.action) && code.function >= function_count_)
        return base::failure(EINVAL, "table: the log ", log_->name(), " has changes by the function number ",
                             code.function, "; add so many functions before the first session is opened");
      const uint64_t sequence = at + sizeof(ChangeLog::RecordHeader) + uint64_t{i + 1} * entry_bytes;
      if (sequence > regions_[find(positions_.of(key))].entry.made) {
        if (auto has_room = wait_for_room(); !has_room) return has_room;
        stage(find(positions_.of(key)), code, key, entry + 1, entry + 1 + shape_.key_bytes);
      }
      replayed_ = sequence;
      sequence_ = std::max(sequence_, sequence);
    }
    return {};
  };
  const bool is_there = superblock_.log_tail < superblock_.sequence;
  const auto end = log_->replay(superblock_.log_tail, superblock_.incarnation, is_there, make);
  if (!end) return std::unexpected(end.error());
  if (*end < superblock_.sequence)
    return base::failure(EBADMSG, "table: the log ", log_->name(), " ends before what ", store_->name(),
                         " has of it; it is damaged");
  return {};
}

void StoredTable::stop_makers() {
  {
    sys::LockGuard scope(lock_);
    ends_ = true;
  }
  event_.notify_all();
  for (const auto& thread : threads_) sys::join_thread(thread->thread);
  threads_.clear();
}

base::Expected<void> StoredTable::close() {
  if (store_ == nullptr) return {};
  base::Expected<void> closed;
  if (is_started_ && started_) {
    stop_makers();
    Maker maker;
    auto access = store_->open_access();
    if (access)
      maker.access = std::move(*access);
    else
      closed = std::unexpected(access.error());
    sys::LockGuard scope(lock_);
    if (closed) closed = make_all(maker);
    if (closed) closed = checkpoint(*maker.access, true);
    if (closed && log_ != nullptr) closed = log_->end_use();
    // Then at least the log has all changes, if it can be written.
    if (!closed && log_ != nullptr) static_cast<void>(sync_log());
  }
  forget();
  return closed;
}

StoredStatistics StoredTable::statistics() {
  sys::LockGuard scope(lock_);
  StoredStatistics all = counts_;
  all.regions = regions_.size();
  all.slots = slots_.count();
  all.slots_used = slots_.used_count();
  all.staging_bytes = staged_.memory_bytes();
  if (log_ != nullptr && log_->end() != 0 && !is_replaying_) all.log_bytes = log_->end() - log_tail();
  for (const Region& region : regions_) all.staged += region.staged.count + region.making.count;
  return all;
}

}  // namespace batch
