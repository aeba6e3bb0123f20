// A key-value store on a flash device or file, embedded in a C or C++ program. (After uDepot, FAST 2019; docs/kv-api.md)
//
//   spillway_kv_make("/dev/nvme0n1", NULL);                        once; see its options
//   spillway_kv *store;              spillway_kv_open("/dev/nvme0n1", NULL, &store);
//   spillway_kv_session *session;    spillway_kv_session_open(store, &session);
//   struct iovec value = {"value", 5};
//   spillway_kv_put(session, "key", 3, &value, 1, NULL, NULL);
//   char buffer[100];
//   spillway_kv_get(session, "key", 3, buffer, sizeof buffer, NULL);
//   spillway_kv_session_close(session);    spillway_kv_close(store);
//
// Results. Calls return a status: SPILLWAY_KV_OK, or above 0 an outcome (no such key, another version; nothing went wrong), or below 0
// an error, of which spillway_kv_error_text() has one line. After an error of I/O in a change it is not known whether it was made.
//
// Threads. A store is for all threads. A session is for one call at a time, from any thread: have one for each thread, or keep a few
// and hand them out. Calls block. A queue (below) is for programs that do not want to: submit from any thread, and poll.
// After fork() the child uses none of these.
//
// Structs that a caller gives begin with `struct_bytes`, to be set to their sizeof, all else 0 where nothing is wanted:
//   spillway_kv_change_options options = {.struct_bytes = sizeof options, .when = SPILLWAY_KV_IF_ABSENT};
// so that they may grow: a program runs with a newer library, and with an older one unless it sets members that that has not.
// Null for a struct of options means all defaults. Sizes are in bytes, times in milliseconds since 1970.
//
// Keys are 1 to 65,536 bytes of any kind, values 0 to 4 GiB. A value is large above 1 MiB, in small stores above less (stats tell,
// plain_value_bytes_max): it is in pieces on the device, and one value all the same: a get finds all of it or another one.
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
  SPILLWAY_KV_PRESENT = 2,        // there is, and it should not be
  SPILLWAY_KV_OTHER_VERSION = 3,  // there is, with another version
  SPILLWAY_KV_TOO_SMALL = 4,      // there is, and the buffer is too small for it
  SPILLWAY_KV_BUSY = 5,           // the queue has as many requests as it takes: poll first
  // Errors.
  SPILLWAY_KV_INVALID = -1,    // an argument: the text says which, and what it may be
  SPILLWAY_KV_NO_MEMORY = -2,  // or no descriptors, or no threads
  SPILLWAY_KV_FULL = -3,       // the device
  SPILLWAY_KV_TOO_LARGE = -4,  // the value
  SPILLWAY_KV_DAMAGED = -5,    // what should be there is not what was written
  SPILLWAY_KV_IO = -6,         // the device or the system failed
  SPILLWAY_KV_IN_USE = -7,     // by somebody else, or by what has to be closed first
  SPILLWAY_KV_EXISTS = -8,     // what would be lost
  SPILLWAY_KV_NOT_FOUND = -9,  // the file or device
  SPILLWAY_KV_DENIED = -10,    // no permission, or the store is read only
  SPILLWAY_KV_NEWER = -11,     // a store of a later version of Spillway
  SPILLWAY_KV_CANCELED = -12,  // an iteration: too much has changed
};

// What a change that has returned promises after the process was killed: it is there. And after a power cut:
enum {
  SPILLWAY_KV_SYNC = 0,   // it is there
  SPILLWAY_KV_BATCH = 1,  // all but the last batch_ms
  SPILLWAY_KV_NONE = 2,   // what the device's own cache keeps
};

enum {
  SPILLWAY_KV_ALWAYS = 0,
  SPILLWAY_KV_IF_ABSENT = 1,
  SPILLWAY_KV_IF_PRESENT = 2,
  SPILLWAY_KV_IF_VERSION = 3,
};

typedef struct spillway_kv_make_options {
  size_t struct_bytes;
  uint64_t capacity_bytes;  // 0: all of a device, or a file's size; needed for a new file
  uint64_t segment_bytes;   // a power of two from 1 MiB to 1 GiB; 0: by the capacity
  uint32_t grain_bytes;     // 512 (0), 1024, 2048 or 4096; records take whole grains; at least a block
  uint32_t spare_percent;   // of the capacity, so that collection is cheap; 0: 10
  uint32_t overwrite;       // 1: what the device holds may be lost
  uint32_t reserved;
} spillway_kv_make_options;

