// Tables in files: what they hold when they are opened again, and what is refused.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch_test.h"

static char path[4200], log_path[4200];

static void add(void *context, void *value, const void *given) {
  uint64_t sum, more;
  memcpy(&sum, value, 8);
  memcpy(&more, given, 8);
  sum += more;
  memcpy(value, &sum, 8);
  ++*(uint64_t *)context;
}
static uint64_t calls;

static spillway_batch_options in_file(void) {
  const spillway_batch_options options = {.struct_bytes = sizeof options,
                                          .key_bytes = 8,
                                          .value_bytes = 8,
                                          .records = 20000,
                                          .staging_bytes = 1 << 20,
                                          .file = path,
                                          .memory_bytes = 1 << 20,
                                          .log = log_path,
                                          .log_bytes = 16 << 20};
  return options;
}

static struct opened open_stored(const spillway_batch_options *options) {
  struct opened opened;
  uint32_t function = 7;
  CHECK_OK(spillway_batch_open(options, &opened.table), NULL);
  CHECK_OK(spillway_batch_add_function(opened.table, add, &calls, &function), NULL);
  CHECK(function == 0);
  CHECK_OK(spillway_batch_session_open(opened.table, &opened.session), NULL);
  return opened;
}

// Adds one to the counts of numbers from `begin` on.
static void count_up(spillway_batch_session *session, uint64_t begin, uint64_t count) {
  uint64_t keys[512], ones[512];
  for (uint64_t done = 0; done < count;) {
    spillway_batch_job job = {
        .struct_bytes = sizeof job, .action = SPILLWAY_BATCH_MERGE, .keys = keys, .values = ones};
    for (; job.count < 512 && done < count; ++done) {
      keys[job.count] = begin + done;
      ones[job.count++] = 1;
    }
    CHECK_OK(spillway_batch_run(session, &job), session);
    CHECK(job.done_count == job.count);
  }
}

static uint64_t count_of(spillway_batch_session *session, uint64_t key) {
  uint64_t value = 0;
  const int status = spillway_batch_read(session, &key, &value);
  CHECK(status == SPILLWAY_BATCH_OK || status == SPILLWAY_BATCH_ABSENT);
  return value;
}

static int sum_up(void *context, const void *key, const void *value) {
  uint64_t *const sums = context, number, count;
  memcpy(&number, key, 8);
  memcpy(&count, value, 8);
  sums[0] += 1;
  sums[1] += number;
  sums[2] += count;
  return sums[0] == sums[3] ? 1 : 0;
}

// The table is larger than what may be staged, and than its pages in memory; it grows, too.
static void what_is_closed_is_there_again(void) {
  const spillway_batch_options options = in_file();
  struct opened opened = open_stored(&options);
  const uint64_t kCount = 100000;
  count_up(opened.session, 0, kCount);
  count_up(opened.session, 0, kCount / 2);
  CHECK(count_of(opened.session, 1) == 2 && count_of(opened.session, kCount - 1) == 1);
  CHECK(count_of(opened.session, kCount) == 0);
  CHECK_OK(spillway_batch_sync(opened.session), opened.session);
  CHECK_OK(spillway_batch_flush(opened.session), opened.session);
  char text[4096];
  CHECK_OK(spillway_batch_stats(opened.table, text, sizeof text, NULL), NULL);
  CHECK(strstr(text, "\"engine\": \"stored\"") != NULL && strstr(text, "\"records\": 100000") != NULL);
  CHECK(strstr(text, "\"keys\": 150003, \"answers\": 3, \"missed\": 0, \"dropped\": 0}") != NULL);
  CHECK_ERROR(spillway_batch_close(opened.table), SPILLWAY_BATCH_IN_USE, NULL, "1 sessions are open");
  close_opened(opened);

  spillway_batch_options reading = options;
  reading.log = NULL;  // it was closed: nothing is in the log
  reading.log_bytes = 0;
  opened = open_stored(&reading);
  uint64_t sums[4] = {0};
  CHECK_OK(spillway_batch_for_each(opened.session, sum_up, sums), opened.session);
  CHECK(sums[0] == kCount && sums[1] == kCount * (kCount - 1) / 2 && sums[2] == kCount + kCount / 2);
  uint64_t some[4] = {0, 0, 0, 10};
  CHECK_STATUS(spillway_batch_for_each(opened.session, sum_up, some), SPILLWAY_BATCH_STOPPED, opened.session);
  // Outcomes are known at once.
  uint64_t keys[3] = {5, 123456789, 7}, values[3] = {0};
  uint8_t outcomes[3];
  spillway_batch_job job = {.struct_bytes = sizeof job,
                            .action = SPILLWAY_BATCH_UPDATE,
                            .count = 3,
                            .keys = keys,
                            .values = values,
                            .outcomes = outcomes};
  CHECK_OK(spillway_batch_run(opened.session, &job), opened.session);
  CHECK(job.absent_count == 1 && outcomes[0] == SPILLWAY_BATCH_DONE &&
        outcomes[1] == SPILLWAY_BATCH_NOT_THERE);
  CHECK_OK(spillway_batch_remove(opened.session, &keys[2]), opened.session);
  CHECK(count_of(opened.session, 7) == 0 && count_of(opened.session, 5) == 0);
  CHECK_OK(spillway_batch_sync(opened.session), opened.session);
  close_opened(opened);
}

