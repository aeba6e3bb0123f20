// Queues: requests that are submitted, carried out at once or by the cache's threads, and end in callbacks on the thread that polls.
//
// Invariants
//  1 every slot is in the list of free ones, or under way in the RequestQueue, which takes as many as there are slots
//  2 the event, once there is one, is cleared before a poll looks at what has ended: it may be set for nothing, but is never clear while
//    a server has ended something that nobody is about to take
#include "capi/pages/objects.h"
#include "sys/kernel.h"

namespace capi::pages {
namespace {

constexpr uint32_t kRequests = 256;
constexpr uint32_t kMaxRequests = 65'536;
constexpr size_t kGroup = 64;  // requests that are handed over together
constexpr size_t kMinRequestBytes = sizeof(spillway_pagecache_request);  // of the struct's first version
static_assert(kMinRequestBytes == 64);

// The slot is free before its callback runs, which may submit again.
void finish(pagecache::Request& request) {
  auto& slot = static_cast<Slot&>(request);
  const int status = request.result ? SPILLWAY_PAGECACHE_OK : status_of(request.result.error());
  char line[sizeof(base::Error::message)] = {};
  if (!request.result) memcpy(line, request.result.error().message, sizeof line);
  const bool is_read = request.kind == pagecache::Request::Kind::kRead;
  const spillway_pagecache_result result = {
      .struct_bytes = sizeof result,
      .status = status,
      .kind = is_read ? SPILLWAY_PAGECACHE_READ : SPILLWAY_PAGECACHE_WRITE,
      .file = slot.used_file.load(std::memory_order_relaxed),
      .offset = request.offset,
      .data = request.bytes.data(),
      .bytes = request.bytes.size(),
      .error_text = line};
  const spillway_pagecache_done callback = slot.callback;
  void* const context = slot.context;
  slot.used_file.store(nullptr, std::memory_order_relaxed);
  slot.of->free_slots.append(slot);
  callback(context, &result);
}

base::Expected<void> check(const spillway_pagecache_queue& queue, const spillway_pagecache_request& request) {
  if (request.file == nullptr) return base::failure(EINVAL, "page cache: the file of a request is null");
  if (request.file->cache != queue.cache)
    return base::failure(EINVAL, "page cache: ", request.file->device->name(), " is a file of another cache");
  if (request.done == nullptr) return base::failure(EINVAL, "page cache: the callback of a request is null");
  if (request.data == nullptr && request.bytes > 0)
    return base::failure(EINVAL, "page cache: the memory of a request is null");
  if (request.kind > SPILLWAY_PAGECACHE_WRITE)
    return base::failure(EINVAL, "page cache: a request of kind ", request.kind,
                         "; give SPILLWAY_PAGECACHE_READ or _WRITE");
  if (request.kind == SPILLWAY_PAGECACHE_WRITE && request.file->is_read_only)
    return base::failure(EACCES, "page cache: ", request.file->device->name(), " was added for reading only");
  return {};
}

// REQUIRES: there is a free slot.
Slot& take_slot(spillway_pagecache_queue& queue, const spillway_pagecache_request& request) {
  auto& slot = static_cast<Slot&>(queue.free_slots.take_first());
  slot.kind = request.kind == SPILLWAY_PAGECACHE_READ ? pagecache::Request::Kind::kRead
                                                      : pagecache::Request::Kind::kWrite;
  slot.file = request.file->file;
  slot.offset = request.offset;
  slot.bytes = {static_cast<std::byte*>(request.data), request.bytes};
  slot.done = finish;
  slot.used_file.store(request.file, std::memory_order_relaxed);
  slot.callback = request.done;
  slot.context = request.context;
  return slot;
}

base::Expected<void> open_queue(spillway_pagecache& cache, const spillway_pagecache_queue_options* options,
                                spillway_pagecache_queue& queue) {
  const auto given = read_struct(options, "spillway_pagecache_queue_options");
  if (!given) return std::unexpected(given.error());
  const uint32_t requests = given->requests != 0 ? given->requests : kRequests;
  if (requests > kMaxRequests)
    return base::failure(EINVAL, "page cache: a queue of ", requests, " requests; give at most ",
                         kMaxRequests);
  if (cache.servers == nullptr)
    return base::failure(EINVAL, "page cache: it was opened without threads, and has no queues");
  queue.cache = &cache;
  queue.slots = static_cast<Slot*>(aligned_alloc(alignof(Slot), requests * sizeof(Slot)));
  if (queue.slots == nullptr)
    return base::failure(ENOMEM, "page cache: no memory for ", requests, " requests");
  queue.slot_count = requests;
  for (uint32_t i = requests; i-- > 0;) {
    Slot& slot = *new (&queue.slots[i]) Slot;
    slot.of = &queue;
    queue.free_slots.append(slot);
  }
  queue.queue.open(*cache.servers, requests);
  return {};
}

}  // namespace
}  // namespace capi::pages

