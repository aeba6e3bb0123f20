// The process's own runtime: what compiled code, the C API and the preload library call.
//
// It starts with the first call, as the environment says (options.inc); a variable that is wrong ends the process then, with one line and exit status 2.
//
//   thread    its first flush makes its Thread; its end fences what it has flushed and not fenced, which is more than the CPU would do. What its destructors flush
//             afterwards is executed where it stands
//   fork      the child has the domains and goes on, with flushers of its own when it needs some. What the forking thread has flushed is fenced before, in the parent;
//             what other threads have put off is theirs. Children of a raw clone() without handlers of pthread_atfork must not flush
//   no memory for a thread: it executes each flush where it stands
//   observed  (dirtiness, record) no thread has a Thread: every call comes to the observer, then it is executed
#pragma once
#include "persist/own/observer.h"
#include "persist/own/options.h"
#include "persist/runtime.h"

// What code that spillcc -fspill-persist=sample compiled counts down at each store; below 0 it calls __spillway_persist_sampled.
extern "C" __attribute__((visibility("default"),
                          tls_model("initial-exec"))) thread_local int32_t __spillway_persist_countdown;
// The thread's; closed while it has no Thread. Of one that is observed `pending` is whether it has flushed and not fenced.
extern "C" __attribute__((visibility("default"),
                          tls_model("initial-exec"))) thread_local persist::Direct __spillway_persist_thread;

namespace persist::own {

extern constinit thread_local Thread* thread;

Runtime& runtime();
// Null: nobody observes.
Observer* observer();

// What options are that nobody has set: as options.inc says, but for `domain`, which is memory in a process with the preload library.
Options default_options();

// Settings other than the environment's. The texts are copied. Errors: as plan()'s; EBUSY: the runtime has started.
base::Expected<void> configure(const Options& options);

void flush_slowly(uintptr_t address, size_t bytes, const void* site);
base::Expected<void> fence_slowly(const void* site);
Thread* enter();

// The domain that the address is in; a mapping that nobody has made one becomes one, if the options say so.
Domains::Found find_place(uintptr_t address);

// Of the calling thread; `site`: where the program called.
[[gnu::always_inline]] inline void flush(uintptr_t address, const void* site) {
  if (thread != nullptr) [[likely]]
    thread->flush(address);
  else
    flush_slowly(address, 1, site);
}
inline void flush(uintptr_t address, size_t bytes, const void* site) {
  if (thread != nullptr) [[likely]]
    thread->flush(address, bytes);
  else
    flush_slowly(address, bytes, site);
}
[[gnu::always_inline]] inline base::Expected<void> fence(const void* site) {
  if (thread != nullptr) [[likely]]
    return thread->fence();
  return fence_slowly(site);
}
// For a caller who cannot be told that a file's mapping is not written: the process ends then, with a line, before it believes that something is durable that is not.
[[noreturn]] void end_unwritten(const base::Error& error);
[[gnu::always_inline]] inline void fence_surely(const void* site) {
  if (const auto fenced = fence(site); !fenced) end_unwritten(fenced.error());
}
void flush_ordered(uintptr_t address, const void* site);
// Nothing unless somebody observes.
void store(uintptr_t address, size_t bytes, bool is_past_caches, const void* site);
void mark(std::string_view text);
// After a copy past the caches, which needs a fence and no flush.
void copied(uintptr_t address, size_t bytes, const void* site);
void sampled(uintptr_t address);

base::Expected<void> set_way(Way way);

// A mapping, or part of one, is a domain from now on, or no more: before it is unmapped. Without a path, an observer is told the file's that is mapped there. Errors: as Runtime's.
base::Expected<void> add_domain(const Domain& domain, std::string_view path, uint64_t offset_bytes);
base::Expected<void> remove_domain(uintptr_t begin, uintptr_t end);

// What is at an address: the kind of its domain, of one that is found there now, too; kNone: it is in none.
DomainKind kind_at(uintptr_t address);
// A library says that it has mapped [begin, begin + bytes), of persistent memory or of another file: a domain of the kind that fits, if the mapping is shared. What was a domain there is none
// any more. Memory is flush_on_fail, or file, where the option `domain` says so. Where no domain can be made (there are too many), flushes are executed where they stand.
void begin_mapping(uintptr_t begin, size_t bytes, bool is_memory);
// The program unmaps that, or maps something else there: domains end. Cost: a look at the domains where there is none.
void end_mapping(uintptr_t begin, size_t bytes);
// Does the option `domain` say that the caches' content is saved?
bool is_flush_on_fail();

// What the process has done so far, as a JSON object. Cost: a look at each thread.
void write_statistics(base::TextRef& text);

// The process ends, by exit(): statistics and records are written. Called by the library that has it all, once.
void finish();

}  // namespace persist::own
