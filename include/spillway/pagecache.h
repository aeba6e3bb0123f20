// A cache of pages of files and devices, for C and C++ programs that do their own reads and keep more data than memory holds.
// (After the set-associative page cache, HotStorage 2012, "set-associative caching" and "messages"; docs/pagecache-api.md)
//
//   spillway_pagecache_options options = {.struct_bytes = sizeof options, .memory_bytes = 1 << 30};
//   spillway_pagecache *cache;              spillway_pagecache_open(&options, &cache);
//   spillway_pagecache_file *file;          spillway_pagecache_add(cache, "/data/index", NULL, &file);
//   spillway_pagecache_session *session;    spillway_pagecache_session_open(cache, &session);
//   spillway_pagecache_read(session, file, 10000, buffer, sizeof buffer);
//   spillway_pagecache_write(session, file, 10000, buffer, sizeof buffer);
//   spillway_pagecache_sync(session, file);
//   spillway_pagecache_remove(session, file);
//   spillway_pagecache_session_close(session);    spillway_pagecache_close(cache);
//
// Results. Calls return a status: SPILLWAY_PAGECACHE_OK; above 0 an outcome, where nothing went wrong; below 0 an error, for which
// spillway_pagecache_error_text() has one line that says what could not be done, and where.
//
// Threads. All threads may use a cache and its files. A session or a queue takes one call at a time, from any thread: have one for each
// thread, or keep a few and hand them out. Calls of sessions block; queues (below) are for programs that do not want to block.
// The child of a fork() may use none of these.
//
// Consistency. Within one page a read or view sees all of a write or nothing of it; a call over several pages counts as one call for each
// page. What is written is in memory, where others see it at once. It goes to the device when its page has to leave memory, when the
// cache's own threads write it back, after half a minute at most (dirty_ms_max), and by spillway_pagecache_sync(). Only when that has
// returned OK is it on the device for good.
//
// Structs. Those that a caller passes begin with `struct_bytes`, which the caller sets to their sizeof; members that are not wanted are 0.
// So they may grow: a program runs with a newer library, and with an older one unless it sets members that the older one does not have.
// Null for a struct of options means all defaults. Offsets and sizes are in bytes.
#ifndef SPILLWAY_PAGECACHE_H
#define SPILLWAY_PAGECACHE_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct spillway_pagecache spillway_pagecache;
typedef struct spillway_pagecache_file spillway_pagecache_file;
typedef struct spillway_pagecache_session spillway_pagecache_session;
typedef struct spillway_pagecache_queue spillway_pagecache_queue;

enum {
  SPILLWAY_PAGECACHE_OK = 0,
  // Outcomes.
  SPILLWAY_PAGECACHE_TOO_SMALL = 1,  // the buffer is too small for the text
  SPILLWAY_PAGECACHE_BUSY = 2,       // the queue has as many requests as it takes: poll first
  // Errors.
  SPILLWAY_PAGECACHE_INVALID = -1,    // an argument is wrong: the text says which, and what it may be
  SPILLWAY_PAGECACHE_NO_MEMORY = -2,  // no memory, descriptors or threads are left
  SPILLWAY_PAGECACHE_FULL = -3,       // the device has no room left
  SPILLWAY_PAGECACHE_IO = -4,         // the device or the system failed
  SPILLWAY_PAGECACHE_IN_USE = -5,  // somebody else uses it, or something has to be closed or released first
  SPILLWAY_PAGECACHE_NOT_FOUND = -6,  // there is no such file or device
  SPILLWAY_PAGECACHE_DENIED = -7,     // no permission, or the file is for reading only
  SPILLWAY_PAGECACHE_DAMAGED = -8,    // a page's checksum is wrong
};

