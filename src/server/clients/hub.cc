#include "server/clients/hub.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace server {
namespace {

StoreUse use_of(const kv::StoreCounts& store) {
  return {.dropped_records = store.collected.dropped_records,
          .expired_records = store.collected.expired_records,
          .get_reads = store.use.io_for(kv::IoFor::kGets).reads};
}

// A count since the last reset. `before` may be newer than `all` if another thread has reset the counts meanwhile.
uint64_t count_since(uint64_t all, uint64_t before) { return all - std::min(all, before); }

}  // namespace

const char* name_of(Speech speech) {
  switch (speech) {
    case Speech::kMemcache: return "memcache";
    case Speech::kResp: return "resp";
    case Speech::kMetrics: return "metrics";
  }
  return "";
}

Hub::Hub(const Settings& settings, SharedItems& items)
    : settings_(settings), items_(items), started_ms_(items.store().clock().now_ms()) {}

void Hub::add(const Connection& connection, ConnectionCounts& to) {
  to.received_bytes += connection.stream->received_bytes();
  to.sent_bytes += connection.stream->sent_bytes();
  to.requests += connection.requests.load(std::memory_order_relaxed);
}

// Since the start. REQUIRES: lock_.
ConnectionCounts Hub::sum() const {
  ConnectionCounts all = ended_;
  for (const Connection* at = first_; at != nullptr; at = at->next)
    if (at->speech != Speech::kMetrics) add(*at, all);
  return all;
}

bool Hub::enter(Connection& connection) {
  sys::LockGuard scope(lock_);
  ConnectionCounts& counts = ended_of(connection.speech);
  if (counts.now >= connections_max(connection.speech)) {
    ++counts.refused;
    return false;
  }
  ++counts.now;
  ++counts.total;
  connection.number = next_number_++;
  connection.used_ms.store(connection.begun_ms, std::memory_order_relaxed);
  connection.previous = last_;
  (last_ == nullptr ? first_ : last_->next) = &connection;
  last_ = &connection;
  return true;
}

void Hub::leave(Connection& connection) {
  sys::LockGuard scope(lock_);
  (connection.previous == nullptr ? first_ : connection.previous->next) = connection.next;
  (connection.next == nullptr ? last_ : connection.next->previous) = connection.previous;
  ConnectionCounts& counts = ended_of(connection.speech);
  --counts.now;
  counts.idle += connection.stream->was_idle();
  add(connection, counts);
}

void Hub::change(Connection& connection, const std::function<void(Connection&)>& change) {
  sys::LockGuard scope(lock_);
  change(connection);
}

void Hub::for_each(const std::function<void(const Connection&)>& look) {
  sys::LockGuard scope(lock_);
  for (const Connection* at = first_; at != nullptr; at = at->next) look(*at);
}

size_t Hub::kill(const std::function<bool(const Connection&)>& is_meant) {
  sys::LockGuard scope(lock_);
  size_t count = 0;
  for (Connection* at = first_; at != nullptr; at = at->next) {
    if (at->is_killed.load(std::memory_order_relaxed) || !is_meant(*at)) continue;
    at->is_killed.store(true, std::memory_order_relaxed);
    // Under the lock it cannot leave, so its task and its stream are there.
    task::cancel(*at->task);
    // Cancelling does not stop what a draining connection sends (Stream::send), so its socket is shut down too. A client that kills its
    // own connection still has to be answered.
    if (!task::in_task() || at->task != &task::self()) at->stream->cut_off();
    ++count;
  }
  return count;
}

void Hub::drain(uint32_t worker) {
  sys::LockGuard scope(lock_);
  for (Connection* at = first_; at != nullptr; at = at->next)
    if (at->worker == worker && at->stream->drain()) task::cancel(*at->task);
}

ConnectionCounts Hub::counts_since_start() {
  sys::LockGuard scope(lock_);
  return sum();
}

ConnectionCounts Hub::counts() {
  sys::LockGuard scope(lock_);
  ConnectionCounts all = sum();
  all.total -= before_.total;
  all.refused -= before_.refused;
  all.idle -= before_.idle;
  all.received_bytes -= before_.received_bytes;
  all.sent_bytes -= before_.sent_bytes;
  all.requests -= before_.requests;
  return all;
}

void Hub::reset_counts() {
  prefixes.reset();
  watchers.reset_counts();
  admissions_.store(0, std::memory_order_relaxed);
  rejections_.store(0, std::memory_order_relaxed);
  const ItemCounts items_now = items_.counts();
  const StoreUse store_now = use_of(items_.store().counts());
  sys::LockGuard scope(lock_);
  before_ = sum();
  items_before_ = items_now;
  store_before_ = store_now;
}

ItemCounts Hub::item_counts() {
  ItemCounts counts = items_.counts();
  sys::LockGuard scope(lock_);
  for (size_t i = 0; i < kCounts; ++i)
    counts.counts[i] = count_since(counts.counts[i], items_before_.counts[i]);
  return counts;
}

StoreUse Hub::store_use(const kv::StoreCounts& store) {
  const StoreUse all = use_of(store);
  sys::LockGuard scope(lock_);
  return {.dropped_records = count_since(all.dropped_records, store_before_.dropped_records),
          .expired_records = count_since(all.expired_records, store_before_.expired_records),
          .get_reads = count_since(all.get_reads, store_before_.get_reads)};
}

bool Hub::admits(std::string_view user, std::string_view password) {
  sys::LockGuard scope(accounts_lock_);
  return accounts().admits(user, password);
}

bool Hub::knows(std::string_view user) {
  sys::LockGuard scope(accounts_lock_);
  return !accounts().password_of(user).empty();
}

void Hub::change_accounts(Accounts accounts) {
  sys::LockGuard scope(accounts_lock_);
  newer_accounts_ = std::move(accounts);
}

void Hub::end(End how, std::string_view why) {
  End known = end_.load(std::memory_order_relaxed);
  while (known < how && !end_.compare_exchange_weak(known, how, std::memory_order_acq_rel)) {
  }
  if (known >= how) return;
  base::log({.name = "stopping",
             .level = base::LogLevel::kInfo,
             .fields = {{"reason", why}, {"at_once", how == End::kAtOnce}}},
            "server: stopping", how == End::kAtOnce ? " at once: " : ": ", why);
  if (on_end) on_end();
}

}  // namespace server
