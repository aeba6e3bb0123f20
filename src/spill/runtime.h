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

// The calling thread's lane, opened on first use. Ends the process if the system has no room for one.
cache::Lane& lane_of(Thread& thread);

// Starts the thread that evicts and cleans ahead of need. Its lane is opened before: afterwards the program may close all
// descriptors that it finds, also one that is just being made. Errors: as sys::start_thread, Cache::open_lane.
base::Expected<void> start_background();

// Ends the process with one line and this status, without running the program's handlers.
[[noreturn]] void end_process(const base::Error& error, int status = 2);

// The exit status of a process that Spillway had to end while it ran (as SIGABRT would give).
inline constexpr int kFatalStatus = 134;

}  // namespace spill
