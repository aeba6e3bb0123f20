// Queues: requests that are submitted, carried out by workers, and end in callbacks on a thread that polls.
//
//   FREE ──submit──► UNDER WAY ──ended (a worker)──► DONE ──poll──► FREE, and the callback runs
//
// Invariants
//  1 Every slot is free, under way, or in the list `done`. This changes under the queue's lock
//  2 The event is set when `done` ceases to be empty, and when a poll leaves something in it. A poll clears it before it looks. So it may be set while
//    `done` is empty, but it is not clear while there is something in `done` that nobody is about to take
//  3 Polls do not sleep on the event, which others clear, but on `changed`: they are told of the same, and that nothing is under way any more
#include <time.h>

#include <algorithm>

#include "capi/kv/workers.h"
#include "sys/events.h"

namespace capi {
namespace {

constexpr uint32_t kRequests = 256;
constexpr uint32_t kMaxRequests = 65'536;
constexpr uint32_t kOutstanding = 64;
constexpr size_t kMaxPieces = 16;

uint64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct Slot : Request {
  spillway_kv_queue* queue = nullptr;
  spillway_kv_done done = nullptr;
  void* context = nullptr;
  bool owns_buffer = false;  // the buffer of this get is the library's
  iovec own_pieces[kMaxPieces];
};

}  // namespace
}  // namespace capi

struct spillway_kv_queue {
  spillway_kv* store = nullptr;
  capi::Workers workers;
  sys::Event event;         // for the program's own poll() and epoll
  sys::EventCount changed;  // for polls that wait
  capi::Slot* slots = nullptr;
  uint32_t slot_count = 0;
  sys::Mutex lock;  // guards what follows
  task::WorkList free_slots;
  task::WorkList done;
  uint32_t pending_count = 0;     // requests that are under way or done
  uint32_t unfinished_count = 0;  // these, and those whose callbacks are running

  capi::Slot* take();
  void put_back(capi::Slot& slot);
  void end_pending();
  void tell_done();
  capi::Slot* take_done();
  capi::Slot* wait_for_done(uint64_t until_ns);
  bool is_pending();
  static void ended(capi::Request& request);
};

// A free slot; null: none.
capi::Slot* spillway_kv_queue::take() {
  sys::LockGuard scope(lock);
  if (free_slots.empty()) return nullptr;
  auto& slot = static_cast<capi::Slot&>(free_slots.take_first());
  ++pending_count;
  ++unfinished_count;
  return &slot;
}

// Gives back a slot whose request was not submitted after all.
void spillway_kv_queue::put_back(capi::Slot& slot) {
  sys::LockGuard scope(lock);
  free_slots.append(slot);
  end_pending();
  --unfinished_count;
}

// One request fewer is under way or done. REQUIRES: the lock.
void spillway_kv_queue::end_pending() {
  if (--pending_count == 0) changed.notify_all();
}

// Reports that there is something in `done`.
void spillway_kv_queue::tell_done() {
  event.set();
  changed.notify_all();
}

void spillway_kv_queue::ended(capi::Request& request) {
  spillway_kv_queue& queue = *static_cast<capi::Slot&>(request).queue;
  bool was_empty = false;
  {
    sys::LockGuard scope(queue.lock);
    was_empty = queue.done.empty();
    queue.done.append(request);
  }
  if (was_empty) queue.tell_done();  // the queue exists as long as its workers, of which this is one
}

// The first slot that is done; null: none.
capi::Slot* spillway_kv_queue::take_done() {
  sys::LockGuard scope(lock);
  if (done.empty()) return nullptr;
  auto& slot = static_cast<capi::Slot&>(done.take_first());
  end_pending();
  return &slot;
}

bool spillway_kv_queue::is_pending() {
  sys::LockGuard scope(lock);
  return pending_count > 0;
}

