// What sessions do (store.h): gets, and changes from a key to its place in the index.
#include <algorithm>

#include "base/check.h"
#include "kv/index/entry.h"
#include "kv/media/clock.h"
#include "kv/store.h"
#include "storage/piece_io.h"

namespace kv {

base::Expected<void> check_key(std::string_view key) {
  if (!key.empty() && key.size() <= kMaxKeyBytes) return {};
  return base::failure(EINVAL, "store: a key of ", key.size(), " bytes; give 1 to ", kMaxKeyBytes);
}

base::Expected<void> check_options(const PutOptions& options) {
  if (options.expires_ms >> 48 == 0) return {};
  return base::failure(EINVAL, "store: expiry after the year 10889");
}

namespace {

// Memory of buffers that is reserved for each call at a time: enough for small records.
constexpr size_t kReservedBytes = 8 << 10;

// Is it the head of a large value, with all that names its pieces?
bool is_head(const Record& record, PiecesOf& pieces) {
  if (record.header.kind() != RecordKind::kHead || record.value.size() != sizeof pieces) return false;
  memcpy(&pieces, record.value.data(), sizeof pieces);
  return true;
}

}  // namespace

base::Expected<void> Session::open(Store& store, size_t depth) {
  // A change of a key writes and reads at the same time.
  const size_t io_depth = std::min(2 * depth, storage::kMaxQueueDepth);
  if (auto opened = channel_.open(store.device_, io_depth); !opened) return opened;
  if (channel_.overlaps())
    channel_.fix_memory(pool_.reserve(std::min(depth * kReservedBytes, storage::BufferPool::kMaxBytes)));
  if (auto added = store.calls_.add(calls_, channel_); !added) {
    channel_.close();
    return added;
  }
  store_ = &store;
  store.readers_.add(place_);
  store.changes_.add(change_place_);
  stream_ = store.next_stream_.fetch_add(1, std::memory_order_relaxed) % store.log_.stream_count();
  return {};
}

void Session::close() {
  store_->readers_.remove(place_);
  store_->changes_.remove(change_place_);
  store_->calls_.remove(calls_);
  channel_.close();
}

base::Error Session::io_error(int number, const char* what) const { return store_->io_error(number, what); }

base::Error Session::damaged() const {
  return base::Error::of(EBADMSG, "store: ", store_->device_.name(),
                         " has a damaged record where the key's should be");
}

// Memory for the record at a location; if not `whole`, for so much of it that its header, a key of this length, and all of a head fit. Empty: there
// is no memory.
std::span<std::byte> Session::room_for(const Location& location, size_t key_bytes, bool whole,
                                       storage::Buffer& memory) {
  const Geometry& geometry = store_->identity_.geometry;
  const uint64_t left = geometry.segment_grains() - geometry.grain_of(location.address);
  uint64_t grains = std::min<uint64_t>(size_code::grains(location.size), left);
  if (!whole) grains = std::min(grains, geometry.grains(record_bytes(key_bytes, sizeof(PiecesOf))));
  const uint64_t bytes = grains * geometry.grain_bytes;
  if (memory.bytes().size() < bytes) memory = storage::Buffer(pool_, bytes);
  return memory.bytes().first(std::min(bytes, memory.bytes().size()));
}

uint64_t Session::generation_at(uint64_t address) const {
  return store_->log_.segment(store_->identity_.geometry.segment_of(address))
      .generation.load(std::memory_order_relaxed);
}

// Has the record that was read there the key?
Session::Match Session::judge(const Location& location, std::string_view key, About about, bool whole,
                              Bytes bytes, Record& record) const {
  const Reading reading =
      read_record(store_->identity_.secret, generation_at(location.address), bytes, record);
  if (reading == Reading::kDamaged || (whole && reading == Reading::kPart)) return Match::kDamaged;
  if (reading == Reading::kPart && record.header.key_bytes() != key.size()) return Match::kNo;
  const bool is_piece = record.header.kind() == RecordKind::kPiece;
  return record.key == key && is_piece == (about == About::kPiece) ? Match::kYes : Match::kNo;
}

base::Expected<Session::Match> Session::read(const Location& location, std::string_view key, About about,
                                             bool whole, IoFor purpose, storage::Buffer& memory,
                                             Record& record) {
  std::span to = room_for(location, key.size(), whole, memory);
  if (to.empty()) return base::failure(ENOMEM, "store: no memory for a record");
  if (about == About::kKey && read_from_memory(location, key, whole, to, record)) {
    if (purpose == IoFor::kGets) calls_.counts->got_from_memory(1);
    return Match::kYes;
  }
  int error = channel_.read(store_->identity_.geometry.offset_of(location.address), to, purpose);
  if (error != 0) error = read_alone(location, error, purpose, to);
  if (error != 0) return std::unexpected(io_error(error, "read"));
  const Match match = judge(location, key, about, whole, to, record);
  if (match == Match::kYes && purpose == IoFor::kGets && about == About::kKey)
    store_->tier_.keep(location.address, to.first(record.bytes()));
  return match;
}

// What is at a location could not be read. The index rounds a record's size up, and what the medium cannot read may lie behind the record: so it is
// read alone, by the size that its header says, which nothing has checked yet. `to` becomes what has been read. 0, or an errno value.
int Session::read_alone(const Location& location, int error, IoFor purpose, std::span<std::byte>& to) {
  if (!is_of_medium(error) || size_code::is_exact(location.size)) return error;
  const Geometry& geometry = store_->identity_.geometry;
  const uint64_t offset = geometry.offset_of(location.address);
  const std::span first = to.first(geometry.grain_bytes);
  if (const int first_error = channel_.read(offset, first, purpose); first_error != 0) return first_error;
  Record record;
  if (read_record(store_->identity_.secret, generation_at(location.address), first, record) ==
      Reading::kDamaged)
    return error;
  const RecordHeader& header = record.header;
  const uint64_t bytes =
      geometry.grains(record_bytes(header.key_bytes(), header.value_bytes)) * geometry.grain_bytes;
  if (bytes >= to.size()) return error;
  to = to.first(bytes);
  return channel_.read(offset, to, purpose);
}

// A copy in memory may be of an earlier life of its segment: it is judged as what is read from the device.
bool Session::read_from_memory(const Location& location, std::string_view key, bool whole,
                               std::span<std::byte> to, Record& record) const {
  const size_t bytes = store_->tier_.read(location.address, to);
  return bytes != 0 && judge(location, key, About::kKey, whole, to.first(bytes), record) == Match::kYes;
}

// Reads the record as far as a change needs it. Of a long one that is only the beginning, which the check does not cover. So where the beginning
// says what is rarely so and would decide something, that the record is another key's or has expired, all of it is read.
base::Expected<Session::Match> Session::read_for_change(const Location& location, std::string_view key,
                                                        Need need, storage::Buffer& memory, Record& record) {
  const auto read_as = [&](bool whole) {
    return read(location, key, About::kKey, whole, IoFor::kChanges, memory, record);
  };
  if (need == Need::kAll) return read_as(true);
  auto match = read_as(false);
  if (!match || *match == Match::kDamaged) return match;
  const Geometry& geometry = store_->identity_.geometry;
  const RecordHeader& header = record.header;
  const bool is_checked = geometry.grains(record_bytes(header.key_bytes(), header.value_bytes)) <=
                          geometry.grains(record_bytes(key.size(), sizeof(PiecesOf)));
  const bool decides =
      *match == Match::kNo || (need == Need::kExpiry && store_->lifetimes_.has_ended(record));
  return is_checked || !decides ? match : read_as(true);
}

base::Expected<Found> Session::get(std::string_view key) { return counted_get(key, true); }

base::Expected<Found> Session::peek(std::string_view key) { return counted_get(key, false); }

base::Expected<Found> Session::counted_get(std::string_view key, bool marks_read) {
  Timing timing(*calls_.counts, CallKind::kGet);
  auto found = do_get(key, marks_read);
  calls_.counts->asked(1);
  timing.moved(count_found(key, found));
  return found;
}

base::Expected<Found> Session::do_get(std::string_view key, bool marks_read) {
  if (auto checked = check_key(key); !checked) return std::unexpected(checked.error());
  const KeyHash hash = hash_key(store_->identity_.secret, key);
  Found found;
  for (;;) {
    auto done = find(hash, key, marks_read, found);
    if (!done) return std::unexpected(done.error());
    if (*done) return found;
  }
}

// False: a large value has been replaced while it was being looked at.
base::Expected<bool> Session::find(const KeyHash& hash, std::string_view key, bool marks_read, Found& found) {
  const Readers::Reading reading(store_->readers_, place_);
  Location location = store_->index_->find(hash.low);
  if (!location.found) {
    found.memory_.reset();
    return true;
  }
  // A record that is damaged, or cannot be read, may be another key's with the same tag: the key's own is looked for all the same.
  bool is_damaged = false;
  base::Expected<void> unread;
  const auto is_own = [&](const Location& at) {
    auto match = read(at, key, About::kKey, true, IoFor::kGets, found.memory_, found.record_);
    is_damaged = is_damaged || (match && *match == Match::kDamaged);
    if (!match && unread) unread = std::unexpected(match.error());
    return match && *match == Match::kYes;
  };
  bool is_there = is_own(location);
  if (!is_there) {
    // Other keys may have the same tag, but seldom do.
    Index::Candidates all;
    const size_t count = store_->index_->find_all(hash.low, all);
    const uint64_t first = location.address;
    for (size_t i = 0; i < count && !is_there; ++i) {
      if (all[i].address == first) continue;
      is_there = is_own(all[i]);
      location = all[i];
    }
  }
  if (!is_there && !unread) return std::unexpected(unread.error());
  if (!is_there && is_damaged) return std::unexpected(damaged());
  if (!is_there || store_->lifetimes_.has_ended(found.record_)) {
    found = Found();
    return true;
  }
  if (marks_read) store_->used_records_.mark(location.address);
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
  return store_->index_->find_at(hash.low, address).found;
}

base::Expected<void> Session::look(const KeyHash& hash, std::string_view key, Need need, Current& current) {
  Index::Candidates all;
  const Readers::Reading reading(store_->readers_, place_);
  const size_t count = store_->index_->find_all(hash.low, all);
  storage::Buffer memory;
  for (size_t i = 0; i < count; ++i) {
    Record record;
    auto match = read_for_change(all[i], key, need, memory, record);
    if (!match && !is_of_medium(match.error().number)) return std::unexpected(match.error());
    current.is_damaged = current.is_damaged || !match || *match == Match::kDamaged;
    if (!match || *match != Match::kYes) continue;
    note(all[i], record, current);
    current.is_damaged = false;  // the damaged one was another key's, with the same tag
    return {};
  }
  return {};
}

// Notes what the change will replace, if the bytes that were read there are the key's record, as far as one can tell; else returns false.
bool Session::note_read(const Location& location, std::string_view key, Bytes bytes, Current& current) const {
  Record record;
  if (judge(location, key, About::kKey, false, bytes, record) != Match::kYes) return false;
  note(location, record, current);
  return true;
}

// The same for a copy in memory, which is read to `to`.
bool Session::note_from_memory(const Location& location, std::string_view key, std::span<std::byte> to,
                               Current& current) const {
  Record record;
  if (!read_from_memory(location, key, false, to, record)) return false;
  note(location, record, current);
  return true;
}

void Session::note(const Location& location, const Record& record, Current& current) const {
  current.location = location;
  current.generation = record.header.generation;
  current.version = record.header.sequence();
  current.is_alive = !store_->lifetimes_.has_ended(record);
  current.is_head = is_head(record, current.pieces);
}

base::Expected<Changed> Session::put(std::string_view key, Bytes value, const PutOptions& options) {
  Timing timing(*calls_.counts, CallKind::kPut);
  auto done = do_put(key, value, options);
  if (done && done->outcome == Changed::Outcome::kDone) {
    const uint64_t bytes = key.size() + value.size();
    calls_.counts->put(bytes);
    timing.moved(bytes);
  }
  return done;
}

base::Expected<Changed> Session::do_put(std::string_view key, Bytes value, const PutOptions& options) {
  if (auto checked = check_options(options); !checked) return std::unexpected(checked.error());
  if (value.size() > store_->identity_.geometry.value_bytes_max()) {
    ValueWriter writer;
    if (auto opened = writer.open(*this, key); !opened) return std::unexpected(opened.error());
    if (auto appended = writer.append(value); !appended) return std::unexpected(appended.error());
    return writer.do_commit(options);
  }
  return change({.kind = RecordKind::kValue, .key = key, .value = value, .options = options});
}

base::Expected<Changed> Session::remove(std::string_view key, When when, uint64_t version) {
  const Timing timing(*calls_.counts, CallKind::kRemove);
  return change({.kind = RecordKind::kTombstone,
                 .key = key,
                 .value = {},
                 .options = {.when = when, .version = version}});
}

// `has_room`, if not null, is set to whether the record, or part of it, may be on the medium, also after an error.
base::Expected<Changed> Session::change(const New& next, bool* has_room) {
  using Outcome = Changed::Outcome;
  if (auto checked = check_key(next.key); !checked) return std::unexpected(checked.error());
  if (store_->options_.read_only) return std::unexpected(store_->failure());
  const KeyHash hash = hash_key(store_->identity_.secret, next.key);
  const bool is_remove = next.kind == RecordKind::kTombstone;
  const When when = next.options.when;
  Log::Request request = request_for(next);
  const bool replaces = next.kind == RecordKind::kValue && when == When::kAlways;
  KeyLocks::Hold hold(store_->key_locks_, hash.low, next.key, replaces);
  if (hold.is_superseded()) return Changed{Outcome::kDone, hold.version()};
  hold.number_superseded([&] { return store_->log_.next_sequence(); });
  Current current;
  if (is_remove || when != When::kAlways) {
    if (auto looked = look(hash, next.key, when == When::kAlways ? Need::kExpiry : Need::kAll, current);
        !looked)
      return std::unexpected(looked.error());
    if (current.is_damaged && when != When::kAlways) return std::unexpected(damaged());
    if (!current.is_alive &&
        ((is_remove && !current.is_damaged) || when == When::kIfPresent || when == When::kIfVersion))
      return Changed{Outcome::kAbsent, 0};
    if (current.is_alive && when == When::kIfAbsent) return Changed{Outcome::kPresent, current.version};
    if (when == When::kIfVersion && current.version != next.options.version)
      return Changed{Outcome::kVersion, current.version};
  }
  Written written;
  auto wrote = write(hash, next, request, current, written);
  if (has_room != nullptr) *has_room = written.change.has_value();
  if (!wrote) return std::unexpected(wrote.error());
  return conclude(hash, next, current, written, hold);
}

// The record has been written, and flushed if need be: the change is made.
base::Expected<Changed> Session::conclude(const KeyHash& hash, const New& next, Current& current,
                                          const Written& written, KeyLocks::Hold& hold) {
  auto installed = install(hash, next, current, written);
  store_->log_.finish(written.extent, installed.has_value());
  if (!installed) return std::unexpected(installed.error());
  hold.succeed();
  if (current.is_head) store_->remove_pieces({.head = hash, .of = current.pieces});
  return Changed{Changed::Outcome::kDone, next.kind == RecordKind::kTombstone ? 0 : written.sequence};
}

Log::Request Session::request_for(const New& next) const {
  const uint64_t bytes = record_bytes(next.key.size(), next.value.size());
  return {.stream = stream_,
          .grains = static_cast<uint32_t>(store_->identity_.geometry.grains(bytes)),
          .entry = {},
          .expiry = next.options.expires_ms};
}

// Takes a sequence and room. The call is counted from before it has the sequence until the index knows it. Never while it waits for room: a
// checkpoint waits for all calls that are counted, and room may have to wait for the checkpoint.
Log::Room Session::allocate_now(const KeyHash& hash, const New& next, Log::Request& request,
                                Written& written) {
  Log& log = store_->log_;
  written.change.emplace(store_->changes_, change_place_);
  written.sequence = next.kind == RecordKind::kPiece ? next.sequence : log.next_sequence();
  written.size = size_code::of(request.grains);
  request.entry = {.hash = hash, .sequence_and_kind = with_kind(written.sequence, next.kind)};
  const Log::Room room = log.allocate(request, written.extent);
  if (room != Log::Room::kDone) written.change.reset();
  return room;
}

base::Expected<void> Session::allocate(const KeyHash& hash, const New& next, Log::Request& request,
                                       Written& written) {
  Log& log = store_->log_;
  for (;;) {
    const uint64_t seen = log.room_changes();
    const Log::Room room = allocate_now(hash, next, request, written);
    if (room == Log::Room::kDone) return {};
    if (room == Log::Room::kFailed || !log.wait_for_room(seen, room, request))
      return std::unexpected(store_->tell_failure());
  }
}

base::Expected<void> Session::write(const KeyHash& hash, const New& next, Log::Request& request,
                                    Current& current, Written& written) {
  const Geometry& geometry = store_->identity_.geometry;
  const uint64_t bytes = uint64_t{request.grains} * geometry.grain_bytes;
  // Before the record has memory. The call has its key's lock while it waits: changes of a key are made in the order in which they came.
  if (!store_->log_.wait_for_turn(request)) return std::unexpected(store_->tell_failure());
  const storage::Buffer memory(pool_, bytes);
  if (memory.bytes().empty()) return base::failure(ENOMEM, "store: no memory for a record");
  const std::span record = memory.bytes().first(bytes);
  if (auto allocated = allocate(hash, next, request, written); !allocated) return allocated;
  fill_record(next, written, record);
  const uint64_t offset = geometry.offset_of(written.extent.address);
  int error = next.kind == RecordKind::kPiece || current.location.found || !channel_.overlaps()
                  ? channel_.write(offset, record)
                  : write_and_look(hash, next.key, offset, record, current);
  const char* what = "write";
  // Pieces are flushed together, when all of them are written.
  if (error == 0 && next.kind != RecordKind::kPiece) {
    error = keep_promise();
    what = "flush";
  }
  if (error == 0) {
    if (next.kind == RecordKind::kValue || next.kind == RecordKind::kHead)
      keep_in_memory(next, written, record);
    return {};
  }
  store_->log_.finish(written.extent, false);
  return std::unexpected(io_error(error, what));
}

void Session::fill_record(const New& next, const Written& written, std::span<std::byte> record) const {
  if (!next.value.empty())  // else its data may be null
    memcpy(record.data() + record_bytes(next.key.size(), 0), next.value.data(), next.value.size());
  write_record(store_->identity_.secret,
               {.generation = written.extent.generation,
                .sequence_and_kind = with_kind(written.sequence, next.kind),
                .expiry_and_key = next.options.expires_ms << 16,
                .flags = next.options.flags},
               next.key, next.value.size(), record);
}

void Session::keep_in_memory(const New& next, const Written& written, Bytes record) const {
  store_->tier_.keep(written.extent.address, record.first(record_bytes(next.key.size(), next.value.size())));
}

// Makes what has been written as durable as the store promises. 0, or the errno value of a flush.
int Session::keep_promise() {
  if (store_->options_.durability == Durability::kSync) {
    const int error = store_->log_.flush(channel_, &store_->sync_flush_times_);
    if (error != 0) store_->fail(error, true);
    return error;
  }
  // Pairs with the acquire of the keeper, which flushes what was written before.
  if (store_->options_.durability == Durability::kBatch &&
      !store_->wrote_.exchange(true, std::memory_order_release))
    store_->log_.keeper_wanted.notify_all();
  return 0;
}

// Writes the record, and meanwhile reads the one that it will replace, as far as one can tell; if that is the key's, it is noted in `current`. 0, or
// the errno value of the write.
int Session::write_and_look(const KeyHash& hash, std::string_view key, uint64_t offset, Bytes record,
                            Current& current) {
  const Readers::Reading reading(store_->readers_, place_);
  const Location location = store_->index_->find(hash.low);
  if (!location.found) return channel_.write(offset, record);
  storage::Buffer memory;
  const std::span to = room_for(location, key.size(), false, memory);
  if (to.empty() || note_from_memory(location, key, to, current)) return channel_.write(offset, record);
  storage::PieceIo write(storage::Operation::kWrite, offset, record.data(), record.size());
  storage::PieceIo look(storage::Operation::kRead, store_->identity_.geometry.offset_of(location.address),
                        to.data(), to.size());
  storage::Io* const both[] = {&write, &look};
  channel_.run(both);
  // If it could not be read, or is another key's, install() finds that out.
  if (look.whole()) note_read(location, key, to, current);
  if (write.whole()) return 0;
  return write.error != 0 ? write.error : EIO;
}

// The candidate that is the key's record, which `current` describes then. Null: there is none.
base::Expected<const Location*> Session::find_own(const Index::Candidates& all, size_t count,
                                                  std::string_view key, storage::Buffer& memory,
                                                  Current& current) {
  const Location* damaged = nullptr;
  for (size_t i = 0; i < count; ++i) {
    // It is where it was, and need not be read again: as long as a segment has the same generation, an address has the same record.
    if (current.location.found && all[i].address == current.location.address &&
        current.generation == generation_at(all[i].address))
      return &all[i];
    Record record;
    auto match = read_for_change(all[i], key, Need::kKey, memory, record);
    if (!match && !is_of_medium(match.error().number)) return std::unexpected(match.error());
    if (!match || *match == Match::kDamaged) damaged = &all[i];
    if (!match || *match != Match::kYes) continue;
    current.is_head = is_head(record, current.pieces);
    current.version = record.header.sequence();
    return &all[i];
  }
  if (damaged != nullptr) {
    // It has the key's tag, and so is, nearly always, the key's.
    store_->large_values_.lose();
    current.is_head = false;
    current.version = 0;
  }
  return damaged;
}

// The index learns of the change. Afterwards `current` describes what was replaced, if anything.
base::Expected<void> Session::install(const KeyHash& hash, const New& next, Current& current,
                                      const Written& written) {
  const uint64_t address = written.extent.address;
  const bool is_remove = next.kind == RecordKind::kTombstone;
  Index& index = *store_->index_;
  const auto hand_over = [&](const Location& old) {
    store_->snapshots_.changed(hash, old, current.version, current.is_head ? &current.pieces : nullptr,
                               written.sequence);
  };
  storage::Buffer memory;
  for (;;) {
    const Readers::Reading reading(store_->readers_, place_);
    Index::Candidates all;
    const size_t count = index.find_all(hash.low, all);
    auto found = find_own(all, count, next.key, memory, current);
    if (!found) return std::unexpected(found.error());
    if (const Location* const own = *found; own != nullptr) {
      const bool done = is_remove ? index.remove(hash.low, own->address, hand_over)
                                  : index.replace(hash.low, own->address, address, written.size, hand_over);
      if (!done) continue;  // it has been moved
      store_->log_.release(own->address, own->size);
      store_->tier_.replace(own->address, address);
      return {};
    }
    current.is_head = false;
    if (is_remove) return {};
    uint64_t others[Index::kMaxCandidates];
    for (size_t i = 0; i < count; ++i) others[i] = all[i].address;
    switch (index.insert(hash.low, address, written.size, {others, count}, hand_over)) {
      case Index::Inserted::kDone: return {};
      case Index::Inserted::kOther: continue;
      case Index::Inserted::kFull: return base::failure(ENOMEM, "store: no memory for the index");
    }
  }
}

}  // namespace kv
