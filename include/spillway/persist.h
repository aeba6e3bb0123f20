// A persistence runtime for byte-addressable memory, for C and C++ programs that keep data in persistent memory, or in mapped files. (After Ribbon, PACT 2020; docs/persist.md)
//
//   void *address; size_t bytes = 1 << 20;
//   spillway_persist_map("/mnt/pmem/data", bytes, "auto", &address);    // or spillway_persist_add() of a mapping of your own
//   record->value = 42;
//   spillway_persist(&record->value, sizeof record->value);             // durable when it returns
//
//   spillway_persist_flush(a, n); spillway_persist_flush(b, m);         // promise nothing yet
//   spillway_persist_fence();                                           // all that this thread has flushed is durable now
//
// What a program may rely on after a crash is what the CPU's own clwb and sfence promise, whatever the mapping and whatever the policy: what a thread has flushed is durable
// when its next fence returns; what nobody has flushed and fenced may be durable or not, each line of 64 bytes by itself, its stores in their order; 8 aligned bytes are
// never torn. What the runtime does about it is how and when lines are written back: each once where a program flushes it again and again, by other threads where that pays.
//
// Programs that execute clwb and sfence themselves need no change: spillcc -fspill-persist. Those over libpmem or libpmem2 run unchanged: spillway persist run.
//
// Results. Calls return a status: SPILLWAY_PERSIST_OK, or above 0 an outcome, or below 0 an error, of which spillway_persist_error_text() has one line that says what could not be
// done. Flushes return nothing: what fails is told by the fence.
//
// Threads. Any thread calls any of it; a fence is for what its own thread has flushed. A thread that ends has fenced. After fork() the child goes on with the same
// domains. Handlers of signals may flush and fence, whatever they interrupt.
//
// Memory that is in no domain may be flushed, too: the CPU's instruction is executed where the call stands.
#ifndef SPILLWAY_PERSIST_H
#define SPILLWAY_PERSIST_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum {
  SPILLWAY_PERSIST_OK = 0,
  // Outcomes.
  SPILLWAY_PERSIST_ABSENT = 1,     // there is no such domain
  SPILLWAY_PERSIST_TOO_SMALL = 2,  // the buffer is, for the text
  // Errors.
  SPILLWAY_PERSIST_INVALID = -1,    // an argument: the text says which, and what it may be
  SPILLWAY_PERSIST_NO_MEMORY = -2,  // or no threads
  SPILLWAY_PERSIST_FULL = -3,       // no room on the device, or for one more domain
  SPILLWAY_PERSIST_IN_USE = -4,     // it has begun already
  SPILLWAY_PERSIST_IO = -5,  // the kernel could not write: what was flushed of a file may not be durable
  SPILLWAY_PERSIST_NOT_FOUND = -6,  // no such file or folder
  SPILLWAY_PERSIST_DENIED = -7,
  SPILLWAY_PERSIST_UNSUPPORTED = -8,  // not persistent memory, or an instruction that this CPU does not have
};

// Options, for spillway_persist_configure(): null and 0 mean the default.
typedef struct spillway_persist_options {
  size_t struct_bytes;
  const char
      *policy;  // "auto" (default), "inline", "epoch", "decoupled", "proactive": of all threads that come
  const char *instruction;  // "best" (default), "clwb", "clflushopt", "clflush"
  const char *flushers;     // "auto" (default), "N", "LEAST-MOST": threads that flush for others
  const char *stats;        // file to write statistics to when the process ends; "%p" becomes its number
  uint64_t reserved;        // 0
} spillway_persist_options;

// Sets what else the environment does (SPILLWAY_PERSIST_POLICY and so on, docs/persist.md). Before anything is flushed or mapped. IN_USE afterwards; INVALID,
// UNSUPPORTED.
int spillway_persist_configure(const spillway_persist_options *options);

