// A table of records of fixed size that are updated at random places, for C and C++ programs with more updates than memory is fast.
// (After "Cache-Aware Batch Update for In-Memory Databases", 2017; docs/batch.md; for C++ also spillway/batch.hpp)
//
//   spillway_batch_options options = {.struct_bytes = sizeof options, .key_bytes = 8, .value_bytes = 8, .records = 10000000};
//   spillway_batch *table;                spillway_batch_open(&options, &table);
//   spillway_batch_session *session;      spillway_batch_session_open(table, &session);    // one for each thread
//   spillway_batch_job job = {.struct_bytes = sizeof job, .action = SPILLWAY_BATCH_UPSERT, .count = 256, .keys = keys, .values = values};
//   spillway_batch_run(session, &job);    // many keys in a call: their misses of the cache overlap
//   spillway_batch_session_close(session);    spillway_batch_close(table);
//
// Results. Calls return a status: SPILLWAY_BATCH_OK, or above 0 an outcome (nothing went wrong), or below 0 an error, of which
// spillway_batch_error_text() has one line that says what could not be done.
//
// Threads. A table is for all threads. A session is for one call at a time, from any thread: have one for each thread. Calls wait for others that are in the
// same part of the table; while the table grows, or changes its engine; and where "decoupled" stages, for each other and for its threads. After fork() the child
// uses none of these.
//
// What is staged. With options.staging_bytes, or an engine that stages, changes whose outcomes nobody asks for are put away and made later, many of the
// same part of the table together. Nobody sees the difference but spillway_batch_for_each(): whoever reads a key, or asks for an outcome, has what is
// staged of it made first, of all threads; changes of a key are made in the order of the calls.
//
// Tables larger than memory. With options.file a table is kept in a file, of which a part is in memory, and is there again when that is opened once more. Changes
// wait in memory until there are many for the same part of the file, which then is read and written as a whole. Reads see them, as above: they read at most a
// page of the file for a key. spillway_batch_sync() says when changes are there for good; with options.log that costs one write.
//
// Keys and values are bytes of fixed size, side by side in the caller's arrays, aligned to nothing. Two keys are the same when their bytes are.
//
// Structs that a caller gives begin with `struct_bytes`, to be set to their sizeof, all else 0 where nothing is wanted, so that they may
// grow: a program runs with a newer library, and with an older one unless it sets members that that has not.
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
  SPILLWAY_BATCH_TOO_SMALL = 2,  // the buffer is, for the text
  SPILLWAY_BATCH_STOPPED = 3,    // by the caller's function
  // Errors.
  SPILLWAY_BATCH_INVALID = -1,    // an argument: the text says which, and what it may be
  SPILLWAY_BATCH_NO_MEMORY = -2,  // or no threads
  SPILLWAY_BATCH_FULL =
      -3,  // no room for a record, in a table that may not grow, or whose keys are not spread
  SPILLWAY_BATCH_IN_USE = -4,  // by what has to be closed first; a file by another process
  // Of tables in files.
  SPILLWAY_BATCH_IO = -5,
  SPILLWAY_BATCH_NOT_FOUND = -6,
  SPILLWAY_BATCH_DENIED = -7,
  SPILLWAY_BATCH_DAMAGED = -8,  // what was read is not what was written
};

