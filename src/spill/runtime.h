// Runtime: what a process that runs instrumented code has once: options, storage, cache, heap.
//
// Life: the dynamic loader calls spillway_start() (the library's DT_INIT) before any constructor of the
// program, and spillway_end() (DT_FINI) after its destructors; in a statically linked program the C library
// does (static/start.S). There are no static constructors.
//
// Wrong settings end the process in spillway_start with one line and exit status 2.
#pragma once
#include "base/options.h"
#include "cache/cache.h"
#include "spill/thread.h"

namespace spill {

struct Runtime {
  base::Options options;
  storage::Device* device = nullptr;
  cache::Cache* cache = nullptr;
  std::atomic<bool> started{false};        // the table is there, the heap may spill
  std::atomic<bool> is_fork_child{false};  // the report is its parent's
  uint64_t plain_limit_bytes = 0;          // small heaps stay in plain memory up to here
  char** environment = nullptr;
};

extern Runtime runtime;

// The calling thread's workspace, opened on first use. Ends the process if the system has no room for one.
cache::Workspace& workspace_of(Thread& thread);

// Starts the thread that evicts and cleans ahead of need. Its workspace is opened before: afterwards the program may close all
// descriptors that it finds, also one that is just being made. Errors: as sys::start_thread, Cache::open_workspace.
base::Expected<void> start_background();

// Starts the servers that the options ask for, if any. Without them each thread loads its own pages: a line says why there are
// none. After start_background; not in a child of fork.
void start_servers();

// Ends the process with one line and this status, without running the program's handlers. (Defined in settings.cc, which is part of
// preload mode too.)
[[noreturn]] void end_process(const base::Error& error, int status = 2);

// The exit status of a process that Spillway had to end while it ran (as SIGABRT would give).
inline constexpr int kFatalStatus = 134;

// Calls f(cache, page, offset) for `address`, whatever its protection: the page stays in memory meanwhile
// (Cache::zero, copy_in and copy_out). A page that cannot be had ends the process. May block and do I/O.
template <class F>
void with_page_in_memory(uint64_t address, F&& f) {
  InRuntime inside;
  cache::Cache& cache = *runtime.cache;
  const base::PageId page = cache.page_of(address);
  if (auto pinned = cache.pin(page, workspace_of(inside.thread())); !pinned)
    end_process(pinned.error(), kFatalStatus);
  f(cache, page, address - cache.address_of(page));
  cache.unpin(page);
}

}  // namespace spill
