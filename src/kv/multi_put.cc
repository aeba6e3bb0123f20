#include "kv/multi_put.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>

#include "base/check.h"
#include "storage/piece_io.h"

namespace kv {

namespace {

constexpr size_t kPrefetched = 8;  // changes of the index whose cache misses overlap
// After this many bad places in a group, the whole medium counts as bad.
constexpr size_t kBadPlaces = 2;

}  // namespace

struct MultiPut::One {
  KeyHash hash;
  Session::New next;
  std::optional<KeyLocks::Hold> hold;
  Log::Request request;
  Session::Written written;
  std::span<std::byte> record;
  const storage::Io* write = nullptr;  // the write that has its record
  int error = 0;                       // of writing the record
  // Where the index has a candidate for what is replaced, and the read of that.
  Location there;
  storage::Buffer memory;
  const storage::Io* look = nullptr;
  Session::Current current;
};

// In memory of the session's pool: tasks have small stacks.
struct MultiPut::Group {
  One ones[kGroup];
  storage::PieceIos<2 * kGroup> ios;
  uint64_t bytes = 0;  // of its records
};

void MultiPut::put(Session& session, std::span<const Put> puts, std::span<base::Expected<Changed>> results) {
  CHECK_EQ(puts.size(), results.size());
  const auto put_alone = [&](size_t i) {
    results[i] =
        session.put(puts[i].key, puts[i].value, {.expires_ms = puts[i].expires_ms, .flags = puts[i].flags});
  };
  const storage::Buffer memory(session.pool_, sizeof(Group));
  for (size_t at = 0; at < puts.size();) {
    size_t count = 0;
    if (!memory.bytes().empty()) {
      Timing timing(*session.calls_.counts, CallKind::kPutMany);
      Group* const group = new (memory.bytes().data()) Group;
      const size_t taken = take(session, *group, puts.subspan(at));
      const storage::Buffer records(session.pool_, group->bytes);
      if (!records.bytes().empty()) count = allocate(session, {group->ones, taken});
      // Those without room give up their locks; they are put again in a later group, or alone.
      for (size_t i = count; i < taken; ++i) group->ones[i].hold.reset();
      const std::span ones(group->ones, count);
      if (count > 0) {
        write(session, *group, ones, records.bytes());
        timing.moved(finish(session, ones, results.subspan(at, count)));
      }
      std::destroy_at(group);
    }
    if (count == 0) put_alone(at);
    at += std::max<size_t>(count, 1);
  }
}

// Returns how many puts the group has taken.
size_t MultiPut::take(Session& session, Group& group, std::span<const Put> puts) {
  const uint32_t grain_bytes = session.store_->identity_.geometry.grain_bytes;
  const size_t most = std::min(puts.size(), kGroup);
  for (size_t i = 0; i < most; ++i) {
    One& one = group.ones[i];
    if (!take_one(session, one, puts[i])) return i;
    const uint64_t bytes = uint64_t{one.request.grains} * grain_bytes;
    if (i > 0 && group.bytes + bytes > kMaxBytes) {
      one.hold.reset();
      return i;
    }
    group.bytes += bytes;
  }
  return most;
}

bool MultiPut::take_one(Session& session, One& one, const Put& put) {
  Store& store = *session.store_;
  if (!check_key(put.key) || put.value.size() > store.identity_.geometry.value_bytes_max() ||
      store.options_.read_only)
    return false;
  one.next = {.kind = RecordKind::kValue,
              .key = put.key,
              .value = put.value,
              .options = {.expires_ms = put.expires_ms, .flags = put.flags}};
  if (!check_options(one.next.options)) return false;
  one.hash = hash_key(store.identity_.secret, put.key);
  one.hold.emplace(store.key_locks_, one.hash.low, put.key, std::try_to_lock);
  one.request = session.request_for(one.next);
  if (one.hold->is_held() && store.log_.wait_for_turn(one.request)) return true;
  one.hold.reset();
  return false;
}

// Returns for how many of them there was room.
size_t MultiPut::allocate(Session& session, std::span<One> ones) {
  for (size_t i = 0; i < ones.size(); ++i)
    if (session.allocate_now(ones[i].hash, ones[i].next, ones[i].request, ones[i].written) !=
        Log::Room::kDone)
      return i;
  return ones.size();
}

void MultiPut::write(Session& session, Group& group, std::span<One> ones, std::span<std::byte> memory) {
  const Geometry& geometry = session.store_->identity_.geometry;
  // Segments that are read from must not be given back meanwhile.
  const Readers::Reading reading(session.store_->readers_, session.place_);
  for (One& one : ones) {
    one.record = memory.first(one.request.grains * uint64_t{geometry.grain_bytes});
    memory = memory.subspan(one.record.size());
    session.fill_record(one.next, one.written, one.record);
  }
  // One write serves a contiguous run of records.
  for (size_t first = 0; first < ones.size();) {
    const uint64_t address = ones[first].written.extent.address;
    uint64_t grains = 0;
    size_t end = first;
    for (; end < ones.size() && ones[end].written.extent.address == address + grains; ++end)
      grains += ones[end].request.grains;
    const storage::Io& io = group.ios.add(storage::Operation::kWrite, geometry.offset_of(address),
                                          ones[first].record.data(), grains * geometry.grain_bytes);
    for (; first < end; ++first) ones[first].write = &io;
  }
  look(session, group, ones);
  session.channel_.run(group.ios.all());
  write_alone(session, ones);
  for (One& one : ones)
    if (one.look != nullptr && one.look->whole())
      session.note_read(one.there, one.next.key, one.memory.bytes().first(one.look->length_bytes),
                        one.current);
}

// If a write of several records has failed, each is written by itself: a bad place then concerns one record only.
void MultiPut::write_alone(Session& session, std::span<One> ones) {
  const Geometry& geometry = session.store_->identity_.geometry;
  size_t bad_places = 0;
  for (One& one : ones) {
    const storage::Io& io = *one.write;
    if (io.whole()) continue;
    one.error = io.error != 0 ? io.error : EIO;
    if (io.length_bytes == one.record.size() || !is_of_medium(one.error) || bad_places == kBadPlaces)
      continue;
    one.error = session.channel_.write(geometry.offset_of(one.written.extent.address), one.record);
    bad_places += one.error != 0;
  }
}

// Adds the reads of what the puts will probably replace. Session::install() finds out the rest.
void MultiPut::look(Session& session, Group& group, std::span<One> ones) {
  uint64_t hashes[kGroup];
  Location locations[kGroup];
  for (size_t i = 0; i < ones.size(); ++i) hashes[i] = ones[i].hash.low;
  session.store_->index_->find({hashes, ones.size()}, {locations, ones.size()});
  for (size_t i = 0; i < ones.size(); ++i) {
    One& one = ones[i];
    one.there = locations[i];
    if (!one.there.found) continue;
    const std::span to = session.room_for(one.there, one.next.key.size(), false, one.memory);
    if (to.empty() || session.note_from_memory(one.there, one.next.key, to, one.current)) continue;
    one.look =
        &group.ios.add(storage::Operation::kRead,
                       session.store_->identity_.geometry.offset_of(one.there.address), to.data(), to.size());
  }
}

// Flushes if need be, and makes the changes. Returns how many bytes of keys and values were put.
uint64_t MultiPut::finish(Session& session, std::span<One> ones, std::span<base::Expected<Changed>> results) {
  uint64_t put_bytes = 0;
  const bool has_written = std::ranges::any_of(ones, [](const One& one) { return one.error == 0; });
  const int flush_error = has_written ? session.keep_promise() : 0;
  for (size_t i = 0; i < ones.size(); ++i) {
    if (i + kPrefetched < ones.size()) session.store_->index_->prefetch(ones[i + kPrefetched].hash.low);
    One& one = ones[i];
    if (one.error != 0 || flush_error != 0) {
      session.store_->log_.finish(one.written.extent, false);
      results[i] = std::unexpected(one.error != 0 ? session.io_error(one.error, "write")
                                                  : session.io_error(flush_error, "flush"));
    } else {
      session.keep_in_memory(one.next, one.written, one.record);
      results[i] = session.conclude(one.hash, one.next, one.current, one.written, *one.hold);
    }
    // Now others may change the key, and a checkpoint may begin.
    one.written.change.reset();
    one.hold.reset();
    if (!results[i]) continue;
    const uint64_t bytes = one.next.key.size() + one.next.value.size();
    session.calls_.counts->put_many(bytes);
    put_bytes += bytes;
  }
  return put_bytes;
}

}  // namespace kv