typedef struct spillway_kv_open_options {
  size_t struct_bytes;
  uint32_t durability;  // SPILLWAY_KV_SYNC and so on
  uint32_t batch_ms;    // of SPILLWAY_KV_BATCH; 0: 10
  uint32_t read_only;   // 1: nothing is written, also where nothing can be; changes have DENIED
  uint32_t reserved;
  // For copies of records that are in use, which then need no I/O; 0: none. The index and buffers come besides.
  uint64_t memory_bytes;
} spillway_kv_open_options;

typedef struct spillway_kv_change_options {
  size_t struct_bytes;
  uint32_t when;        // SPILLWAY_KV_ALWAYS and so on
  uint32_t flags;       // the caller's, kept with the value
  uint64_t version;     // of SPILLWAY_KV_IF_VERSION
  uint64_t expires_ms;  // from then on the key is absent; below 2^48; 0: never
} spillway_kv_change_options;

// What a get has found. The caller's memory, with struct_bytes set; the call sets the rest. With status other than OK and TOO_SMALL all
// but status and holder is 0.
typedef struct spillway_kv_value {
  size_t struct_bytes;
  const void *data;
  size_t data_bytes;
  uint64_t version;  // of this value: a larger one is newer
  uint64_t expires_ms;
  uint32_t flags;
  int32_t status;
  void
      *holder;  // the library's: what `data` lies in, until it is released; null: in nothing of the library's
} spillway_kv_value;

// ---- Stores

// Makes an empty store on a device: a path, or a device string ("memory:64M", "uring:/dev/nvme0n1?qd=128", "stripe:[a,b]"; docs/storage.md).
// Errors: EXISTS when a file holds anything but zeros, or another device does in its first or last MiB, unless `overwrite`; INVALID, FULL
// for what is too small, IN_USE, DENIED, NO_MEMORY, IO. What fails makes no file, and leaves what somebody else makes there meanwhile alone.
// A file is given its size at once, with holes, and each of a stripe's its part. Cost: reads what a file holds; a write for each segment.
int spillway_kv_make(const char *device, const spillway_kv_make_options *options);
// Opens the store on a device, exclusively where that is files or block devices. `*store` is null on errors. Errors: NOT_FOUND, INVALID
// when there is no store, FULL when the device is smaller than the store on it, NEWER, DAMAGED, IN_USE, DENIED, NO_MEMORY, IO. Cost: reads 32 bytes for each record that was written, and some
// segments; starts a thread.
int spillway_kv_open(const char *device, const spillway_kv_open_options *options, spillway_kv **store);
// A new store on "memory:SIZE", opened: gone when it is closed. Errors: as of make and open.
int spillway_kv_open_memory(uint64_t capacity_bytes, const spillway_kv_open_options *options,
                            spillway_kv **store);
// What was put is on the medium, or the status says that the last of it may not be: IO; the store is closed then, too. IN_USE, and
// nothing is done, while sessions or queues of it are open. Null: nothing is done.
int spillway_kv_close(spillway_kv *store);

// What the store holds and where, and since it was opened how long its calls took and what it has read and written: one JSON object of
// objects, names with units (docs/kv.md, "Statistics"), 8 KiB at most. Writes at most `bytes` to `text`, ended with a 0, and to `*needed_bytes` (if not
// null) what the whole text takes, with its 0. Returns OK, or TOO_SMALL. Any thread. Cost: no I/O; looks at each segment, table and session.
int spillway_kv_stats(spillway_kv *store, char *text, size_t bytes, size_t *needed_bytes);

// "0.1.0"
const char *spillway_kv_version(void);
// A short text for each status, "no such key"; never null. Any thread.
const char *spillway_kv_status_text(int status);
// The line of the last call of this session that returned an error: what, where, what to do; "" if none has. Valid until the session's
// next call. With null: of the calling thread's last call without a session that did.
const char *spillway_kv_error_text(const spillway_kv_session *session);

// ---- Sessions

// Errors: NO_MEMORY, IO. Cost: some system calls, and 8 to 24 KiB; memory for values comes with use, and goes with the session.
int spillway_kv_session_open(spillway_kv *store, spillway_kv_session **session);
// IN_USE, and nothing is done, while values are held that it has to get back, or iterations of it are open. Null: nothing is done.
int spillway_kv_session_close(spillway_kv_session *session);

// Copies the key's value into `buffer`. `value`, if not null, says what it is; its holder is null. OK; ABSENT; TOO_SMALL: the buffer's content is
// not defined, and value->data_bytes is the size that is needed. A buffer of 0 bytes asks for the size. Errors: INVALID for the key, DAMAGED,
// IO, NO_MEMORY. Cost: one I/O and one copy.
int spillway_kv_get(spillway_kv_session *session, const void *key, size_t key_bytes, void *buffer,
                    size_t buffer_bytes, spillway_kv_value *value);
