#include "kv/calls.h"

#include <new>

#include "base/linked.h"
#include "sys/memory.h"

namespace kv {
namespace {

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

IoCounts UseCounts::all_io() const {
  IoCounts all;
  for (const IoCounts& counts : io) all.add(counts);
  return all;
}

double UseCounts::write_amplification() const { return ratio(all_io().written_bytes, put_bytes); }

double UseCounts::reads_per_get() const { return ratio(io_for(IoFor::kGets).reads, asked_keys); }

double UseCounts::writes_per_change() const {
  return ratio(all_io().writes,
               latency(CallKind::kPut).count + put_many_keys + latency(CallKind::kRemove).count);
}

Latency latency_of(const Times& times) {
  return {.count = times.count(),
          .sum_ns = static_cast<uint64_t>(times.sum()),
          .mean_ns = static_cast<uint64_t>(times.mean()),
          .p50_ns = times.at(0.5),
          .p99_ns = times.at(0.99),
          .p999_ns = times.at(0.999),
          .max_ns = times.most()};
}

void SessionCounts::add_to(UseCounts& all) const {
  all.asked_keys += asked_keys_.load(std::memory_order_relaxed);
  all.from_memory += from_memory_.load(std::memory_order_relaxed);
  all.got_bytes += got_bytes_.load(std::memory_order_relaxed);
  all.put_many_keys += put_many_keys_.load(std::memory_order_relaxed);
  all.put_bytes += put_bytes_.load(std::memory_order_relaxed);
}

base::Expected<void> Calls::add(Place& place, const Channel& channel) {
  // Not in the session, which may be on the stack of a task.
  auto memory = sys::map_anonymous(sizeof(SessionCounts), "what a session counts");
  if (!memory) return std::unexpected(memory.error());
  place.counts = new (*memory) SessionCounts;
  place.channel = &channel;
  sys::LockGuard scope(lock_);
  base::link(first_, place);
  return {};
}

void Calls::remove(Place& place) {
  {
    sys::LockGuard scope(lock_);
    base::unlink(first_, place);
    for (size_t i = 0; i < SessionCounts::kCalls; ++i)
      ended_times_[i].add(place.counts->times(static_cast<CallKind>(i)));
    place.counts->add_to(ended_);
    place.channel->add_io(ended_.io);
  }
  sys::unmap(place.counts, sizeof(SessionCounts));
  place.counts = nullptr;
}

UseCounts Calls::counts() {
  sys::LockGuard scope(lock_);
  UseCounts all = ended_;
  for (Place* place = first_; place != nullptr; place = place->next) {
    place->counts->add_to(all);
    place->channel->add_io(all.io);
  }
  for (size_t i = 0; i < SessionCounts::kCalls; ++i) {
    Times times = ended_times_[i];
    for (Place* place = first_; place != nullptr; place = place->next)
      times.add(place->counts->times(static_cast<CallKind>(i)));
    all.latencies[i] = latency_of(times);
  }
  return all;
}

}  // namespace kv
