#include "task/io_queue.h"

#include <algorithm>

#include "base/check.h"
#include "storage/piece_io.h"
#include "task/worker.h"

namespace task {
namespace {

constexpr size_t kBatch = 64;
// The least that counts for an Io: the call itself costs about as much as copying so many bytes.
constexpr uint64_t kMinBytes = 4096;
// Some 8 us: with 64 busy tasks, each waits half a millisecond for its next turn.
constexpr uint64_t kTurnBytes = 16 << 10;

// The wait of a task for its Ios, whose `owner` it is meanwhile.
class IoWait final : public Waiting {
 public:
  IoWait(Task& task, size_t count) : task_(task), left_count_(count) {}
  const char* what() const override { return "storage"; }
  bool abandon() override { return false; }
  static void done(storage::Io& io) {
    IoWait& wait = *static_cast<IoWait*>(io.owner);
    if (--wait.left_count_ == 0) wake(wait.task_);
  }

 private:
  Task& task_;
  size_t left_count_;
};

}  // namespace

base::Expected<void> IoQueue::open(storage::Device& device, size_t depth) {
  auto queue = device.open_queue(depth, {.sleeps = true, .by_one_thread = true});
  if (!queue) return std::unexpected(queue.error());
  queue_ = *queue;
  free_joined_ = nullptr;
  for (Joined& joined : joined_) {
    joined.queue = this;
    joined.next_free = free_joined_;
    free_joined_ = &joined;
  }
  descriptor_ = queue_->quiet().descriptor;
  auto added = Worker::current()->add_poller(*this);
  if (!added) device.close_queue(queue_);
  return added;
}

void IoQueue::close() {
  CHECK(!has_waiting());
  Worker::current()->remove_poller(*this);
  queue_->device().close_queue(queue_);
  queue_ = nullptr;
}

void IoQueue::run(storage::Io& io) {
  storage::Io* const one = &io;
  run({&one, 1});
}

void IoQueue::run(std::span<storage::Io* const> batch) {
  if (batch.empty()) return;
  IoWait wait(self(), batch.size());
  if (queue_->device().ends_at_once())
    for (const storage::Io* io : batch) turn_bytes_ += std::max(io->length_bytes, kMinBytes);
  const bool ends_at_once = queue_->device().ends_at_once() && turn_bytes_ < kTurnBytes;
  for (storage::Io* io : batch) {
    io->owner = &wait;
    io->done = ends_at_once ? nullptr : IoWait::done;
    io->error = 0;
    io->transferred_bytes = 0;
    if (!ends_at_once) waiting_.append(*io);
  }
  if (ends_at_once) return batch.size() == 1 ? queue_->run(*batch[0]) : queue_->run(batch);
  turn_bytes_ = 0;
  // They end in poll(), which runs when this task is switched out.
  static_cast<void>(block(wait, {.cancellable = false}));
}

// Joins the write `next` to `first`, which is a joined write already, or becomes one. False: they cannot be joined.
bool IoQueue::join(storage::Io*& first, storage::Io& next) {
  if (next.operation != storage::Operation::kWrite ||
      next.offset_bytes != first->offset_bytes + first->length_bytes ||
      first->length_bytes + next.length_bytes > kJoinedBytes ||
      first->segment_count + next.segment_count > kJoinedPieces)
    return false;
  Joined* joined = static_cast<Joined*>(first->done == end_joined ? first->owner : free_joined_);
  if (joined == nullptr) return false;
  const auto add = [&](storage::Io& write) {
    std::copy_n(write.segments, write.segment_count, joined->pieces + joined->io.segment_count);
    joined->io.segment_count += write.segment_count;
    joined->io.length_bytes += write.length_bytes;
    joined->writes.append(write);
  };
  if (joined == free_joined_) {
    free_joined_ = joined->next_free;
    joined->io = {.operation = storage::Operation::kWrite,
                  .offset_bytes = first->offset_bytes,
                  .segments = joined->pieces,
                  .done = end_joined,
                  .owner = joined,
                  .resumption = {}};
    add(*first);
    first = &joined->io;
  }
  add(next);
  return true;
}

void IoQueue::end_joined(storage::Io& io) {
  Joined& joined = *static_cast<Joined*>(io.owner);
  IoQueue& queue = *joined.queue;
  uint64_t left_bytes = io.transferred_bytes;
  while (!joined.writes.empty()) {
    storage::Io& write = joined.writes.take_first();
    if (write.length_bytes > left_bytes) {
      left_bytes = 0;
      queue.alone_.append(write);
      continue;
    }
    left_bytes -= write.length_bytes;
    write.transferred_bytes = write.length_bytes;
    write.done(write);
  }
  joined.next_free = queue.free_joined_;
  queue.free_joined_ = &joined;
}

size_t IoQueue::poll() {
  size_t count = 0;
  while (has_waiting() && queue_->in_flight_count() < queue_->depth()) {
    storage::Io* batch[kBatch];
    const size_t room = queue_->depth() - queue_->in_flight_count();
    size_t batch_count = 0;
    while (batch_count < kBatch && batch_count < room && !alone_.empty())
      batch[batch_count++] = &alone_.take_first();
    storage::Io** last_write = nullptr;  // of the batch, and to be joined
    while (batch_count < kBatch && batch_count < room && !waiting_.empty()) {
      storage::Io& io = waiting_.take_first();
      if (last_write != nullptr && join(*last_write, io)) continue;
      batch[batch_count] = &io;
      if (io.operation == storage::Operation::kWrite) last_write = &batch[batch_count];
      ++batch_count;
    }
    const size_t taken = queue_->submit({batch, batch_count});
    CHECK_EQ(taken, batch_count);  // there was room
    count += taken;
  }
  return count + queue_->poll();
}

base::Quiet IoQueue::quiet() {
  // Checked before asking the device, which is a system call.
  if (!has_waiting() && queue_->in_flight_count() == 0)
    return {.until_ns = base::Quiet::kForever, .descriptor = descriptor_};
  base::Quiet quiet = queue_->quiet();
  if (has_waiting() && queue_->in_flight_count() < queue_->depth()) quiet.until_ns = 0;
  return quiet;
}

base::Expected<uint64_t> IoQueue::transfer(storage::Operation operation, uint64_t offset_bytes,
                                           const void* memory, uint64_t bytes) {
  storage::PieceIo io(operation, offset_bytes, memory, bytes);
  run(io);
  if (io.error == 0) return io.transferred_bytes;
  return base::failure(io.error, operation == storage::Operation::kRead ? "cannot read " : "cannot write ",
                       queue_->device().name(), " at offset ", offset_bytes, ": ",
                       base::error_name(io.error));
}

base::Expected<uint64_t> IoQueue::read(uint64_t offset_bytes, void* to, uint64_t bytes) {
  return transfer(storage::Operation::kRead, offset_bytes, to, bytes);
}

base::Expected<uint64_t> IoQueue::write(uint64_t offset_bytes, const void* from, uint64_t bytes) {
  return transfer(storage::Operation::kWrite, offset_bytes, from, bytes);
}

base::Expected<void> IoQueue::flush() {
  storage::Io io;
  io.operation = storage::Operation::kFlush;
  run(io);
  if (io.error == 0) return {};
  return base::failure(io.error, "cannot flush ", queue_->device().name(), ": ", base::error_name(io.error));
}

}  // namespace task
