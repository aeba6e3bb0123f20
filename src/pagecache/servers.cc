#include "pagecache/servers.h"

#include "pagecache/request_queue.h"
#include "sys/kernel.h"

namespace pagecache {
namespace {

constexpr int kMaxYields = 64;
constexpr uint32_t kMaxThreads = FlushQueue::kMaxLanes, kMaxTasks = 1024;
// Mostly address space: the untouched part of a task's stack takes no memory. With a sanitizer, stack frames are several times as large.
constexpr size_t kStackBytes = 256 << 10;

}  // namespace

base::Expected<Servers*> Servers::open(PageCache& cache, const ServersOptions& options) {
  if (options.threads < 1 || options.threads > kMaxThreads || options.tasks_each < 1 ||
      options.tasks_each > kMaxTasks)
    return base::failure(EINVAL, "page cache: servers are 1 to ", kMaxThreads, " threads with 1 to ",
                         kMaxTasks, " requests at a time, not ", options.threads, " with ",
                         options.tasks_each);
  std::unique_ptr<Servers> servers(new Servers(cache));
  servers->lane_states_ = std::make_unique<Lane[]>(options.threads);
  if (auto opened = servers->lanes_.open({.name = "page-cache",
                                          .lane_count = options.threads,
                                          .tasks_each = options.tasks_each,
                                          .stack_bytes = kStackBytes},
                                         *servers);
      !opened)
    return std::unexpected(opened.error());
  servers->flushes_ = cache.flushes_.open(*servers, options.threads);
  servers->balances_ = cache.node_count() > 1 && cache.options().balances_nodes &&
                       cache.balancer_.open(*servers, cache.frame_count() / cache.node_count());
  return servers.release();
}

void Servers::close() {
  if (flushes_) cache_.flushes_.close();
  if (balances_) cache_.balancer_.close();
  lanes_.close();
  delete this;
}

MessageCounts Servers::counts() const {
  MessageCounts all;
  for (uint32_t i = 0; i < lanes_.count(); ++i) {
    const MessageCounts own = counts_of(i);
    all.requests += own.requests;
    all.request_messages += own.request_messages;
    all.reply_messages += own.reply_messages;
  }
  return all;
}

MessageCounts Servers::counts_of(uint32_t thread) const {
  const Lane& lane = lane_states_[thread];
  return {.requests = lane.requests.load(std::memory_order_relaxed),
          .request_messages = lane.request_messages.load(std::memory_order_relaxed),
          .reply_messages = lane.reply_messages.load(std::memory_order_relaxed)};
}

WriteCounts Servers::flush_counts() const {
  WriteCounts all;
  for (uint32_t i = 0; i < lanes_.count(); ++i) {
    all.pages += lane_states_[i].flushed_pages.load(std::memory_order_relaxed);
    all.writes += lane_states_[i].flush_writes.load(std::memory_order_relaxed);
  }
  return all;
}

SessionCounts Servers::session_counts() const {
  SessionCounts all;
  for (uint32_t i = 0; i < lanes_.count(); ++i) all += lane_states_[i].session.counts();
  return all;
}

base::Expected<void> Servers::open_lane(uint32_t index) {
  Lane& lane = lane_states_[index];
  lane.servers = this;
  auto sender = task::spawn({.name = "replies", .entry = run_sender, .argument = &lane});
  if (!sender) return std::unexpected(sender.error());
  lane.sender = *sender;
  lane.flush.kind = Request::Kind::kFlush;
  const uint32_t node = cache_.machine_node(index % cache_.node_count());
  if (node != Partition::kNoNode && lanes_.count() >= cache_.node_count())
    static_cast<void>(sys::stay_on_node(node));
  lane.session.open(cache_);
  const bool balances = index == 0 && cache_.node_count() > 1;
  const bool sweeps = index == 0 && cache_.options().dirty_ns_max != 0;
  auto opened = balances ? start("balance", run_balancer, balancer_) : base::Expected<void>();
  if (opened && sweeps) opened = start("sweep", run_sweeper, sweeper_);
  if (!opened) close_lane(index);
  return opened;
}

// Starts a task of the first lane.
base::Expected<void> Servers::start(const char* name, void (*entry)(void*), task::Task*& started) {
  auto task = task::spawn({.name = name, .entry = entry, .argument = this});
  if (!task) return std::unexpected(task.error());
  started = *task;
  return {};
}

void Servers::close_lane(uint32_t index) {
  Lane& lane = lane_states_[index];
  lane.is_closing = true;
  lane.has_replies.release();
  static_cast<void>(task::join(*lane.sender));
  if (index == 0 && balancer_ != nullptr) {
    is_to_balance_.release();
    static_cast<void>(task::join(*balancer_));
  }
  if (index == 0 && sweeper_ != nullptr) {
    is_to_end_sweeps_.release();
    static_cast<void>(task::join(*sweeper_));
  }
  lane.session.close();
}

// Lane i belongs to node i % nodes.
uint32_t Servers::lane_for(uint32_t node) {
  const uint32_t nodes = cache_.node_count(), lanes = lanes_.count();
  if (lanes <= nodes) return node % lanes;
  const uint32_t count = (lanes - node + nodes - 1) / nodes;
  return node + nodes * (next_lane_.fetch_add(1, std::memory_order_relaxed) % count);
}

void Servers::send(uint32_t node, task::WorkList& requests) {
  const uint32_t index = lane_for(node);
  Lane& lane = lane_states_[index];
  lane.requests.fetch_add(requests.count(), std::memory_order_relaxed);
  lane.request_messages.fetch_add(1, std::memory_order_relaxed);
  lanes_.give(index, requests);
}

void Servers::leave(File& file) {
  // A lane sees this when it takes the work that it is given below.
  file.is_left_.store(true, std::memory_order_relaxed);
  cache_.balancer_.hold();
  sys::Latch left(lanes_.count());
  const auto leaves = std::make_unique<Leave[]>(lanes_.count());
  for (uint32_t i = 0; i < lanes_.count(); ++i) {
    leaves[i].kind = Request::Kind::kLeave;
    leaves[i].file = &file;
    leaves[i].left = &left;
    lanes_.give(i, leaves[i]);
  }
  left.wait();
  cache_.balancer_.release();
}

void Servers::perform(uint32_t index, task::Work& work) {
  Lane& lane = lane_states_[index];
  auto& request = static_cast<Request&>(work);
  if (request.kind == Request::Kind::kFlush) return flush(index);
  if (request.kind == Request::Kind::kLeave) {
    static_cast<void>(lane.may_flush.acquire({.cancellable = false}));
    lane.session.leave(*request.file);
    lane.may_flush.release();
    return static_cast<Leave&>(request).left->count_down();
  }
  if (request.file->is_left_.load(std::memory_order_relaxed)) take_up(*request.file);
  request.result = request.kind == Request::Kind::kRead
                       ? lane.session.read(*request.file, request.offset, request.bytes)
                       : lane.session.write(*request.file, request.offset, request.bytes);
  Replies& replies = request.queue->replies_[index];
  const bool is_listed = !replies.ended.empty();
  replies.ended.append(request);
  if (is_listed) return;
  replies.next = lane.replies;
  lane.replies = &replies;
  if (replies.next == nullptr) lane.has_replies.release();
}

void Servers::start_flush(uint32_t index) { lanes_.give(index, lane_states_[index].flush); }

void Servers::start_balance() { is_to_balance_.release(); }

// Ignores errors, since balancing will be tried again.
void Servers::run_balancer(void* self) {
  auto& servers = *static_cast<Servers*>(self);
  PageCache& cache = servers.cache_;
  Lane& lane = servers.lane_states_[0];
  std::array<uint64_t, sys::kMaxNodes> memory;
  const std::span misses = std::span(memory).first(cache.node_count());
  for (;;) {
    static_cast<void>(servers.is_to_balance_.acquire({.cancellable = false}));
    if (lane.is_closing) return;
    if (cache.balancer_.begin(misses)) static_cast<void>(lane.session.balance(misses));
    cache.balancer_.end(cache.frame_count() / cache.node_count());
  }
}

// A page that two consecutive sweeps find dirty has been dirty for at least half of dirty_ns_max, and at most all of it, unless the sweeps take
// longer.
void Servers::run_sweeper(void* self) {
  auto& servers = *static_cast<Servers*>(self);
  const uint64_t period_ns = servers.cache_.options().dirty_ns_max / 2;
  uint64_t next_ns = sys::monotonic_ns();
  for (;;) {
    next_ns = std::max(next_ns + period_ns, sys::monotonic_ns());
    if (servers.is_to_end_sweeps_.acquire({.deadline_ns = next_ns, .cancellable = false}) ==
        task::Woken::kNotified)
      return;
    if (servers.cache_.flushes_.is_served_by(servers)) servers.flush_aged(servers.lane_states_[0]);
  }
}

// A limited number of pages at a time, so that a file which is left meanwhile is not touched any more.
void Servers::flush_aged(Lane& lane) {
  lane.session.for_aged_pages([&](std::span<const PageKey> keys) {
    static_cast<void>(lane.may_flush.acquire({.cancellable = false}));
    count_flushed(lane, lane.session.flush({keys.begin(), keys.end()}));
    lane.may_flush.release();
    return !lane.is_closing;
  });
}

// Flushes one batch, and queues the next one for the lane, behind the requests that are waiting.
void Servers::flush(uint32_t index) {
  Lane& lane = lane_states_[index];
  std::array<PageSet*, FlushQueue::kBatchSets> sets;
  const size_t count = cache_.flushes_.take(index, sets);
  if (count == 0) return;
  static_cast<void>(lane.may_flush.acquire({.cancellable = false}));
  const WriteCounts written = lane.session.flush(std::span(sets).first(count));
  lane.may_flush.release();
  count_flushed(lane, written);
  start_flush(index);
}

void Servers::count_flushed(Lane& lane, const WriteCounts& written) {
  base::increase(lane.flushed_pages, written.pages);
  base::increase(lane.flush_writes, written.writes);
}

// The sender runs when it has been woken and all tasks that were ready before it have run, and sends all requests that these have ended. With
// several nodes it also waits for those that I/O ends in the next turn of the lane, and for those of a message whose requests are still
// being passed to tasks.
void Servers::run_sender(void* argument) {
  Lane& lane = *static_cast<Lane*>(argument);
  Servers& servers = *lane.servers;
  const auto index = static_cast<uint32_t>(&lane - servers.lane_states_.get());
  for (;;) {
    static_cast<void>(lane.has_replies.acquire({.cancellable = false}));
    if (lane.is_closing) return;
    if (servers.cache_.node_count() > 1) {
      task::yield();
      for (int i = 0; i < kMaxYields && servers.lanes_.is_to_begin(index); ++i) task::yield();
    }
    while (lane.replies != nullptr) {
      Replies& replies = *lane.replies;
      lane.replies = replies.next;
      task::WorkList ended;
      ended.append(replies.ended);
      base::increase(lane.reply_messages, uint64_t{1});
      replies.queue->take(ended);  // the queue may be gone afterwards
    }
  }
}

}  // namespace pagecache
