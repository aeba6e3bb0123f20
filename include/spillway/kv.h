// A key-value store on a flash device or file, embedded in a C or C++ program. (After uDepot, FAST 2019; docs/kv-api.md)
//
//   spillway_kv_make("/dev/nvme0n1", NULL);                        once; a file needs a capacity in its options
//   spillway_kv *store;              spillway_kv_open("/dev/nvme0n1", NULL, &store);
//   spillway_kv_session *session;    spillway_kv_session_open(store, &session);
//   struct iovec value = {"value", 5};
//   spillway_kv_put(session, "key", 3, &value, 1, NULL, NULL);
//   char buffer[100];
//   spillway_kv_get(session, "key", 3, buffer, sizeof buffer, NULL);
//   spillway_kv_session_close(session);    spillway_kv_close(store);
//
// Results. A call returns a status: SPILLWAY_KV_OK; or above 0 an outcome (there is no such key, it has another version: nothing went wrong); or below 0
// an error, of which spillway_kv_error_text() has one line. After IO or NO_MEMORY in a change it is not known whether the change was made, and after
// FULL if it is the file system that is full: it may be there when the store is opened again after a crash.
//
// Threads. A store may be used by all threads at a time. A session takes one call at a time, from any thread: have one for each thread, or keep some and
// hand them out. Calls block. Programs that must not block use a queue (below): any thread submits requests, and polls for their ends.
// After fork() the child must use none of these.
//
// Structs that the caller fills in begin with `struct_bytes`, which is set to their sizeof; all other members are 0 where nothing is wanted:
//   spillway_kv_change_options options = {.struct_bytes = sizeof options, .when = SPILLWAY_KV_IF_ABSENT};
// So structs may grow: a program runs with a newer library, and with an older one unless it sets members that the older one does not have.
// Null for a struct of options means all defaults. Sizes are in bytes, times in milliseconds since 1970.
//
// Keys have 1 to 65,536 bytes of any kind, values 0 to 4 GiB. A value is large above 1 MiB, in stores of less than 1 GiB above a quarter of a segment
// (plain_value_bytes_max of spillway_kv_stats). It is stored in pieces, but is one value all the same: a get finds all of it, or all of another one.
#ifndef SPILLWAY_KV_H
#define SPILLWAY_KV_H
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct spillway_kv spillway_kv;
typedef struct spillway_kv_session spillway_kv_session;
typedef struct spillway_kv_queue spillway_kv_queue;
typedef struct spillway_kv_writer spillway_kv_writer;
typedef struct spillway_kv_iteration spillway_kv_iteration;

enum {
  SPILLWAY_KV_OK = 0,
  // Outcomes; nothing was done.
  SPILLWAY_KV_ABSENT = 1,         // there is no such key, or it has expired
  SPILLWAY_KV_PRESENT = 2,        // there is such a key, and it should not be there
  SPILLWAY_KV_OTHER_VERSION = 3,  // the key has another version
  SPILLWAY_KV_TOO_SMALL = 4,      // the buffer is too small for the value
  SPILLWAY_KV_BUSY = 5,           // the queue has as many requests as it takes: poll first
  // Errors.
  SPILLWAY_KV_INVALID = -1,    // an argument is wrong: the text says which, and what it may be
  SPILLWAY_KV_NO_MEMORY = -2,  // there is no memory, or no descriptor or thread
  SPILLWAY_KV_FULL = -3,       // the device or the store is full, or too small
  SPILLWAY_KV_TOO_LARGE = -4,  // the value is too large
  SPILLWAY_KV_DAMAGED = -5,    // what is on the device is not what was written
  SPILLWAY_KV_IO = -6,         // the device or the system failed
  SPILLWAY_KV_IN_USE = -7,     // somebody else uses it, or something has to be closed first
  SPILLWAY_KV_EXISTS = -8,     // there is content that would be lost
  SPILLWAY_KV_NOT_FOUND = -9,  // there is no such file or device
  SPILLWAY_KV_DENIED = -10,    // there is no permission, or the store is read only
  SPILLWAY_KV_NEWER = -11,     // the store is of a later version of Spillway
  SPILLWAY_KV_CANCELED = -12,  // the iteration is over: too much has changed
};