typedef struct spillway_pagecache_options {
  size_t struct_bytes;
  uint64_t memory_bytes;      // the most memory for pages and what the cache keeps about them; required
  uint64_t memory_bytes_max;  // the most that it may be resized to; 0: memory_bytes
  // Which page of a set leaves first: "lru", "lfu", "nrlfu", "alfu", "gclock", "s3fifo"; null: "alfu".
  const char *policy;
  uint32_t page_bytes;  // a power of two from 4,096 to 65,536; 0: 4,096
  // As long as no more than this percentage of all pages is dirty, only those that leave next are written back: 1 to 100; 0: 50.
  uint32_t dirty_percent_max;
  uint32_t wait_ms_max;  // how long a call waits for pages that others, or views, hold; 0: 10,000
  uint32_t threads;      // the cache's own: 1 to 64; 0: 1; or SPILLWAY_PAGECACHE_NO_THREADS
  // How many requests of queues each of these threads carries out at a time: 1 to 1,024; 0: 64.
  uint32_t requests_each;
  // Into how many parts the cache is divided, one for each memory (NUMA) node. 0: as many as the machine has; other numbers, up to 64, are
  // for tests: the memory of the parts is then anywhere.
  uint32_t nodes;
  uint32_t no_balancing;  // 1: frames do not move to nodes that miss more than others
  // After about how many milliseconds the cache's threads write a dirty page back even if nobody needs its frame. 0: 30,000; or
  // SPILLWAY_PAGECACHE_FOR_EVER.
  uint32_t dirty_ms_max;
} spillway_pagecache_options;
// Without threads there can be no queues, and pages are written back only when somebody needs their frames, and by a sync.
#define SPILLWAY_PAGECACHE_NO_THREADS UINT32_MAX
#define SPILLWAY_PAGECACHE_FOR_EVER UINT32_MAX

typedef struct spillway_pagecache_file_options {
  size_t struct_bytes;
  // The size that the file should have at least, rounded up to 4 KiB, or with checksums to whole pages: a missing file is made, and a
  // smaller one gets zeros at its end. 0: the file has to be there, and keeps its size.
  uint64_t bytes;
  // 1: nothing is written. Others may change the file meanwhile; their changes are seen or not. The file may have any size but 0.
  uint32_t read_only;
  // 1: the last 8 bytes of each page are its checksum, and are not among the bytes that are read and written. A page whose checksum is
  // wrong when it is read from the device is DAMAGED. Only for files that were written in this way with pages of this size, and for files
  // of zeros (docs/formats/pagecache.md). Pages then hold page_bytes - 8 bytes, 4,088 by default, and begin at multiples of that offset.
  // What should be read or written as a whole, updated or viewed in one piece must not cross such an offset, as some records do whose size
  // is a power of two; and pieces are aligned to 8 bytes at most.
  uint32_t checksums;
} spillway_pagecache_file_options;

// ---- Caches

// Opens a cache without files, which the caller closes. The options are copied. `*cache` is null on errors. Errors: INVALID: there is no
// such policy, the memory is too little for one set of 16 pages (some 65 KiB), or another option is wrong, which the text names;
// NO_MEMORY. Cost: some system calls, and threads; address space for memory_bytes_max, up to 16/9 of it. Memory is taken when pages are
// first used.
int spillway_pagecache_open(const spillway_pagecache_options *options, spillway_pagecache **cache);
// Syncs all files and closes the cache; the handles of its files become invalid. Errors: IN_USE: sessions or queues of it are open, and
// nothing is done. Other errors are those of the first sync that failed: the cache is closed, but what was written may not be on the
// device. Null: nothing is done. REQUIRES: no other thread is in a call of the cache. Cost: that of a sync of each file.
int spillway_pagecache_close(spillway_pagecache *cache);

// Statistics: what the cache is, what its sessions and queues have done since it was opened, and how that is spread over its sets. One JSON
// object of objects (docs/pagecache-api.md, "Statistics"), 16 KiB at most. Writes at most `bytes` bytes to `text`, ended with a 0, and sets
// `*needed_bytes`, if that is not null, to what the whole text takes with its 0. Returns OK or TOO_SMALL. Errors: INVALID: an argument is
// null that must not be. Any thread. Cost: no I/O; a look at each session, each queue, and, with its lock, each set.
int spillway_pagecache_stats(spillway_pagecache *cache, char *text, size_t bytes, size_t *needed_bytes);