// A process that ends without closing it.
static void what_is_synced_is_there_after_a_crash(void) {
  const spillway_batch_options options = in_file();
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const struct opened opened = open_stored(&options);
    count_up(opened.session, 1000000, 5000);
    CHECK_OK(spillway_batch_sync(opened.session), opened.session);
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  spillway_batch_options without = options;
  without.log = NULL;
  without.log_bytes = 0;
  spillway_batch *table;
  CHECK_ERROR(spillway_batch_open(&without, &table), SPILLWAY_BATCH_INVALID, NULL, "name the log");
  const struct opened opened = open_stored(&options);
  for (uint64_t i = 0; i < 5000; ++i) CHECK(count_of(opened.session, 1000000 + i) == 1);
  close_opened(opened);
}

static void files_that_are_refused(void) {
  spillway_batch_options options = in_file();
  spillway_batch *table;
  struct opened opened = open_stored(&options);
  CHECK_ERROR(spillway_batch_open(&options, &table), SPILLWAY_BATCH_IN_USE, NULL, path);
  close_opened(opened);
#define REFUSED(status, words, ...)                                          \
  do {                                                                       \
    options = in_file();                                                     \
    __VA_ARGS__;                                                             \
    table = (void *)1;                                                       \
    CHECK_ERROR(spillway_batch_open(&options, &table), status, NULL, words); \
    CHECK(table == NULL);                                                    \
  } while (0)
  REFUSED(SPILLWAY_BATCH_INVALID, "has no engine direct", options.engine = "direct");
  REFUSED(SPILLWAY_BATCH_INVALID, "bucket_bytes is for tables in memory", options.bucket_bytes = 64);
  REFUSED(SPILLWAY_BATCH_INVALID, "no_growth is for tables in memory", options.no_growth = 1);
  REFUSED(SPILLWAY_BATCH_INVALID, "cache_bytes is for tables in memory", options.cache_bytes = 1);
  REFUSED(SPILLWAY_BATCH_INVALID, "stale_changes_max is for tables in memory", options.stale_changes_max = 1);
  REFUSED(SPILLWAY_BATCH_INVALID, "stale_ms_max is for tables in memory", options.stale_ms_max = 1);
  REFUSED(SPILLWAY_BATCH_INVALID, "name one", options.file = NULL);
  REFUSED(SPILLWAY_BATCH_INVALID, "has keys of 8 bytes", options.key_bytes = 4);
  REFUSED(SPILLWAY_BATCH_INVALID, "keys have 4 to 16 bytes", options.key_bytes = 3);
  REFUSED(SPILLWAY_BATCH_INVALID, "what is staged takes", options.staging_bytes = 1000);
  REFUSED(SPILLWAY_BATCH_INVALID, "page cache", options.memory_bytes = 1000);
  REFUSED(SPILLWAY_BATCH_NOT_FOUND, "/nowhere/table", options.file = "/nowhere/table");
  REFUSED(SPILLWAY_BATCH_NOT_FOUND, "/nowhere/log", options.log = "/nowhere/log");
  REFUSED(SPILLWAY_BATCH_INVALID, "has content, and is not a log", options.log = options.file;
          options.file = "memory:64M");
  REFUSED(SPILLWAY_BATCH_FULL, "records take", options.file = "memory:1M"; options.records = 1000000);
  // A file with other content.
  char other[4300];
  snprintf(other, sizeof other, "%s.other", path);
  const int file = open(other, O_CREAT | O_WRONLY, 0600);
  CHECK(file >= 0 && write(file, "a text of somebody's", 20) == 20 && close(file) == 0);
  REFUSED(SPILLWAY_BATCH_INVALID, "has content, and is not a table", options.file = other);
  REFUSED(SPILLWAY_BATCH_INVALID, "has content, and is not a log", options.log = other);
  // It has not been changed.
  struct stat facts;
  CHECK(stat(other, &facts) == 0 && facts.st_size == 20);
  CHECK(unlink(other) == 0);
  // A table in memory is not durable.
  const spillway_batch_options in_memory = of_numbers("direct");
  opened = open_with(&in_memory);
  CHECK_ERROR(spillway_batch_sync(opened.session), SPILLWAY_BATCH_INVALID, opened.session, "it is in memory");
  CHECK_ERROR(spillway_batch_sync(NULL), SPILLWAY_BATCH_INVALID, NULL, "session is null");
  close_opened(opened);
}

void test_stored(const char *folder) {
  snprintf(path, sizeof path, "%s/table", folder);
  snprintf(log_path, sizeof log_path, "%s/log", folder);
  what_is_closed_is_there_again();
  what_is_synced_is_there_after_a_crash();
  files_that_are_refused();
  CHECK(unlink(path) == 0 && unlink(log_path) == 0);
}
