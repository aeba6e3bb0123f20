// Changes by sessions (store.h): from a key, and what is to be written, to its place in the index.
#include "kv/index/entry.h"
#include "kv/store.h"
#include "storage/piece_io.h"

namespace kv {
namespace {

// Is it the head of a large value, with all that names its pieces?
bool is_head(const Record& record, PiecesOf& pieces) {
  if (record.header.kind() != RecordKind::kHead || record.value.size() != sizeof pieces) return false;
  memcpy(&pieces, record.value.data(), sizeof pieces);
  return true;
}

}  // namespace

// Reads as much of the record as a change needs. Of a long one that is only the beginning, which cannot be checked by itself. So if the beginning
// says something rare that would decide the outcome, that the record is another key's or has expired, the whole record is read.
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

// Notes what the change will replace, if the bytes that were read there are the key's record, as far as one can tell; otherwise returns false.
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

// `has_room`, if not null, is set to whether the record, or part of it, may be on the medium, even after an error.
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

// Takes a sequence and room. The call is counted from before it has the sequence until the index knows it, but never while it waits for room: a
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
  // Waits before it takes memory for the record, but holds its key's lock: changes of a key are made in the order in which they came.
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
  if (!next.value.empty())  // if it is, its data may be null
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
    // It has the key's tag, and so nearly always is the key's.
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
