// A table of fixed-size records that are updated at random places, for C and C++ programs that update faster than memory answers.
// (After "Cache-Aware Batch Update for In-Memory Databases", 2017, sections 2 and 3; docs/batch.md; for C++ also spillway/batch.hpp)
//
//   spillway_batch_options options = {.struct_bytes = sizeof options, .key_bytes = 8, .value_bytes = 8, .records = 10000000};
//   spillway_batch *table;                spillway_batch_open(&options, &table);
//   spillway_batch_session *session;      spillway_batch_session_open(table, &session);    // one for each thread
//   spillway_batch_job job = {.struct_bytes = sizeof job, .action = SPILLWAY_BATCH_UPSERT, .count = 256, .keys = keys, .values = values};
//   spillway_batch_run(session, &job);    // many keys in one call: their cache misses overlap
//   spillway_batch_session_close(session);    spillway_batch_close(table);
//
// Results. Calls return a status: SPILLWAY_BATCH_OK; above 0 an outcome, with which nothing went wrong; below 0 an error, for which
// spillway_batch_error_text() has one line that says what could not be done.
//
// Threads. All threads may use a table. A session is for one call at a time, from any thread: open one for each thread. A call waits for calls that work on the
// same part of the table, while the table grows or changes its engine, and, where "decoupled" stages, for other calls and the table's threads. The child of a
// fork() must not use anything that its parent has opened.
//
// Staging. With options.staging_bytes, or an engine that stages, a change whose outcome nobody asks for may be put aside (staged) and made later,
// together with others of the same part of the table. Only spillway_batch_for_each() shows the difference: a call that reads a key or asks for an
// outcome first makes whatever any thread has staged for that key, and the changes of a key are made in the order of their calls.
//
// Tables larger than memory. With options.file the table is kept in a file, of which a part is in memory, and is there again when the file is opened
// again. Changes wait in memory until there are many for the same part of the file, which is then read and written as a whole. Reads see the
// waiting changes, and read at most a page of the file for a key. spillway_batch_sync() returns when changes are durable; with options.log that costs
// one write.
//
// Keys and values are bytes of fixed size, side by side in the caller's arrays, without alignment. Two keys are equal if their bytes are.
//
// A struct that a caller passes begins with `struct_bytes`, which the caller sets to the struct's sizeof. Members that are not wanted are 0 or null.
// So structs may grow: a program runs with a newer library, and with an older one as long as it does not set members that the older one lacks.
#ifndef SPILLWAY_BATCH_H
#define SPILLWAY_BATCH_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct spillway_batch spillway_batch;
typedef struct spillway_batch_session spillway_batch_session;

enum {
  SPILLWAY_BATCH_OK = 0,
  // Outcomes.
  SPILLWAY_BATCH_ABSENT = 1,     // there is no such record
  SPILLWAY_BATCH_TOO_SMALL = 2,  // the buffer is too small for the text
  SPILLWAY_BATCH_STOPPED = 3,    // the caller's function ended the call
  // Errors.
  SPILLWAY_BATCH_INVALID = -1,    // an argument is wrong: the text says which one, and what it may be
  SPILLWAY_BATCH_NO_MEMORY = -2,  // no memory, or no more threads
  SPILLWAY_BATCH_FULL = -3,  // no room: the table may not grow, its keys are not spread, or its file is full
  SPILLWAY_BATCH_IN_USE = -4,  // something has to be closed first; or another process has the file open
  // Only of tables in files.
  SPILLWAY_BATCH_IO = -5,         // the device or the system failed
  SPILLWAY_BATCH_NOT_FOUND = -6,  // no such file or device
  SPILLWAY_BATCH_DENIED = -7,     // no permission
  SPILLWAY_BATCH_DAMAGED = -8,    // what was read is not what was written
};

