// A key-value store on a flash device or file, embedded in a C or C++ program. (After uDepot, FAST 2019, section 4; docs/kv-api.md)
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
// Results. A call returns a status: SPILLWAY_KV_OK; above 0 an outcome (there is no such key, it has another version: nothing went wrong); below 0
// an error, for which spillway_kv_error_text() has one line. If a change ends with IO or NO_MEMORY, or with FULL because the file system is full, it is
// not known whether it was made: it may be there when the store is opened again after a crash.
//
// Threads. All threads may use a store at the same time. A session takes one call at a time, from any thread: have one for each thread, or keep some and
// hand them out. Calls block. Programs that must not block use a queue (below): any thread submits requests, and polls for their completion.
// The child of a fork() must use none of these.
//
// Structs that the caller fills in begin with `struct_bytes`, which the caller sets to the struct's sizeof; members that are not wanted are 0:
//   spillway_kv_change_options options = {.struct_bytes = sizeof options, .when = SPILLWAY_KV_IF_ABSENT};
// So structs may grow: a program runs with a newer library, and with an older one unless it sets members that the older one does not have.
// Null for a struct of options means all defaults. Sizes are in bytes, times in milliseconds since 1970.
//
// A key is 1 to 65,536 bytes of any kind, a value 0 to 4 GiB. A value is called large above 1 MiB, in stores of less than 1 GiB above a quarter of a
// segment (plain_value_bytes_max of spillway_kv_stats). It is stored in pieces, but is one value all the same: a get finds all of it, or all of another
// one. A segment is what the store fills, and later collects, at a time.
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
  SPILLWAY_KV_DAMAGED = -5,    // what was read from the device is not what was written
  SPILLWAY_KV_IO = -6,         // the device or the system failed
  SPILLWAY_KV_IN_USE = -7,     // somebody else uses it, or something has to be closed first
  SPILLWAY_KV_EXISTS = -8,     // there is content that would be lost
  SPILLWAY_KV_NOT_FOUND = -9,  // there is no such file or device
  SPILLWAY_KV_DENIED = -10,    // there is no permission, or the store is read only
  SPILLWAY_KV_NEWER = -11,     // a later version of Spillway has made the store
  SPILLWAY_KV_CANCELED = -12,  // the iteration is over: too much has changed
};

// Durability. A change that has returned OK is never lost when the process is killed. Whether a power cut may lose it:
enum {
  SPILLWAY_KV_SYNC = 0,   // no
  SPILLWAY_KV_BATCH = 1,  // only if it returned within the last batch_ms
  SPILLWAY_KV_NONE = 2,   // yes, as long as it is in the device's own cache
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
  uint64_t capacity_bytes;  // 0: all of a device, or the file's size; required for a new file
  // The unit that is filled, and later collected: a power of two from 1 MiB to 1 GiB; 0: chosen by the capacity.
  uint64_t segment_bytes;
  // Records take whole grains of 512, 1024, 2048 or 4096 bytes, at least the device's block; 0: 512.
  uint32_t grain_bytes;
  // The share of the capacity that is kept free of values, so that collection is cheap: up to 90; 0: 10.
  uint32_t spare_percent;
  uint32_t overwrite;  // 1: what the device holds may be overwritten
  uint32_t reserved;   // 0
} spillway_kv_make_options;

typedef struct spillway_kv_open_options {
  size_t struct_bytes;
  uint32_t durability;  // SPILLWAY_KV_SYNC, _BATCH or _NONE
  uint32_t batch_ms;    // for SPILLWAY_KV_BATCH; 0: 10
  // 1: nothing is written, so the device may be one that cannot be written to; changes end with DENIED.
  uint32_t read_only;
  uint32_t reserved;  // 0
  // The most memory for copies of records in use, which then need no I/O; 0: none. The index and buffers are not included.
  uint64_t memory_bytes;
} spillway_kv_open_options;

typedef struct spillway_kv_change_options {
  size_t struct_bytes;
  uint32_t when;        // SPILLWAY_KV_ALWAYS, _IF_ABSENT, _IF_PRESENT or _IF_VERSION
  uint32_t flags;       // the caller's own, kept with the value
  uint64_t version;     // for SPILLWAY_KV_IF_VERSION
  uint64_t expires_ms;  // the time from which on the key is absent, below 2^48; 0: never
} spillway_kv_change_options;

