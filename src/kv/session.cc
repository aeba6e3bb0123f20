// What sessions do (store.h): reading records, and gets. Changes are in session_change.cc.
#include <algorithm>

#include "kv/index/entry.h"
#include "kv/store.h"

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

// Buffer memory that is reserved for each concurrent call: enough for small records.
constexpr size_t kReservedBytes = 8 << 10;

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

// Memory for the record at a location; if not `whole`, for as much of it as has its header, a key of this length, and, of a head, everything. Empty:
// there is no memory.
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

// Does the record that was read there have the key?
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

// Reading at a location has failed. The index rounds a record's size up, and what the medium cannot read may lie after the record: so the record is
// read alone, by the size in its header, which nothing has checked yet. `to` becomes what has been read. 0, or an errno value.
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

// A copy in memory may be from an earlier life of its segment: it is judged like bytes from the device.
bool Session::read_from_memory(const Location& location, std::string_view key, bool whole,
                               std::span<std::byte> to, Record& record) const {
  const size_t bytes = store_->tier_.read(location.address, to);
  return bytes != 0 && judge(location, key, About::kKey, whole, to.first(bytes), record) == Match::kYes;
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

// False: a large value was replaced while it was being looked up.
base::Expected<bool> Session::find(const KeyHash& hash, std::string_view key, bool marks_read, Found& found) {
  const Readers::Reading reading(store_->readers_, place_);
  Location location = store_->index_->find(hash.low);
  if (!location.found) {
    found.memory_.reset();
    return true;
  }
  // A record that is damaged, or cannot be read, may be another key's with the same tag: the search for the key's own goes on.
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

}  // namespace kv
