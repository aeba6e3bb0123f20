// Pages of files and devices in memory, for C and C++ programs that do their own reads and keep more data than memory holds.
// (After the set-associative page cache, HotStorage 2012; docs/pagecache-api.md)
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
// Results. Calls return a status: SPILLWAY_PAGECACHE_OK, or above 0 an outcome (nothing went wrong), or below 0 an error, of which
// spillway_pagecache_error_text() has one line that says what could not be done where.
//
// Threads. A cache and its files are for all threads. A session is for one call at a time, from any thread: have one for each thread, or
// keep a few and hand them out; so is a queue. Calls of sessions block. A queue (below) is for programs that do not want to.
// After fork() the child uses none of these.
//
// Consistency. Of the bytes of one page a read or view sees all of a write, or nothing; a call over several pages is as many such. What is
// written is in memory, and others see it at once. It is on the device when its page has had to go, the cache's own threads have written
// it back, after half a minute at most, or spillway_pagecache_sync() has returned OK; only the last is for good.
//
// Structs that a caller gives begin with `struct_bytes`, to be set to their sizeof, all else 0 where nothing is wanted, so that they may
// grow: a program runs with a newer library, and with an older one unless it sets members that that has not. Null for a struct of options
// means all defaults. Offsets and sizes are in bytes.
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
  SPILLWAY_PAGECACHE_TOO_SMALL = 1,  // the buffer is, for the text
  SPILLWAY_PAGECACHE_BUSY = 2,       // the queue has as many requests as it takes: poll first
  // Errors.
  SPILLWAY_PAGECACHE_INVALID = -1,    // an argument: the text says which, and what it may be
  SPILLWAY_PAGECACHE_NO_MEMORY = -2,  // or no descriptors, or no threads
  SPILLWAY_PAGECACHE_FULL = -3,       // the device
  SPILLWAY_PAGECACHE_IO = -4,         // the device or the system failed
  SPILLWAY_PAGECACHE_IN_USE = -5,     // by somebody else, or by what has to be closed or released first
  SPILLWAY_PAGECACHE_NOT_FOUND = -6,  // the file or device
  SPILLWAY_PAGECACHE_DENIED = -7,     // no permission, or the file is for reading only
  SPILLWAY_PAGECACHE_DAMAGED = -8,    // a page has not its checksum
};

typedef struct spillway_pagecache_options {
  size_t struct_bytes;
  uint64_t memory_bytes;      // of pages and of what is known about them, at most; needed
  uint64_t memory_bytes_max;  // what it may be resized to; 0: no more than that
  // Which page of a set goes: "lru", "lfu", "nrlfu", "alfu", "gclock", "s3fifo"; null: "alfu".
  const char *policy;
  uint32_t page_bytes;  // a power of two, 4096 (0) to 65,536
  // Of all pages, how many may be dirty before more than those that leave next are written back; 1 to 100; 0: 50.
  uint32_t dirty_percent_max;
  uint32_t wait_ms_max;    // how long a call waits for pages that others, or views, hold; 0: 10,000
  uint32_t threads;        // of the cache's own: 1 to 64; 0: 1; or SPILLWAY_PAGECACHE_NO_THREADS
  uint32_t requests_each;  // of queues, that one of them carries out at a time; 1 to 1,024; 0: 64
  // Parts of the cache, one for each memory node: 0: of the machine; else so many, 64 at most, wherever their memory is, for tests.
  uint32_t nodes;
  uint32_t no_balancing;  // 1: frames do not move to nodes that miss more than others
  // How long a page may be dirty, about, until the cache's threads write it back, whether or not somebody needs its frame; 0: 30,000; or
  // SPILLWAY_PAGECACHE_FOR_EVER
  uint32_t dirty_ms_max;
} spillway_pagecache_options;
// Without threads there are no queues, and pages are only written back when somebody needs their frames, and by a sync.
#define SPILLWAY_PAGECACHE_NO_THREADS UINT32_MAX
#define SPILLWAY_PAGECACHE_FOR_EVER UINT32_MAX