// What a get has found. The struct is the caller's, who sets struct_bytes; the call sets the rest. Unless `status` is OK or TOO_SMALL, all other members
// are 0.
typedef struct spillway_kv_value {
  size_t struct_bytes;
  const void *data;
  size_t data_bytes;    // the value's size
  uint64_t version;     // of this value: a larger one is newer
  uint64_t expires_ms;  // 0: never
  uint32_t flags;
  int32_t status;
  // The library's: it keeps the memory of `data` until spillway_kv_value_release(); null: there is nothing to release.
  void *holder;
} spillway_kv_value;

// ---- Stores

// Makes an empty store on a device: a path, or a device string ("memory:64M", "uring:/dev/nvme0n1?qd=128", "stripe:[a,b]"; docs/storage.md).
// A file gets its full size at once, with holes; so does each file of a stripe. A call that fails leaves no file behind, and does not touch one that
// somebody else makes there meanwhile. Errors: EXISTS: `overwrite` is not set, and a file has anything but zeros, or another device has in its first or
// last MiB; INVALID; FULL: the device is too small; IN_USE, DENIED, NO_MEMORY, IO. Cost: reads what a file holds; two writes for each segment.
int spillway_kv_make(const char *device, const spillway_kv_make_options *options);
// Opens the store on a device; the caller closes it. As long as it is open nobody else can open a store on the same files or block devices. `*store` is
// null after an error. Errors: NOT_FOUND; INVALID: there is no store; FULL: the device is smaller than the store on it; NEWER, DAMAGED, IN_USE, DENIED,
// NO_MEMORY, IO. Cost: reads both ends of each segment and 8 bytes for each key, or, if there is no checkpoint, 32 for each record that was written;
// after a crash some segments as well. Starts two threads, with `read_only` none.
int spillway_kv_open(const char *device, const spillway_kv_open_options *options, spillway_kv **store);
// Makes a store in the memory of this process, and opens it. It is gone once it is closed. Errors: those of make and open.
int spillway_kv_open_memory(uint64_t capacity_bytes, const spillway_kv_open_options *options,
                            spillway_kv **store);
// Closes a store. OK: all changes are durable. Errors: IO, FULL: the last changes may not be; the store is closed all the same. IN_USE: sessions or
// queues of it are open, and nothing is done. Null: nothing is done. REQUIRES: no other thread is in a call of the store. Cost: some writes and flushes;
// and a checkpoint of 8 bytes for each key, if the next open would have to read much without it.
int spillway_kv_close(spillway_kv *store);

// Tells what the store holds and where, and how long calls took and what was read and written since it was opened: one JSON object of objects, at most
// 8 KiB, whose names end in their units (docs/kv.md, "Statistics"). Writes at most `bytes` bytes to `text`, with a 0 at the end, and sets
// `*needed_bytes`, if not null, to what the whole text takes with its 0. Returns OK or TOO_SMALL. Any thread. Cost: no I/O; looks at each segment, table
// of the index and session.
int spillway_kv_stats(spillway_kv *store, char *text, size_t bytes, size_t *needed_bytes);

// "0.1.0"
const char *spillway_kv_version(void);
// A short text for each status, such as "no such key"; never null. Any thread.
const char *spillway_kv_status_text(int status);
// One line about the session's last call that returned an error: what could not be done, where, and what to do; "" if none has. Valid until the
// session's next call. With null: about the calling thread's last call without a session that returned an error.
const char *spillway_kv_error_text(const spillway_kv_session *session);

// ---- Sessions

// Opens a session, which the caller closes. `*session` is null after an error. Errors: NO_MEMORY, IO. Cost: some system calls, and 8 to 24 KiB; memory
// for values is taken as it is needed, and given back when the session is closed.
int spillway_kv_session_open(spillway_kv *store, spillway_kv_session **session);
// Closes a session. Errors: IN_USE: values, writers or iterations of it have not been given back or closed, and nothing is done. Null: nothing is done.
int spillway_kv_session_close(spillway_kv_session *session);

// Copies the key's value to `buffer`. `*value`, if not null, describes it; its holder is null. OK; ABSENT; TOO_SMALL: the buffer's content is undefined,
// and value->data_bytes is the size that is needed. A buffer of 0 bytes asks for the size. Errors: INVALID for the key, DAMAGED, IO, NO_MEMORY.
// Cost: one I/O, or none if the record is in memory, and one copy; for a large value one more I/O for each piece.
int spillway_kv_get(spillway_kv_session *session, const void *key, size_t key_bytes, void *buffer,
                    size_t buffer_bytes, spillway_kv_value *value);
// The same without a copy: value->data lies in the session's memory until spillway_kv_value_release(), and any thread may read it. For a large value
// `data` is null, and spillway_kv_value_read() reads it.
int spillway_kv_get_value(spillway_kv_session *session, const void *key, size_t key_bytes,
                          spillway_kv_value *value);
