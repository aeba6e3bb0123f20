#include "pagecache/request_queue.h"

#include "sys/kernel.h"

namespace pagecache {

void RequestQueue::open(Servers& servers, uint32_t most, uint32_t node) {
  CHECK(most >= 1);
  PageCache& cache = servers.cache();
  servers_ = &servers;
  most_ = most;
  node_count_ = cache.node_count();
  node_ = node != kAnyNode ? node : cache.node_of_thread();
  if (node_ == Partition::kNoNode)
    node_ = servers.next_node_.fetch_add(1, std::memory_order_relaxed) % node_count_;
  CHECK_LT(node_, node_count_);
  session_.open(cache);
  outgoing_ = std::make_unique<Outgoing[]>(node_count_);
  replies_ = std::make_unique<Servers::Replies[]>(servers.executors_.count());
  for (uint32_t i = 0; i < servers.executors_.count(); ++i) replies_[i].queue = this;
}

void RequestQueue::close() {
  if (servers_ == nullptr) return;
  while (in_flight_count_ != 0) wait();
  session_.close();
  replies_.reset();
  outgoing_.reset();
  servers_ = nullptr;
}

size_t RequestQueue::submit(std::span<Request* const> requests) {
  size_t taken = 0;
  for (; taken < requests.size() && in_flight_count_ < most_; ++taken) {
    Request& request = *requests[taken];
    CHECK(!request.in_flight);
    request.in_flight = true;
    request.queue = this;
    ++in_flight_count_;
    const uint32_t node = node_of(request);
    if (node == node_ && try_now(request)) {
      request.result = {};
      ended_here_.append(request);
      continue;
    }
    Outgoing& message = outgoing_[node];
    message.requests.append(request);
    if (message.requests.count() == kMessageRequests) send(message);
  }
  return taken;
}

// The node of the request's first page; any node if the file has no such page.
uint32_t RequestQueue::node_of(const Request& request) const {
  if (node_count_ == 1) return 0;
  const PageCache& cache = servers_->cache();
  return cache.node_of(request.file->key(request.file->position_of(request.offset).page));
}

bool RequestQueue::try_now(Request& request) {
  return request.kind == Request::Kind::kRead
             ? session_.try_read(*request.file, request.offset, request.bytes)
             : session_.try_write(*request.file, request.offset, request.bytes);
}

void RequestQueue::send(Outgoing& message) {
  message.waited_count = 0;
  sent_count_ += message.requests.count();
  servers_->send(static_cast<uint32_t>(&message - outgoing_.get()), message.requests);
}

// Is a message that is not full to be sent after this poll?
bool RequestQueue::is_to_go(Outgoing& message, size_t ended_count, uint64_t sent_count) const {
  if (message.requests.empty()) return false;
  const bool is_alone = node_count_ == 1;
  if (ended_count == 0) return is_alone || uint64_t{message.requests.count()} * node_count_ >= sent_count;
  message.waited_count += is_alone ? 1 : ended_count;
  return message.waited_count >= (is_alone ? kMaxPolls : kMessageRequests * node_count_);
}

size_t RequestQueue::poll() {
  const size_t count = deliver();
  const uint64_t sent_count = sent_count_;
  for (uint32_t node = 0; node < node_count_; ++node)
    if (Outgoing& message = outgoing_[node]; is_to_go(message, count, sent_count)) send(message);
  return count;
}

size_t RequestQueue::wait_until(uint64_t deadline_ns) {
  if (in_flight_count_ == 0) return 0;
  if (const size_t count = poll(); count != 0) return count;
  for (;;) {
    const uint32_t key = has_ended_.prepare();
    if (const size_t count = deliver(); count != 0) {
      has_ended_.cancel();
      return count;
    }
    const uint64_t now_ns = deadline_ns == kForever ? 0 : sys::monotonic_ns();
    if (now_ns >= deadline_ns) {
      has_ended_.cancel();
      return 0;
    }
    has_ended_.wait(key, deadline_ns == kForever ? 0 : deadline_ns - now_ns);
  }
}

void RequestQueue::run(std::span<Request* const> requests) {
  std::span<Request* const> rest = requests;
  while (!(rest = rest.subspan(submit(rest))).empty()) wait();
  for (const Request* const request : requests)
    while (request->in_flight) wait();
}

size_t RequestQueue::deliver() {
  task::WorkList ended;
  {
    sys::LockGuard scope(lock_);
    ended.append(ended_);
  }
  sent_count_ -= ended.count();
  ended.append(ended_here_);
  const size_t count = ended.count();
  while (!ended.empty()) {
    auto& request = static_cast<Request&>(ended.take_first());
    request.in_flight = false;
    --in_flight_count_;
    if (request.done != nullptr) request.done(request);
  }
  return count;
}

// Wakes the thread before it releases the lock, since after that the queue may be closed.
void RequestQueue::take(task::WorkList& ended) {
  sys::LockGuard scope(lock_);
  ended_.append(ended);
  has_ended_.notify_all();
  if (event_ != nullptr) event_->set();
}

void RequestQueue::set_event(sys::Event& event) {
  sys::LockGuard scope(lock_);
  event_ = &event;
  if (!ended_.empty()) event.set();
}

}  // namespace pagecache
