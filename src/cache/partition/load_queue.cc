#include "cache/partition/load_queue.h"

#include <new>

#include "cache/partition/partition.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace cache {
namespace {

static_assert(sizeof(LoadQueue) % alignof(BegunLoad) == 0);
constexpr uint64_t kQueueBytes =
    base::round_up(sizeof(LoadQueue) + LoadQueue::kDepth * sizeof(BegunLoad), base::kOsPageBytes);

// How long a thread that waits for reads from origins sleeps at most.
constexpr uint64_t kOriginsPollNs = 50'000;

}  // namespace

BegunLoad* LoadQueue::take() {
  sys::LockGuard guard(mutex_);
  if (storage_.is_full() || origins_.is_full()) return nullptr;
  BegunLoad* load = free_;
  if (load != nullptr) {
    free_ = load->next;
  } else {
    if (used_count_ == kDepth) return nullptr;
    load = new (&loads()[used_count_++]) BegunLoad;
    load->queue = this;
  }
  all_->begun_count_.fetch_add(1, std::memory_order_seq_cst);
  under_way_count_.fetch_add(1, std::memory_order_relaxed);
  load->begun_ns = 0;
  return load;
}

void LoadQueue::give_back(BegunLoad& load) {
  sys::LockGuard guard(mutex_);
  load.next = free_;
  free_ = &load;
  under_way_count_.fetch_sub(1, std::memory_order_relaxed);
  all_->begun_count_.fetch_sub(1, std::memory_order_seq_cst);
}

void LoadQueue::submit(BegunLoad& load) {
  load.io.owner = &load;
  load.io.done = end;
  ++submitted_count_;
  sys::LockGuard guard(mutex_);
  Channel& channel = load.is_from_origin() ? origins_ : storage_;
  channel.gathered.append(load.io);
  if (channel.gathered.count() >= kBatch) channel.submit_gathered();
}

void LoadQueue::flush() {
  sys::LockGuard guard(mutex_);
  storage_.submit_gathered();
  origins_.submit_gathered();
}

// REQUIRES: mutex_ of the channel's LoadQueue, as for the next two.
void LoadQueue::Channel::submit_gathered() {
  while (!gathered.empty()) {
    storage::Io* batch[kBatch];
    size_t count = 0;
    while (count < kBatch && !gathered.empty()) batch[count++] = &gathered.take_first();
    CHECK_EQ(queue->submit({batch, count}), count);  // there was room when each was taken
  }
}

size_t LoadQueue::Channel::poll() {
  if (queue == nullptr) return 0;
  submit_gathered();
  return queue->poll();
}

void LoadQueue::Channel::close() {
  if (queue != nullptr) queue->device().close_queue(queue);
}

// Called by whoever polls, under mutex_.
void LoadQueue::end(storage::Io& io) {
  BegunLoad& load = *static_cast<BegunLoad*>(io.owner);
  LoadQueue& queue = *load.queue;
  load.partition->end_load(load);
  void (*const ended)(void*) = load.ended;
  void* const context = load.context;
  if (load.begun_ns != 0) queue.note_latency(sys::monotonic_ns() - load.begun_ns);
  load.next = queue.free_;
  queue.free_ = &load;
  queue.under_way_count_.fetch_sub(1, std::memory_order_relaxed);
  queue.all_->begun_count_.fetch_sub(1, std::memory_order_seq_cst);
  if (ended != nullptr) ended(context);
}

// About the mean of the last 16. Relaxed: others use it for estimates only.
void LoadQueue::note_latency(uint64_t ns) {
  const uint64_t before = latency_ns_.load(std::memory_order_relaxed);
  latency_ns_.store(before == 0 ? ns : before - before / 16 + ns / 16, std::memory_order_relaxed);
}

size_t LoadQueue::poll() {
  if (!mutex_.try_lock()) return 0;
  const size_t count = storage_.poll() + origins_.poll();
  mutex_.unlock();
  return count;
}