// A change that has returned OK is there after the process was killed. After a power cut it is there
enum {
  SPILLWAY_KV_SYNC = 0,   // in any case
  SPILLWAY_KV_BATCH = 1,  // unless it returned within the last batch_ms
  SPILLWAY_KV_NONE = 2,   // if the device's own cache has kept it
};

// The condition of a change.
enum {
  SPILLWAY_KV_ALWAYS = 0,
  SPILLWAY_KV_IF_ABSENT = 1,
  SPILLWAY_KV_IF_PRESENT = 2,
  SPILLWAY_KV_IF_VERSION = 3,
};

typedef struct spillway_kv_make_options {
  size_t struct_bytes;
  uint64_t capacity_bytes;  // 0: all of a device, or a file's size; needed for a new file
  // What is filled and collected at a time: a power of two from 1 MiB to 1 GiB; 0: by the capacity.
  uint64_t segment_bytes;
  // Records take whole grains: 512, 1024, 2048 or 4096; 0: 512; at least the device's block.
  uint32_t grain_bytes;
  // How much of the capacity values do not fill, so that collection is cheap: up to 90; 0: 10.
  uint32_t spare_percent;
  uint32_t overwrite;  // 1: what the device holds may be lost
  uint32_t reserved;   // 0
} spillway_kv_make_options;

typedef struct spillway_kv_open_options {
  size_t struct_bytes;
  uint32_t durability;  // SPILLWAY_KV_SYNC, _BATCH or _NONE
  uint32_t batch_ms;    // for SPILLWAY_KV_BATCH; 0: 10
  // 1: nothing is written, so that the device may be one that cannot be written to; changes end with DENIED.
  uint32_t read_only;
  uint32_t reserved;  // 0
  // The most memory for copies of records in use, which then need no I/O; 0: none. Index and buffers take memory besides.
  uint64_t memory_bytes;
} spillway_kv_open_options;

typedef struct spillway_kv_change_options {
  size_t struct_bytes;
  uint32_t when;        // SPILLWAY_KV_ALWAYS, _IF_ABSENT, _IF_PRESENT or _IF_VERSION
  uint32_t flags;       // the caller's own, kept with the value
  uint64_t version;     // for SPILLWAY_KV_IF_VERSION
  uint64_t expires_ms;  // the time from which on the key is absent, below 2^48; 0: never
} spillway_kv_change_options;

// What a get has found. The caller's memory, with struct_bytes set; the call sets the rest. Unless `status` is OK or TOO_SMALL, all other members are 0.
typedef struct spillway_kv_value {
  size_t struct_bytes;
  const void *data;
  size_t data_bytes;    // the value's size
  uint64_t version;     // of this value: a larger one is newer
  uint64_t expires_ms;  // 0: never
  uint32_t flags;
  int32_t status;
  // The library's, which has the memory of `data` until it is released; null: nothing is to be released.
  void *holder;
} spillway_kv_value;

// ---- Stores

// Makes an empty store on a device: a path, or a device string ("memory:64M", "uring:/dev/nvme0n1?qd=128", "stripe:[a,b]"; docs/storage.md).
// A file gets its size at once, with holes; so does each file of a stripe. A failure makes no file, and leaves alone what somebody else makes there
// meanwhile. Errors: EXISTS: a file has anything but zeros, or another device has in its first or last MiB, and `overwrite` is not set; INVALID; FULL:
// the device is too small; IN_USE, DENIED, NO_MEMORY, IO. Cost: reads what a file holds; two writes for each segment.
int spillway_kv_make(const char *device, const spillway_kv_make_options *options);
// Opens the store on a device, which nobody else can open meanwhile if it is of files or block devices. `*store` is null after an error. Errors:
// NOT_FOUND; INVALID: there is no store; FULL: the device is smaller than the store on it; NEWER, DAMAGED, IN_USE, DENIED, NO_MEMORY, IO.
// Cost: reads both ends of each segment, and 8 bytes for each key, or if there is no checkpoint 32 for each record that was written; after a crash
// some segments as well. Starts two threads, none with `read_only`.
int spillway_kv_open(const char *device, const spillway_kv_open_options *options, spillway_kv **store);
// Makes a store in memory of this process and opens it. It is gone when it is closed. Errors: as of make and open.
int spillway_kv_open_memory(uint64_t capacity_bytes, const spillway_kv_open_options *options,
                            spillway_kv **store);
