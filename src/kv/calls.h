// Calls: what a store has been asked for, how long its callers waited for that, and what I/O it took.
//
//  1 A session's counts are changed by its thread alone, by plain additions: without a lock, shared memory or allocation
//  2 A session that is closed adds its counts to the store's, under the lock under which open sessions are summed up: nothing is missed or counted
//    twice
// A call counts when it ends, however it ends. Times are precise to 1/16 up to 17 s; a quantile above that is the longest time there was.
#pragma once
#include <atomic>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "base/probe.h"
#include "base/single_writer.h"
#include "kv/media/channel.h"
#include "kv/media/clock.h"
#include "kv/media/format.h"
#include "sys/lock.h"

namespace kv {

enum class CallKind : uint8_t {
  kGet,
  kGetMany,  // of up to MultiGet::kGroup keys
  kPut,      // and a ValueWriter's commit
  kPutMany,  // of up to MultiPut::kGroup keys
  kRemove,
  kSyncFlush,  // a flush of the device at kSync, which calls share
};
inline constexpr const char* kCallNames[] = {"get", "get_many", "put", "put_many", "remove", "sync_flush"};
inline constexpr size_t kCallCount = std::size(kCallNames);

struct Latency {
  uint64_t count = 0;
  uint64_t sum_ns = 0;
  uint64_t mean_ns = 0, p50_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
};

// Since a store was opened.
struct UseCounts {
  Latency latencies[kCallCount];  // by CallKind
  IoCounts io[kIoForCount];       // by IoFor
  uint64_t asked_keys = 0;        // by gets, single ones and those of many
  uint64_t from_memory = 0;       // records that gets found in memory, without I/O
  uint64_t got_bytes = 0;      // of keys that were found and of their values; of large values what was read
  uint64_t put_many_keys = 0;  // put by kPutMany
  uint64_t put_bytes = 0;      // of keys and values of puts that were done

  const Latency& latency(CallKind call) const { return latencies[static_cast<size_t>(call)]; }
  const IoCounts& io_for(IoFor purpose) const { return io[static_cast<size_t>(purpose)]; }
  IoCounts all_io() const;
  // Bytes written for each byte put. These three are 0 if there were no such calls.
  double write_amplification() const;
  // Reads for each key that was asked for.
  double reads_per_get() const;
  // Writes of all kinds for each put or remove.
  double writes_per_change() const;
};

// What one session counts, besides its channel's I/O.
class SessionCounts {
 public:
  // REQUIRES: not kSyncFlush.
  SharedTimes& times(CallKind call) { return times_[static_cast<size_t>(call)]; }
  const SharedTimes& times(CallKind call) const { return times_[static_cast<size_t>(call)]; }
  void asked(uint64_t keys) { base::increase(asked_keys_, keys); }
  void got_from_memory(uint64_t records) { base::increase(from_memory_, records); }
  void got(uint64_t bytes) { base::increase(got_bytes_, bytes); }
  void put(uint64_t bytes) { base::increase(put_bytes_, bytes); }
  void put_many(uint64_t bytes) {
    base::increase(put_many_keys_, uint64_t{1});
    put(bytes);
  }
  void add_to(UseCounts& all) const;

  static constexpr size_t kCalls = kCallCount - 1;

 private:
  SharedTimes times_[kCalls];
  std::atomic<uint64_t> asked_keys_{0}, from_memory_{0}, got_bytes_{0}, put_many_keys_{0}, put_bytes_{0};
};
static_assert(sizeof(SessionCounts) <= 20 << 10, "each session has one");

// Times a call, which lasts as long as this object.
class Timing {
 public:
  Timing(SessionCounts& counts, CallKind call) : counts_(counts), call_(call), began_ns_(now_ns()) {}
  ~Timing() {
    const uint64_t took_ns = now_ns() - began_ns_;
    counts_.times(call_).add(took_ns);
    base::probes::kv_call_done(static_cast<uint64_t>(call_), moved_bytes_, took_ns);
  }
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;
  // The call has found or put this many bytes of keys and values; for the probe.
  void moved(uint64_t bytes) { moved_bytes_ += bytes; }

 private:
  SessionCounts& counts_;
  CallKind call_;
  uint64_t began_ns_;
  uint64_t moved_bytes_ = 0;
};

class Calls {
 public:
  // A session's place, as long as it is open.
  struct Place {
    SessionCounts* counts = nullptr;
    const Channel* channel = nullptr;
    Place* next = nullptr;
  };
  // The channel, which has just been opened, outlives the place. Errors: ENOMEM. Cost: a system call; memory comes with use.
  base::Expected<void> add(Place& place, const Channel& channel);
  // REQUIRES: no call is under way.
  void remove(Place& place);

  // The counts of all sessions, open and closed ones. Any thread. Cost: looks at each session's histograms.
  UseCounts counts();

 private:
  sys::Mutex lock_;
  Place* first_ = nullptr;
  Times ended_times_[SessionCounts::kCalls];
  UseCounts ended_;  // without latencies
};

Latency latency_of(const Times& times);

}  // namespace kv
