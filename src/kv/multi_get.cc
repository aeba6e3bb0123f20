#include "kv/multi_get.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "kv/index/entry.h"
#include "kv/media/clock.h"
#include "storage/piece_io.h"

namespace kv {

// In memory of the session's pool: tasks have small stacks.
struct MultiGet::Group {
  uint64_t hashes[kGroup];
  Location locations[kGroup];
  storage::PieceIos<kGroup> ios;
  const storage::Io* of_key[kGroup];  // the read for each key; null: none
};

void MultiGet::get(Session& session, std::span<const std::string_view> keys,
                   std::span<base::Expected<Found>> results) {
  for (size_t at = 0; at < keys.size();)
    at += get_some(session, keys.subspan(at), results.subspan(at), UINT64_MAX);
}

size_t MultiGet::get_some(Session& session, std::span<const std::string_view> keys,
                          std::span<base::Expected<Found>> results, uint64_t bytes_most) {
  CHECK_EQ(keys.size(), results.size());
  const size_t count = std::min(kGroup, keys.size());
  const storage::Buffer memory(session.pool_, sizeof(Group));
  if (memory.bytes().empty()) {
    for (auto& result : results.first(count))
      result = base::failure(ENOMEM, "store: no memory for the reads of many keys");
    return count;
  }
  Group& group = *new (memory.bytes().data()) Group;
  return get_group(session, group, keys.first(count), results, bytes_most);
}

size_t MultiGet::get_group(Session& session, Group& group, std::span<const std::string_view> keys,
                           std::span<base::Expected<Found>> results, uint64_t bytes_most) {
  SessionCounts& counts = *session.calls_.counts;
  Timing timing(counts, CallKind::kGetMany);
  for (size_t i = 0; i < keys.size(); ++i)
    group.hashes[i] = hash_key(session.store_->identity_.secret, keys[i]).low;
  const Readers::Reading reading(session.store_->readers_, session.place_);
  session.store_->index_->find({group.hashes, keys.size()}, {group.locations, keys.size()});
  keys = keys.first(count_within(session, {group.locations, keys.size()}, bytes_most));
  group.ios.clear();
  for (size_t i = 0; i < keys.size(); ++i) {
    group.of_key[i] = nullptr;
    results[i] = Found();
    if (!group.locations[i].found || keys[i].empty() || keys[i].size() > kMaxKeyBytes) continue;
    group.of_key[i] = begin(session, group, group.locations[i], keys[i], results[i]);
  }
  session.channel_.run(group.ios.all(), IoFor::kGets);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (group.of_key[i] != nullptr)
      end(session, group.hashes[i], group.locations[i], keys[i], *group.of_key[i], results[i]);
    else if (keys[i].empty() || keys[i].size() > kMaxKeyBytes)
      results[i] = session.do_get(keys[i]);  // for its error
    timing.moved(session.count_found(keys[i], results[i]));
  }
  counts.asked(keys.size());
  return keys.size();
}

// How many of the first records have at most `bytes_most` bytes together; at least one.
size_t MultiGet::count_within(const Session& session, std::span<const Location> locations,
                              uint64_t bytes_most) {
  uint64_t bytes = 0;
  size_t count = 0;
  for (; count < locations.size(); ++count) {
    if (!locations[count].found) continue;
    bytes += size_code::grains(locations[count].size) * session.store_->identity_.geometry.grain_bytes;
    if (bytes > bytes_most && count > 0) break;
  }
  return count;
}

// Gives the result memory for the record, and adds the Io that reads it. Null: the record was in memory, or the result is an error.
const storage::Io* MultiGet::begin(Session& session, Group& group, const Location& location,
                                   std::string_view key, base::Expected<Found>& result) {
  const std::span to = session.room_for(location, key.size(), true, result->memory_);
  if (to.empty()) {
    result = base::failure(ENOMEM, "store: no memory for a record");
    return nullptr;
  }
  if (session.read_from_memory(location, key, true, to, result->record_) &&
      result->record_.header.kind() == RecordKind::kValue) {
    session.calls_.counts->got_from_memory(1);
    end(session, location, result);
    return nullptr;
  }
  const uint64_t offset = session.store_->identity_.geometry.offset_of(location.address);
  return &group.ios.add(storage::Operation::kRead, offset, to.data(), to.size());
}

void MultiGet::end(Session& session, uint64_t hash, const Location& location, std::string_view key,
                   const storage::Io& io, base::Expected<Found>& result) {
  Store& store = *session.store_;
  if (!io.whole()) {
    result = std::unexpected(session.io_error(io.error != 0 ? io.error : EIO, "read"));
    // The record may be another key's with the same tag, or what cannot be read may lie after it.
    if (Index::Candidates all; !size_code::is_exact(location.size) || store.index_->find_all(hash, all) > 1)
      result = session.do_get(key);
    return;
  }
  const Geometry& geometry = store.identity_.geometry;
  const uint64_t generation = session.store_->log_.segment(geometry.segment_of(location.address))
                                  .generation.load(std::memory_order_relaxed);
  const Bytes record = result->memory_.bytes().first(io.length_bytes);
  if (read_record(store.identity_.secret, generation, record, result->record_) != Reading::kWhole ||
      result->record_.key != key || result->record_.header.kind() != RecordKind::kValue) {
    // It is another key's, damaged, or a large value: looked up alone.
    result = Found();  // its memory is given back first
    result = session.do_get(key);
    return;
  }
  store.tier_.keep(location.address, record.first(result->record_.bytes()));
  end(session, location, result);
}

// The record is the key's; has it ended?
void MultiGet::end(Session& session, const Location& location, base::Expected<Found>& result) {
  Store& store = *session.store_;
  if (store.lifetimes_.has_ended(result->record_))
    result = Found();
  else
    store.used_records_.mark(location.address);
}

}  // namespace kv