// The same, but waits for one until then, unless nothing is under way.
capi::Slot* spillway_kv_queue::wait_for_done(uint64_t until_ns) {
  for (;;) {
    const uint32_t key = changed.prepare();
    event.clear();
    capi::Slot* const slot = take_done();
    const uint64_t now = capi::now_ns();
    if (slot != nullptr || now >= until_ns || !is_pending()) {
      changed.cancel();
      return slot;
    }
    changed.wait(key, until_ns == base::Quiet::kForever ? 0 : until_ns - now);
  }
}

namespace capi {
namespace {

base::Expected<void> open_queue(spillway_kv& store, const spillway_kv_queue_options* options,
                                spillway_kv_queue& queue) {
  auto given = read_struct(options, "spillway_kv_queue_options");
  if (!given) return std::unexpected(given.error());
  const uint32_t requests = given->requests != 0 ? given->requests : kRequests;
  const uint32_t outstanding =
      given->outstanding != 0 ? given->outstanding : std::min(kOutstanding, requests);
  const uint32_t threads = given->threads != 0 ? given->threads : 1;
  if (requests > kMaxRequests || outstanding > Workers::kMaxTasks || threads > Workers::kMaxThreads)
    return base::failure(EINVAL, "store: a queue of ", requests, " requests, ", outstanding,
                         " outstanding, by ", threads, " threads; give at most ", kMaxRequests, ", ",
                         Workers::kMaxTasks, " and ", Workers::kMaxThreads);
  queue.store = &store;
  if (auto event = queue.event.open(); !event) return event;
  queue.slots = static_cast<Slot*>(malloc(requests * sizeof(Slot)));
  if (queue.slots == nullptr) return base::failure(ENOMEM, "store: no memory for ", requests, " requests");
  queue.slot_count = requests;
  for (uint32_t i = requests; i-- > 0;) {
    Slot& slot = *new (&queue.slots[i]) Slot;
    slot.queue = &queue;
    queue.free_slots.append(slot);
  }
  return queue.workers.open(*store.store, threads, outstanding);
}

void release(spillway_kv_queue& queue) {
  free(queue.slots);
  queue.event.close();
  destroy(&queue);
}

// Submits a request of any kind.
int submit(spillway_kv_queue* queue, Request::Kind kind, const void* key, size_t key_bytes,
           const iovec* pieces, size_t piece_count, const spillway_kv_change_options* options, void* buffer,
           size_t buffer_bytes, spillway_kv_done done, void* context) {
  if (queue == nullptr || done == nullptr)
    return refuse_invalid(nullptr, "store: the queue or the callback is null");
  if (piece_count > kMaxPieces)
    return refuse_invalid(nullptr, "store: a value of ", piece_count, " pieces; give a queue ", kMaxPieces,
                          " or fewer");
  Slot* const slot = queue->take();
  if (slot == nullptr) return SPILLWAY_KV_BUSY;
  slot->kind = kind;
  auto checked = set_key(*slot, key, key_bytes);
  if (checked && kind == Request::Kind::kPut) checked = set_pieces(*slot, pieces, piece_count);
  if (checked && kind != Request::Kind::kGet) checked = set_options(*slot, options);
  if (!checked) {
    queue->put_back(*slot);
    return refuse(nullptr, checked.error());
  }
  std::copy_n(pieces, piece_count, slot->own_pieces);
  slot->pieces = {slot->own_pieces, piece_count};
  slot->buffer = buffer;
  slot->buffer_bytes = buffer != nullptr ? buffer_bytes : kAnySize;
  slot->owns_buffer = kind == Request::Kind::kGet && buffer == nullptr;
  slot->done = done;
  slot->context = context;
  slot->ended = spillway_kv_queue::ended;
  queue->workers.submit(*slot);
  return SPILLWAY_KV_OK;
}

// Runs the request's callback. Its slot is free before that, since the callback may submit.
void finish(spillway_kv_queue& queue, Slot& slot) {
  spillway_kv_result result = {};
  result.struct_bytes = sizeof result;
  result.status = slot.value.status;
  result.value = slot.value;
  result.value.struct_bytes = sizeof result.value;
  char line[sizeof slot.error.message] = {};
  if (result.status < 0) memcpy(line, slot.error.message, sizeof line);
  result.error_text = line;
  void* const own_memory = slot.owns_buffer ? slot.buffer : nullptr;
  const spillway_kv_done done = slot.done;
  void* const context = slot.context;
  {
    sys::LockGuard scope(queue.lock);
    queue.free_slots.append(slot);
  }
  done(context, &result);
  free(own_memory);
  sys::LockGuard scope(queue.lock);
  --queue.unfinished_count;
}

}  // namespace
}  // namespace capi