// The same without a copy: value->data lies in the session's memory until it is released. Read it from any thread. Of a large value
// `data` is null, and spillway_kv_value_read gets it.
int spillway_kv_get_value(spillway_kv_session *session, const void *key, size_t key_bytes,
                          spillway_kv_value *value);
// Many keys, keys[i] at iov_base: their reads are in flight together, 64 at a time. Sets values[0] to values[count - 1], each
// with a status of its own; struct_bytes is the same in all. They are to be released. The values were not all so at one time.
// Returns OK, or the error of the first key that has one; other keys have their values nevertheless.
int spillway_kv_get_many(spillway_kv_session *session, const struct iovec *keys, size_t count,
                         spillway_kv_value *values);
// Gives back what the values hold, and sets data and holder of each to null; those that hold nothing are left alone. A call of the session
// that they are of, as far as threads go.
void spillway_kv_value_release(spillway_kv_value *values, size_t count);

// Copies what there is of a value that is held, large or not, from `offset` on, and sets `*read_bytes` (if not null) to how much. It is of the
// version that was found, whatever others do. Errors: INVALID for what holds nothing (of the thread), DAMAGED, IO, NO_MEMORY. A call of
// its session. Cost: one I/O for each piece, of 1 MiB or less, that is not the one read last.
int spillway_kv_value_read(spillway_kv_value *value, uint64_t offset, void *to, size_t bytes,
                           size_t *read_bytes);

// Puts a value that is the pieces of `value` one after the other; value_count 0: an empty one. What was under the key, expiry and flags too,
// is replaced. OK, and `*version` (if not null) is the value's; or by options->when PRESENT, ABSENT, OTHER_VERSION, and `*version` is
// that of what is there, or 0. Errors: INVALID, TOO_LARGE, FULL, NO_MEMORY, IO; after a flush has failed IO or FULL for
// every change. Cost: one write, with SPILLWAY_KV_SYNC a flush that calls at the same time share, with a condition a read; one copy, and
// one more when there are several pieces.
int spillway_kv_put(spillway_kv_session *session, const void *key, size_t key_bytes,
                    const struct iovec *value, size_t value_count, const spillway_kv_change_options *options,
                    uint64_t *version);
// Of the options `when` (ALWAYS, IF_PRESENT, IF_VERSION) and `version` count. OK, with `*version` 0; ABSENT; OTHER_VERSION. Else `*version`
// and errors as of put. Cost: as a put with a condition.
int spillway_kv_remove(spillway_kv_session *session, const void *key, size_t key_bytes,
                       const spillway_kv_change_options *options, uint64_t *version);

// A value that comes in parts, in the memory of one piece; it is there when commit has returned OK, and never in part. All four are calls
// of the session, which other calls may use meanwhile. Errors of open: INVALID, NO_MEMORY.
int spillway_kv_writer_open(spillway_kv_session *session, const void *key, size_t key_bytes,
                            spillway_kv_writer **writer);
// Errors: as of put. After one the writer is only to be abandoned. Cost: one write for each piece that is full.
int spillway_kv_writer_append(spillway_kv_writer *writer, const void *part, size_t bytes);
// As put; the writer is gone, however it ends.
int spillway_kv_writer_commit(spillway_kv_writer *writer, const spillway_kv_change_options *options,
                              uint64_t *version);
// What was appended is forgotten. Null: nothing is done.
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
// Makes the changes, many at a time and not as one: others may see some, and a crash may leave some. Changes of the same key are made in
// their order, but for large values. struct_bytes is the same in all. Returns OK, or the error of the first change that has one. The first call for a store starts
// a thread. Cost: as that many puts, but of flushes only a few.
int spillway_kv_change_many(spillway_kv_session *session, spillway_kv_change *changes, size_t count);

// ---- Iterations: all keys as they were at one moment
//
//   spillway_kv_iteration *iteration;    spillway_kv_iterate_open(session, &iteration);
//   const void *key;    size_t key_bytes;    spillway_kv_value value = {.struct_bytes = sizeof value};
//   while ((status = spillway_kv_iterate_next(iteration, &key, &key_bytes, &value)) == SPILLWAY_KV_OK) use(key, value.data);
//   spillway_kv_iterate_close(iteration);
//
// Their calls are calls of the session, which others may come between.