// Closes a store. OK: what was put is durable. IO, FULL: the last of it may not be; the store is closed all the same. IN_USE: sessions or queues of it
// are open, and nothing is done. Null: nothing is done. Cost: some writes and flushes; if the next open would have to read
// much otherwise, a checkpoint of 8 bytes for each key.
int spillway_kv_close(spillway_kv *store);

// Tells what the store holds and where, and how long calls took and what was read and written since it was opened: one JSON object of objects, with
// units in its names (docs/kv.md, "Statistics"), of at most 8 KiB. Writes at most `bytes` to `text`, with a 0 at the end, and to `*needed_bytes`, if
// not null, how many the whole text takes with its 0. OK, or TOO_SMALL. Any thread. Cost: no I/O; looks at each segment, table and session.
int spillway_kv_stats(spillway_kv *store, char *text, size_t bytes, size_t *needed_bytes);

// "0.1.0"
const char *spillway_kv_version(void);
// A short text for each status, "no such key"; never null. Any thread.
const char *spillway_kv_status_text(int status);
// The line of this session's last call that returned an error: what, where, what to do; "" if none has. Valid until the session's next call. Null: that
// of the calling thread's last call without a session that returned an error.
const char *spillway_kv_error_text(const spillway_kv_session *session);

// ---- Sessions

// Opens a session. `*session` is null after an error. Errors: NO_MEMORY, IO. Cost: some system calls, and 8 to 24 KiB; memory for values comes with
// use, and is given back with the session.
int spillway_kv_session_open(spillway_kv *store, spillway_kv_session **session);
// Closes a session. IN_USE: values, writers or iterations of it have not been given back or closed, and nothing is done. Null: nothing is done.
int spillway_kv_session_close(spillway_kv_session *session);

// Copies the key's value to `buffer`. `value`, if not null, tells about it; its holder is null. OK; ABSENT; TOO_SMALL: the buffer's content is not
// defined, and value->data_bytes is the size that is needed. A buffer of 0 bytes asks for the size. Errors: INVALID for the key, DAMAGED, IO,
// NO_MEMORY. Cost: one I/O, or none if the record is in memory, and one copy; a large value has one more I/O for each piece.
int spillway_kv_get(spillway_kv_session *session, const void *key, size_t key_bytes, void *buffer,
                    size_t buffer_bytes, spillway_kv_value *value);
// The same without a copy: value->data is in the session's memory until spillway_kv_value_release(), and may be read by any thread. Of a large value
// `data` is null, and spillway_kv_value_read() reads it.
int spillway_kv_get_value(spillway_kv_session *session, const void *key, size_t key_bytes,
                          spillway_kv_value *value);
// The same for many keys, each the bytes of an iovec: their reads are in flight together, 64 at a time. Sets values[0] to values[count - 1], each with
// a status of its own; values[0].struct_bytes is set and counts for all. All are to be released. The values are not of one moment. Returns OK, or the
// error of the first key that has one; other keys have their values nevertheless.
int spillway_kv_get_many(spillway_kv_session *session, const struct iovec *keys, size_t count,
                         spillway_kv_value *values);
// Gives back what the values hold, and sets `data` and `holder` of these to null. Values that hold nothing are left alone. For threads this counts as
// a call of the values' session. Null: nothing is done.
void spillway_kv_value_release(spillway_kv_value *values, size_t count);

// Copies what there is of a value that is held, large or not, from `offset` on, and sets `*read_bytes`, if not null, to how much that is. It is of the
// version that was found, whatever others do. A call of the value's session. Errors: INVALID: the value holds nothing (the text is the thread's);
// DAMAGED, IO, NO_MEMORY. Cost: of a large value one I/O for each piece, of 1 MiB or less, but the one read last.
int spillway_kv_value_read(spillway_kv_value *value, uint64_t offset, void *to, size_t bytes,
                           size_t *read_bytes);

