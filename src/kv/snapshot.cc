#include "kv/snapshot.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "kv/index/entry.h"
#include "kv/media/clock.h"
#include "storage/piece_io.h"

namespace kv {
namespace {

// How much is read at first of a record of more than kLongBytes: more than the header and key of a piece.
constexpr uint64_t kBeginBytes = 4096;
constexpr uint64_t kLongBytes = 64 << 10;

}  // namespace

// A record that is being read, or has been.
struct Snapshot::Item {
  enum class State {
    kBegun,   // not read, or only its beginning
    kWhole,   // read, and a key's
    kOther,   // not to be given out: a piece, or seen already, or it has ended
    kFailed,  // it could not be read: `error`
  };
  Location location;
  State state = State::kBegun;
  bool is_kept = false;  // it was kept; if not, it was pending, and is Member::reading[place]
  bool is_held = false;  // Kept::held has its pieces
  bool is_cut = false;   // only the beginning is read
  int error = 0;         // of kFailed
  size_t place = 0;
  bool is_head = false;
  Pieces pieces;                    // of a head
  Found found;                      // the record
  const storage::Io* io = nullptr;  // the read of it
};

// In memory of the session's pool: tasks have small stacks.
struct Snapshot::Group {
  Item items[kGroup];
  size_t count = 0;
  size_t at = 0;  // the item that next() gives next; the one before it was given last
  Item* chosen[kGroup];
  storage::PieceIos<kGroup> ios;
};

base::Expected<void> Snapshot::open(Session& session) {
  CHECK(session_ == nullptr);
  memory_ = storage::Buffer(session.pool_, sizeof(Group));
  if (memory_.bytes().empty()) return base::failure(ENOMEM, "store: no memory for a snapshot");
  Store& store = *session.store_;
  member_ = {};
  found_.resize(Index::kMaxScan);
  member_.pending.reserve(Index::kMaxScan);
  if (!store.snapshots_.add(member_)) {
    memory_.reset();
    return base::failure(EBUSY, "store: ", store.device_.name(), " has ", Snapshots::kMax,
                         " snapshots open; close one first");
  }
  group_ = new (memory_.bytes().data()) Group;
  session_ = &session;
  store_ = &store;
  return {};
}

void Snapshot::close() {
  if (session_ == nullptr) return;
  store_->snapshots_.remove(member_);
  for (Item& item : group_->items) make_empty(item);
  group_->~Group();
  memory_.reset();
  session_ = nullptr;
}

base::Error Snapshot::canceled() const {
  return base::Error::of(ECANCELED, "store: too much of ", store_->device_.name(),
                         " has changed since the snapshot was opened; open another one");
}

base::Error Snapshot::failed(const Item& item) const {
  if (item.error == ENOMEM) return base::Error::of(ENOMEM, "store: no memory for a record");
  if (item.error != EBADMSG) return session_->io_error(item.error, "read");
  return base::Error::of(EBADMSG, "store: ", store_->device_.name(), " has a damaged record at byte ",
                         store_->identity_.geometry.offset_of(item.location.address));
}

base::Expected<bool> Snapshot::next(Entry& entry) {
  CHECK(session_ != nullptr);
  Group& group = *group_;
  if (group.at > 0) reset(group.items[group.at - 1]);
  if (group.at == group.count)
    if (auto filled = fill(); !filled) return std::unexpected(filled.error());
  if (group.at == group.count) {
    group.at = group.count = 0;
    return false;
  }
  const Item& item = group.items[group.at++];
  if (item.state == Item::State::kFailed) return std::unexpected(failed(item));
  const Record& record = item.found.record_;
  entry = {.key = record.key,
           .value = item.is_held ? Bytes() : record.value,
           .value_bytes = item.found.value_bytes(),
           .version = record.header.sequence(),
           .expires_ms = record.header.expiry(),
           .flags = record.header.flags,
           .is_large = item.is_held};
  return true;
}

base::Expected<size_t> Snapshot::read_value(uint64_t offset, std::span<std::byte> to) {
  CHECK(session_ != nullptr && group_->at > 0);
  auto read = session_->read_value(group_->items[group_->at - 1].found, offset, to);
  if (read) return read;
  sys::LockGuard scope(store_->snapshots_.lock());
  return member_.is_cancelled ? std::unexpected(canceled()) : read;
}

// Gets the next group that is not empty; an empty one at the end.
base::Expected<void> Snapshot::fill() {
  Snapshots& snapshots = store_->snapshots_;
  Group& group = *group_;
  do {
    const Readers::Reading reading(store_->readers_, session_->place_);
    group.at = group.count = 0;
    take();
    if (group.count > 0) {
      read();
      if (finish()) continue;
    } else if (scan()) {
      continue;
    }
    Snapshots::Kept kept;
    bool is_cancelled = false;
    {
      sys::LockGuard scope(snapshots.lock());
      is_cancelled = member_.is_cancelled;
      if (is_cancelled) std::swap(kept, member_.kept);
    }
    snapshots.give_back(kept);
    if (!is_cancelled) return {};
    for (Item& item : group.items) reset(item);
    group.count = 0;
    return std::unexpected(canceled());
  } while (group.count == 0);
  return {};
}

void Snapshot::take() {
  const Geometry& geometry = store_->identity_.geometry;
  Snapshots& snapshots = store_->snapshots_;
  Snapshots::Kept& kept = member_.kept;
  Group& group = *group_;
  uint64_t bytes = 0;
  sys::LockGuard scope(snapshots.lock());
  member_.reading.clear();
  if (member_.is_cancelled) return;
  const auto fits = [&](const Location& location) {
    bytes += size_code::grains(location.size) * geometry.grain_bytes;
    return group.count == 0 || (group.count < kGroup && bytes <= kGroupBytes);
  };
  const auto take = [&](const Location& location) -> Item& {
    Item& item = group.items[group.count++];
    item.location = location;
    return item;
  };
  for (; !kept.large.empty() && fits(kept.large.front().location); kept.large.pop_front()) {
    const Snapshots::Large& large = kept.large.front();
    Item& item = take(large.location);
    item.is_kept = item.is_held = true;
    item.pieces = large.pieces;
    kept.held.push_back(large.pieces);
    snapshots.give_back(large.location);
  }
  for (; !kept.values.empty() && fits(kept.values.front()); kept.values.pop_front()) {
    take(kept.values.front()).is_kept = true;
    snapshots.give_back(kept.values.front());
  }
  if (group.count > 0) return;
  for (; !member_.pending.empty() && group.count < kGroup; member_.pending.pop_back()) {
    take(member_.pending.back()).place = member_.reading.size();
    member_.reading.push_back(member_.pending.back());
  }
}

// Makes the scan's next step, unless there is something to take. False: the scan has ended, or the snapshot is cancelled.
bool Snapshot::scan() {
  Snapshots& snapshots = store_->snapshots_;
  {
    sys::LockGuard scope(snapshots.lock());
    if (member_.is_cancelled) return false;
    // Records of keys that were changed since take() looked may have been kept.
    if (!member_.pending.empty() || !member_.kept.values.empty() || !member_.kept.large.empty()) return true;
  }
  const uint64_t at = member_.end;  // only this thread changes it
  if (at == Index::kScanEnd) return false;
  store_->index_->scan(at, found_, [&](const ScanStep& step) {
    sys::LockGuard scope(snapshots.lock());
    member_.asked = at;
    member_.begin = step.begin;
    member_.end = step.end;
    member_.pending.assign(found_.begin(), found_.begin() + static_cast<ptrdiff_t>(step.count));
  });
  return true;
}

// Reads the group: of long pending records only the beginnings at first, then the whole of those that are not pieces, as far as memory allows.
void Snapshot::read() {
  const uint64_t grain_bytes = store_->identity_.geometry.grain_bytes;
  Group& group = *group_;
  for (size_t i = 0; i < group.count; ++i) group.chosen[i] = &group.items[i];
  run({group.chosen, group.count}, false);
  uint64_t bytes = 0;
  size_t count = 0;
  for (size_t i = 0; i < group.count; ++i) {
    Item& item = group.items[i];
    if (item.state == Item::State::kBegun && is_piece(item)) item.state = Item::State::kOther;
    if (item.state != Item::State::kBegun && item.state != Item::State::kWhole) continue;
    const uint64_t all = size_code::grains(item.location.size) * grain_bytes;
    if (item.state == Item::State::kBegun) {
      if (bytes > 0 && bytes + all > kGroupBytes) continue;
      group.chosen[count++] = &item;
    }
    bytes += all;
  }
  run({group.chosen, count}, true);
}

void Snapshot::run(std::span<Item* const> items, bool whole) {
  const Geometry& geometry = store_->identity_.geometry;
  Group& group = *group_;
  group.ios.clear();
  for (Item* item : items) {
    const Location& location = item->location;
    const uint64_t left = geometry.segment_grains() - geometry.grain_of(location.address);
    uint64_t bytes = std::min<uint64_t>(size_code::grains(location.size), left) * geometry.grain_bytes;
    item->is_cut = !whole && !item->is_kept && bytes > kLongBytes;
    if (item->is_cut) bytes = kBeginBytes;
    item->found.memory_ = storage::Buffer(session_->pool_, bytes);
    if (item->found.memory_.bytes().empty()) {
      item->state = Item::State::kFailed;
      item->error = ENOMEM;
      continue;
    }
    item->io = &group.ios.add(storage::Operation::kRead, geometry.offset_of(location.address),
                              item->found.memory_.bytes().data(), bytes);
  }
  std::ranges::sort(group.ios.all(), {}, &storage::Io::offset_bytes);
  session_->channel_.run(group.ios.all(), IoFor::kSnapshots);
  for (Item* item : items)
    if (item->state != Item::State::kFailed) examine(*item, *item->io);
}

// Finds out what has been read.
void Snapshot::examine(Item& item, const storage::Io& io) {
  const Geometry& geometry = store_->identity_.geometry;
  const auto fail = [&](int error) {
    item.state = Item::State::kFailed;
    item.error = error;
  };
  std::span bytes = item.found.memory_.bytes().first(io.length_bytes);
  int error = io.whole() ? 0 : io.error != 0 ? io.error : EIO;
  if (error != 0) error = session_->read_alone(item.location, error, IoFor::kSnapshots, bytes);
  if (error != 0) return fail(error);
  Record& record = item.found.record_;
  const uint64_t generation = store_->log_.segment(geometry.segment_of(item.location.address))
                                  .generation.load(std::memory_order_relaxed);
  record = {};
  const Reading reading = read_record(store_->identity_.secret, generation, bytes, record);
  if (reading != Reading::kWhole) return item.is_cut ? void() : fail(EBADMSG);
  const RecordKind kind = record.header.kind();
  item.state = Item::State::kOther;
  if (kind != RecordKind::kValue && kind != RecordKind::kHead) return;
  const KeyHash hash = hash_record(store_->identity_.secret, record);
  // A merge of tables has brought it back: it was seen in an earlier step.
  if (!item.is_kept && Index::position_of(hash.low) < member_.asked) return;
  if (store_->lifetimes_.has_ended(record)) return;
  item.state = Item::State::kWhole;
  if (kind == RecordKind::kValue) return;
  item.is_head = true;
  item.pieces.head = hash;
  if (record.value.size() != sizeof item.pieces.of) return fail(EBADMSG);
  memcpy(&item.pieces.of, record.value.data(), sizeof item.pieces.of);
  // If the head could not be read when it was replaced, its pieces were not kept.
  if (!item.pieces.of.is_possible(geometry) || item.is_kept != item.is_held) fail(EBADMSG);
}

// Is the record, of which only the unchecked beginning was read, a piece? It is one if the index knows it by the hash of the piece's key.
bool Snapshot::is_piece(const Item& item) const {
  const Record& record = item.found.record_;
  return record.header.kind() == RecordKind::kPiece && record.key.size() == sizeof(PieceKey) &&
         session_->is_current(hash_record(store_->identity_.secret, record), item.location.address);
}

// Leaves in the group what is to be given out. False: the snapshot is cancelled.
bool Snapshot::finish() {
  Group& group = *group_;
  size_t stays = 0;
  for (size_t i = 0; i < group.count; ++i) {
    Item& item = group.items[i];
    if (!is_to_stay(item)) {
      reset(item);
      continue;
    }
    if (item.state == Item::State::kFailed) item.found = Found();
    if (item.is_head && item.is_held) {
      item.found.store_ = store_;
      item.found.pieces_ = item.pieces;
      item.found.is_large_ = true;
    }
    if (stays != i) {
      group.items[stays] = std::move(item);
      make_empty(item);
    }
    ++stays;
  }
  group.count = stays;
  sys::LockGuard scope(store_->snapshots_.lock());
  return !member_.is_cancelled;
}

bool Snapshot::is_to_stay(Item& item) {
  using State = Item::State;
  sys::LockGuard scope(store_->snapshots_.lock());
  if (member_.is_cancelled) return false;
  if (!item.is_kept) {
    Location& place = member_.reading[item.place];
    if (!place.found)
      return false;  // the key was changed meanwhile: the record is kept now, or not part of the snapshot
    if (item.state == State::kBegun) member_.pending.push_back(place);
    place.found = false;
  }
  if (item.state == State::kFailed) return true;
  if (item.state != State::kWhole || !member_.has(item.found.record_.header.sequence())) return false;
  // The head is still in the index, since `place` was found: whoever takes it out finds that its pieces have a reader.
  if (item.is_head && !item.is_held) {
    store_->snapshots_.hold(member_, item.pieces);
    item.is_held = true;
  }
  return true;
}

// Gives back what the item holds, and empties it.
void Snapshot::reset(Item& item) {
  if (item.is_held) {
    sys::LockGuard scope(store_->snapshots_.lock());
    store_->snapshots_.let_go(member_, item.pieces);
  }
  make_empty(item);
}

void Snapshot::make_empty(Item& item) {
  item.found.is_large_ = false;  // the snapshot is the pieces' reader, not `found`
  item.~Item();
  new (&item) Item;
}

}  // namespace kv