// The library's version: "0.1.0".
const char *spillway_pagecache_version(void);
// A short text for a status, such as "the queue is full". Never null; the library's. Any thread.
const char *spillway_pagecache_status_text(int status);
// One line about the session's last call that returned an error: what could not be done, where, and what to do; "" if none has. Valid until
// the session's next call that returns an error. With null: about the calling thread's last such call without a session, such as one of a
// queue.
const char *spillway_pagecache_error_text(const spillway_pagecache_session *session);

// ---- Files

// Adds a file or device to the cache: a path, or a device string ("memory:64M", "uring:/dev/nvme0n1?qd=128", "stripe:[a,b]";
// docs/storage.md). From now on its bytes may be read and written through this cache only: files are locked (flock) unless they are
// read_only, and block devices are always opened exclusively. The handle is the cache's, and valid until the file is removed or the cache
// closed; `*file` is null on errors. Errors: NOT_FOUND; INVALID: there is no such kind of device; the file's size is 0, or not a multiple
// of 4,096 although the file is not read_only (options->bytes makes it one), or, with checksums, less than a page; the device's blocks are
// larger than a page; IN_USE: another process, another cache or this one still has it after a second; DENIED; FULL; NO_MEMORY: also if
// there are 65,535 files already; IO. Any thread. Cost: some system calls.
int spillway_pagecache_add(spillway_pagecache *cache, const char *device,
                           const spillway_pagecache_file_options *options, spillway_pagecache_file **file);
// The same for the file of an open descriptor, even if it has no name any more. The file is opened once more, so the descriptor stays the
// caller's. If the descriptor is for reading only, the file is read_only. Errors: those of add; INVALID: the descriptor is not open, or is
// for writing only; IN_USE also if the caller has locked the file by flock. Needs /proc.
int spillway_pagecache_add_descriptor(spillway_pagecache *cache, int descriptor,
                                      const spillway_pagecache_file_options *options,
                                      spillway_pagecache_file **file);
// How many bytes may be read and written, from offset 0 on; this never changes. Any thread. Null: 0.
uint64_t spillway_pagecache_file_bytes(const spillway_pagecache_file *file);
// Syncs the file and takes it out of the cache: its handle becomes invalid, and sessions close what they have open for it. After an error
// the file stays. REQUIRES: no other thread is in a call for the file, or begins one; calls for other files wait for a moment at most.
// Errors: those of sync; IN_USE: requests for it have not ended, or views of it are held; INVALID: it is another cache's. Null: nothing is
// done. Cost: that of sync; a look at all sets, three times, at all requests, and at all sessions, for whose calls it waits.
int spillway_pagecache_remove(spillway_pagecache_session *session, spillway_pagecache_file *file);

// ---- Sessions: calls that block
//
// A call for a range does all of it, or fails. Pages that are not in memory are read together, 64 at a time. A page that cannot be written
// back stays in memory, and its write is tried again later; until it succeeds, calls that need its frame fail, also calls for other files,
// and so does each sync.
//
// Errors of calls for a range: INVALID: the range is not within the file, the file is another cache's, or an argument is null that must
// not be; IO, also if a file has become shorter since it was added; DAMAGED, until the page has been written as a whole; FULL; IN_USE:
// pages that other calls or views hold were in the way for wait_ms_max; NO_MEMORY.
// Cost of a page that is in memory: no lock, and two lines of the CPU's cache besides the bytes; of any other page: a read, and a write if
// every page that may leave is dirty.

