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
// Results. Calls return a status: SPILLWAY_PAGECACHE_OK; above 0 an outcome, where nothing went wrong; below 0 an error, for which
// spillway_pagecache_error_text() has one line that says what could not be done where.
//
// Threads. All threads may use a cache and its files. A session or a queue takes one call at a time, from any thread: have one for each
// thread, or keep a few and hand them out. Calls of sessions block; queues (below) are for programs that do not want to block.
// After fork() the child may use none of these.
//
// Consistency. Of the bytes of one page a read or view sees all of a write or nothing of it; a call over several pages is as many calls
// over one page. What is written is in memory, where others see it at once. It is written to the device when its page has to leave, when
// the cache's own threads write it back, after half a minute at most, and by spillway_pagecache_sync(). Only when the last has returned OK
// is it on the device for good.
//
// Structs. Those that a caller gives begin with `struct_bytes`, which is set to their sizeof; members for which nothing is wanted are 0. So
// they may grow: a program also runs with a newer library, and with an older one, unless it sets members that this does not know. Null for
// a struct of options means all defaults. Offsets and sizes are in bytes.
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
  uint64_t memory_bytes;      // for pages, and what the cache keeps about them, at most; needed
  uint64_t memory_bytes_max;  // the most that it may be resized to; 0: memory_bytes
  // Which page of a set leaves first: "lru", "lfu", "nrlfu", "alfu", "gclock", "s3fifo"; null: "alfu".
  const char *policy;
  uint32_t page_bytes;  // a power of two from 4,096 to 65,536; 0: 4,096
  // How many percent of all pages may be dirty before more are written back than those that leave next: 1 to 100; 0: 50.
  uint32_t dirty_percent_max;
  uint32_t wait_ms_max;  // how long a call waits for pages that others, or views, hold; 0: 10,000
  uint32_t threads;      // the cache's own: 1 to 64; 0: 1; or SPILLWAY_PAGECACHE_NO_THREADS
  // How many requests of queues each of these threads carries out at a time: 1 to 1,024; 0: 64.
  uint32_t requests_each;
  // Parts of the cache, one for each memory node. 0: as many as the machine has; other numbers, 64 at most, are for tests: then the memory
  // of the parts is anywhere.
  uint32_t nodes;
  uint32_t no_balancing;  // 1: frames do not move to nodes that miss more than others
  // For about how long a page may be dirty until the cache's threads write it back, even if nobody needs its frame. 0: 30,000; or
  // SPILLWAY_PAGECACHE_FOR_EVER.
  uint32_t dirty_ms_max;
} spillway_pagecache_options;
// Without threads there are no queues, and pages are written back only when somebody needs their frames, and by a sync.
#define SPILLWAY_PAGECACHE_NO_THREADS UINT32_MAX
#define SPILLWAY_PAGECACHE_FOR_EVER UINT32_MAX

typedef struct spillway_pagecache_file_options {
  size_t struct_bytes;
  // How many bytes are to be read and written, rounded up to 4 KiB, or with checksums to whole pages: a missing file is made, and a smaller
  // one gets zeros at its end. 0: the file has to be there, and keeps its size.
  uint64_t bytes;
  // 1: nothing is written. Others may change the file meanwhile; their changes are seen or not. The file may have any size but 0.
  uint32_t read_only;
  // 1: the last 8 bytes of each page are its checksum; they are not among the bytes that are read and written. A page whose checksum is
  // wrong when it is read from the device is DAMAGED. For files that were written so, with pages of this size, and for files of zeros
  // (docs/formats/pagecache.md). Pages then begin at multiples of page_bytes - 8 bytes of the file, 4,088 by default. What is to be read or
  // written as a whole, updated or viewed in one piece, has to lie between two of these, which not every record does whose size is a power
  // of two; and pieces are aligned to 8 bytes at most.
  uint32_t checksums;
} spillway_pagecache_file_options;

// ---- Caches

// Opens a cache without files, which the caller closes. The options are copied. `*cache` is null on errors. Errors: INVALID: there is no
// such policy, one set of 16 pages takes more memory (some 68 KiB), or another option is wrong, which the text names; NO_MEMORY. Cost: some
// system calls, and threads; address space for memory_bytes_max, up to 16/9 of it. Memory is taken when pages are first used.
int spillway_pagecache_open(const spillway_pagecache_options *options, spillway_pagecache **cache);
// Syncs all files and closes the cache; the handles of its files end with it. Errors: IN_USE: sessions or queues of it are open; nothing is
// done. Other errors are those of the first sync that failed: the cache is closed, but what was written may not be on the device. Null:
// nothing is done. No other thread may be in a call of the cache. Cost: that of a sync of each file.
int spillway_pagecache_close(spillway_pagecache *cache);

// Statistics: what the cache is, what its sessions and queues have done since it was opened, and how that is spread over its sets. One JSON
// object of objects (docs/pagecache-api.md, "Statistics"), 16 KiB at most. Writes at most `bytes` bytes to `text`, ended with a 0, and to
// `*needed_bytes`, if that is not null, how many the whole text takes with its 0. Returns OK or TOO_SMALL. Errors: INVALID: a null that
// should be none. Any thread. Cost: no I/O; a look at each session, each queue, and, with its lock, each set.
int spillway_pagecache_stats(spillway_pagecache *cache, char *text, size_t bytes, size_t *needed_bytes);