// Puts a value: the pieces of `value`, one behind the other; with value_count 0 an empty one. It replaces what is under the key, with expiry and flags.
// OK: `*version`, if not null, is that of the new value. By options->when also PRESENT, ABSENT or OTHER_VERSION: nothing was done, and `*version` is that
// of what is there, or 0. Errors: INVALID, TOO_LARGE, FULL, NO_MEMORY, IO, DENIED; DAMAGED: there is a condition, and the record that it depends on
// cannot be read. After a flush has failed all changes have IO or FULL. Cost: one write; with SPILLWAY_KV_SYNC a flush, which calls at the same
// time share; a read of what is replaced; one copy, and another one if there are several pieces.
int spillway_kv_put(spillway_kv_session *session, const void *key, size_t key_bytes,
                    const struct iovec *value, size_t value_count, const spillway_kv_change_options *options,
                    uint64_t *version);
// Removes a key. Of the options `when` (ALWAYS, IF_PRESENT, IF_VERSION) and `version` count. OK: `*version`, if not null, is 0; ABSENT; OTHER_VERSION.
// Else `*version` and errors are as of put. Cost: a read, and if the key is there, as a put.
int spillway_kv_remove(spillway_kv_session *session, const void *key, size_t key_bytes,
                       const spillway_kv_change_options *options, uint64_t *version);

// Puts a value that comes in parts, in the memory of one piece. The value is there when commit has returned OK, and never in part. These four are calls
// of the session, which may have other calls between them. Errors of open: INVALID, NO_MEMORY, DENIED; `*writer` is null then.
int spillway_kv_writer_open(spillway_kv_session *session, const void *key, size_t key_bytes,
                            spillway_kv_writer **writer);
// Appends a part. Errors: as of put; after an error the writer can only be abandoned. Cost: one write for each full piece.
int spillway_kv_writer_append(spillway_kv_writer *writer, const void *part, size_t bytes);
// Puts what was appended: as put. The writer is gone, however this ends.
int spillway_kv_writer_commit(spillway_kv_writer *writer, const spillway_kv_change_options *options,
                              uint64_t *version);
// Forgets what was appended; the writer is gone. Null: nothing is done.
void spillway_kv_writer_abandon(spillway_kv_writer *writer);

// One change of many.
typedef struct spillway_kv_change {
  size_t struct_bytes;
  const void *key;
  size_t key_bytes;
  const struct iovec *value;  // pieces, as of put
  size_t value_count;
  const spillway_kv_change_options *options;  // may be null
  uint64_t version;                           // set by the call
  int32_t status;                             // set by the call: what a put or remove would return
  uint32_t is_remove;                         // 1: removes the key
} spillway_kv_change;
// Makes the changes, many at a time but not as one: others may see some of them, and a crash may leave some. Changes of the same key are made in their
// order, except for large values. changes[0].struct_bytes is set and counts for all. Returns OK, or the error of the first change that has one; the
// others are made nevertheless. The first call for a store starts a thread. Cost: as of that many puts, but with few flushes.
int spillway_kv_change_many(spillway_kv_session *session, spillway_kv_change *changes, size_t count);

// ---- Iterations: all keys as they were at one moment
//
//   spillway_kv_iteration *iteration;    spillway_kv_iterate_open(session, &iteration);
//   const void *key;    size_t key_bytes;    spillway_kv_value value = {.struct_bytes = sizeof value};
//   while ((status = spillway_kv_iterate_next(iteration, &key, &key_bytes, &value)) == SPILLWAY_KV_OK) use(key, value.data);
//   spillway_kv_iterate_close(iteration);
//
// These are calls of the session, which may have other calls between them.

// Opens an iteration. Its moment is within the call: it shows what was changed before the call, and not what is changed after it. Keys that expire later may
// be left out. Until it is closed, old values that it has not come to take room on the device. `*iteration` is null after an error. Errors: IN_USE: 8 are
// open in the store; NO_MEMORY. Cost: no I/O.
int spillway_kv_iterate_open(spillway_kv_session *session, spillway_kv_iteration **iteration);
// Gives the next key, in no order, each once. OK, or ABSENT after the last one. The key and value->data stay until the iteration's next
// spillway_kv_iterate_next() or _close(); value->holder is null. Of a large value `data` is null, and data_bytes is its size. Each of the three places may
// be null. Errors: CANCELED: others have changed more than can be kept, or need the room; the iteration is over, and to be closed. DAMAGED, IO,
// NO_MEMORY: the next call goes on behind what could not be read. Cost: an I/O for each key, 64 at a time.
int spillway_kv_iterate_next(spillway_kv_iteration *iteration, const void **key, size_t *key_bytes,
                             spillway_kv_value *value);