// Maps the file at `path`, made if it is not there and as large as `bytes` if it is smaller, all of it allocated, to read and write; it is a domain from then on. `kind`:
//   "auto"           memory if the file is (DAX), else file
//   "memory"         persistent memory: lines are written back by the CPU's instructions. UNSUPPORTED if the file is none
//   "flush_on_fail"  the same, where the caches' content is saved when power fails (eADR): flushes fall away
//   "file"           any file: a fence has the kernel write it
//   "dram"           as memory, whatever the file is: for tests and measurements, since a power failure may lose it
// A file that is new is there after a power failure, and is removed if it cannot be mapped. `bytes`: a multiple of 4096; 0: as many of them as the file has. `mapped_bytes` may
// be null. INVALID, NOT_FOUND, DENIED, FULL, NO_MEMORY, UNSUPPORTED, IO. May block.
int spillway_persist_map(const char *path, size_t bytes, const char *kind, void **address,
                         size_t *mapped_bytes);
// Ends that domain and unmaps it; what was flushed there by anybody is durable, and of a file all that was stored. ABSENT: spillway_persist_map() has not made it. IO.
int spillway_persist_unmap(void *address);

// Makes a mapping of the caller's a domain: whole lines of 64 bytes. `kind` as above, but for "auto"; nobody checks that it is true. `descriptor`: of the mapped file, for "file", open as long
// as the domain is there, or -1: then each range that was flushed costs an I/O of its own. INVALID; FULL: there are 256 domains.
int spillway_persist_add(void *address, size_t bytes, const char *kind, int descriptor);
// What is in domains of these lines is in none any more: before it is unmapped. What was flushed there by anybody is durable, and of a file all that was stored.
// ABSENT: it was in none; INVALID: no whole lines; FULL: two domains would be left of one, and there are 256; IO.
int spillway_persist_remove(void *address, size_t bytes);

// Flushes the lines of [address, address + bytes). Promises nothing before the fence. Cost: some 2 ns a line, and what the instruction takes.
void spillway_persist_flush(const void *address, size_t bytes);
// All that this thread has flushed and copied is durable. IO, FULL: of a file; what was flushed of it since the last fence may not be.
int spillway_persist_fence(void);
// Both.
int spillway_persist(const void *address, size_t bytes);

// As memmove and memset, and flushed: durable after the fence. Large ones go past the caches.
void *spillway_persist_copy(void *to, const void *from, size_t bytes);
void *spillway_persist_set(void *to, int byte, size_t bytes);

// How the calling thread flushes from now on; names as in the options. INVALID; NO_MEMORY; IN_USE: it is observed, or there was no memory for it, and executes each flush where it
// stands.
int spillway_persist_set_policy(const char *policy);

// For spillway persist check: the program says how far it has come. Nothing otherwise.
void spillway_persist_mark(const char *text);

// Where parts that are flushed together lie in one block, so that they take as few lines as they can: an allocator that is told which allocations belong together makes one
// of them, aligned to a line, and hands out the parts. (Ribbon, 2.3: keys and values)
//
// `part_bytes`: of each of the `count` parts, 64 at most, in any order; `part_alignment`: a power of two up to 64, of all. Sets the offset of each part, from the block's begin, which is
// at a line's. The block takes as few lines as the parts together do; and if that is possible without more of them, no part lies in more lines than it has to. Returns the bytes of the block, a
// multiple of 64; 0: the alignment is none, there are too many parts, or they are too large.
size_t spillway_persist_layout(const size_t *part_bytes, size_t count, size_t part_alignment,
                               size_t *offsets);

// What the process has done so far, as a JSON object (docs/persist.md); of code that spillcc compiled all of it only if `stats` is configured. `needed_bytes` may be null. TOO_SMALL.
int spillway_persist_stats(char *text, size_t bytes, size_t *needed_bytes);

// "0.1.0"
const char *spillway_persist_version(void);
const char *spillway_persist_status_text(int status);
// Of the calling thread's last call that failed.
const char *spillway_persist_error_text(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