extern "C" {

int spillway_pagecache_queue_open(spillway_pagecache* cache, const spillway_pagecache_queue_options* options,
                                  spillway_pagecache_queue** queue) {
  using namespace capi::pages;
  if (queue != nullptr) *queue = nullptr;
  if (cache == nullptr || queue == nullptr)
    return refuse_invalid(nullptr, "page cache: the cache or the place for a queue is null");
  auto* const own = capi::make<spillway_pagecache_queue>();
  if (own == nullptr) return refuse(nullptr, base::Error::of(ENOMEM, "page cache: no memory for a queue"));
  if (auto opened = open_queue(*cache, options, *own); !opened) {
    capi::destroy(own);
    return refuse(nullptr, opened.error());
  }
  sys::LockGuard scope(cache->lock);
  cache->queues.add(*own);
  *queue = own;
  return SPILLWAY_PAGECACHE_OK;
}

int spillway_pagecache_queue_close(spillway_pagecache_queue* queue) {
  using namespace capi::pages;
  if (queue == nullptr) return SPILLWAY_PAGECACHE_OK;
  if (queue->is_polling || queue->queue.in_flight_count() > 0)
    return refuse_in_use(nullptr, "page cache: ", queue->queue.in_flight_count(),
                         " requests of the queue have not ended, or this is a callback; poll it first");
  queue->queue.close();
  {
    sys::LockGuard scope(queue->cache->lock);
    queue->cache->queues.remove(*queue);
    queue->cache->closed_counts += queue->queue.counts();
  }
  queue->event.close();
  free(queue->slots);
  capi::destroy(queue);
  return SPILLWAY_PAGECACHE_OK;
}

int spillway_pagecache_submit(spillway_pagecache_queue* queue, const spillway_pagecache_request* requests,
                              size_t count, size_t* taken) {
  using namespace capi::pages;
  if (taken != nullptr) *taken = 0;
  if (queue == nullptr) return refuse_invalid(nullptr, "page cache: queue is null");
  if (count == 0) return SPILLWAY_PAGECACHE_OK;
  if (requests == nullptr || requests->struct_bytes < kMinRequestBytes)
    return refuse_invalid(
        nullptr, "page cache: requests are null, or struct_bytes of these is not the struct's sizeof");
  const auto* const bytes = reinterpret_cast<const char*>(requests);
  const size_t stride = requests->struct_bytes;
  int status = SPILLWAY_PAGECACHE_OK;
  for (size_t at = 0; at < count && status == SPILLWAY_PAGECACHE_OK;) {
    pagecache::Request* group[kGroup];
    size_t group_count = 0;
    for (; group_count < kGroup && at + group_count < count; ++group_count) {
      const auto request = capi::read_struct(
          reinterpret_cast<const spillway_pagecache_request*>(bytes + (at + group_count) * stride),
          "spillway_pagecache_request");
      auto checked = request ? check(*queue, *request) : std::unexpected(request.error());
      if (!checked)
        status = refuse(nullptr, checked.error());
      else if (queue->free_slots.empty())
        status = SPILLWAY_PAGECACHE_BUSY;
      if (status != SPILLWAY_PAGECACHE_OK) break;
      group[group_count] = &take_slot(*queue, *request);
    }
    CHECK_EQ(queue->queue.submit({group, group_count}), group_count);
    at += group_count;
    if (taken != nullptr) *taken = at;
  }
  return status;
}

size_t spillway_pagecache_poll(spillway_pagecache_queue* queue, int timeout_ms) {
  if (queue == nullptr || queue->is_polling) return 0;
  queue->is_polling = true;
  if (queue->event.descriptor() >= 0) queue->event.clear();
  const uint64_t deadline_ns = timeout_ms < 0 ? pagecache::RequestQueue::kForever
                                              : sys::monotonic_ns() + uint64_t{1'000'000} * timeout_ms;
  const size_t count = timeout_ms == 0 ? queue->queue.poll() : queue->queue.wait_until(deadline_ns);
  queue->is_polling = false;
  return count;
}

int spillway_pagecache_event(spillway_pagecache_queue* queue) {
  using namespace capi::pages;
  if (queue == nullptr) return refuse_invalid(nullptr, "page cache: queue is null");
  if (queue->event.descriptor() < 0) {
    if (auto opened = queue->event.open(); !opened) return refuse(nullptr, opened.error());
    queue->queue.set_event(queue->event);
  }
  return queue->event.descriptor();
}

}  // extern "C"
