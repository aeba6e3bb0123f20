// Every error, and what its line says.
#include "batch_test.h"

static void nothing(void *context, void *value, const void *given) {
  (void)context, (void)value, (void)given;
}
static int go_on(void *context, const void *key, const void *value) {
  return (void)context, (void)key, (void)value, 0;
}

static int look(void *context, const void *key, const void *value) {
  (void)value;
  memcpy(context, key, sizeof(uint64_t));
  return 0;
}

// One wrong option at a time.
static void options_that_are_refused(void) {
  const struct {
    const char *words;
    spillway_batch_options options;
  } wrong[] = {
      {"struct_bytes is 0", {.struct_bytes = 0, .key_bytes = 8, .value_bytes = 8, .records = 1}},
      {"keys have 4 to 16 bytes, not 0",
       {.struct_bytes = sizeof wrong[0].options, .value_bytes = 8, .records = 1}},
      {"keys have 4 to 16 bytes, not 20",
       {.struct_bytes = sizeof wrong[0].options, .key_bytes = 20, .value_bytes = 8, .records = 1}},
      {"a record has 8 to 64 bytes", {.struct_bytes = sizeof wrong[0].options, .key_bytes = 8, .records = 1}},
      {"say how many records", {.struct_bytes = sizeof wrong[0].options, .key_bytes = 8, .value_bytes = 8}},
      {"a multiple of 64 bytes, up to 512, not 100",
       {.struct_bytes = sizeof wrong[0].options,
        .key_bytes = 8,
        .value_bytes = 8,
        .records = 1,
        .bucket_bytes = 100}},
      {"keys that are numbers have up to 8 bytes, not 16",
       {.struct_bytes = sizeof wrong[0].options,
        .key_bytes = 16,
        .value_bytes = 8,
        .records = 1,
        .key_space = 9}},
      {"there is no engine fast; give auto, linear, direct, prefetch, tagged, cache_buckets, decoupled or "
       "partitioned",
       {.struct_bytes = sizeof wrong[0].options,
        .key_bytes = 8,
        .value_bytes = 8,
        .records = 1,
        .engine = "fast"}},
      {"takes 65536 bytes at least, not 1000",
       {.struct_bytes = sizeof wrong[0].options,
        .key_bytes = 8,
        .value_bytes = 8,
        .records = 1,
        .engine = "partitioned",
        .staging_bytes = 1000}},
      {"cache-buckets take 1096 bytes each, and there are only 1000",
       {.struct_bytes = sizeof wrong[0].options,
        .key_bytes = 8,
        .value_bytes = 8,
        .records = 1,
        .engine = "cache_buckets",
        .cache_bytes = 1000}},
      {"a table has 1 to 64 threads, not 65",
       {.struct_bytes = sizeof wrong[0].options,
        .key_bytes = 8,
        .value_bytes = 8,
        .records = 1,
        .engine = "decoupled",
        .threads = 65}},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    spillway_batch *table = (void *)1;
    CHECK_ERROR(spillway_batch_open(&wrong[i].options, &table), SPILLWAY_BATCH_INVALID, NULL, wrong[i].words);
    CHECK(table == NULL);
  }
  spillway_batch *table;
  CHECK_ERROR(spillway_batch_open(NULL, &table), SPILLWAY_BATCH_INVALID, NULL, "the options are null");
  const spillway_batch_options options = of_numbers(NULL);
  CHECK_ERROR(spillway_batch_open(&options, NULL), SPILLWAY_BATCH_INVALID, NULL, "the place for it is null");
  spillway_batch_options large = of_numbers("direct");
  large.records = (uint64_t)1 << 60;
  CHECK_ERROR(spillway_batch_open(&large, &table), SPILLWAY_BATCH_NO_MEMORY, NULL, "no memory for");
}

// A struct of a later version's header, with and without something that this version does not know.
static void later_structs(void) {
  struct {
    spillway_batch_options known;
    uint64_t more;
  } later = {of_numbers("direct"), 0};
  later.known.struct_bytes = sizeof later;
  spillway_batch *table;
  CHECK_OK(spillway_batch_open(&later.known, &table), NULL);
  CHECK_OK(spillway_batch_close(table), NULL);
  later.more = 1;
  CHECK_ERROR(spillway_batch_open(&later.known, &table), SPILLWAY_BATCH_INVALID, NULL, "does not know");
}