base::Quiet LoadQueue::quiet() {
  sys::LockGuard guard(mutex_);
  base::Quiet quiet = storage_.queue->quiet();
  if (!storage_.gathered.empty() || !origins_.gathered.empty()) quiet.until_ns = 0;
  // A thread can sleep on only one descriptor, which is that of storage.
  if (origins_.queue != nullptr && origins_.queue->in_flight_count() > 0)
    quiet.no_longer_than(sys::monotonic_ns() + kOriginsPollNs);
  return quiet;
}

base::Expected<LoadQueue*> LoadQueues::open(storage::Device& device, storage::Device* origins,
                                            bool undisturbed) {
  sys::LockGuard guard(mutex_);
  auto queue = find_or_open(device, undisturbed);
  if (!queue || origins == nullptr || (*queue)->origins_device_ == origins) return queue;
  auto opened = origins->open_queue(LoadQueue::kDepth, {.sleeps = false, .undisturbed = true});
  sys::LockGuard nobody_polls((*queue)->mutex_);
  CHECK((*queue)->origins_device_ == nullptr);
  (*queue)->origins_device_ = origins;
  (*queue)->origins_.queue = opened ? *opened : nullptr;
  return queue;
}

// REQUIRES: mutex_.
base::Expected<LoadQueue*> LoadQueues::find_or_open(storage::Device& device, bool undisturbed) {
  for (LoadQueue* queue = first_.load(std::memory_order_relaxed); queue != nullptr; queue = queue->next_) {
    if (queue->is_taken_ || queue->undisturbed_ != undisturbed) continue;
    queue->is_taken_ = true;
    return queue;
  }
  auto memory = sys::map_anonymous(kQueueBytes, "a queue of loads");
  if (!memory) return std::unexpected(memory.error());
  auto opened = device.open_queue(LoadQueue::kDepth, {.sleeps = !undisturbed, .undisturbed = undisturbed});
  if (!opened) {
    sys::unmap(*memory, kQueueBytes);
    return std::unexpected(opened.error());
  }
  auto* const queue = new (*memory) LoadQueue;
  queue->all_ = this;
  queue->storage_.queue = *opened;
  queue->is_taken_ = true;
  queue->undisturbed_ = undisturbed;
  queue->next_ = first_.load(std::memory_order_relaxed);
  first_.store(queue, std::memory_order_release);  // pairs with poll()
  return queue;
}

void LoadQueues::close(LoadQueue& queue) {
  sys::LockGuard guard(mutex_);
  sys::LockGuard nobody_polls(queue.mutex_);
  for (const LoadQueue::Channel* channel : {&queue.storage_, &queue.origins_})
    if (channel->queue != nullptr)
      CHECK_EQ(channel->queue->in_flight_count() + channel->gathered.count(), 0u);
  queue.is_taken_ = false;
}

void LoadQueues::leave(LoadQueue& queue) {
  sys::LockGuard guard(mutex_);
  queue.is_taken_ = false;
}

void LoadQueues::destroy() {
  for (LoadQueue* queue = first_.load(std::memory_order_relaxed); queue != nullptr;) {
    LoadQueue* const next = queue->next_;
    queue->storage_.close();
    queue->origins_.close();
    sys::unmap(queue, kQueueBytes);
    queue = next;
  }
  first_.store(nullptr, std::memory_order_relaxed);
}

size_t LoadQueues::poll() {
  if (!has_begun()) return 0;
  size_t count = 0;
  for (LoadQueue* queue = first_.load(std::memory_order_acquire); queue != nullptr; queue = queue->next_)
    count += queue->poll();
  return count;
}

void LoadQueues::forget() {
  new (&mutex_) sys::Mutex;
  LoadQueue* queue = first_.load(std::memory_order_relaxed);
  first_.store(nullptr, std::memory_order_relaxed);
  begun_count_.store(0, std::memory_order_relaxed);
  while (queue != nullptr) {
    LoadQueue* const next = queue->next_;
    // Storage queues are not inherited. One with something in flight can only be forgotten.
    bool all_closed = true;
    for (LoadQueue::Channel* channel : {&queue->storage_, &queue->origins_}) {
      if (channel->queue == nullptr || channel->queue->in_flight_count() == 0)
        channel->close();
      else
        all_closed = false;
    }
    if (all_closed) sys::unmap(queue, kQueueBytes);
    queue = next;
  }
}

}  // namespace cache