// Opens a session, which the caller closes. `*session` is null on errors. Errors: INVALID, NO_MEMORY. Any thread. Cost: memory only; the
// first call that needs I/O for a file costs some system calls, and a descriptor or two.
int spillway_pagecache_session_open(spillway_pagecache *cache, spillway_pagecache_session **session);
// Closes a session. Errors: IN_USE: views of the session are held, and nothing is done. Null: nothing is done.
int spillway_pagecache_session_close(spillway_pagecache_session *session);

// Reads the range to the caller's memory at `to`.
int spillway_pagecache_read(spillway_pagecache_session *session, spillway_pagecache_file *file,
                            uint64_t offset, void *to, size_t bytes);
// Writes the range from the caller's memory at `from`. After an error some pages of the range may have been written. A page that is written
// as a whole is not read before that. Errors also: DENIED: the file is read_only. Cost also: a wait for the write of one page, if too many
// pages are dirty.
int spillway_pagecache_write(spillway_pagecache_session *session, spillway_pagecache_file *file,
                             uint64_t offset, const void *from, size_t bytes);
// A caller's function for spillway_pagecache_update(): reads and changes `piece_bytes` bytes of a page in place. `offset` is theirs in the
// file; they are aligned as it is. The function must not call this library, and no exception may leave it.
typedef void (*spillway_pagecache_change)(void *context, void *piece, size_t piece_bytes, uint64_t offset);
// Read, modify, write: calls change() for the part of the range that lies in each page, one page after the other. Nobody else sees that
// page meanwhile. Errors and cost: those of write.
int spillway_pagecache_update(spillway_pagecache_session *session, spillway_pagecache_file *file,
                              uint64_t offset, size_t bytes, spillway_pagecache_change change, void *context);

// Bytes of a page in place, in memory. The struct is the caller's, who sets struct_bytes; the call sets the rest.
typedef struct spillway_pagecache_view {
  size_t struct_bytes;
  const void *data;   // as aligned as the offset is, up to 4 KiB; with checksums up to 8 bytes
  size_t data_bytes;  // how many bytes of the range are in its first page
  void *holder;       // the library's: what holds the page until it is released; null: nothing is held
} spillway_pagecache_view;
// Gives access to those bytes of the range that are in its first page, without a copy, for reading from any thread. Until the view is
// released the page stays in memory, and nobody writes to it: whoever wants to, this thread too, waits. So hold few views at a time, and
// not for long: seven that happen to be in one set can fill it. A view of no bytes, or after an error, holds nothing. Errors: those of
// read. Cost: that of a read, without the copy.
int spillway_pagecache_view_get(spillway_pagecache_session *session, spillway_pagecache_file *file,
                                uint64_t offset, size_t bytes, spillway_pagecache_view *view);
// Releases what the view holds, and sets data and holder to null. Null, or a view that holds nothing: nothing is done. Counts as a call of
// the view's session, which takes one at a time.
void spillway_pagecache_view_release(spillway_pagecache_view *view);

// When this returns OK, everything that was written to the file before the call is on its device for good. Errors: IO, FULL, IN_USE,
// NO_MEMORY, INVALID. Once a flush of the device has failed, each later sync of the file fails, too. Cost: a look at all sets; writes of
// all dirty pages of the file, neighbours together, 64 at a time; a flush, which syncs at the same time share.
int spillway_pagecache_sync(spillway_pagecache_session *session, spillway_pagecache_file *file);

// Changes how much memory the cache has, while others use it. Pages that stay are not read again. Errors: INVALID: more than
// memory_bytes_max, or less than one set takes; nothing has changed. IN_USE: another call is resizing the cache, or pages were held for
// wait_ms_max, perhaps by the caller's own views; IO and FULL, of any file whose pages have to leave. After these three the cache may have
// a size between the two, and another call goes on from there. Cost: for each page that leaves a write, if it is dirty; for each page that
// stays a lock and a few stores at most; when the cache shrinks, a copy of some of these pages. (docs/pagecache.md, "Changing the size")
int spillway_pagecache_resize(spillway_pagecache_session *session, uint64_t memory_bytes);

