// A persistence runtime for byte-addressable memory, for C and C++ programs that keep data in persistent memory, or in mapped files. (After Ribbon,
// PACT 2020, section 2; docs/persist.md)
//
//   void *address; size_t bytes = 1 << 20;
//   spillway_persist_map("/mnt/pmem/data", bytes, "auto", &address, NULL);   // or spillway_persist_add() of a mapping of your own
//   record->value = 42;
//   spillway_persist(&record->value, sizeof record->value);                  // durable when it returns
//
//   spillway_persist_flush(a, n); spillway_persist_flush(b, m);              // promise nothing yet
//   spillway_persist_fence();                                                // all that this thread has flushed is durable now
//
// After a crash a program may rely on what the CPU's own clwb and sfence promise, whatever the mapping and whatever the policy: what a thread has
// flushed is durable when its next fence returns; what has not been flushed and fenced may be durable or not, each line of 64 bytes on its own, with
// the stores to it in their order; 8 aligned bytes are never torn. The runtime decides how and when lines are written back: only once where a program
// flushes a line again and again, and by other threads where that pays.
//
// Programs that execute clwb and sfence themselves need no change: spillcc -fspill-persist. Programs over libpmem or libpmem2 run unchanged: spillway
// persist run.
//
// Results. Calls return a status: SPILLWAY_PERSIST_OK; above 0 an outcome; below 0 an error, for which spillway_persist_error_text() has one line
// that says what could not be done. A flush returns nothing: its failure is told by the fence.
//
// Threads. Any thread may call any function. A fence is for what its own thread has flushed. What a thread has flushed is fenced when it ends. After
// fork() the child goes on with the same domains. Signal handlers may flush and fence, whatever they interrupt.
//
// Domains are the mappings, or parts of mappings, that the runtime was told of. Memory in no domain may be flushed, too: the CPU's instruction is
// then executed at the call.
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
  SPILLWAY_PERSIST_TOO_SMALL = 2,  // the buffer is too small for the text
  // Errors.
  SPILLWAY_PERSIST_INVALID = -1,    // an argument is wrong: the text says which one, and what it may be
  SPILLWAY_PERSIST_NO_MEMORY = -2,  // no memory, or no more threads
  SPILLWAY_PERSIST_FULL = -3,       // no room on the device, or for one more domain
  SPILLWAY_PERSIST_IN_USE = -4,     // the runtime has started already
  SPILLWAY_PERSIST_IO = -5,  // the kernel could not write: what was flushed of a file may not be durable
  SPILLWAY_PERSIST_NOT_FOUND = -6,    // no such file or folder
  SPILLWAY_PERSIST_DENIED = -7,       // no permission
  SPILLWAY_PERSIST_UNSUPPORTED = -8,  // not persistent memory, or an instruction that this CPU does not have
};

// Options for spillway_persist_configure(). Null and 0 stand for the default; texts are copied.
typedef struct spillway_persist_options {
  size_t struct_bytes;
  // How threads flush to begin with: "auto" (default), "inline", "epoch", "decoupled", "proactive" (docs/persist.md, "Policies").
  const char *policy;
  const char *instruction;  // "best" (default), "clwb", "clflushopt", "clflush"
  const char *flushers;     // "auto" (default), "N", "LEAST-MOST": threads that flush for others
  const char *stats;        // file to write statistics to when the process ends; "%p" becomes the process id
  uint64_t reserved;        // 0
} spillway_persist_options;

// Sets these options instead of the environment (SPILLWAY_PERSIST_POLICY and so on, docs/persist.md), which still sets all others. To be called before
// anything is flushed or mapped. Errors: IN_USE: it is too late for that; INVALID: an option is wrong, here or in the environment; UNSUPPORTED: this CPU
// does not have the instruction.
int spillway_persist_configure(const spillway_persist_options *options);

// Maps the file at `path` to read and write, and makes the mapping a domain. A missing file is made, one that is smaller than `bytes` is extended
// to that size, and all of `bytes` is allocated, so that no store finds the device full. A block device keeps its size. `bytes`: a multiple of 4096;
// 0: the file's size, rounded down to one. Sets `*address`, and `*mapped_bytes` if that is not null. The mapping is the caller's until
// spillway_persist_unmap(). `kind`:
//   "auto"           "memory" if the file is persistent memory (DAX), else "file"
//   "memory"         persistent memory, whose lines the CPU's instructions write back. UNSUPPORTED for other files
//   "flush_on_fail"  persistent memory of a machine that saves its caches when power fails (eADR), so that flushes do nothing. UNSUPPORTED for other files
//   "file"           any file, which the kernel writes at a fence
//   "dram"           any file, treated as "memory": for tests and measurements, since a power failure may lose what is stored
// The name of a new file is durable when the call returns; a new file that cannot be mapped is removed. Errors: INVALID, NOT_FOUND, DENIED, FULL,
// NO_MEMORY, UNSUPPORTED, IO. Cost: allocates the file, and may block for I/O.
int spillway_persist_map(const char *path, size_t bytes, const char *kind, void **address,
                         size_t *mapped_bytes);