typedef struct spillway_batch_options {
  size_t struct_bytes;
  uint32_t key_bytes;    // 4 to 16
  uint32_t value_bytes;  // 1 and more; with its key 8 to 64
  uint64_t records;      // how many the table is made for; required. If it gets more, it grows
  // Keys are numbers of up to 8 bytes, the lowest byte first, that are less than this and about evenly spread; larger ones are INVALID. Neighbours
  // then lie together, and spillway_batch_for_each() visits records roughly in the order of their keys. 0: keys are arbitrary bytes.
  uint64_t key_space;
  uint32_t bucket_bytes;  // a multiple of 64, up to 512; 0: the size of 16 records, and at least 128
  uint32_t no_growth;     // 1: the table never grows, and a record without room is FULL
  // How changes are made: "linear", "direct", "prefetch", "tagged"; engines that stage: "cache_buckets", "decoupled", "partitioned". Null or "auto":
  // the table measures which one is fastest, and measures again when it has grown or is used in another way (docs/batch.md); it stages only with staging_bytes.
  const char *engine;
  uint64_t staging_bytes;  // for the staged changes of each session; 0: none, but 64 MiB with "partitioned"
  uint64_t cache_bytes;    // for all cache-buckets, which should stay in the CPU's cache; 0: 8 MiB
  // All that is staged is made after this many changes of a session, and after about this many milliseconds. 0: when there is no room for more.
  uint64_t stale_changes_max;
  uint32_t stale_ms_max;
  // Threads of the table, 1 to 64: with "decoupled" (0: 1), and of a table in a file, which write its changes there (0: 8).
  uint32_t threads;
  // Where the table is kept: a path or a device string ("uring:/dev/nvme0n1", "stripe:[a,b]"; docs/storage.md). A file that is missing or has only
  // zeros becomes a new table; any other must have a table with the same key_bytes, value_bytes and key_space. Null: the table is in memory, and the
  // members below are 0 or null. With a file, engine, bucket_bytes, no_growth, cache_bytes and stale_... are 0 or null, and staging_bytes is for the
  // waiting changes of all sessions together, 0: 64 MiB.
  const char *file;
  uint64_t file_bytes;    // the file is made at least this large; 0: room for four times the records, sparse
  uint64_t memory_bytes;  // memory for pages of the file; 0: 32 MiB
  const char *log;        // where the table's log is kept, as `file`; null: it has none
  uint64_t log_bytes;     // the log's size at least, from 4 MiB + 4 KiB on; 0: 64 MiB + 4 * staging_bytes
} spillway_batch_options;

enum {
  SPILLWAY_BATCH_READ = 0,    // copies the value out
  SPILLWAY_BATCH_UPDATE = 1,  // replaces the value of a record that is there
  SPILLWAY_BATCH_CHANGE = 2,  // has a function make a new value of the old one, of a record that is there
  SPILLWAY_BATCH_UPSERT = 3,  // update; or insert, if there is no record
  SPILLWAY_BATCH_REMOVE = 4,
  SPILLWAY_BATCH_MERGE = 5,  // change; or insert of the given value, if there is no record
};

// The outcome of one key of a job.
enum {
  SPILLWAY_BATCH_DONE = 0,
  SPILLWAY_BATCH_NOT_THERE = 1,  // there is no record; nothing was done, and `read` is unchanged there
  SPILLWAY_BATCH_INSERTED = 2,   // an upsert or a merge made a record
};

// Changes the value_bytes at `value`; `given` are the value_bytes that the job has for the key. Neither is aligned. A part of the table is locked
// meanwhile, so the function calls nothing of this library; and no exception may leave it. For a staged change, any thread that uses the table may
// call it, also one of the table's own. In a table in a file it may be called more than once for a change, with copies of the value, and again for
// changes in the log when the table is opened: the new value may depend on nothing but the two values.
typedef void (*spillway_batch_function)(void *context, void *value, const void *given);

// One action for many keys, one after the other. The arrays stay the caller's, who keeps them until the call returns.
typedef struct spillway_batch_job {
  size_t struct_bytes;
  uint32_t action;
  uint32_t function;   // of changes and merges without own_function: its number (spillway_batch_add_function)
  size_t count;        // number of keys
  const void *keys;    // count * key_bytes
  const void *values;  // count * value_bytes; unused by reads and removes
  void *read;          // count * value_bytes, where reads copy what they find
  uint8_t *outcomes;   // count of them; null: outcomes are not wanted, so that changes may be staged
  spillway_batch_function own_function;  // for changes and merges of this job alone, which is not staged
  void *own_context;
  // Set by the call: how many keys are done, which are the first ones; how many of these had no record, made one, removed one. Where changes are
  // staged, the last three stay 0.
  size_t done_count;
  size_t absent_count;
  size_t inserted_count;
  size_t removed_count;
} spillway_batch_job;

// ---- Tables

// Opens an empty table in memory, or the table in the file. `*table` is null on errors. Errors: INVALID: an option, which the text names with what it
// may be; the file has something else; the log that the table needs is missing, or is another one; FULL: file_bytes is too little for the records;
// IN_USE: somebody has the file open; NO_MEMORY; NOT_FOUND, DENIED, IO, DAMAGED: of the files. Cost: some system calls. The first table of a process
// with "auto" measures the machine: some 0.2 s, and 128 MiB of memory meanwhile. The table's memory is taken as it is used.
int spillway_batch_open(const spillway_batch_options *options, spillway_batch **table);
// Frees the table. A table in a file is durable when this returns OK, and its log is not needed any more. REQUIRES: no other thread is in a call of
// the table. Errors: IN_USE: sessions are open, and nothing was done. After any other error the table is closed nevertheless: the file has what was
// synced, and the log all that could be written to it. Null: nothing is done. Cost: of a table in a file that of spillway_batch_flush() and
// spillway_batch_sync().
int spillway_batch_close(spillway_batch *table);
// Adds a function that changes and merges of all sessions may name; sets `*number` to its number, 0 for the first. A table with a log must get the
// same functions in the same order each time that it is opened. The function and its context must stay valid until the table is closed. Errors:
// INVALID: an argument is null, or this is the 33rd function; IN_USE: sessions are open. Cost: a lock.
int spillway_batch_add_function(spillway_batch *table, spillway_batch_function function, void *context,
                                uint32_t *number);

