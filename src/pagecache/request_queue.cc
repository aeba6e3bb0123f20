#include "pagecache/request_queue.h"

#include "sys/kernel.h"

namespace pagecache {

void RequestQueue::open(Servers& servers, uint32_t most) {
  CHECK(most >= 1);
  servers_ = &servers;
  most_ = most;
  session_.open(servers.cache());
  replies_ = std::make_unique<Servers::Replies[]>(servers.lanes_.count());
  for (uint32_t i = 0; i < servers.lanes_.count(); ++i) replies_[i].queue = this;
}

void RequestQueue::close() {
  if (servers_ == nullptr) return;
  while (in_flight_count_ != 0) wait();
  session_.close();
  replies_.reset();
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
    if (try_now(request)) {
      request.result = {};
      ended_here_.append(request);
      continue;
    }
    outgoing_.append(request);
    if (outgoing_.count() == kMessageRequests) send();
  }
  return taken;
}

bool RequestQueue::try_now(Request& request) {
  return request.kind == Request::Kind::kRead
             ? session_.try_read(*request.file, request.offset, request.bytes)
             : session_.try_write(*request.file, request.offset, request.bytes);
}

void RequestQueue::send() {
  poll_count_ = 0;
  if (!outgoing_.empty()) servers_->send(outgoing_);
}

size_t RequestQueue::poll() {
  const size_t count = deliver();
  if (count == 0 || ++poll_count_ >= kPollsMost) send();
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

// What wakes is done with the lock: once it has been given back the queue may be closed.
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