// Ends the domain that spillway_persist_map() has made at that address, and unmaps it. Whatever any thread has flushed there is then durable; for kind
// "file" so is all that was stored. ABSENT: there is no such mapping. Errors: IO, FULL: a file could not be written; it is unmapped all the same.
// Cost: for a file, that of writing it; waits for the fences of other threads.
int spillway_persist_unmap(void *address);

// Makes a mapping of the caller's a domain; it stays the caller's. Address and size are multiples of 64. `kind`: as above, but not "auto"; whether it
// is true is not checked. `descriptor`: for "file", that of the mapped file, which must stay open as long as the domain exists; or -1, and then each
// range that is flushed costs an I/O of its own. Errors: INVALID: an argument is wrong, or a part of the range is in a domain already; FULL: there are
// 256 domains already. Cost: a look at each thread, and some system calls.
int spillway_persist_add(void *address, size_t bytes, const char *kind, int descriptor);
// Takes these lines (of 64 bytes) out of the domains that they are in. To be called before they are unmapped. When it returns, whatever any thread has
// flushed there is durable; for kind "file" so is all that was stored. ABSENT: they are in no domain. Errors: INVALID: the range is not whole lines;
// FULL: one domain would become two, and there are 256 already: nothing was done; IO, FULL: a file could not be written. Cost: as
// spillway_persist_unmap().
int spillway_persist_remove(void *address, size_t bytes);

// Flushes the lines that [address, address + bytes) lies in. Promises nothing before the fence. Cost: some 2 ns a line, and what the instruction takes.
void spillway_persist_flush(const void *address, size_t bytes);
// Returns when all that this thread has flushed and copied is durable. Errors: IO, FULL: the kernel could not write a file; what was flushed of it
// since the last fence may not be durable. Cost: docs/persist.md, "What a flush costs"; for files that of a write.
int spillway_persist_fence(void);
// A flush and a fence. Returns and costs what the fence does.
int spillway_persist(const void *address, size_t bytes);

// As memmove and memset, and return `to`; what they store is flushed too, so that it is durable after the fence. From 256 bytes on the stores go past
// the CPU's caches.
void *spillway_persist_copy(void *to, const void *from, size_t bytes);
void *spillway_persist_set(void *to, int byte, size_t bytes);

// Sets how the calling thread flushes from now on: a name as in the options. Errors, after which it flushes as before: INVALID; NO_MEMORY; IN_USE: this
// thread can only execute each flush at its call, because it is recorded, or because there was no memory for more. Cost: with "decoupled"
// and "proactive" memory for a queue and, the first time in a process, threads; otherwise none.
int spillway_persist_set_policy(const char *policy);

// Tells `spillway persist check` how far the program has come; does nothing in other runs. The text is copied.
void spillway_persist_mark(const char *text);

// Says where in a block the parts should lie that are flushed together, so that they take as few lines as possible. It is for allocators that know
// which allocations belong together: they make one block for them, aligned to a line, and hand out the parts. (Ribbon, section 2.3: keys and values)
//
// `part_bytes`: the sizes of `count` parts, 64 at most, in any order. `part_alignment`: a power of two up to 64, for all parts. Sets offsets[i] to
// where part i begins in the block. The block takes as few lines as the parts together do, and no part lies in more lines than it has to unless the
// block would need more lines for that. Returns the size of the block, a multiple of 64 bytes; 0: the alignment is not one of these, there are too many
// parts, or they are too large. Cost: grows with the square of `count`.
size_t spillway_persist_layout(const size_t *part_bytes, size_t count, size_t part_alignment,
                               size_t *offsets);

// Writes what the process has done so far as one JSON object (docs/persist.md, "Statistics"): at most `bytes` bytes to `text`, ended with a 0; and sets
// `*needed_bytes`, if that is not null, to what the whole text takes with its 0. Flushes and fences that code compiled by spillcc executes itself,
// without a call, are counted only if `stats` is configured. Returns OK or TOO_SMALL. Errors: INVALID. Cost: a look at each thread.
int spillway_persist_stats(char *text, size_t bytes, size_t *needed_bytes);

// "0.1.0"
const char *spillway_persist_version(void);
// A short text for each status; never null. Any thread.
const char *spillway_persist_status_text(int status);
// The line of the calling thread's last call that failed; "" if none has. Valid until its next call that fails.
const char *spillway_persist_error_text(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