// Writes what the table is, what it was asked for and what it has chosen as one JSON object of objects, 4 KiB at most; names end in their units
// (docs/batch.md, "Statistics"). Writes at most `bytes` to `text`, ended with a 0, and sets `*needed_bytes` (if not null) to what the whole text
// takes with its 0. Returns OK or TOO_SMALL. Any thread. Cost: a look at each session, or each region of a file; waits while the table grows.
int spillway_batch_stats(spillway_batch *table, char *text, size_t bytes, size_t *needed_bytes);

// "0.1.0"
const char *spillway_batch_version(void);
// A short text for each status; never null. Any thread.
const char *spillway_batch_status_text(int status);
// The line of the last call of this session that returned an error; "" if none has. Valid until the session's next call that returns an error. With
// null: the line of the calling thread's last call without a session that returned an error.
const char *spillway_batch_error_text(const spillway_batch_session *session);

// ---- Sessions

// Opens a session, which the caller closes. There may be as many as there is memory for; with "partitioned" at most 256 of them may have staged
// something, and changes of further ones end with NO_MEMORY. Errors: NO_MEMORY. Cost: all other sessions wait for a moment. The first session of a
// table in a file repeats the changes that are in the log, which may take as long as reading and writing the whole file. It may fail with INVALID if the
// log has changes by a function that was not added (close the table then, and open it again); DAMAGED; FULL; IO.
int spillway_batch_session_open(spillway_batch *table, spillway_batch_session **session);
// Closes a session. What it has staged stays staged, and visible to others as before. Null: nothing is done. Cost: all other sessions wait for a moment.
int spillway_batch_session_close(spillway_batch_session *session);

// Does the job's keys in their order. Every call of any session that begins after this one has returned sees what it did. Missing records are no
// error: counts and outcomes tell of them. Errors: INVALID: nothing was done; if a key is not below the key space, it is number job->done_count.
// NO_MEMORY, and for tables in files IO and DAMAGED: the first job->done_count keys are done. FULL: the same; but if all are done, some staged
// change, maybe of another session, had no room and was dropped. The statistics count what was dropped, even where nobody was told. Cost: for each
// key its share of overlapping cache misses; now and then a growth, for which all sessions wait.
int spillway_batch_run(spillway_batch_session *session, spillway_batch_job *job);

// The same for one key. Errors: as spillway_batch_run(). Cost: a cache miss or more, which nothing overlaps; for a staged change some 50 ns.
// ABSENT: there is no such record, and `value` is unchanged.
int spillway_batch_read(spillway_batch_session *session, const void *key, void *value);
// ABSENT: there is no such record. A staged change does not know whether there is one, and returns OK.
int spillway_batch_update(spillway_batch_session *session, const void *key, const void *value);
int spillway_batch_change(spillway_batch_session *session, const void *key, uint32_t function,
                          const void *given);
int spillway_batch_upsert(spillway_batch_session *session, const void *key, const void *value);
int spillway_batch_merge(spillway_batch_session *session, const void *key, uint32_t function,
                         const void *given);
int spillway_batch_remove(spillway_batch_session *session, const void *key);

// For a table in a file. When this returns OK, all changes of any session whose calls had returned before it was called are durable, in the file or
// the log. Errors: INVALID: the table is in memory; IO, FULL; without a log also those of spillway_batch_flush(). Cost: with a log a write and a
// flush, which concurrent calls share; without one that of spillway_batch_flush() and two flushes of the file.
int spillway_batch_sync(spillway_batch_session *session);
// Makes all changes that any session had staged when this was called. Errors: FULL: some had no room and were dropped; or the file has no room, and
// the rest stays staged; NO_MEMORY, IO, DAMAGED: the rest stays staged. Cost: that of all staged changes.
int spillway_batch_flush(spillway_batch_session *session);

// Calls visit() for each record, in no particular order without a key space. Records that exist during the whole call are visited once, each as a
// copy of what it was at some moment; others may change records meanwhile. In memory, records that are only staged are left out; in a file, they are
// included. visit() returns 0 to go on; anything else ends the call, which returns STOPPED. It must not call anything of this table, and no exception
// may leave it. In memory, the table cannot grow or change its engine, and no session can be opened or closed, before the call ends: a thread that
// has to do so waits, and so do all other sessions from then on. So visit() must not wait for a thread that uses the table. Errors: INVALID; of a
// table in a file also IO, DAMAGED, NO_MEMORY. Cost: reads the whole table, or all of it in the file.
typedef int (*spillway_batch_visit)(void *context, const void *key, const void *value);
int spillway_batch_for_each(spillway_batch_session *session, spillway_batch_visit visit, void *context);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
