// Runtime: all threads that flush, the domains that they flush to, and who flushes for them.
//
//   thread    put off: LineSet, FileRanges      fence
//     │ decoupled                                 ▲ waits for its FIFO, or executes what waits there
//     └─► Fifo ──claim──► flusher ──► domain ─────┘
//            how many of them: Governor
//
// To remove a domain, so that its memory can be unmapped:
//  1 the gates of all threads are shut: no fence is in the middle of executing anything, and none returns before 4 that has something there
//  2 the gates of all flushers are shut: what they had claimed is durable
//  3 it is a domain no more: whoever flushes there from now on, flushes in no domain, and looks again if it has put off or pushed a line meanwhile (thread.cc)
//  4 what each thread has put off there, or pushed, is executed, and the kernel writes files. It stays where it is, and is dropped at its fence (thread.h, invariant 1) or when it is claimed
//  5 all gates are open
//
// Thread contract: any thread calls any of it; enter(), leave() for itself. Handlers of signals may, too, unless another thread removes a domain: whoever holds the lock has its own thread's blocked, but
// removal waits for gates, and a handler that waits for the lock inside of its thread's never leaves that.
#pragma once
#include "base/error.h"
#include "persist/domains.h"
#include "persist/file_failures.h"
#include "persist/flushers.h"
#include "persist/policy.h"
#include "persist/shared_sync.h"
#include "persist/thread.h"
#include "sys/line_flush.h"
#include "sys/lock.h"

namespace persist {

// Makes the mapping that the address is in a domain. Returns whether there is one now.
using FindDomain = bool (*)(uintptr_t address);

struct Settings {
  Way way = Way::kAuto;
  sys::LineFlush instruction = sys::LineFlush::kClflush;
  Flushers::Settings flushers;
  uint32_t sample_stores = 64;  // of so many stores that are counted, one is looked at
  bool shares_syncs = false;    // shared_sync.h
  bool counts_all = false;      // also what compiled code could flush and fence without a call (direct.h)
  FindDomain find_domain = nullptr;  // asked about what is flushed in no domain; null: nobody is
};

class Runtime {
 public:
  static constexpr size_t kThreadsMax = 1024;

  explicit constexpr Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Before the first thread enters.
  void configure(const Settings& settings);
  const Settings& settings() const { return settings_; }

  const Domains& domains() const { return domains_; }
  // One of a device starts the flushers if threads' way may need them: who gives the runtime up stops them before. Errors: as Domains::add.
  base::Expected<void> add_domain(const Domain& domain);
  // Returns whether any of [begin, end) was in a domain. The caller has fenced what it has flushed there itself. What Domains::remove() removes beyond `end` is durable as well. May
  // block for an I/O. Errors: EIO, ENOSPC: of a file; it is removed all the same.
  base::Expected<bool> remove_domain(uintptr_t begin, uintptr_t end);

  // For the calling thread; `direct` as Thread's. Null: there is no memory for it, or there are kThreadsMax: then it executes each flush where it stands.
  Thread* enter(Direct* direct = nullptr);
  // All that the thread has flushed is durable, as if by a fence; the thread is not used any more.
  base::Expected<void> leave(Thread* thread);

  Flushers& flushers() { return flushers_; }
  Counts counts();
  // Null: each thread has its own ranges written.
  SharedSyncs* shared_syncs() { return settings_.shares_syncs ? &shared_syncs_ : nullptr; }
  FileFailures& file_failures() { return file_failures_; }
  bool has_barrier() const { return has_barrier_; }

  // visit(thread) for each that has entered, beside their use.
  template <class Visit>
  void visit_threads(const Visit& visit) const {
    const size_t count = thread_count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i)
      if (Thread* const thread = threads_[i].load(std::memory_order_acquire); thread != nullptr)
        visit(*thread);
  }
  // The same, beginning with the i-th, so that flushers do not all come to the same one first.
  template <class Visit>
  void visit_threads_from(size_t begin, const Visit& visit) const {
    const size_t count = thread_count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i)
      if (Thread* const thread = threads_[(begin + i) % count].load(std::memory_order_acquire);
          thread != nullptr)
        visit(*thread);
  }

  // Threads decide anew what they do with lines.
  void forget_places() {
    sys::LockGuard scope(lock_);
    domains_.touch();
    close_all();
  }

  // For a handler's fence that does not know what its thread has noted: all files that are domains are written, and all devices fence. May block for an I/O. Errors: EIO, ENOSPC.
  base::Expected<void> write_files();
  void fence_devices();

  // Around a fork: no other thread is in the middle of anything here; in the child only `own` is left (may be null), and no flusher runs.
  // REQUIRES: the thread's signals are blocked.
  void before_fork() {
    lock_.lock();
    flushers_.before_fork();
  }
  void after_fork_in_parent() {
    flushers_.after_fork_in_parent();
    lock_.unlock();
  }
  void after_fork_in_child(Thread* own);

 private:
  template <class Visit>
  void visit_places(const Visit& visit) {
    for (size_t i = 0; i < thread_count_.load(std::memory_order_relaxed); ++i) visit(threads_[i]);
  }
  static void discard(Thread* thread);
  // Under the gates of all threads and flushers.
  base::Expected<void> execute_for(const Domain& removed);
  // The domains have changed: what compiled code does without a call is of those before.
  void close_all();

  Settings settings_;
  Domains domains_;
  Flushers flushers_;
  SharedSyncs shared_syncs_;
  FileFailures file_failures_;
  sys::Mutex lock_;  // of what follows, and of changes of the domains
  bool has_barrier_ = false;
  std::atomic<size_t> thread_count_{0};  // places in use, empty ones among them
  std::atomic<Thread*> threads_[kThreadsMax] = {};
  Counts left_;                        // of threads that have left
  std::atomic<bool> has_told_{false};  // that threads cannot have their way
};

}  // namespace persist