extern "C" {

int spillway_kv_queue_open(spillway_kv* store, const spillway_kv_queue_options* options,
                           spillway_kv_queue** queue) {
  if (queue != nullptr) *queue = nullptr;
  if (store == nullptr || queue == nullptr)
    return capi::refuse_invalid(nullptr, "store: the store or the place for a queue is null");
  auto* const own = capi::make<spillway_kv_queue>();
  if (own == nullptr) return capi::refuse(nullptr, base::Error::of(ENOMEM, "store: no memory for a queue"));
  if (auto opened = capi::open_queue(*store, options, *own); !opened) {
    capi::release(*own);
    return capi::refuse(nullptr, opened.error());
  }
  store->add_user();
  *queue = own;
  return SPILLWAY_KV_OK;
}

int spillway_kv_queue_close(spillway_kv_queue* queue) {
  if (queue == nullptr) return SPILLWAY_KV_OK;
  {
    sys::LockGuard scope(queue->lock);
    if (queue->unfinished_count > 0)
      return capi::refuse(nullptr, base::Error::of(EBUSY, "store: ", queue->unfinished_count,
                                                   " requests of the queue have not ended; poll it first"));
  }
  queue->workers.close();
  queue->store->remove_user();
  capi::release(*queue);
  return SPILLWAY_KV_OK;
}

int spillway_kv_submit_get(spillway_kv_queue* queue, const void* key, size_t key_bytes, void* buffer,
                           size_t buffer_bytes, spillway_kv_done done, void* context) {
  return capi::submit(queue, capi::Request::Kind::kGet, key, key_bytes, nullptr, 0, nullptr, buffer,
                      buffer_bytes, done, context);
}

int spillway_kv_submit_put(spillway_kv_queue* queue, const void* key, size_t key_bytes, const iovec* value,
                           size_t value_count, const spillway_kv_change_options* options,
                           spillway_kv_done done, void* context) {
  return capi::submit(queue, capi::Request::Kind::kPut, key, key_bytes, value, value_count, options, nullptr,
                      0, done, context);
}

int spillway_kv_submit_remove(spillway_kv_queue* queue, const void* key, size_t key_bytes,
                              const spillway_kv_change_options* options, spillway_kv_done done,
                              void* context) {
  return capi::submit(queue, capi::Request::Kind::kRemove, key, key_bytes, nullptr, 0, options, nullptr, 0,
                      done, context);
}

size_t spillway_kv_poll(spillway_kv_queue* queue, size_t most, int timeout_ms) {
  if (queue == nullptr) return 0;
  uint64_t until_ns = 0;
  if (timeout_ms < 0) until_ns = base::Quiet::kForever;
  if (timeout_ms > 0) until_ns = capi::now_ns() + static_cast<uint64_t>(timeout_ms) * 1'000'000;
  // Callbacks may submit requests that end before they return: the limit ends this loop all the same.
  if (most == 0 || most > queue->slot_count) most = queue->slot_count;
  size_t count = 0;
  for (capi::Slot* slot = queue->wait_for_done(until_ns); slot != nullptr; slot = queue->take_done()) {
    capi::finish(*queue, *slot);
    if (++count == most) break;
  }
  if (count < most) return count;
  sys::LockGuard scope(queue->lock);
  if (!queue->done.empty()) queue->tell_done();
  return count;
}

int spillway_kv_event(const spillway_kv_queue* queue) {
  if (queue == nullptr) return capi::refuse_invalid(nullptr, "store: queue is null");
  return queue->event.descriptor();
}

}  // extern "C"
