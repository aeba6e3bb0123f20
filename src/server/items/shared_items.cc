#include "server/items/shared_items.h"

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/linked.h"
#include "base/log.h"
#include "server/items/flush_record.h"

namespace server {
namespace {

// Returns the version of the record.
base::Expected<uint64_t> write(kv::Session& session, const FlushRecord& record) {
  auto done = session.put(kFlushKey, record.bytes());
  if (!done) return std::unexpected(done.error());
  return done->version;
}

base::Error unreadable() {
  return base::Error::of(
      EBADMSG,
      "what the store says of flushes is damaged, or of a later version; use that version, or "
      "dump the store and load it into a new one, where what was flushed may be there again");
}

base::Expected<uint64_t> write_to_come(kv::Session& session, const kv::Store& store, uint64_t at_ms) {
  return write(session, {.floor = std::max(store.floor(), kNoFloor), .at_ms = at_ms});
}

}  // namespace

base::Expected<void> SharedItems::open(kv::Store& store, const ItemsOptions& options) {
  if (options.value_bytes_max > kMaxValueBytes)
    return base::failure(EINVAL, "values of up to ", options.value_bytes_max, " bytes; give at most ",
                         kMaxValueBytes);
  if (auto opened = hot_.open(options.hot_words); !opened) return opened;
  kv::Session session;
  if (auto opened = session.open(store, 1); !opened) return opened;
  FlushRecord record;
  base::Expected<void> result;
  if (auto found = session.get(kFlushKey); !found) {
    result = std::unexpected(found.error().number == EBADMSG ? unreadable() : found.error());
  } else if (const auto read = FlushRecord::read(found->value())) {
    record = *read;
    if (record.floor == 0) {
      record.floor = found->version();
      // Because the record has been read, a cache may keep it under a new version, which is not the floor. If this write fails, the next start
      // tries again.
      if (store.identity().is_cache) static_cast<void>(write(session, record));
    }
  } else if (found->found()) {
    result = std::unexpected(unreadable());
  }
  session.close();
  if (!result) return result;
  store.forget_below(record.floor);
  flush_at_ms_.store(record.at_ms, std::memory_order_relaxed);
  store_ = &store;
  options_ = options;
  return {};
}

void SharedItems::close() {
  CHECK(first_ == nullptr);
  flush_at_ms_.store(0, std::memory_order_relaxed);
  ended_ = {};
  store_ = nullptr;
}

void SharedItems::add(Place& place) {
  sys::LockGuard scope(lock_);
  base::link(first_, place);
}

void SharedItems::remove(Place& place) {
  sys::LockGuard scope(lock_);
  base::unlink(first_, place);
  sum(place, ended_);
}

void SharedItems::sum(const Place& place, ItemCounts& all) {
  for (size_t i = 0; i < kCounts; ++i) all.counts[i] += place.counts[i].load(std::memory_order_relaxed);
}

ItemCounts SharedItems::counts() {
  sys::LockGuard scope(lock_);
  ItemCounts all = ended_;
  for (const Place* place = first_; place != nullptr; place = place->next) sum(*place, all);
  return all;
}

base::Expected<void> SharedItems::flush(kv::Session& session) {
  UpdateLocks::AllHeld held(locks_);
  return flush_under_locks(session);
}

base::Expected<void> SharedItems::flush_under_locks(kv::Session& session) {
  const kv::Store::FloorToCome coming(*store_);
  auto floor = write(session, {});
  if (!floor && floor.error().number == ENOSPC) {
    const uint64_t above = next_sequence();
    store_->forget_below(above);
    floor = write(session, {.floor = above});
    if (floor) floor = above;
  }
  if (!floor) return std::unexpected(floor.error());
  store_->forget_below(*floor);
  flush_at_ms_.store(0, std::memory_order_relaxed);
  return {};
}

base::Expected<void> SharedItems::flush_at(kv::Session& session, uint64_t at_ms) {
  UpdateLocks::AllHeld held(locks_);
  auto written = write_to_come(session, *store_, at_ms);
  if (!written) return std::unexpected(written.error());
  flush_at_ms_.store(at_ms, std::memory_order_relaxed);
  return {};
}

void SharedItems::keep_flush_to_come(kv::Session& session) {
  if (flush_at_ms() == 0 || !store_->identity().is_cache) return;
  // A cache prefers to keep what was read.
  const auto found = session.get(kFlushKey);
  if (!found || found->found()) return;
  UpdateLocks::AllHeld held(locks_);
  // After an error the next call tries again.
  if (const uint64_t at_ms = flush_at_ms(); at_ms != 0)
    static_cast<void>(write_to_come(session, *store_, at_ms));
}

void SharedItems::flush_if_past(kv::Session& session) {
  if (!is_past()) return;
  UpdateLocks::AllHeld held(locks_);
  if (!is_past()) return;
  const kv::Store::FloorToCome coming(*store_);
  auto flushed = flush_under_locks(session);
  if (flushed) return;
  // Nobody may find items that should be gone. The record still says that the flush is to come, so the next start makes it.
  base::log({.name = "flush_not_kept",
             .level = base::LogLevel::kError,
             .fields = {{"error", flushed.error().number}}},
            "server: a flush that is due is not kept: ", flushed.error().message);
  store_->forget_below(next_sequence());
  flush_at_ms_.store(0, std::memory_order_relaxed);
}

}  // namespace server
