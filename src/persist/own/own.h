// The process's own runtime: what compiled code, the C API and the preload library call.
//
// It starts with the first call, as the environment says (options.inc); a variable that is wrong ends the process then, with one line and exit status 2.
// The environment of a setuid or setgid program, or of one with capabilities, is ignored.
//
//   thread    a thread's first flush makes its Thread. When the thread ends, what it has flushed and not fenced is fenced, which is more than the CPU
//             would do. What later destructors of thread-local values flush is executed at once
//   fork      what the forking thread has flushed is fenced before, in the parent; if that fails, so does the next fence of parent and child. The
//             child has the same domains and goes on, with flushers of its own when it needs some; what other threads have put off is the parent's.
//             Children of a raw clone(), which runs no handlers of pthread_atfork, must not flush
//   without   a thread for which there is no memory executes each flush at once
//   observed  with the options dirtiness or record no thread has a Thread: each call is told to the observer, and then executed at once
#pragma once
#include "persist/own/observer.h"
#include "persist/own/options.h"
#include "persist/runtime.h"

// What code that spillcc -fspill-persist=sample compiled counts down at each store; below 0 it calls __spillway_persist_sampled.
extern "C" __attribute__((visibility("default"),
                          tls_model("initial-exec"))) thread_local int32_t __spillway_persist_countdown;
// What compiled code looks at, of the calling thread; closed while it has no Thread. In a process that is observed, `pending` tells whether the
// thread has flushed and not fenced.
extern "C" __attribute__((visibility("default"),
                          tls_model("initial-exec"))) thread_local persist::Direct __spillway_persist_thread;

namespace persist::own {

extern constinit thread_local Thread* thread;

Runtime& runtime();
// Null: the process is not observed.
Observer* observer();

// The options that hold if nobody sets any: as in options.inc, but `domain` is memory in a process with the preload library.
Options default_options();

// Sets options in the place of the environment's. The texts are copied. Errors: plan()'s; EBUSY: the runtime has started.
base::Expected<void> configure(const Options& options);

void flush_slowly(uintptr_t address, size_t bytes, const void* site);
base::Expected<void> fence_slowly(const void* site);
Thread* enter();

// The domain that the address is in. A mapping that is not one yet becomes one first, if the options say so.
Domains::Found find_place(uintptr_t address);

// For the calling thread. `site`, here and below: where the program called.
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
// Ends the process with a line: for callers that cannot be told that a file could not be written, so that they do not take for durable what is not.
[[noreturn]] void end_unwritten(const base::Error& error);
[[gnu::always_inline]] inline void fence_surely(const void* site) {
  if (const auto fenced = fence(site); !fenced) end_unwritten(fenced.error());
}
void flush_ordered(uintptr_t address, const void* site);
// Tells the observer of a store; does nothing in a process that is not observed.
void store(uintptr_t address, size_t bytes, bool is_past_caches, const void* site);
void mark(std::string_view text);
// After a copy past the caches, which needs a fence and no flush.
void copied(uintptr_t address, size_t bytes, const void* site);
void sampled(uintptr_t address);

base::Expected<void> set_way(Way way);

// Makes a mapping, or part of one, a domain; removes what lies in a range, before it is unmapped. `path` and offset_bytes: the mapped file, and where
// in it the domain begins, for an observer; "": it looks which file is mapped there. Errors: as Runtime's.
base::Expected<void> add_domain(const Domain& domain, std::string_view path, uint64_t offset_bytes);
base::Expected<void> remove_domain(uintptr_t begin, uintptr_t end);

// The kind of the domain that the address is in, after a mapping there was found as by a flush; kNone: it is in no domain.
DomainKind kind_at(uintptr_t address);
// Is told that a library has mapped [begin, begin + bytes), of persistent memory or of another file. A shared mapping becomes a domain: of memory,
// flush_on_fail or file as the option `domain` says if it is memory, else of file. Domains that were there end. If no domain can be made, since
// there are too many, flushes there are executed at once.
void begin_mapping(uintptr_t begin, size_t bytes, bool is_memory);
// Is told that the program unmaps that, or maps something else there: domains end. If something that the calling thread has flushed before cannot be
// written, its next fence says so. Cost: where there is no domain, a look at the table of domains.
void end_mapping(uintptr_t begin, size_t bytes);
// Does the option `domain` say that the caches' content is saved?
bool is_flush_on_fail();

// Writes what the process has done so far as a JSON object. Cost: a look at each thread.
void write_statistics(base::TextRef& text);

// The library is loaded. Forgets the environment's options if the program runs with other rights than whoever started it. The library calls it once.
void begin();
// The process ends by exit(): fences what the calling thread has flushed, writes statistics, and ends a record. The library calls it once.
void finish();

}  // namespace persist::own