typedef struct spillway_batch_options {
  size_t struct_bytes;
  uint32_t key_bytes;    // 4 to 16
  uint32_t value_bytes;  // 1 and more; with its key 8 to 64
  uint64_t records;      // that the table is made for; needed. More are welcome: it grows
  // Keys are numbers of up to 8 bytes, the lowest byte first, below this, and about evenly spread; others are INVALID. Neighbours lie together then,
  // and spillway_batch_for_each() comes to them about in their order. 0: keys are any bytes.
  uint64_t key_space;
  uint32_t bucket_bytes;  // a multiple of 64, up to 512; 0: as many as 16 records take, 128 at least
  uint32_t no_growth;     // 1: the table never becomes larger, and a record without room is FULL
  // What does the changes: "linear", "direct", "prefetch", "tagged"; those that stage: "cache_buckets", "decoupled", "partitioned"; or null, "auto":
  // the table finds out what is fastest, and does so again when it has grown, or is used in another way (docs/batch.md). It stages only with
  // staging_bytes.
  const char *engine;
  uint64_t staging_bytes;  // for what is staged, of each session; "partitioned" without: 64 MiB
  uint64_t cache_bytes;    // of all cache-buckets, which are to stay in the CPU's cache; 0: 8 MiB
  // Nothing is staged for longer than so many changes of a session, or than so long, about; 0: for as long as there is room.
  uint64_t stale_changes_max;
  uint32_t stale_ms_max;
  // Of "decoupled": 1 to 64, 0: 1; of a table in a file, those that make changes in it: 1 to 64, 0: 8.
  uint32_t threads;
  // Where the table is kept: a path or a device string ("uring:/dev/nvme0n1", "stripe:[a,b]"; docs/storage.md). It is made if it is not there, or has only zeros;
  // else it has a table with the same keys and values. Null: the table is in memory, and the rest is 0 or null. With a file engine, bucket_bytes, no_growth,
  // cache_bytes and stale_... are 0 or null, and staging_bytes, for the changes that wait, of all sessions, 0: 64 MiB.
  const char *file;
  uint64_t file_bytes;    // that it has at least; 0: room for four times the records, most of which are holes
  uint64_t memory_bytes;  // for pages of the file; 0: 32 MiB
  const char *log;        // the same of its log; null: it has none
  uint64_t log_bytes;     // 4 MiB and 4 KiB at least; 0: 64 MiB and four times staging_bytes
} spillway_batch_options;

enum {
  SPILLWAY_BATCH_READ = 0,    // copies the value
  SPILLWAY_BATCH_UPDATE = 1,  // a record that is there gets another value
  SPILLWAY_BATCH_CHANGE = 2,  // a function makes a new value of the old one, of a record that is there
  SPILLWAY_BATCH_UPSERT = 3,  // as update; a record that is not there is made
  SPILLWAY_BATCH_REMOVE = 4,
  SPILLWAY_BATCH_MERGE = 5,  // as change; a record that is not there is made, with what is given
};

// Of a key in a job.
enum {
  SPILLWAY_BATCH_DONE = 0,
  SPILLWAY_BATCH_NOT_THERE = 1,  // nothing was done; of a read: its place in `read` is as it was
  SPILLWAY_BATCH_INSERTED = 2,   // by an upsert or a merge
};

// Changes the value's bytes; `given` is the job's for the key, as many bytes. Neither is aligned. A part of the table is locked meanwhile: it calls nothing of
// this library, and no exception leaves it. What is staged may be changed by any thread that calls. Of a table in a file it may be called more than once for a
// change, with copies of the value, and, by a log, when the table is opened: what it makes depends on the two values alone.
typedef void (*spillway_batch_function)(void *context, void *value, const void *given);

// One action for many keys, one after the other. The arrays are the caller's.
typedef struct spillway_batch_job {
  size_t struct_bytes;
  uint32_t action;
  uint32_t
      function;      // of changes and merges without `own_function`: its number (spillway_batch_add_function)
  size_t count;      // of keys
  const void *keys;  // count * key_bytes
  const void *values;  // count * value_bytes; of reads and removes: none
  void *read;          // of reads: count * value_bytes, for what is found
  uint8_t *outcomes;   // count of them; null: nobody asks, and nothing waits for what is staged
  spillway_batch_function own_function;  // of changes and merges: for this job, which is not staged
  void *own_context;
  // Set by the call: the first ones, that are done, and of those without a record; that made one; that took one away. Of what is staged only
  // done_count is told.
  size_t done_count;
  size_t absent_count;
  size_t inserted_count;
  size_t removed_count;
} spillway_batch_job;

// ---- Tables

// An empty table, or what is in the file. `*table` is null on errors. Errors: INVALID: an option, which the text names, with what may be; a file that has
// something else; a log that is missing, or another one; FULL: file_bytes is too little for the records; NO_MEMORY; those of files. Cost: some system calls; with "auto" the
// first one of a process measures the machine, in some 0.2 s, with 128 MiB of memory meanwhile. Memory comes with use.
int spillway_batch_open(const spillway_batch_options *options, spillway_batch **table);
// All is gone; of a table in a file it is there for good, and the log is needed no more. IN_USE, and nothing is done, while sessions are open; with another error
// it is closed all the same: what was synced is there, and with a log all that could be written to it. Null: nothing is done. No other thread is in a call of the table.
int spillway_batch_close(spillway_batch *table);
// A function for changes of all sessions. Of a table in a file with a log it has the same number each time that the table is opened. `*number` is what jobs call it by. Errors: INVALID: it is null, or the 33rd; IN_USE: sessions are open.
int spillway_batch_add_function(spillway_batch *table, spillway_batch_function function, void *context,
                                uint32_t *number);