// The library's version: "0.1.0".
const char *spillway_pagecache_version(void);
// A short text for a status: "the queue is full". Never null; the library's. Any thread.
const char *spillway_pagecache_status_text(int status);
// The line of the session's last call that has returned an error: what could not be done, where, and what to do; "" if none has. It stays
// until the session's next call that returns an error. Null: that of the calling thread's last such call without a session, such as a
// queue's.
const char *spillway_pagecache_error_text(const spillway_pagecache_session *session);

// ---- Files

// Adds a file or device to the cache: a path, or a device string ("memory:64M", "uring:/dev/nvme0n1?qd=128", "stripe:[a,b]";
// docs/storage.md). From now on its bytes are read and written through the cache alone: files are locked (flock) unless they are read_only,
// and block devices are opened exclusively in any case. The handle is the cache's, until the file is removed or the cache closed; `*file`
// is null on errors. Errors: NOT_FOUND; INVALID: there is no such kind of device; the file's size is 0, or, if it is to be written, not a
// multiple of 4,096 (options->bytes makes it one), or, with checksums, less than a page; the device's blocks are larger than a page;
// IN_USE: another process, another cache or this one still has it after a second; DENIED; FULL; NO_MEMORY: 65,535 files at most; IO. Any
// thread. Cost: some system calls.
int spillway_pagecache_add(spillway_pagecache *cache, const char *device,
                           const spillway_pagecache_file_options *options, spillway_pagecache_file **file);
// The same for the file of an open descriptor, which need not have a name any more. It is opened once more: the descriptor stays the
// caller's. A descriptor for reading only makes the file read_only. Errors: those of add; INVALID: the descriptor is not open, or is for
// writing only; IN_USE, too, if the caller has locked the file by flock. Needs /proc.
int spillway_pagecache_add_descriptor(spillway_pagecache *cache, int descriptor,
                                      const spillway_pagecache_file_options *options,
                                      spillway_pagecache_file **file);
// How many bytes may be read and written, from offset 0 on; that does not change. Any thread. Null: 0.
uint64_t spillway_pagecache_file_bytes(const spillway_pagecache_file *file);
// Syncs the file and takes it out of the cache: its handle ends, and so does all that sessions have open for it. After an error the file
// stays. No other thread may be in a call for the file, or begin one; calls for other files wait for a moment at most. Errors: those of
// sync; IN_USE: there are requests for it that have not ended, or views; INVALID: it is another cache's. Null: nothing is done. Cost: that
// of sync; a look at all sets, three times, at all requests, and at all sessions, for whose calls it waits.
int spillway_pagecache_remove(spillway_pagecache_session *session, spillway_pagecache_file *file);

// ---- Sessions: calls that block
//
// A call for a range does all of it, or fails. Pages that are not in memory are read together, 64 at a time. A page that cannot be written
// back stays in memory, and is written again later; until then calls that need its frame fail, also those for other files, and so does each
// sync.
//
// Errors of calls for a range: INVALID: the range is not within the file, the file is another cache's, or an argument is null that should
// not be; IO, also if a file has become shorter than it was when it was added; DAMAGED: until the page has been written as a whole; FULL;
// IN_USE: pages that others, or views, hold were in the way for wait_ms_max; NO_MEMORY.
// Cost of a page that is in memory: no lock, and two lines of the CPU's cache beside the bytes; of another one: a read, and a write if
// every page that may leave is dirty.

// Opens a session, which the caller closes. `*session` is null on errors. Errors: INVALID, NO_MEMORY. Any thread. Cost: memory only; the
// first call that needs I/O for a file costs some system calls, and a descriptor or two.
int spillway_pagecache_session_open(spillway_pagecache *cache, spillway_pagecache_session **session);
// Errors: IN_USE: views of the session are held; nothing is done. Null: nothing is done.
int spillway_pagecache_session_close(spillway_pagecache_session *session);

// Reads the range to the caller's memory.
int spillway_pagecache_read(spillway_pagecache_session *session, spillway_pagecache_file *file,
                            uint64_t offset, void *to, size_t bytes);
// Writes the range from the caller's memory. After an error some pages of the range may have been written. A page that is written as a
// whole is not read before. Errors also: DENIED: the file is read_only. Cost also: a wait for the write of one page, if too many pages are
// dirty.
int spillway_pagecache_write(spillway_pagecache_session *session, spillway_pagecache_file *file,
                             uint64_t offset, const void *from, size_t bytes);
// Reads and changes bytes of a page where they are, in memory, and gets their offset in the file. They are aligned as the offset is. It
// must not call this library, and no exception may leave it.
typedef void (*spillway_pagecache_change)(void *context, void *piece, size_t piece_bytes, uint64_t offset);
// Read, modify, write: calls change() for the part of the range in each page, in their order. Nobody else sees that page meanwhile. Errors
// and cost: as write.
int spillway_pagecache_update(spillway_pagecache_session *session, spillway_pagecache_file *file,
                              uint64_t offset, size_t bytes, spillway_pagecache_change change, void *context);