// The same for many keys, each the bytes of an iovec: their reads are in flight together, 64 at a time. Sets values[0] to values[count - 1], each with
// a status of its own; the caller sets values[0].struct_bytes, which counts for all. All have to be released. The values are not all of the same moment.
// Returns OK, or the error of the first key that has one; the other keys have their values all the same.
int spillway_kv_get_many(spillway_kv_session *session, const struct iovec *keys, size_t count,
                         spillway_kv_value *values);
// Gives back what the values hold, and sets their `data` and `holder` to null. Values that hold nothing are left alone. Counts as a call of the values'
// session, which takes one at a time. Null: nothing is done.
void spillway_kv_value_release(spillway_kv_value *values, size_t count);

// Copies up to `bytes` bytes of a value that is held, large or not, from `offset` on, and sets `*read_bytes`, if not null, to how many there were. They
// are of the version that was found, whatever others do. Counts as a call of the value's session. Errors: INVALID: the value holds nothing (the thread's
// error text says so); DAMAGED, IO, NO_MEMORY. Cost: for a large value one I/O for each piece of up to 1 MiB, except the piece that was read last.
int spillway_kv_value_read(spillway_kv_value *value, uint64_t offset, void *to, size_t bytes,
                           size_t *read_bytes);

// Puts a value: the pieces of `value`, one behind the other; with value_count 0 an empty value. It replaces what is under the key, with expiry and flags.
// OK: `*version`, if not null, is that of the new value. If options->when was not met, PRESENT, ABSENT or OTHER_VERSION: nothing was done, and `*version`
// is that of what is there, or 0. Errors: INVALID, TOO_LARGE, FULL, NO_MEMORY, IO, DENIED; DAMAGED: there is a condition, and the record that it depends
// on cannot be read. Once a flush has failed, all changes end with IO or FULL. Cost: one write; with SPILLWAY_KV_SYNC a flush, which calls at the same
// time share; a read of what is replaced; one copy, and another one if there are several pieces.
int spillway_kv_put(spillway_kv_session *session, const void *key, size_t key_bytes,
                    const struct iovec *value, size_t value_count, const spillway_kv_change_options *options,
                    uint64_t *version);
// Removes a key. Of the options only `when` (ALWAYS, IF_PRESENT, IF_VERSION) and `version` count. OK: `*version`, if not null, is 0; ABSENT;
// OTHER_VERSION. Otherwise `*version` and errors are those of put. Cost: a read, and, if the key is there, that of a put.
int spillway_kv_remove(spillway_kv_session *session, const void *key, size_t key_bytes,
                       const spillway_kv_change_options *options, uint64_t *version);

// A writer puts a value that comes in parts, and takes the memory of one piece. The value is there when commit has returned OK, and never only a part of
// it. The next four functions count as calls of the session, which may have other calls between them. Opens a writer, which commit or abandon ends.
// Errors: INVALID, NO_MEMORY, DENIED; `*writer` is null then. Cost: no I/O.
int spillway_kv_writer_open(spillway_kv_session *session, const void *key, size_t key_bytes,
                            spillway_kv_writer **writer);
// Appends a part, which is copied. Errors: those of put; after an error the writer can only be abandoned. Cost: one write for each full piece.
int spillway_kv_writer_append(spillway_kv_writer *writer, const void *part, size_t bytes);
// Puts what was appended; returns and costs what a put does. The writer is gone, however this ends.
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
// Makes many changes at the same time, but not as one: others may see some of them without the rest, and a crash may leave some. Changes of the same key
// are made in their order, except for large values. The caller sets changes[0].struct_bytes, which counts for all. Returns OK, or the error of the first
// change that has one; the others are made all the same. The first call for a store starts a thread. Cost: that of as many puts, but with few flushes.
int spillway_kv_change_many(spillway_kv_session *session, spillway_kv_change *changes, size_t count);

// ---- Iterations: all keys as they were at one moment
//
//   spillway_kv_iteration *iteration;    spillway_kv_iterate_open(session, &iteration);
//   const void *key;    size_t key_bytes;    spillway_kv_value value = {.struct_bytes = sizeof value};
//   while ((status = spillway_kv_iterate_next(iteration, &key, &key_bytes, &value)) == SPILLWAY_KV_OK) use(key, value.data);
//   spillway_kv_iterate_close(iteration);
//
// All of these count as calls of the session, which may have other calls between them.