static void jobs_that_are_refused(void) {
  spillway_batch_options options = of_numbers("prefetch");
  options.key_space = 100;
  const struct opened opened = open_with(&options);
  uint64_t keys[] = {3, 100, 5}, values[3] = {0};
  const spillway_batch_job fine = {.struct_bytes = sizeof fine,
                                   .action = SPILLWAY_BATCH_UPSERT,
                                   .count = 3,
                                   .keys = keys,
                                   .values = values};
#define REFUSED(words, ...)                                                                               \
  do {                                                                                                    \
    spillway_batch_job job = fine;                                                                        \
    __VA_ARGS__;                                                                                          \
    CHECK_ERROR(spillway_batch_run(opened.session, &job), SPILLWAY_BATCH_INVALID, opened.session, words); \
  } while (0)
  REFUSED("struct_bytes", job.struct_bytes = 8);
  REFUSED("there is no action 6", job.action = 6);
  REFUSED("are null", job.keys = NULL);
  REFUSED("are null", job.values = NULL);
  REFUSED("are null", job.action = SPILLWAY_BATCH_READ);
  REFUSED("there is no function 0; it has 0", job.action = SPILLWAY_BATCH_CHANGE);
  REFUSED("there is no function 2; it has 0", job.action = SPILLWAY_BATCH_MERGE; job.function = 2);
  spillway_batch_job job = fine;
  CHECK_ERROR(spillway_batch_run(opened.session, &job), SPILLWAY_BATCH_INVALID, opened.session,
              "not below the key space, 100");
  CHECK(job.done_count == 1);  // the index of the wrong key
  CHECK_STATUS(spillway_batch_read(opened.session, &keys[0], values), SPILLWAY_BATCH_ABSENT,
               opened.session);  // nothing was done
  CHECK_ERROR(spillway_batch_upsert(opened.session, &keys[1], values), SPILLWAY_BATCH_INVALID, opened.session,
              "key space");
  CHECK_ERROR(spillway_batch_run(opened.session, NULL), SPILLWAY_BATCH_INVALID, opened.session, "null");
  CHECK_ERROR(spillway_batch_run(NULL, &job), SPILLWAY_BATCH_INVALID, NULL, "session is null");
  CHECK_ERROR(spillway_batch_read(NULL, keys, values), SPILLWAY_BATCH_INVALID, NULL, "session is null");
  CHECK_ERROR(spillway_batch_read(opened.session, NULL, values), SPILLWAY_BATCH_INVALID, opened.session,
              "null");
  CHECK_ERROR(spillway_batch_flush(NULL), SPILLWAY_BATCH_INVALID, NULL, "session is null");
  CHECK_ERROR(spillway_batch_for_each(NULL, go_on, NULL), SPILLWAY_BATCH_INVALID, NULL, "session is null");
  CHECK_ERROR(spillway_batch_for_each(opened.session, NULL, NULL), SPILLWAY_BATCH_INVALID, opened.session,
              "callback is null");
  job = fine;
  job.count = 0;
  CHECK_OK(spillway_batch_run(opened.session, &job), opened.session);
  close_opened(opened);
}

static void what_is_in_use(void) {
  const spillway_batch_options options = of_numbers("direct");
  const struct opened opened = open_with(&options);
  uint32_t number;
  CHECK_ERROR(spillway_batch_close(opened.table), SPILLWAY_BATCH_IN_USE, NULL, "1 sessions are open");
  CHECK_ERROR(spillway_batch_add_function(opened.table, nothing, NULL, &number), SPILLWAY_BATCH_IN_USE, NULL,
              "before sessions are opened");
  CHECK_OK(spillway_batch_session_close(opened.session), opened.session);
  CHECK_ERROR(spillway_batch_add_function(opened.table, NULL, NULL, &number), SPILLWAY_BATCH_INVALID, NULL,
              "is null");
  for (uint32_t i = 0; i < 32; ++i) {
    CHECK_OK(spillway_batch_add_function(opened.table, nothing, NULL, &number), NULL);
    CHECK(number == i);
  }
  CHECK_ERROR(spillway_batch_add_function(opened.table, nothing, NULL, &number), SPILLWAY_BATCH_INVALID, NULL,
              "32 functions");
  CHECK_OK(spillway_batch_close(opened.table), NULL);
  CHECK_OK(spillway_batch_close(NULL), NULL);
  CHECK_OK(spillway_batch_session_close(NULL), NULL);
  spillway_batch_session *session;
  CHECK_ERROR(spillway_batch_session_open(NULL, &session), SPILLWAY_BATCH_INVALID, NULL, "is null");
  CHECK(session == NULL);
  CHECK_ERROR(spillway_batch_stats(NULL, NULL, 0, NULL), SPILLWAY_BATCH_INVALID, NULL, "is null");
}

// A table that may not grow: a record that finds no room is reported, at once or when staged changes are made.
static void full(const char *engine) {
  spillway_batch_options options = of_numbers(engine);
  options.no_growth = 1;
  const struct opened opened = open_with(&options);
  int status = SPILLWAY_BATCH_OK;
  for (uint64_t key = 0; key < 100000 && status == SPILLWAY_BATCH_OK; ++key)
    status = spillway_batch_upsert(opened.session, &key, &key);
  if (status == SPILLWAY_BATCH_OK) status = spillway_batch_flush(opened.session);
  CHECK_ERROR(status, SPILLWAY_BATCH_FULL, opened.session, "make it for more records");
  // The statistics say how many, and the table can still be used.
  char text[4096];
  CHECK_OK(spillway_batch_stats(opened.table, text, sizeof text, NULL), NULL);
  CHECK((strstr(text, "\"dropped\": 0}") == NULL) == (strcmp(engine, "tagged") != 0));
  uint64_t value, seen = 0;
  CHECK_OK(spillway_batch_for_each(opened.session, look, &seen), opened.session);
  CHECK_OK(spillway_batch_read(opened.session, &seen, &value), opened.session);
  close_opened(opened);
}

void test_errors(void) {
  options_that_are_refused();
  later_structs();
  jobs_that_are_refused();
  what_is_in_use();
  full("tagged");
  full("cache_buckets");
  full("decoupled");
  full("partitioned");
}