// Bytes of a page where they are in memory. The struct is the caller's, who sets struct_bytes; the call sets the rest.
typedef struct spillway_pagecache_view {
  size_t struct_bytes;
  const void *data;   // as aligned as the offset is, up to 4 KiB; with checksums up to 8 bytes
  size_t data_bytes;  // how many bytes of the range are in its first page
  void *holder;       // the library's: what holds the page until it is released; null: nothing is held
} spillway_pagecache_view;
// Gives access to the bytes of the range that are in its first page, without a copy, for reading from any thread. Until the view is
// released the page stays in memory, and nobody writes to it: whoever wants to, this thread too, waits. So hold few views at a time, and
// not for long: seven that happen to be in one set can be all of it. A view of no bytes, or after an error, holds nothing. Errors: as read.
// Cost: that of a read, without the copy.
int spillway_pagecache_view_get(spillway_pagecache_session *session, spillway_pagecache_file *file,
                                uint64_t offset, size_t bytes, spillway_pagecache_view *view);
// Releases what the view holds, and sets data and holder to null. Null, or a view that holds nothing: nothing is done. Counts as a call of
// the view's session, which takes one at a time.
void spillway_pagecache_view_release(spillway_pagecache_view *view);

// When this returns OK, everything that was written to the file before the call is on its device for good. Errors: IO, FULL, IN_USE,
// NO_MEMORY, INVALID. After a flush of the device has failed, each later sync of the file fails, too. Cost: a look at all sets; writes of
// all dirty pages of the file, neighbours together, 64 at a time; a flush, which syncs that come together share.
int spillway_pagecache_sync(spillway_pagecache_session *session, spillway_pagecache_file *file);

// Changes how much memory the cache has, while others use it. Pages that stay are not read again. Errors: INVALID: more than
// memory_bytes_max, or less than one set takes; then nothing has changed. IN_USE: another call is resizing the cache, or pages are held for
// wait_ms_max, perhaps by the caller's own views; IO and FULL, of any file whose pages have to leave: then the cache has a size between the
// two, and another call goes on from there. Cost: for each page that leaves a write, if it is dirty; for each that stays a lock and a few
// stores at most; when it shrinks a copy of some of these. (docs/pagecache.md, "Changing the size")
int spillway_pagecache_resize(spillway_pagecache_session *session, uint64_t memory_bytes);

// ---- Queues: asynchronous requests
//
// Arrays of requests; a callback for each of them runs on the thread that polls, when the request has ended. Submit itself carries out
// requests for pages that are in memory; others go to the cache's threads, up to 64 in a message. (set-associative page cache, figure 2)

typedef struct spillway_pagecache_queue_options {
  size_t struct_bytes;
  uint32_t requests;  // how many may be submitted and not yet polled: 1 to 65,536; 0: 256
  uint32_t reserved;
} spillway_pagecache_queue_options;

enum {
  SPILLWAY_PAGECACHE_READ = 0,
  SPILLWAY_PAGECACHE_WRITE = 1,
};

// How a request has ended. The library's, and valid until the callback returns; a newer library's may have more members.
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
// Errors: IN_USE: there are requests whose callback has not run, or this is called in a callback; nothing is done. Null: nothing is done.
int spillway_pagecache_queue_close(spillway_pagecache_queue *queue);

// Takes requests from the front, and sets `*taken`, if that is not null, to how many: their callbacks will run once each, and never in
// here. Returns OK: all were taken; BUSY: the queue is full; or an error of the first one that was not taken: INVALID, DENIED. (Only its
// callback is told of a range that is not within the file.) The requests are copied; struct_bytes is the same in all of them. Requests of
// one queue end in any order, also those for the same bytes. Cost: of a range within a page that is in memory that of a session's call;
// otherwise a share of a message, which takes a lock, and a system call if the thread that it goes to sleeps.
int spillway_pagecache_submit(spillway_pagecache_queue *queue, const spillway_pagecache_request *requests,
                              size_t count, size_t *taken);
// Runs the callbacks of requests that have ended, on the calling thread, and returns how many these were. If none has ended it waits until
// one does, for `timeout_ms` milliseconds at most (0: it does not wait; below 0: without a limit), but not if nothing is submitted. Called
// in a callback, or for null: 0.
size_t spillway_pagecache_poll(spillway_pagecache_queue *queue, int timeout_ms);
// A descriptor for poll() and epoll, which becomes readable when the cache's threads have ended something, and now and then for nothing.
// Before waiting for it, call spillway_pagecache_poll until that returns 0: submit alone sends a message only when it is full. The
// descriptor is the library's, and lasts as long as the queue; nobody reads from it. Counts as a call of the queue, which takes one at a
// time. Returns an error below 0: INVALID, NO_MEMORY. Cost: from the first call on, a system call for each message that comes back, and for
// each poll.
int spillway_pagecache_event(spillway_pagecache_queue *queue);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