typedef struct spillway_pagecache_file_options {
  size_t struct_bytes;
  // A file that is not there is made, and one that has less gets zeros at its end, so that so many bytes may be read and written, rounded up to
  // 4 KiB, with checksums to whole pages. 0: neither.
  uint64_t bytes;
  // 1: nothing is written; nobody else is kept from the file, whose changes may be seen or not. It may have any size but 0.
  uint32_t read_only;
  // 1: each page has a checksum, in its last 8 bytes, which are not among those that are read and written. A page whose checksum is wrong when it
  // comes from the device is DAMAGED. For files that were made so, with pages of this size, and for zeros. (docs/formats/pagecache.md)
  // Pages begin at each multiple of page_bytes - 8 of the file then, 4,088 by default: what is to be read and written as a whole, updated or
  // viewed in one piece, lies between two of those, where not every record of a power of two does; and pieces are aligned to 8 bytes at most.
  uint32_t checksums;
} spillway_pagecache_file_options;

// ---- Caches

// A cache without files. The options' text is copied. `*cache` is null on errors. Errors: INVALID: no such policy, less memory than one set
// of 16 pages takes (some 68 KiB), or another option that the text names; NO_MEMORY. Cost: some system calls, and threads; address space
// for memory_bytes_max, up to 16/9 of it. Memory comes with use.
int spillway_pagecache_open(const spillway_pagecache_options *options, spillway_pagecache **cache);
// Its files are synced, and then all is gone, their handles too. A status below OK but IN_USE says that what was written may not be on a
// device: it is that of the first that failed. IN_USE, and nothing is done, while sessions or queues of it are open. Null: nothing is done.
// No other thread is in a call of the cache. Cost: as a sync of each file.
int spillway_pagecache_close(spillway_pagecache *cache);

// What the cache is, what its sessions and queues were asked for since it was opened, and how that is spread over its sets: one JSON
// object of objects, names with units (docs/pagecache-api.md, "Statistics"), 16 KiB at most. Writes at most `bytes` to `text`, ended with
// a 0, and to `*needed_bytes` (if not null) what the whole text takes, with its 0. Returns OK, or TOO_SMALL. Any thread. Cost: no
// I/O; looks at each set, session and queue, at each set with its lock.
int spillway_pagecache_stats(spillway_pagecache *cache, char *text, size_t bytes, size_t *needed_bytes);

// "0.1.0"
const char *spillway_pagecache_version(void);
// A short text for each status, "the queue is full"; never null. Any thread.
const char *spillway_pagecache_status_text(int status);
// The line of the last call of this session that returned an error: what, where, what to do; "" if none has. Valid until the session's
// next call that returns one. With null: of the calling thread's last call without a session that did, those of queues among them.
const char *spillway_pagecache_error_text(const spillway_pagecache_session *session);

// ---- Files

// A file or device becomes one of the cache's: a path, or a device string ("memory:64M", "uring:/dev/nvme0n1?qd=128", "stripe:[a,b]";
// docs/storage.md). Its bytes are read and written through the cache alone from now on: without read_only files are locked (flock), and block
// devices are opened exclusively in any case. `*file` is null on errors. Errors: NOT_FOUND; INVALID: no such kind of device, a file whose size is
// 0 or, if it is to be written, not a multiple of 4,096 (options->bytes makes it one), or with checksums less than a page, blocks larger than a page; IN_USE: by another process or cache, or this
// one, after a second; DENIED; FULL; NO_MEMORY: 65,535 files at most; IO. Any thread. Cost: some system calls.
int spillway_pagecache_add(spillway_pagecache *cache, const char *device,
                           const spillway_pagecache_file_options *options, spillway_pagecache_file **file);
// The same of what is open at a descriptor, which may have no name any more: it is opened once more, and the descriptor stays the caller's.
// One for reading only makes it read_only. Errors: as of add; INVALID: it is not open, or for writing only; IN_USE also when the caller
// has locked it by flock. Needs /proc.
int spillway_pagecache_add_descriptor(spillway_pagecache *cache, int descriptor,
                                      const spillway_pagecache_file_options *options,
                                      spillway_pagecache_file **file);
