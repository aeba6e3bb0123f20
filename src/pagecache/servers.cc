#include "pagecache/servers.h"

#include "pagecache/request_queue.h"
#include "sys/kernel.h"

namespace pagecache {
namespace {

constexpr int kMaxYields = 64;
constexpr uint32_t kMaxThreads = FlushQueue::kMaxExecutors, kMaxTasks = 1024;
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
  servers->executor_states_ = std::make_unique<Executor[]>(options.threads);
  if (auto opened = servers->executors_.open({.name = "page-cache",
                                              .executor_count = options.threads,
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
  executors_.close();
  delete this;
}

MessageCounts Servers::counts() const {
  MessageCounts all;
  for (uint32_t i = 0; i < executors_.count(); ++i) {
    const MessageCounts own = counts_of(i);
    all.requests += own.requests;
    all.request_messages += own.request_messages;
    all.reply_messages += own.reply_messages;
  }
  return all;
}

MessageCounts Servers::counts_of(uint32_t thread) const {
  const Executor& executor = executor_states_[thread];
  return {.requests = executor.requests.load(std::memory_order_relaxed),
          .request_messages = executor.request_messages.load(std::memory_order_relaxed),
          .reply_messages = executor.reply_messages.load(std::memory_order_relaxed)};
}

WriteCounts Servers::flush_counts() const {
  WriteCounts all;
  for (uint32_t i = 0; i < executors_.count(); ++i) {
    all.pages += executor_states_[i].flushed_pages.load(std::memory_order_relaxed);
    all.writes += executor_states_[i].flush_writes.load(std::memory_order_relaxed);
  }
  return all;
}

SessionCounts Servers::session_counts() const {
  SessionCounts all;
  for (uint32_t i = 0; i < executors_.count(); ++i) all += executor_states_[i].session.counts();
  return all;
}

base::Expected<void> Servers::open_executor(uint32_t index) {
  Executor& executor = executor_states_[index];
  executor.servers = this;
  auto sender = task::spawn({.name = "replies", .entry = run_sender, .argument = &executor});
  if (!sender) return std::unexpected(sender.error());
  executor.sender = *sender;
  executor.flush.kind = Request::Kind::kFlush;
  const uint32_t node = cache_.machine_node(index % cache_.node_count());
  if (node != Partition::kNoNode && executors_.count() >= cache_.node_count())
    static_cast<void>(sys::stay_on_node(node));
  executor.session.open(cache_);
  const bool balances = index == 0 && cache_.node_count() > 1;
  const bool sweeps = index == 0 && cache_.options().dirty_ns_max != 0;
  auto opened = balances ? start("balance", run_balancer, balancer_) : base::Expected<void>();
  if (opened && sweeps) opened = start("sweep", run_sweeper, sweeper_);
  if (!opened) close_executor(index);
  return opened;
}

// Starts a task of the first executor.
base::Expected<void> Servers::start(const char* name, void (*entry)(void*), task::Task*& started) {
  auto task = task::spawn({.name = name, .entry = entry, .argument = this});
  if (!task) return std::unexpected(task.error());
  started = *task;
  return {};
}

void Servers::close_executor(uint32_t index) {
  Executor& executor = executor_states_[index];
  executor.is_closing = true;
  executor.has_replies.release();
  static_cast<void>(task::join(*executor.sender));
  if (index == 0 && balancer_ != nullptr) {
    is_to_balance_.release();
    static_cast<void>(task::join(*balancer_));
  }
  if (index == 0 && sweeper_ != nullptr) {
    is_to_end_sweeps_.release();
    static_cast<void>(task::join(*sweeper_));
  }
  executor.session.close();
}

// Executor i belongs to node i % nodes.
uint32_t Servers::executor_for(uint32_t node) {
  const uint32_t nodes = cache_.node_count(), executors = executors_.count();
  if (executors <= nodes) return node % executors;
  const uint32_t count = (executors - node + nodes - 1) / nodes;
  return node + nodes * (next_executor_.fetch_add(1, std::memory_order_relaxed) % count);
}

void Servers::send(uint32_t node, task::WorkList& requests) {
  const uint32_t index = executor_for(node);
  Executor& executor = executor_states_[index];
  executor.requests.fetch_add(requests.count(), std::memory_order_relaxed);
  executor.request_messages.fetch_add(1, std::memory_order_relaxed);
  executors_.give(index, requests);
}

void Servers::leave(File& file) {
  // An executor sees this when it takes the work that it is given below.
  file.is_left_.store(true, std::memory_order_relaxed);
  cache_.balancer_.hold();
  sys::Latch left(executors_.count());
  const auto leaves = std::make_unique<Leave[]>(executors_.count());
  for (uint32_t i = 0; i < executors_.count(); ++i) {
    leaves[i].kind = Request::Kind::kLeave;
    leaves[i].file = &file;
    leaves[i].left = &left;
    executors_.give(i, leaves[i]);
  }
  left.wait();
  cache_.balancer_.release();
}

void Servers::perform(uint32_t index, task::Work& work) {
  Executor& executor = executor_states_[index];
  auto& request = static_cast<Request&>(work);
  if (request.kind == Request::Kind::kFlush) return flush(index);
  if (request.kind == Request::Kind::kLeave) {
    static_cast<void>(executor.may_flush.acquire({.cancellable = false}));
    executor.session.leave(*request.file);
    executor.may_flush.release();
    return static_cast<Leave&>(request).left->count_down();
  }
  if (request.file->is_left_.load(std::memory_order_relaxed)) take_up(*request.file);
  request.result = request.kind == Request::Kind::kRead
                       ? executor.session.read(*request.file, request.offset, request.bytes)
                       : executor.session.write(*request.file, request.offset, request.bytes);
  Replies& replies = request.queue->replies_[index];
  const bool is_listed = !replies.ended.empty();
  replies.ended.append(request);
  if (is_listed) return;
  replies.next = executor.replies;
  executor.replies = &replies;
  if (replies.next == nullptr) executor.has_replies.release();
}

void Servers::start_flush(uint32_t index) { executors_.give(index, executor_states_[index].flush); }

void Servers::start_balance() { is_to_balance_.release(); }

// Ignores errors, since balancing will be tried again.
void Servers::run_balancer(void* self) {
  auto& servers = *static_cast<Servers*>(self);
  PageCache& cache = servers.cache_;
  Executor& executor = servers.executor_states_[0];
  std::array<uint64_t, sys::kMaxNodes> memory;
  const std::span misses = std::span(memory).first(cache.node_count());
  for (;;) {
    static_cast<void>(servers.is_to_balance_.acquire({.cancellable = false}));
    if (executor.is_closing) return;
    if (cache.balancer_.begin(misses)) static_cast<void>(executor.session.balance(misses));
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
    if (servers.cache_.flushes_.is_served_by(servers)) servers.flush_aged(servers.executor_states_[0]);
  }
}

// A limited number of pages at a time, so that a file which is left meanwhile is not touched any more.
void Servers::flush_aged(Executor& executor) {
  executor.session.for_aged_pages([&](std::span<const PageKey> keys) {
    static_cast<void>(executor.may_flush.acquire({.cancellable = false}));
    count_flushed(executor, executor.session.flush({keys.begin(), keys.end()}));
    executor.may_flush.release();
    return !executor.is_closing;
  });
}

// Flushes one batch, and queues the next one for the executor, behind the requests that are waiting.
void Servers::flush(uint32_t index) {
  Executor& executor = executor_states_[index];
  std::array<PageSet*, FlushQueue::kBatchSets> sets;
  const size_t count = cache_.flushes_.take(index, sets);
  if (count == 0) return;
  static_cast<void>(executor.may_flush.acquire({.cancellable = false}));
  const WriteCounts written = executor.session.flush(std::span(sets).first(count));
  executor.may_flush.release();
  count_flushed(executor, written);
  start_flush(index);
}

void Servers::count_flushed(Executor& executor, const WriteCounts& written) {
  base::increase(executor.flushed_pages, written.pages);
  base::increase(executor.flush_writes, written.writes);
}

// The sender runs when it has been woken and all tasks that were ready before it have run, and sends all requests that these have ended. With
// several nodes it also waits for those that I/O ends in the next turn of the executor, and for those of a message whose requests are still
// being passed to tasks.
void Servers::run_sender(void* argument) {
  Executor& executor = *static_cast<Executor*>(argument);
  Servers& servers = *executor.servers;
  const auto index = static_cast<uint32_t>(&executor - servers.executor_states_.get());
  for (;;) {
    static_cast<void>(executor.has_replies.acquire({.cancellable = false}));
    if (executor.is_closing) return;
    if (servers.cache_.node_count() > 1) {
      task::yield();
      for (int i = 0; i < kMaxYields && servers.executors_.is_to_begin(index); ++i) task::yield();
    }
    while (executor.replies != nullptr) {
      Replies& replies = *executor.replies;
      executor.replies = replies.next;
      task::WorkList ended;
      ended.append(replies.ended);
      base::increase(executor.reply_messages, uint64_t{1});
      replies.queue->take(ended);  // the queue may be gone afterwards
    }
  }
}

}  // namespace pagecache
