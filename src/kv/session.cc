#include <algorithm>

#include "base/check.h"
#include "kv/clock.h"
#include "kv/entry.h"
#include "kv/store.h"

namespace kv {

base::Expected<void> check_key(std::string_view key) {
  if (!key.empty() && key.size() <= kKeyBytesMax) return {};
  return base::failure(EINVAL, "store: a key of ", key.size(), " bytes; give 1 to ", kKeyBytesMax);
}

base::Expected<void> check_options(const PutOptions& options) {
  if (options.expires_ms >> 48 == 0) return {};
  return base::failure(EINVAL, "store: expiry after the year 10889");
}

namespace {

// Is it one with all of its value? Then what that says.
bool is_head(const Record& record, PiecesOf& pieces) {
  if (record.header.kind() != RecordKind::kHead || record.value.size() != sizeof pieces) return false;
  memcpy(&pieces, record.value.data(), sizeof pieces);
  return true;
}

}  // namespace

base::Expected<void> Session::open(Store& store, size_t depth) {
  if (auto opened = channel_.open(store.device_, depth); !opened) return opened;
  store_ = &store;
  store.readers_.add(place_);
  store.changes_.add(change_place_);
  stream_ = store.next_stream_.fetch_add(1, std::memory_order_relaxed) % store.log_.stream_count();
  return {};
}

void Session::close() {
  store_->readers_.remove(place_);
  store_->changes_.remove(change_place_);
  channel_.close();
}

base::Error Session::io_error(int number, const char* what) const {
  return base::Error::of(number, "store: cannot ", what, " ", store_->device_.name(), ": ",
                         base::error_name(number));
}

base::Error Session::damaged() const {
  return base::Error::of(EBADMSG, "store: ", store_->device_.name(),
                         " has a damaged record where the key's should be");
}

// Reads the record at a location, or, not `whole`, at least its header, a key of this length, and all of a head; does it have the key?
base::Expected<Session::Match> Session::read(const Location& location, std::string_view key, About about,
                                             bool whole, Buffer& memory, Record& record) {
  const Geometry& geometry = store_->identity_.geometry;
  const uint64_t left = geometry.segment_grains() - geometry.grain_of(location.address);
  uint64_t grains = std::min<uint64_t>(size_code::grains(location.size), left);
  if (!whole) grains = std::min(grains, geometry.grains(record_bytes(key.size(), sizeof(PiecesOf))));
  if (memory.bytes().size() < grains * geometry.grain_bytes) {
    memory = Buffer(pool_, grains * geometry.grain_bytes);
    if (memory.bytes().empty()) return base::failure(ENOMEM, "store: no memory for a record");
  }
  const std::span to = memory.bytes().first(grains * geometry.grain_bytes);
  if (const int error = channel_.read(geometry.offset_of(location.address), to); error != 0)
    return std::unexpected(io_error(error, "read"));
  const uint64_t generation =
      store_->log_.segment(geometry.segment_of(location.address)).generation.load(std::memory_order_relaxed);
  const Reading reading = read_record(store_->identity_.secret, generation, to, record);
  if (reading == Reading::kDamaged || (whole && reading == Reading::kPart)) return Match::kDamaged;
  if (reading == Reading::kPart && record.header.key_bytes() != key.size()) return Match::kNo;
  const bool is_piece = record.header.kind() == RecordKind::kPiece;
  return record.key == key && is_piece == (about == About::kPiece) ? Match::kYes : Match::kNo;
}

base::Expected<Found> Session::get(std::string_view key) {
  if (auto checked = check_key(key); !checked) return std::unexpected(checked.error());
  const KeyHash hash = hash_key(store_->identity_.secret, key);
  Found found;
  for (;;) {
    auto done = find(hash, key, found);
    if (!done) return std::unexpected(done.error());
    if (*done) return found;
  }
}

// False: a large value has been replaced while it was being looked at.
base::Expected<bool> Session::find(const KeyHash& hash, std::string_view key, Found& found) {
  bool is_damaged = false;
  const Readers::Reading reading(store_->readers_, place_);
  Location location = store_->index_->find(hash.low);
  if (!location.found) {
    found.memory_.reset();
    return true;
  }
  auto match = read(location, key, About::kKey, true, found.memory_, found.record_);
  if (!match) return std::unexpected(match.error());
  if (*match != Match::kYes) {
    is_damaged = *match == Match::kDamaged;
    // Others with the same tag, one in millions.
    Location all[Index::kCandidatesMax];
    const size_t count = store_->index_->find_all(hash.low, all);
    for (size_t i = 0; i < count && *match != Match::kYes; ++i) {
      if (all[i].address == location.address) continue;
      match = read(all[i], key, About::kKey, true, found.memory_, found.record_);
      if (!match) return std::unexpected(match.error());
      is_damaged = is_damaged || *match == Match::kDamaged;
      location = all[i];
    }
  }
  if (*match != Match::kYes && is_damaged) return std::unexpected(damaged());
  if (*match != Match::kYes || has_expired(found.record_.header)) {
    found = Found();
    return true;
  }
  if (found.record_.header.kind() != RecordKind::kHead) return true;
  Pieces pieces = {.head = hash, .of = {}};
  if (found.record_.value.size() != sizeof pieces.of) return std::unexpected(damaged());
  memcpy(&pieces.of, found.record_.value.data(), sizeof pieces.of);
  if (!pieces.of.is_possible(store_->identity_.geometry)) return std::unexpected(damaged());
  store_->large_values_.begin_read(pieces);
  found.store_ = store_;
  found.pieces_ = pieces;
  found.is_large_ = true;
  if (is_current(hash, location.address)) return true;
  found.reset();
  return false;
}

bool Session::is_current(const KeyHash& hash, uint64_t address) const {
  Location all[Index::kCandidatesMax];
  const size_t count = store_->index_->find_all(hash.low, all);
  return std::any_of(all, all + count, [&](const Location& location) { return location.address == address; });
}

base::Expected<void> Session::look(const KeyHash& hash, std::string_view key, Current& current) {
  Location all[Index::kCandidatesMax];
  const Readers::Reading reading(store_->readers_, place_);
  const size_t count = store_->index_->find_all(hash.low, all);
  Buffer memory;
  for (size_t i = 0; i < count; ++i) {
    Record record;
    auto match = read(all[i], key, About::kKey, false, memory, record);
    if (!match && !is_of_medium(match.error().number)) return std::unexpected(match.error());
    current.is_damaged = current.is_damaged || !match || *match == Match::kDamaged;
    if (!match || *match != Match::kYes) continue;
    current.is_damaged = false;
    current.location = all[i];
    current.version = record.header.sequence();
    current.is_alive = !has_expired(record.header);
    current.is_head = is_head(record, current.pieces);
    return {};
  }
  return {};
}

base::Expected<Changed> Session::put(std::string_view key, Bytes value, const PutOptions& options) {
  if (auto checked = check_options(options); !checked) return std::unexpected(checked.error());
  if (value.size() > store_->identity_.geometry.value_bytes_max()) {
    ValueWriter writer;
    if (auto opened = writer.open(*this, key); !opened) return std::unexpected(opened.error());
    if (auto appended = writer.append(value); !appended) return std::unexpected(appended.error());
    return writer.commit(options);
  }
  return change({.kind = RecordKind::kValue, .key = key, .value = value, .options = options});
}

base::Expected<Changed> Session::remove(std::string_view key, When when, uint64_t version) {
  return change({.kind = RecordKind::kTombstone,
                 .key = key,
                 .value = {},
                 .options = {.when = when, .version = version}});
}

base::Expected<Changed> Session::change(const New& next) {
  using Outcome = Changed::Outcome;
  if (auto checked = check_key(next.key); !checked) return std::unexpected(checked.error());
  const KeyHash hash = hash_key(store_->identity_.secret, next.key);
  const KeyLocks::Hold hold(store_->key_locks_, hash.low);
  const bool is_remove = next.kind == RecordKind::kTombstone;
  const When when = next.options.when;
  Current current;
  if (is_remove || when != When::kAlways) {
    if (auto looked = look(hash, next.key, current); !looked) return std::unexpected(looked.error());
    if (current.is_damaged && when != When::kAlways) return std::unexpected(damaged());
    if (!current.is_alive &&
        ((is_remove && !current.is_damaged) || when == When::kIfPresent || when == When::kIfVersion))
      return Changed{Outcome::kAbsent, 0};
    if (current.is_alive && when == When::kIfAbsent) return Changed{Outcome::kPresent, current.version};
    if (when == When::kIfVersion && current.version != next.options.version)
      return Changed{Outcome::kVersion, current.version};
  }
  Written written;
  auto wrote = write(hash, next, written);
  if (!wrote) return std::unexpected(wrote.error());
  auto installed = install(hash, next, current, written);
  store_->log_.finish(written.extent, installed.has_value());
  if (!installed) return std::unexpected(installed.error());
  if (current.is_head) store_->remove_pieces({.head = hash, .of = current.pieces});
  return Changed{Outcome::kDone, written.sequence};
}

// A sequence, and room. Who has a sequence is counted until the index knows of it: never while it waits for room, which a checkpoint,
// whose begin waits for those that are counted, may hold up.
base::Expected<void> Session::allocate(const KeyHash& hash, const New& next, uint32_t grains,
                                       Written& written) {
  Log& log = store_->log_;
  for (;;) {
    const uint64_t seen = log.room_changes();
    written.change.emplace(store_->changes_, change_place_);
    written.sequence = next.kind == RecordKind::kPiece ? next.sequence : log.next_sequence();
    const SummaryEntry entry = {.hash = hash, .sequence_and_kind = with_kind(written.sequence, next.kind)};
    const Log::Room room = log.allocate(stream_, grains, entry, next.options.expires_ms, written.extent);
    if (room == Log::Room::kDone) return {};
    written.change.reset();
    if (room == Log::Room::kFailed || !log.wait_for_room(seen, room))
      return std::unexpected(store_->failed_error());
  }
}

base::Expected<void> Session::write(const KeyHash& hash, const New& next, Written& written) {
  const Geometry& geometry = store_->identity_.geometry;
  const uint64_t bytes = record_bytes(next.key.size(), next.value.size());
  const auto grains = static_cast<uint32_t>(geometry.grains(bytes));
  written.size = size_code::of(grains);
  const Buffer memory(pool_, uint64_t{grains} * geometry.grain_bytes);
  if (memory.bytes().empty()) return base::failure(ENOMEM, "store: no memory for a record");
  const std::span record = memory.bytes().first(uint64_t{grains} * geometry.grain_bytes);
  if (!next.value.empty())  // it may be null
    memcpy(record.data() + record_bytes(next.key.size(), 0), next.value.data(), next.value.size());
  if (auto allocated = allocate(hash, next, grains, written); !allocated) return allocated;
  write_record(store_->identity_.secret,
               {.generation = written.extent.generation,
                .sequence_and_kind = with_kind(written.sequence, next.kind),
                .expiry_and_key = next.options.expires_ms << 16,
                .flags = next.options.flags},
               next.key, next.value.size(), record);
  int error = channel_.write(geometry.offset_of(written.extent.address), record);
  const char* what = "write";
  // What is a piece's is flushed when all of them are there.
  if (error == 0 && store_->options_.durability == Durability::kSync && next.kind != RecordKind::kPiece) {
    error = store_->flushes_.flush(channel_);
    what = "flush";
    if (error != 0) store_->fail(error);
  }
  // Pairs with the acquire of the keeper, which flushes what was written before.
  if (store_->options_.durability == Durability::kBatch &&
      !store_->wrote_.exchange(true, std::memory_order_release))
    store_->log_.keeper_wanted.notify_all();
  if (error == 0) return {};
  store_->log_.finish(written.extent, false);
  return std::unexpected(io_error(error, what));
}

// `current` is what was replaced, afterwards, if anything.
base::Expected<void> Session::install(const KeyHash& hash, const New& next, Current& current,
                                      const Written& written) {
  const uint64_t address = written.extent.address;
  Index& index = *store_->index_;
  Buffer memory;
  for (;;) {
    const Readers::Reading reading(store_->readers_, place_);
    Location all[Index::kCandidatesMax];
    uint64_t others[Index::kCandidatesMax];
    const size_t count = index.find_all(hash.low, all);
    const Location *own = nullptr, *damaged = nullptr;
    for (size_t i = 0; i < count && own == nullptr; ++i) {
      others[i] = all[i].address;
      // Of what is where it was, nothing needs to be read again: an address has one record for good.
      if (current.location.found && all[i].address == current.location.address) {
        own = &all[i];
        break;
      }
      Record record;
      auto match = read(all[i], next.key, About::kKey, false, memory, record);
      if (!match && !is_of_medium(match.error().number)) return std::unexpected(match.error());
      if (!match || *match == Match::kDamaged) damaged = &all[i];
      if (!match || *match != Match::kYes) continue;
      own = &all[i];
      current.is_head = is_head(record, current.pieces);
    }
    if (own == nullptr && damaged != nullptr) {
      // It has the key's tag, and is no other key's but once in millions.
      own = damaged;
      current.is_head = false;
    }
    const bool is_remove = next.kind == RecordKind::kTombstone;
    if (own != nullptr) {
      const bool done = is_remove ? index.remove(hash.low, own->address)
                                  : index.replace(hash.low, own->address, address, written.size);
      if (!done) continue;  // it has been moved
      store_->log_.release(own->address, own->size);
      return {};
    }
    current.is_head = false;
    if (is_remove) return {};
    switch (index.insert(hash.low, address, written.size, {others, count})) {
      case Index::Inserted::kDone: return {};
      case Index::Inserted::kOther: continue;
      case Index::Inserted::kFull: return base::failure(ENOMEM, "store: no memory for the index");
    }
  }
}

}  // namespace kv