// How many bytes may be read and written, from offset 0 on; the same as long as it is the cache's. Any thread. Null: 0.
uint64_t spillway_pagecache_file_bytes(const spillway_pagecache_file *file);
// Syncs the file, and takes it out of the cache: the handle is gone, and so is all that sessions had open for it. With an error it stays. Nobody
// is in a call for the file, or comes to be; calls for other files wait for a moment at most. Errors: those of sync; IN_USE: requests for
// it that have not ended, or views; INVALID: another cache's. Null: nothing is done. Cost: that of sync; looks at all sets three times, at
// all sessions, each of whose calls it waits for, and at requests.
int spillway_pagecache_remove(spillway_pagecache_session *session, spillway_pagecache_file *file);

// ---- Sessions: calls that block
//
// All of a range, or an error. Pages that are not there are read together, 64 at a time. Errors of calls for a range: INVALID: it is not
// within the file, which is of another cache, or a null that should be none; IO, also when a file has become shorter than it was when
// it was added; DAMAGED: until the page has been written as a whole; FULL; IN_USE: pages that others, or views, hold were in the way for wait_ms_max; NO_MEMORY. A page that cannot be written back
// stays, and is written again later: whoever needs its frame is told, be it for another file, and so is each sync. Cost of a page that is
// there: no lock, and two lines of a CPU's cache beside the bytes; of one that is not: a read, and a write if all that may leave is dirty.

// Errors: NO_MEMORY. Cost: memory only; of the first call that needs I/O some system calls and a descriptor or two for each file.
int spillway_pagecache_session_open(spillway_pagecache *cache, spillway_pagecache_session **session);
// IN_USE, and nothing is done, while views of it are held. Null: nothing is done.
int spillway_pagecache_session_close(spillway_pagecache_session *session);

int spillway_pagecache_read(spillway_pagecache_session *session, spillway_pagecache_file *file,
                            uint64_t offset, void *to, size_t bytes);
// After an error some pages of the range may be written. Of a page that is written as a whole nothing is read. Errors also: DENIED.
// Cost: a wait for the write of one page if too many pages are dirty.
int spillway_pagecache_write(spillway_pagecache_session *session, spillway_pagecache_file *file,
                             uint64_t offset, const void *from, size_t bytes);
// Some bytes of a page in memory, to be read and changed where they are, and their offset in the file. No alignment but the offset's.
// It calls nothing of this library, and no exception leaves it.
typedef void (*spillway_pagecache_change)(void *context, void *piece, size_t piece_bytes, uint64_t offset);
// Read, modify, write: calls change() for each page of the range, in their order, which nobody else sees meanwhile. As write.
int spillway_pagecache_update(spillway_pagecache_session *session, spillway_pagecache_file *file,
                              uint64_t offset, size_t bytes, spillway_pagecache_change change, void *context);

// Bytes of a page where they are. The caller's memory, with struct_bytes set; the call sets the rest.
typedef struct spillway_pagecache_view {
  size_t struct_bytes;
  const void *data;   // as aligned as the offset is, up to 4 KiB; with checksums up to 8 bytes
  size_t data_bytes;  // as many of the range as are in its first page
  void *holder;       // the library's: what holds the page, until it is released; null: nothing is held
} spillway_pagecache_view;
// The range's bytes that are in its first page, without a copy, to be read from any thread. Until it is released the page stays, and
// nobody writes to it: who wants to waits, this thread too. So hold few at a time, and not for long: nine that happen to be in one set
// can be all of it. A range of no bytes holds nothing. With an error it holds nothing. Errors: as of read. Cost: as a read without the copy.
int spillway_pagecache_view_get(spillway_pagecache_session *session, spillway_pagecache_file *file,
                                uint64_t offset, size_t bytes, spillway_pagecache_view *view);
// Ends what the view holds, and sets data and holder to null; one that holds nothing is left alone, as null is. A call of the session that
// it is of, as far as threads go.
void spillway_pagecache_view_release(spillway_pagecache_view *view);

// What was written to the file before the call is on its device for good when this returns OK. Errors: IO, FULL, IN_USE, NO_MEMORY;
// INVALID. After a flush of the device has failed each later sync of the file fails too. Cost: writes of all its dirty pages, neighbours
// together, 64 at a time, and a flush; looks at all sets.
int spillway_pagecache_sync(spillway_pagecache_session *session, spillway_pagecache_file *file);

