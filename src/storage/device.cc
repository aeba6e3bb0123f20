#include "storage/device.h"

#include "base/check.h"
#include "base/statistics.h"

namespace storage {
namespace {

// A CHECK for each thing that a caller can get wrong about `io`.
void check_request(const Device& device, const Io& io) {
  uint64_t unit_mask = device.block_bytes() - 1;
  bool transfers = io.operation == Operation::kRead || io.operation == Operation::kWrite;
  if (!transfers) CHECK_EQ(io.segment_count, 0u);
  if (io.operation == Operation::kFlush) return;

  CHECK_EQ(io.offset_bytes & unit_mask, 0u);
  CHECK_EQ(io.length_bytes & unit_mask, 0u);
  CHECK_GT(io.length_bytes, 0u);
  CHECK_LE(io.offset_bytes, device.capacity_bytes());
  CHECK_LE(io.length_bytes, device.capacity_bytes() - io.offset_bytes);
  if (!transfers) return;

  CHECK_GT(io.segment_count, 0u);
  CHECK_LE(io.segment_count, kMaxSegments);
  uint64_t sum_bytes = 0;
  for (uint32_t i = 0; i < io.segment_count; ++i) {
    const iovec& segment = io.segments[i];
    CHECK_EQ(reinterpret_cast<uintptr_t>(segment.iov_base) & unit_mask, 0u);
    CHECK_EQ(segment.iov_len & unit_mask, 0u);
    CHECK_GT(segment.iov_len, 0u);
    sum_bytes += segment.iov_len;
  }
  CHECK_EQ(sum_bytes, io.length_bytes);
}

void count(const Io& io) {
  auto& statistics = base::statistics;
  if (io.error != 0) {
    statistics.storage_errors.add();
    return;
  }
  switch (io.operation) {
    case Operation::kRead:
      statistics.storage_reads.add();
      statistics.storage_read_bytes.add(io.transferred_bytes);
      break;
    case Operation::kWrite:
      statistics.storage_writes.add();
      statistics.storage_write_bytes.add(io.transferred_bytes);
      break;
    case Operation::kDiscard: statistics.storage_discards.add(); break;
    case Operation::kFlush: break;
  }
}

// Sets `io` to what is left of the caller's after resumption.moved_bytes: if that is inside a segment, to the
// rest of that segment, else to all segments from there on.
void set_to_rest(Io& io) {
  const Io::Resumption& resumption = io.resumption;
  uint64_t skipped_bytes = 0;
  uint32_t first = 0;
  while (skipped_bytes + resumption.segments[first].iov_len <= resumption.moved_bytes)
    skipped_bytes += resumption.segments[first++].iov_len;
  const iovec& segment = resumption.segments[first];
  const uint64_t inside_bytes = resumption.moved_bytes - skipped_bytes;
  io.offset_bytes = resumption.offset_bytes + resumption.moved_bytes;
  io.transferred_bytes = 0;
  if (inside_bytes == 0) {
    io.segments = &segment;
    io.segment_count = resumption.segment_count - first;
    io.length_bytes = resumption.length_bytes - resumption.moved_bytes;
    return;
  }
  io.resumption.rest = {static_cast<char*>(segment.iov_base) + inside_bytes, segment.iov_len - inside_bytes};
  io.segments = &io.resumption.rest;
  io.segment_count = 1;
  io.length_bytes = io.resumption.rest.iov_len;
}

// A piece of `io` has ended; `may_go_on` says whether resuming is possible. Returns whether there is a rest to start, which
// `io` then is; else `io` is the caller's again. Terminates, since each piece before the last brought at least one block.
bool resume(Io& io, bool may_go_on) {
  Io::Resumption& resumption = io.resumption;
  if (!resumption.under_way) {
    if (!may_go_on || io.error != 0 || io.whole()) return false;
    resumption = {.under_way = true,
                  .moved_bytes = io.transferred_bytes,
                  .offset_bytes = io.offset_bytes,
                  .segments = io.segments,
                  .segment_count = io.segment_count,
                  .length_bytes = io.length_bytes};
    set_to_rest(io);
    return true;
  }
  const bool goes_on = io.error == 0 && (may_go_on || io.whole());
  resumption.moved_bytes += io.transferred_bytes;
  if (goes_on && resumption.moved_bytes < resumption.length_bytes) {
    set_to_rest(io);
    return true;
  }
  io.offset_bytes = resumption.offset_bytes;
  io.segments = resumption.segments;
  io.segment_count = resumption.segment_count;
  io.length_bytes = resumption.length_bytes;
  io.transferred_bytes = resumption.moved_bytes;
  resumption.under_way = false;
  return false;
}

}  // namespace

void Queue::start(Io& io, bool alone) {
  CHECK(!io.in_flight);
  check_request(device_, io);
  io.in_flight = true;
  io.error = 0;
  io.transferred_bytes = 0;
  io.resumption.under_way = false;
  ++in_flight_count_;
  if (alone) {
    do_start_alone(io);
  } else {
    do_start(io);
  }
}

size_t Queue::submit(std::span<Io* const> batch) {
  size_t accepted_count = 0;
  while (accepted_count < batch.size() && in_flight_count_ < depth_) start(*batch[accepted_count++], false);
  if (accepted_count > 0) do_flush_submissions();
  return accepted_count;
}

void Queue::complete(Io& io) {
  const bool transfers = io.operation == Operation::kRead || io.operation == Operation::kWrite;
  const bool whole_blocks = io.transferred_bytes > 0 && io.transferred_bytes % device_.block_bytes() == 0;
  end_piece(io, transfers && whole_blocks);
}

void Queue::complete_as_is(Io& io) { end_piece(io, false); }

void Queue::end_piece(Io& io, bool may_go_on) {
  DCHECK(io.in_flight);
  DCHECK(io.transferred_bytes <= io.length_bytes);
  if (resume(io, may_go_on)) {
    resumed_.append(io);
    return;
  }
  if (device_.counted_) count(io);
  completed_.append(io);
}

// Only those that are there now: a medium that finishes at once returns the next piece before this returns.
void Queue::start_resumed() {
  size_t bound = resumed_.count();
  if (bound == 0) return;
  while (bound-- > 0) do_start(resumed_.take_first());
  do_flush_submissions();
}

size_t Queue::deliver() {
  // Only those that are there now: a `done` that submits to a medium that finishes at once would make this loop for ever.
  size_t bound = completed_.count();
  size_t delivered_count = 0;
  while (delivered_count < bound && !completed_.empty()) {
    Io& io = completed_.take_first();
    CHECK_GT(in_flight_count_, 0u);
    --in_flight_count_;
    io.in_flight = false;
    ++delivered_count;
    if (io.done != nullptr) io.done(io);
  }
  return delivered_count;
}

size_t Queue::poll() {
  if (in_flight_count_ == 0) return 0;
  do_poll(false);
  start_resumed();
  return deliver();
}

base::Quiet Queue::quiet() {
  base::Quiet quiet = do_quiet();
  if (in_flight_count_ == 0) quiet.until_ns = base::Quiet::kForever;
  if (has_completed()) quiet.until_ns = 0;
  return quiet;
}

bool Queue::fix_memory(void* address, uint64_t bytes) {
  CHECK_EQ(in_flight_count_, 0u);
  return do_fix_memory(address, bytes);
}

size_t Queue::wait() {
  if (in_flight_count_ == 0) return 0;
  while (completed_.empty()) {
    start_resumed();
    if (!has_completed()) do_poll(true);
  }
  start_resumed();
  return deliver();
}

// run() does not flush: a medium that sleeps in the kernel submits what was gathered in the same call.
void Queue::run(Io& io) {
  while (in_flight_count_ == depth_) wait();
  start(io, true);
  while (io.in_flight) wait();
}

void Queue::run(std::span<Io* const> batch) {
  for (Io* io : batch) {
    while (in_flight_count_ == depth_) wait();
    start(*io, false);
  }
  for (Io* io : batch)
    while (io->in_flight) wait();
}

base::Expected<Queue*> Device::open_queue(size_t depth, const QueueUse& use) {
  CHECK_GE(depth, 1u);
  CHECK_LE(depth, kMaxQueueDepth);
  auto queue = do_open_queue(depth, use);
  if (queue) open_queue_count_.fetch_add(1, std::memory_order_relaxed);  // a count, publishes nothing
  return queue;
}

void Device::close_queue(Queue* queue) {
  CHECK_EQ(&queue->device(), this);
  CHECK_EQ(queue->in_flight_count(), 0u);
  queue->do_close();
  CHECK_GT(open_queue_count_.fetch_sub(1, std::memory_order_relaxed), 0u);
}

void Device::close() {
  CHECK_EQ(open_queue_count_.load(std::memory_order_relaxed), 0u);
  do_close();
}

}  // namespace storage
