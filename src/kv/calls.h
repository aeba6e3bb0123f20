// Calls: what a store has been asked for and how long that took its callers, and what came of it on the device.
//
//  1 what a session counts is written by its thread alone, by plain additions: no lock, nothing that sessions share, no allocation
//  2 a session that is closed adds what it has counted to the store's own, under the lock that open ones are summed up under: nothing
//    is missed, or counted twice
// A call counts when it ends, however it ends. Times are to 1/16, up to 17 s; longer ones have the longest there was.
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
  kPut,      // of a ValueWriter its commit
  kPutMany,  // of up to MultiPut::kGroup keys
  kRemove,
  kSyncFlush,  // of the device, which calls that it is for share
};
inline constexpr const char* kCallNames[] = {"get", "get_many", "put", "put_many", "remove", "sync_flush"};
inline constexpr size_t kCallCount = std::size(kCallNames);

struct Latency {
  uint64_t count = 0;
  uint64_t mean_ns = 0, p50_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
};

// Since a store was opened.
struct UseCounts {
  Latency latencies[kCallCount];  // by CallKind
  IoCounts io[kIoForCount];       // by IoFor
  uint64_t asked_keys = 0;        // of gets, and of those of many
  uint64_t from_memory = 0;       // records of theirs that needed no I/O
  uint64_t got_bytes = 0;      // of keys that were found and of their values; of large values what was read
  uint64_t put_many_keys = 0;  // of kPutMany
  uint64_t put_bytes = 0;      // of keys and values of puts that were done

  const Latency& latency(CallKind call) const { return latencies[static_cast<size_t>(call)]; }
  const IoCounts& io_for(IoFor purpose) const { return io[static_cast<size_t>(purpose)]; }
  IoCounts all_io() const;
  // Bytes that were written for one byte of keys and values; 0 without any.
  double write_amplification() const;
  // Reads for a key that was asked for.
  double reads_per_get() const;
  // Writes of all kinds for a put or remove.
  double writes_per_change() const;
};

// What one session counts, but for its channel's I/O.
class SessionCounts {
 public:
  // All calls but kSyncFlush.
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

// How long a call takes: a scope.
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
  // Of keys and values that it has found, or put; for who listens.
  void moved(uint64_t bytes) { moved_bytes_ += bytes; }

 private:
  SessionCounts& counts_;
  CallKind call_;
  uint64_t began_ns_;
  uint64_t moved_bytes_ = 0;
};

class Calls {
 public:
  // Of a session, as long as it is open.
  struct Place {
    SessionCounts* counts = nullptr;
    const Channel* channel = nullptr;
    Place* next = nullptr;
  };
  // The channel, which has just been opened, outlives the place. Errors: ENOMEM. Cost: a system call; memory as it is counted in.
  base::Expected<void> add(Place& place, const Channel& channel);
  // REQUIRES: no call is under way.
  void remove(Place& place);

  // Of all sessions, open ones and those that were. Any thread. Cost: looks at each session's histograms.
  UseCounts counts();

 private:
  sys::Mutex lock_;
  Place* first_ = nullptr;
  Times ended_times_[SessionCounts::kCalls];
  UseCounts ended_;  // without latencies
};

Latency latency_of(const Times& times);

}  // namespace kv