// The cache has so much memory from now on, while others use it; nothing that stays is copied or read again. Errors, after which it has a size
// between the two, and another call goes on from there: INVALID, and nothing is changed: more than memory_bytes_max, or less than one set
// takes; IN_USE: another call is resizing it, or pages are held for wait_ms_max, by the caller's views among others; IO and FULL, of any file
// whose pages have to leave. Cost: of what leaves a write if it is dirty, of what stays a lock and a few stores at most, of a shrink
// a copy of some. (docs/pagecache.md, "Changing the size")
int spillway_pagecache_resize(spillway_pagecache_session *session, uint64_t memory_bytes);

// ---- Queues: asynchronous requests
//
// Arrays of requests, and a callback for each when it has ended, on the thread that polls. What is in memory is done by submit itself;
// what is not goes to the cache's threads, up to 64 requests in a message. (set-associative page cache, figure 2)

typedef struct spillway_pagecache_queue_options {
  size_t struct_bytes;
  uint32_t requests;  // submitted and not polled, at most; 1 to 65,536; 0: 256
  uint32_t reserved;
} spillway_pagecache_queue_options;

enum {
  SPILLWAY_PAGECACHE_READ = 0,
  SPILLWAY_PAGECACHE_WRITE = 1,
};

// How a request ended. The library's, until the callback returns; the struct may have grown.
typedef struct spillway_pagecache_result {
  size_t struct_bytes;
  int32_t status;  // as of read and write
  uint32_t kind;
  spillway_pagecache_file *file;
  uint64_t offset;
  void *data;
  size_t bytes;
  const char *error_text;  // "" but for errors
} spillway_pagecache_result;
// May submit; polls and closes nothing. No exception leaves it.
typedef void (*spillway_pagecache_done)(void *context, const spillway_pagecache_result *result);

typedef struct spillway_pagecache_request {
  size_t struct_bytes;
  spillway_pagecache_file *file;
  uint64_t offset;
  void *data;  // read to, or written from: then it is not changed; it stays as it is until the callback runs
  size_t bytes;
  spillway_pagecache_done done;
  void *context;
  uint32_t kind;  // SPILLWAY_PAGECACHE_READ or _WRITE
  uint32_t reserved;
} spillway_pagecache_request;

// Errors: INVALID: of the options, or a cache without threads; NO_MEMORY. Cost: memory, some 400 bytes for each request.
int spillway_pagecache_queue_open(spillway_pagecache *cache, const spillway_pagecache_queue_options *options,
                                  spillway_pagecache_queue **queue);
// IN_USE, and nothing is done, while there are requests whose callback has not run, and in a callback. Null: nothing is done.
int spillway_pagecache_queue_close(spillway_pagecache_queue *queue);

// Takes requests from the front; `*taken` (if not null) is how many, whose callbacks will run, once each, and never in here. OK: all of
// them; BUSY: the queue is full; an error: the next one is at fault: INVALID (but for its range, of which the callback is told), DENIED. The
// requests are copied; struct_bytes is the same in all. Requests of one queue end in any order, also those of the same bytes. Cost: of a
// range within a page that is there as a session's call; else a share of a message, which takes a lock, and a system call if a thread sleeps.
int spillway_pagecache_submit(spillway_pagecache_queue *queue, const spillway_pagecache_request *requests,
                              size_t count, size_t *taken);
// Runs the callbacks of requests that have ended, on the calling thread, and returns how many those were. If none has, waits for one
// for `timeout_ms` (0: not; -1: as long as it takes), but not if none is submitted. In a callback, and of null: 0.
size_t spillway_pagecache_poll(spillway_pagecache_queue *queue, int timeout_ms);
// A descriptor for poll() and epoll, which is readable when the cache's threads have ended something, and now and then for nothing. It
// is for who has polled until that returned 0: submit alone sends a message only when it is full. The library's, as long as the queue;
// nobody reads it. A call of the queue, as far as threads go. Errors: NO_MEMORY. Cost: from the first call on, a system call for each message
// that comes back, and for each poll.
int spillway_pagecache_event(spillway_pagecache_queue *queue);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