// Copies what there is of the last key's value from `offset` on, and sets `*read_bytes`, if not null, to how much that is. Errors: as of next; INVALID: the
// last call of next gave no key. Cost: as of spillway_kv_value_read.
int spillway_kv_iterate_read(spillway_kv_iteration *iteration, uint64_t offset, void *buffer,
                             size_t buffer_bytes, size_t *read_bytes);
// Closes the iteration. Returns OK. Null: nothing is done.
int spillway_kv_iterate_close(spillway_kv_iteration *iteration);

// ---- Queues: asynchronous requests
//
// A queue has threads of its own, on which tasks carry out many requests at a time. Whoever submits a request goes on at once; how it ended is told to
// its callback, on a thread that polls. Changes of one key that one thread submits to one queue are made in that order, except for large values. Other
// requests are carried out in any order, so that a get may miss a put that has not ended.

typedef struct spillway_kv_queue_options {
  size_t struct_bytes;
  uint32_t requests;  // how many may be submitted and not polled yet: 1 to 65,536; 0: 256
  // How many are carried out at a time: 1 to 4,096; 0: 64, or `requests` if that is less.
  uint32_t outstanding;
  uint32_t threads;  // 1 to 64; 0: 1. Each carries out its share of `outstanding`, rounded down, at least one
  uint32_t reserved;  // 0
} spillway_kv_queue_options;

// How a request ended: for a get what was found; for a change `version` as of put. `value` and `error_text` are the library's until the callback
// returns. The struct may have more members in a newer library.
typedef struct spillway_kv_result {
  size_t struct_bytes;
  int32_t status;
  uint32_t reserved;
  spillway_kv_value value;  // `data` is in the request's buffer, or if that was null in the library's memory
  const char *error_text;   // "" where there is no error
} spillway_kv_result;
// A callback may submit requests. It must not close the queue or its store, and no exception may leave it.
typedef void (*spillway_kv_done)(void *context, const spillway_kv_result *result);

// Opens a queue. `*queue` is null after an error. Errors: INVALID, NO_MEMORY, IO. Cost: threads; 256 KiB of address space for each outstanding request.
int spillway_kv_queue_open(spillway_kv *store, const spillway_kv_queue_options *options,
                           spillway_kv_queue **queue);
// Closes a queue. IN_USE: there are requests whose callbacks have not returned, and nothing is done. Null: nothing is done. No other thread may be in a
// call of the queue, such as spillway_kv_poll, or begin one.
int spillway_kv_queue_close(spillway_kv_queue *queue);

// These three return OK, and the callback runs once; or BUSY or INVALID, and it does not run (the text is the thread's). The key, the buffer and the bytes
// of the value must stay as they are until the callback runs; options and the list of pieces are copied. Any thread. Cost: a lock; a system call if a
// thread sleeps.
//
// Submits a get. The value is copied to `buffer`, or if that is null to memory of the library's.
int spillway_kv_submit_get(spillway_kv_queue *queue, const void *key, size_t key_bytes, void *buffer,
                           size_t buffer_bytes, spillway_kv_done done, void *context);
// Submits a put, of at most 16 pieces.
int spillway_kv_submit_put(spillway_kv_queue *queue, const void *key, size_t key_bytes,
                           const struct iovec *value, size_t value_count,
                           const spillway_kv_change_options *options, spillway_kv_done done, void *context);
// Submits a remove.
int spillway_kv_submit_remove(spillway_kv_queue *queue, const void *key, size_t key_bytes,
                              const spillway_kv_change_options *options, spillway_kv_done done,
                              void *context);

// Runs the callbacks of requests that have ended, at most `most` of them (0: all), on the calling thread, and returns how many those were. If none has
// ended, waits for one for `timeout_ms` (0: does not wait; -1: as long as it takes), unless nothing is under way. Any thread; the callbacks may be of
// requests that other threads have submitted.
size_t spillway_kv_poll(spillway_kv_queue *queue, size_t most, int timeout_ms);
// A descriptor for poll() and epoll: it is readable while there is something to poll, and now and then without. It is the library's, which closes it
// with the queue; it must not be read. Null: INVALID.
int spillway_kv_event(const spillway_kv_queue *queue);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
