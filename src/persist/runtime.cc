#include "persist/runtime.h"

#include <sys/mman.h>

#include <new>

#include "base/log.h"
#include "sys/barrier.h"
#include "sys/kernel.h"
#include "sys/memory.h"
#include "sys/persistent.h"
#include "sys/threads.h"

namespace persist {

void Runtime::configure(const Settings& settings) {
  settings_ = settings;
  has_barrier_ = sys::register_barrier().has_value();
}

base::Expected<void> Runtime::add_domain(const Domain& domain) {
  // Started here, and not when the first thread hands lines over: that may be in a signal handler, which must not start threads. Without flushers, the
  // ways that need none remain.
  const bool may_need_flushers = settings_.way != Way::kInline && settings_.way != Way::kEpoch;
  if (domain.kind == DomainKind::kDevice && may_need_flushers)
    (void)flushers_.start(*this, settings_.flushers);
  sys::QuietLockGuard scope(lock_);
  auto added = domains_.add(domain);
  if (added) close_all();
  return added;
}

base::Expected<bool> Runtime::remove_domain(uintptr_t begin, uintptr_t end) {
  sys::QuietLockGuard scope(lock_);
  end = domains_.removal_end(begin, end);
  Domain removed[Domains::kMaxDomains];
  size_t count = 0;
  domains_.visit([&](Domain domain) {
    domain.begin = std::max(domain.begin, begin);
    domain.end = std::min(domain.end, end);
    if (domain.begin < domain.end) removed[count++] = domain;
  });
  if (count == 0) return false;
  base::Expected<bool> result = true;
  // Threads come first: a handler's fence may wait for flushers while its thread is inside its gate.
  visit_threads([](Thread& thread) { thread.gate().begin_shut(); });
  sys::pass_seldom(has_barrier_);
  visit_threads([](Thread& thread) { thread.gate().end_shut(); });
  flushers_.while_shut([&] {
    domains_.remove(begin, end);
    close_all();
    for (size_t i = 0; i < count; ++i)
      if (auto executed = execute_for(removed[i]); !executed) result = std::unexpected(executed.error());
    sys::fence_stores();
  });
  visit_threads([](Thread& thread) { thread.gate().open(); });
  return result;
}

// Makes durable all that was flushed there.
base::Expected<void> Runtime::execute_for(const Domain& removed) {
  if (removed.kind == DomainKind::kFile)
    return write_range(file_failures_, removed, removed.begin, removed.end);
  visit_threads([&](Thread& thread) { thread.execute_for(removed); });
  if (removed.kind == DomainKind::kDevice) removed.device->fence();
  return {};
}

// As direct.h says. The variable of a thread that has ended without leaving does not exist any more.
void Runtime::close_all() {
  sys::pass_seldom(has_barrier_);
  if (!has_barrier_) return;  // nothing is open
  visit_threads([](Thread& thread) {
    if (!sys::has_ended(thread.id())) thread.direct().close();
  });
  sys::pass_seldom(has_barrier_);
}

base::Expected<void> Runtime::write_files() {
  base::Expected<void> result;
  domains_.visit([&](const Domain& domain) {
    if (domain.kind != DomainKind::kFile) return;
    if (auto written = write_range(file_failures_, domain, domain.begin, domain.end); !written)
      result = written;
  });
  return result;
}

void Runtime::fence_devices() {
  domains_.visit([&](const Domain& domain) {
    if (domain.kind == DomainKind::kDevice) domain.device->fence();
  });
}

Thread* Runtime::enter(Direct* direct) {
  sys::QuietLockGuard scope(lock_);
  const size_t count = thread_count_.load(std::memory_order_relaxed);
  size_t place = 0;
  while (place < count && threads_[place].load(std::memory_order_relaxed) != nullptr) ++place;
  if (place == kMaxThreads) return nullptr;
  const auto memory = sys::map_anonymous(sizeof(Thread), "a thread's flushes");
  if (!memory) return nullptr;
  auto* const thread = new (*memory) Thread(*this, direct);
  if (auto taken = thread->set_way(settings_.way); !taken) {
    if (!has_told_.exchange(true, std::memory_order_relaxed))
      base::log("persist: ", taken.error().message, "; threads flush by epoch instead of ",
                name_of(settings_.way));
    (void)thread->set_way(Way::kEpoch);  // which needs neither memory nor threads
  }
  threads_[place].store(thread, std::memory_order_release);
  if (place == count) thread_count_.store(count + 1, std::memory_order_release);
  return thread;
}

base::Expected<void> Runtime::leave(Thread* thread) {
  auto fenced = thread->fence();
  thread->close_direct();
  sys::QuietLockGuard scope(lock_);
  visit_places([&](std::atomic<Thread*>& place) {
    if (place.load(std::memory_order_relaxed) == thread) place.store(nullptr, std::memory_order_release);
  });
  // No flusher uses its queues any more.
  flushers_.pass_all();
  left_.add(thread->counts());
  if (thread->fifo() != nullptr) flushers_.count_pusher(-1);
  discard(thread);
  return fenced;
}

void Runtime::discard(Thread* thread) {
  for (Fifo* const queue : {thread->fifo(), thread->recent()}) sys::unmap(queue, sizeof(Fifo));
  sys::unmap(thread, sizeof(Thread));
}

Counts Runtime::counts() {
  sys::QuietLockGuard scope(lock_);
  Counts all = left_;
  visit_threads([&](Thread& thread) { all.add(thread.counts()); });
  return all;
}

void Runtime::after_fork_in_child(Thread* own) {
  visit_places([&](std::atomic<Thread*>& place) {
    Thread* const thread = place.load(std::memory_order_relaxed);
    if (thread == nullptr || thread == own) return;
    place.store(nullptr, std::memory_order_relaxed);
    discard(thread);
  });
  flushers_.after_fork_in_child(own != nullptr && own->fifo() != nullptr ? 1 : 0);
  new (&shared_syncs_) SharedSyncs;  // whoever was in the middle of one is in the parent
  if (own != nullptr) own->enter_child();
  lock_.unlock();
}

}  // namespace persist