// Opens an iteration. Its moment lies within the call: it shows what was changed before the call, and not what is changed after it. Keys that expire
// later may be left out. Until it is closed, old values that it has not reached yet take room on the device. `*iteration` is null after an error.
// Errors: IN_USE: 8 are open in the store already; NO_MEMORY. Cost: no I/O.
int spillway_kv_iterate_open(spillway_kv_session *session, spillway_kv_iteration **iteration);
// Gives the next key; keys come in no order, each once. OK, or ABSENT after the last one. The key and value->data stay valid until the iteration's next
// spillway_kv_iterate_next() or _close(); value->holder is null. For a large value `data` is null, and data_bytes is its size. Each of the three pointers
// may be null. Errors: CANCELED: others have changed more than can be kept, or need the room; the iteration is over, and has to be closed. DAMAGED, IO,
// NO_MEMORY: the next call goes on after what could not be read. Cost: an I/O for each key, 64 at a time.
int spillway_kv_iterate_next(spillway_kv_iteration *iteration, const void **key, size_t *key_bytes,
                             spillway_kv_value *value);
// Copies up to `buffer_bytes` bytes of the last key's value from `offset` on, and sets `*read_bytes`, if not null, to how many there were. Errors: those of
// next; INVALID: the last call of next gave no key. Cost: that of spillway_kv_value_read().
int spillway_kv_iterate_read(spillway_kv_iteration *iteration, uint64_t offset, void *buffer,
                             size_t buffer_bytes, size_t *read_bytes);
// Closes the iteration. Returns OK. Null: nothing is done.
int spillway_kv_iterate_close(spillway_kv_iteration *iteration);

// ---- Queues: asynchronous requests
//
// A queue has threads of its own, which carry out many requests at a time, by tasks (uDepot, section 3). Whoever submits a request goes on at once; how
// the request ended is told to its callback, on a thread that polls. Changes of one key that one thread submits to one queue are made in that order,
// except for large values. Other requests are carried out in any order, so a get may miss a put that has not ended.

typedef struct spillway_kv_queue_options {
  size_t struct_bytes;
  uint32_t requests;  // how many may be submitted and not polled yet: 1 to 65,536; 0: 256
  // How many are carried out at a time: 1 to 4,096; 0: 64, or `requests` if that is less.
  uint32_t outstanding;
  uint32_t threads;  // 1 to 64; 0: 1. Each carries out its share of `outstanding`, rounded down, at least one
  uint32_t reserved;  // 0
} spillway_kv_queue_options;

// How a request ended: for a get what was found; for a change value.version, as put sets it. The struct and what it points to are the library's, and
// valid until the callback returns. The struct may have more members in a newer library.
typedef struct spillway_kv_result {
  size_t struct_bytes;
  int32_t status;
  uint32_t reserved;
  spillway_kv_value value;  // `data` is in the request's buffer, or if that was null in the library's memory
  const char *error_text;   // "" if there was no error
} spillway_kv_result;
// A callback may submit requests. It must not close the queue or its store, and no exception may leave it.
typedef void (*spillway_kv_done)(void *context, const spillway_kv_result *result);

// Opens a queue, which the caller closes. `*queue` is null after an error. Errors: INVALID, NO_MEMORY, IO. Cost: the threads; 256 KiB of address space for
// each outstanding request.
int spillway_kv_queue_open(spillway_kv *store, const spillway_kv_queue_options *options,
                           spillway_kv_queue **queue);
// Closes a queue. IN_USE: there are requests whose callbacks have not returned, and nothing is done. Null: nothing is done. No other thread may be in a
// call of the queue, such as spillway_kv_poll, or begin one.
int spillway_kv_queue_close(spillway_kv_queue *queue);

// These three return OK, and the callback runs once; or it does not run: BUSY, or an error, INVALID or TOO_LARGE, for which the thread's error text has a
// line. The key, the buffer and the bytes of the value must stay as they are until the callback runs; options and the list of pieces are copied. Any
// thread. Cost: a lock; a system call if one of the queue's threads sleeps.
//
// Submits a get. The value is copied to `buffer`, or, if that is null, to memory of the library's.
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

// Runs the callbacks of requests that have ended, at most `most` of them (0: all), on the calling thread, and returns how many it has run. If none has
// ended, waits up to `timeout_ms` milliseconds until one does (0: does not wait; -1: without a limit), unless nothing is under way. Any thread; the
// callbacks may be of requests that other threads have submitted. Null: 0. Cost: a system call; short locks for each callback.
size_t spillway_kv_poll(spillway_kv_queue *queue, size_t most, int timeout_ms);
// A descriptor for poll() and epoll: it is readable while there is something to poll, and now and then when there is nothing. It is the library's, which
// closes it with the queue; do not read from it. Null: INVALID.
int spillway_kv_event(const spillway_kv_queue *queue);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