// The moment is within the call: what was changed before it is seen, what is changed after it is not. Keys that expire afterwards may be left
// out. Errors: IN_USE when 8 are open in the store, NO_MEMORY. Cost: no I/O. Until it is closed, old values that it has not come to take room
// on the device.
int spillway_kv_iterate_open(spillway_kv_session *session, spillway_kv_iteration **iteration);
// The next key, in no order; each once. OK, or ABSENT after the last one. Key and value->data are there until the next call for this iteration;
// value->holder is null. Of a value that is too large for one record data is null, and data_bytes its size. Each of the three places may be null.
// Errors: CANCELED when others have changed so much that it cannot be kept, or need the room: it is over, and to be closed. DAMAGED, IO,
// NO_MEMORY: the next call goes on behind what could not be read. Cost: an I/O for each key, 64 at a time.
int spillway_kv_iterate_next(spillway_kv_iteration *iteration, const void **key, size_t *key_bytes,
                             spillway_kv_value *value);
// Copies what the value of the last key has from `offset` on; read_bytes: how much, or null. Errors: as of next, and INVALID when there was no
// key.
int spillway_kv_iterate_read(spillway_kv_iteration *iteration, uint64_t offset, void *buffer,
                             size_t buffer_bytes, size_t *read_bytes);
// Null: nothing is done.
int spillway_kv_iterate_close(spillway_kv_iteration *iteration);

// ---- Queues: asynchronous requests
//
// A queue has threads of its own, on which tasks carry out many requests at a time. Who submits goes on at once; what a request ended with
// comes to its callback, on a thread that polls. Changes of one key that one thread submits to one queue are made in that
// order, but for large values; other requests in any order, so that a get may miss a put that has not ended.

typedef struct spillway_kv_queue_options {
  size_t struct_bytes;
  uint32_t requests;     // submitted and not polled, at most; 1 to 65,536; 0: 256
  uint32_t outstanding;  // carried out at a time; 1 to 4,096; 0: 64, or `requests` if that is less
  uint32_t threads;  // 1 to 64; 0: 1. Each carries out its share of `outstanding`, rounded down, at least one
  uint32_t reserved;
} spillway_kv_queue_options;

// How a request ended: of a get what was found; of a change `version` as of put. `value` and `error_text` are the library's, until
// the callback returns; the struct may have grown.
typedef struct spillway_kv_result {
  size_t struct_bytes;
  int32_t status;
  uint32_t reserved;
  spillway_kv_value value;  // data: in the request's buffer, or if that was null in memory of the library's
  const char *error_text;   // "" but for errors
} spillway_kv_result;
// May submit; closes nothing. No exception leaves it.
typedef void (*spillway_kv_done)(void *context, const spillway_kv_result *result);

// Errors: INVALID, NO_MEMORY, IO. Cost: threads, 256 KiB of address space for each outstanding request.
int spillway_kv_queue_open(spillway_kv *store, const spillway_kv_queue_options *options,
                           spillway_kv_queue **queue);
// IN_USE, and nothing is done, while there are requests whose callback has not run. Null: nothing is done. No other thread is in a
// call of the queue, spillway_kv_poll among them, or comes to be.
int spillway_kv_queue_close(spillway_kv_queue *queue);

// Each returns OK, and the callback will run, once; or BUSY or INVALID (options), and it will not. Key, buffer, the pieces and what they list
// stay as they are until then; options and the list of pieces are copied. Any thread. Cost: a lock; a system call if a thread sleeps.
//
// The value is copied to the buffer, or, null, to memory of the library's.
int spillway_kv_submit_get(spillway_kv_queue *queue, const void *key, size_t key_bytes, void *buffer,
                           size_t buffer_bytes, spillway_kv_done done, void *context);
// At most 16 pieces.
int spillway_kv_submit_put(spillway_kv_queue *queue, const void *key, size_t key_bytes,
                           const struct iovec *value, size_t value_count,
                           const spillway_kv_change_options *options, spillway_kv_done done, void *context);
int spillway_kv_submit_remove(spillway_kv_queue *queue, const void *key, size_t key_bytes,
                              const spillway_kv_change_options *options, spillway_kv_done done,
                              void *context);

// Runs the callbacks of requests that have ended, at most `most` (0: all that have), on the calling thread, and returns how many those
// were. If none has, waits for one for `timeout_ms` (0: not; -1: as long as it takes), but not if none is submitted. Any
// thread; a callback may be another thread's.
size_t spillway_kv_poll(spillway_kv_queue *queue, size_t most, int timeout_ms);
// A descriptor that is readable while there is something to poll, and now and then for nothing: for poll() and epoll. The
// library's, as long as the queue; nobody reads it.
int spillway_kv_event(const spillway_kv_queue *queue);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
