#include "storage/decorators/trace_replay.h"

#include "base/check.h"
#include "storage/objects.h"
#include "sys/kernel.h"
#include "sys/nap.h"

namespace storage {
namespace {

// Size of the memory that all requests read to and write from.
constexpr uint64_t kScratchBytes = uint64_t{1} << 20;
constexpr uint64_t kLateNs = 1'000'000;
constexpr uint64_t kMaxNapNs = 1'000'000;

class Replay {
 public:
  Replay(const Trace& trace, Queue& queue, char* scratch, bool timed)
      : trace_(trace), queue_(queue), scratch_(scratch), timed_(timed) {
    slots_ = static_cast<Slot*>(extra_of(this));
    for (size_t i = 0; i < queue.depth(); ++i) new (&slots_[i]) Slot;
  }
  static uint64_t extra_bytes(size_t depth) { return depth * sizeof(Slot); }

  ReplayResult run() {
    start_ns_ = sys::monotonic_ns();
    for (const TraceRecord& record : trace_.records) {
      if (timed_) wait_for_time(record);
      // A request may be longer than one Io can be here.
      uint64_t at = 0;
      do {
        at += start_piece(record, at);
      } while (at < record.length_bytes);
      ++result_.request_count;
    }
    while (queue_.in_flight_count() > 0) queue_.wait();
    result_.duration_ns = sys::monotonic_ns() - start_ns_;
    return result_;
  }

 private:
  struct Slot {
    Io io;
    ReplayResult* result = nullptr;
    iovec segments[kMaxSegments];
  };

  void wait_for_time(const TraceRecord& record) {
    const uint64_t due_ns = start_ns_ + (record.start_ns - trace_.records[0].start_ns);
    for (;;) {
      queue_.poll();
      const uint64_t now_ns = sys::monotonic_ns();
      if (now_ns >= due_ns) {
        if (now_ns - due_ns > kLateNs) ++result_.late_count;
        return;
      }
      // Sleeps end late: the last of it is spent polling.
      const uint64_t left_ns = due_ns - now_ns;
      if (left_ns < kLateNs / 5) continue;
      sys::nap(left_ns / 2 < kMaxNapNs ? left_ns / 2 : kMaxNapNs);
    }
  }

  // Starts the rest of the record's request from `at` on, or as much of it as one Io can be; returns how much that is.
  uint64_t start_piece(const TraceRecord& record, uint64_t at) {
    const auto operation = static_cast<Operation>(record.operation - 1);
    const bool transfers = operation == Operation::kRead || operation == Operation::kWrite;
    uint64_t length_bytes = record.length_bytes - at;
    if (transfers && length_bytes > kMaxSegments * kScratchBytes) length_bytes = kMaxSegments * kScratchBytes;
    Slot& slot = free_slot(operation, record.offset_bytes + at, length_bytes);
    slot.io = Io();
    slot.io.operation = operation;
    slot.io.offset_bytes = record.offset_bytes + at;
    slot.io.length_bytes = length_bytes;
    slot.io.owner = &slot;
    slot.result = &result_;
    slot.io.done = [](Io& io) {
      if (!io.whole()) ++static_cast<Slot*>(io.owner)->result->error_count;
    };
    if (transfers) {
      slot.io.segments = slot.segments;
      for (uint64_t done = 0; done < length_bytes; done += slot.segments[slot.io.segment_count++].iov_len) {
        const uint64_t left = length_bytes - done;
        slot.segments[slot.io.segment_count] = {scratch_, left < kScratchBytes ? left : kScratchBytes};
      }
    }
    Io* batch[] = {&slot.io};
    CHECK_EQ(queue_.submit(batch), 1u);
    return length_bytes;
  }

  // Waits until no request under way conflicts with this one; returns a slot that is not in use.
  Slot& free_slot(Operation operation, uint64_t offset_bytes, uint64_t length_bytes) {
    for (;;) {
      Slot* free = nullptr;
      bool touched = false;
      for (size_t i = 0; i < queue_.depth(); ++i) {
        const Io& io = slots_[i].io;
        if (!io.in_flight) {
          free = &slots_[i];
          continue;
        }
        const bool both_read = io.operation == Operation::kRead && operation == Operation::kRead;
        const bool apart = io.offset_bytes + io.length_bytes <= offset_bytes ||
                           offset_bytes + length_bytes <= io.offset_bytes;
        touched = touched || (!both_read && !apart);
      }
      if (free != nullptr && !touched) return *free;
      queue_.wait();
    }
  }

  const Trace& trace_;
  Queue& queue_;
  char* scratch_;
  const bool timed_;
  Slot* slots_;
  uint64_t start_ns_ = 0;
  ReplayResult result_;
};

}  // namespace

base::Expected<ReplayResult> replay_trace(const Trace& trace, Device& device,
                                          const ReplayParameters& parameters) {
  if (trace.header.capacity_bytes > device.capacity_bytes())
    return base::failure(EINVAL, "storage: the trace is of a device of ", trace.header.capacity_bytes,
                         " bytes, but ", device.name(), " has ", device.capacity_bytes());
  if (trace.header.block_bytes < device.block_bytes())
    return base::failure(EINVAL, "storage: the trace is of a device with blocks of ",
                         trace.header.block_bytes, " bytes, but ", device.name(), " has blocks of ",
                         device.block_bytes());
  auto queue = device.open_queue(parameters.depth, {.by_one_thread = true});
  if (!queue) return std::unexpected(queue.error());
  auto scratch = sys::map_anonymous(kScratchBytes, "a storage buffer");
  if (!scratch) {
    device.close_queue(*queue);
    return std::unexpected(scratch.error());
  }
  const uint64_t extra_bytes = Replay::extra_bytes((*queue)->depth());
  auto replay = make_object<Replay>(extra_bytes, "a replay", trace, **queue, *scratch, parameters.timed);
  base::Expected<ReplayResult> result{};
  if (replay) {
    result = (*replay)->run();
    free_object(*replay, extra_bytes);
  } else {
    result = std::unexpected(replay.error());
  }
  sys::unmap(*scratch, kScratchBytes);
  device.close_queue(*queue);
  return result;
}

}  // namespace storage