// ---- Queues: asynchronous requests
//
// A queue takes arrays of requests; when a request has ended, its callback runs on a thread that polls. Submit itself carries out requests
// for pages that are in memory; the others go to the cache's threads, up to 64 in a message. (set-associative page cache, figure 2)

typedef struct spillway_pagecache_queue_options {
  size_t struct_bytes;
  uint32_t requests;  // how many may be submitted and not yet polled: 1 to 65,536; 0: 256
  uint32_t reserved;
} spillway_pagecache_queue_options;

enum {
  SPILLWAY_PAGECACHE_READ = 0,
  SPILLWAY_PAGECACHE_WRITE = 1,
};

// How a request has ended. The struct is the library's, and valid until the callback returns; a newer library's may have more members.
typedef struct spillway_pagecache_result {
  size_t struct_bytes;
  int32_t status;  // that of a read or write
  uint32_t kind;
  spillway_pagecache_file *file;
  uint64_t offset;
  void *data;
  size_t bytes;
  const char *error_text;  // the line of an error; otherwise ""
} spillway_pagecache_result;
// A callback. It may submit; it must not poll or close anything, and no exception may leave it.
typedef void (*spillway_pagecache_done)(void *context, const spillway_pagecache_result *result);

typedef struct spillway_pagecache_request {
  size_t struct_bytes;
  spillway_pagecache_file *file;
  uint64_t offset;
  // Memory that is read to, or written from (a write does not change it); the caller keeps it until the callback runs.
  void *data;
  size_t bytes;
  spillway_pagecache_done done;
  void *context;
  uint32_t kind;  // SPILLWAY_PAGECACHE_READ or _WRITE
  uint32_t reserved;
} spillway_pagecache_request;

// Opens a queue, which the caller closes. `*queue` is null on errors. Errors: INVALID: an option is wrong, or the cache has no threads;
// NO_MEMORY. Any thread. Cost: memory, some 400 bytes for each request.
int spillway_pagecache_queue_open(spillway_pagecache *cache, const spillway_pagecache_queue_options *options,
                                  spillway_pagecache_queue **queue);
// Closes a queue. Errors: IN_USE: there are requests whose callback has not run, or this is called in a callback; nothing is done. Null:
// nothing is done.
int spillway_pagecache_queue_close(spillway_pagecache_queue *queue);

// Takes requests from the front of the array, and sets `*taken`, if that is not null, to how many it took: the callback of each will run
// once, and never inside this call. Returns OK: all were taken; BUSY: the queue is full; or an error of the first request that was not
// taken: INVALID, DENIED. (That a range is not within the file is told only to the callback.) The requests are copied; struct_bytes is the
// same in all of them. Requests of one queue end in any order, also those for the same bytes. Cost: for a range within a page that is in
// memory, that of a session's call; otherwise a share of a message, which takes a lock, and a system call if the thread that it goes to
// sleeps.
int spillway_pagecache_submit(spillway_pagecache_queue *queue, const spillway_pagecache_request *requests,
                              size_t count, size_t *taken);
// Runs the callbacks of requests that have ended, on the calling thread, and returns how many it has run. If none has ended, waits until
// one does, for `timeout_ms` milliseconds at most (0: does not wait; below 0: without a limit), but not if nothing is submitted. Called in a
// callback, or for null: 0.
size_t spillway_pagecache_poll(spillway_pagecache_queue *queue, int timeout_ms);
// A descriptor for poll() and epoll, which becomes readable when the cache's threads have ended something, and now and then for no reason.
// Before waiting for it, call spillway_pagecache_poll() until that returns 0: submit alone sends a message only when it is full. The
// descriptor is the library's, and lasts as long as the queue; do not read from it. Counts as a call of the queue, which takes one at a
// time. Returns an error below 0: INVALID, NO_MEMORY. Cost: from the first call on, a system call for each message that comes back, and
// for each poll.
int spillway_pagecache_event(spillway_pagecache_queue *queue);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
