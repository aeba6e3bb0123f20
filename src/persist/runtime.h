// Runtime: all threads that flush, the domains that they flush to, and who flushes for them.
//
//   thread    put off: LineSet, FileRanges      fence
//     │ decoupled                                 ▲ waits for its FIFO, or executes what waits there
//     └─► Fifo ──claim──► flusher ──► domain ─────┘
//            how many of them: Governor
//
// A domain is removed, so that its memory can be unmapped, in these steps:
//  1 the gates of all threads are shut: no fence is in the middle of executing anything, and a fence that has something there does not return before step 5
//  2 the gates of all flushers are shut: what they had claimed is durable
//  3 the domain is taken out of the table. Whoever flushes there from now on flushes in no domain; a thread that has just put off or pushed a line
//    looks again (thread.cc)
//  4 what each thread has put off or pushed there is executed, and the kernel writes files. The lines stay where they are, and are dropped at the
//    fence (thread.h, invariant 1) or when a flusher claims them
//  5 all gates are opened
//
// Thread contract: any thread may call any of it; enter() and leave() are for the calling thread itself. Signal handlers may, too, unless another
// thread removes a domain. Whoever holds the lock has its own signals blocked; but a removal waits for gates, and a thread inside its gate would never
// leave that if its handler waited for the lock.
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

// Makes a domain of the mapping that has the address. Returns whether there is one now.
using FindDomain = bool (*)(uintptr_t address);

struct Settings {
  Way way = Way::kAuto;
  sys::LineFlush instruction = sys::LineFlush::kClflush;
  Flushers::Settings flushers{};
  uint32_t sample_stores = 64;  // one in this many stores is looked at
  bool shares_syncs = false;    // fences that wait for the same file share its writing (shared_sync.h)
  bool counts_all = false;      // even what compiled code could flush and fence without a call (direct.h)
  FindDomain find_domain = nullptr;  // is asked about lines that are flushed in no domain; null: nobody is
};

class Runtime {
 public:
  static constexpr size_t kMaxThreads = 1024;

  explicit constexpr Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Before the first thread enters.
  void configure(const Settings& settings);
  const Settings& settings() const { return settings_; }

  const Domains& domains() const { return domains_; }
  // A device's domain starts the flushers if threads may need them; whoever destroys the runtime has to stop them before. Errors: as Domains::add.
  base::Expected<void> add_domain(const Domain& domain);
  // Returns whether any of [begin, end) was in a domain. The caller has fenced what it has flushed there itself. What Domains::remove() removes
  // beyond `end` is durable as well. May block for an I/O. Errors: EIO, ENOSPC: of a file; it is removed all the same.
  base::Expected<bool> remove_domain(uintptr_t begin, uintptr_t end);

  // Makes a Thread for the calling thread; `direct`: as in Thread's constructor. Null: there is no memory for it, or there are kMaxThreads already; the
  // caller then executes each flush at once.
  Thread* enter(Direct* direct = nullptr);
  // Fences, and frees the thread. Errors: the fence's.
  base::Expected<void> leave(Thread* thread);

  Flushers& flushers() { return flushers_; }
  Counts counts();
  // Null: each fence has its own ranges written.
  SharedSyncs* shared_syncs() { return settings_.shares_syncs ? &shared_syncs_ : nullptr; }
  FileFailures& file_failures() { return file_failures_; }
  bool has_barrier() const { return has_barrier_; }

  // Calls visit(thread) for each thread that has entered, while these go on.
  template <class Visit>
  void visit_threads(const Visit& visit) const {
    const size_t count = thread_count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i)
      if (Thread* const thread = threads_[i].load(std::memory_order_acquire); thread != nullptr)
        visit(*thread);
  }
  // The same, beginning with number `begin`, so that flushers do not all come to the same thread first.
  template <class Visit>
  void visit_threads_from(size_t begin, const Visit& visit) const {
    const size_t count = thread_count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i)
      if (Thread* const thread = threads_[(begin + i) % count].load(std::memory_order_acquire);
          thread != nullptr)
        visit(*thread);
  }

  // Makes all threads decide anew what they do with lines.
  void forget_places() {
    sys::LockGuard scope(lock_);
    domains_.touch();
    close_all();
  }

  // Has the kernel write all files that are domains, and all devices fence: for a handler's fence, which does not know what its thread has noted. May
  // block for an I/O. Errors: EIO, ENOSPC.
  base::Expected<void> write_files();
  void fence_devices();

  // Around a fork. In between no other thread changes anything that the lock protects; in the child only `own` is left, the caller's thread, which
  // may be null, and no flusher runs. REQUIRES: the thread's signals are blocked.
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
  // Step 4, while all gates are shut.
  base::Expected<void> execute_for(const Domain& removed);
  // After the domains have changed: what compiled code does without a call is right only for the old ones.
  void close_all();

  Settings settings_;
  Domains domains_;
  Flushers flushers_;
  SharedSyncs shared_syncs_;
  FileFailures file_failures_;
  sys::Mutex lock_;  // of the members below, and of changes of the domains
  bool has_barrier_ = false;
  std::atomic<size_t> thread_count_{0};  // places that have been used, some of which may be empty
  std::atomic<Thread*> threads_[kMaxThreads] = {};
  Counts left_;                        // of threads that have left
  std::atomic<bool> has_told_{false};  // has logged that threads cannot have their way
};

}  // namespace persist