// What the table is, what it was asked for, and what it has chosen: one JSON object of objects, names with units (docs/batch.md, "Statistics"), 4 KiB at
// most. Writes at most `bytes` to `text`, ended with a 0, and to `*needed_bytes` (if not null) what the whole text takes, with its 0. Returns OK, or
// TOO_SMALL. Any thread. Cost: looks at each session; waits while the table grows.
int spillway_batch_stats(spillway_batch *table, char *text, size_t bytes, size_t *needed_bytes);

// "0.1.0"
const char *spillway_batch_version(void);
// A short text for each status; never null. Any thread.
const char *spillway_batch_status_text(int status);
// The line of the last call of this session that returned an error; "" if none has. Valid until the session's next call that returns one. With null:
// of the calling thread's last call without a session that did.
const char *spillway_batch_error_text(const spillway_batch_session *session);

// ---- Sessions

// As many as there is memory for; of "partitioned" 256 may have staged something, and changes of others are NO_MEMORY. Errors: NO_MEMORY. Cost: all other
// sessions wait for a moment. Of a table in a file the first one makes what its log has, which may take as long as reading and writing all of the file: also INVALID,
// where the log has changes by a function that was not added (close the table then, and open it anew); DAMAGED; FULL; IO.
int spillway_batch_session_open(spillway_batch *table, spillway_batch_session **session);
// What it has staged stays staged, and others see it as before. Null: nothing is done. Cost: all other sessions wait for a moment.
int spillway_batch_session_close(spillway_batch_session *session);

// Does the job's keys in their order: what it did is seen by every call that begins when it has returned, of any session. OK also where records were not
// there: the counts and outcomes say so. Errors: INVALID: nothing is done; a key that is not in the key space is number job->done_count. NO_MEMORY, and of a table in a file IO and DAMAGED: job->done_count
// are done. FULL: the same; or, where all are done: something that was staged, by any session, had no room; the statistics count what was dropped, also where nobody was told.
// Cost: with an array of keys each one's share of misses that overlap; now and then a growth, for which all sessions wait.
int spillway_batch_run(spillway_batch_session *session, spillway_batch_job *job);

// One key. Cost: a miss or more, which nothing overlaps; of a change that is staged about 50 ns.
// ABSENT: no such record; value is as it was.
int spillway_batch_read(spillway_batch_session *session, const void *key, void *value);
// Where changes are staged it is not told whether there is a record, else ABSENT.
int spillway_batch_update(spillway_batch_session *session, const void *key, const void *value);
int spillway_batch_change(spillway_batch_session *session, const void *key, uint32_t function,
                          const void *given);
int spillway_batch_upsert(spillway_batch_session *session, const void *key, const void *value);
int spillway_batch_merge(spillway_batch_session *session, const void *key, uint32_t function,
                         const void *given);
int spillway_batch_remove(spillway_batch_session *session, const void *key);

// All that had returned when it was called, by any session, is in the file, or the log, for good when this returns OK. Errors: INVALID: the table is in memory; IO, FULL; without a log those of
// spillway_batch_flush(), too.
// Cost: with a log a write and a flush, which calls share; without one as spillway_batch_flush(), and two flushes of the file.
int spillway_batch_sync(spillway_batch_session *session);
// All that was staged when it was called, by any session, is made. FULL: something had no room, and is dropped, or the file has none, and the rest stays; NO_MEMORY, IO, DAMAGED: the rest stays. Cost: all that
// is staged.
int spillway_batch_flush(spillway_batch_session *session);

// Calls visit() for each record that is not only staged; of a table in a file for all: those that are there all the time once. Errors, of a table in a file: IO, DAMAGED, NO_MEMORY. Others may change records meanwhile; it sees each as it was at
// some moment, in a copy. It returns 0 to go on; else the call returns STOPPED. It calls nothing of this table, and no exception leaves it.
typedef int (*spillway_batch_visit)(void *context, const void *key, const void *value);
int spillway_batch_for_each(spillway_batch_session *session, spillway_batch_visit visit, void *context);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
