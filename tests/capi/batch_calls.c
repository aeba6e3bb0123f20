// What calls do when all is well, with each engine.
#include "batch_test.h"

enum { kKeys = 3000, kGroup = 100 };

static void add(void *context, void *value, const void *given) {
  uint64_t sum, more;
  memcpy(&sum, value, sizeof sum);
  memcpy(&more, given, sizeof more);
  sum += more;
  memcpy(value, &sum, sizeof sum);
  ++*(uint64_t *)context;
}

static uint64_t read_one(spillway_batch_session *session, uint64_t key, int expected) {
  uint64_t value = 77;
  CHECK_STATUS(spillway_batch_read(session, &key, &value), expected, session);
  return value;
}

// One key at a time: each call sees what the calls before did.
static void single_keys(const char *engine) {
  const spillway_batch_options options = of_numbers(engine);
  spillway_batch *table;
  spillway_batch_session *session;
  uint64_t calls = 0, key = 5, value = 40, two = 2;
  uint32_t function = 99;
  CHECK_OK(spillway_batch_open(&options, &table), NULL);
  CHECK_OK(spillway_batch_add_function(table, add, &calls, &function), NULL);
  CHECK(function == 0);
  CHECK_OK(spillway_batch_session_open(table, &session), NULL);

  CHECK(read_one(session, 5, SPILLWAY_BATCH_ABSENT) == 77);
  CHECK_OK(spillway_batch_upsert(session, &key, &value), session);
  CHECK(read_one(session, 5, SPILLWAY_BATCH_OK) == 40);
  CHECK_OK(spillway_batch_change(session, &key, function, &two), session);
  CHECK(read_one(session, 5, SPILLWAY_BATCH_OK) == 42 && calls == 1);
  CHECK_OK(spillway_batch_update(session, &key, &two), session);
  CHECK(read_one(session, 5, SPILLWAY_BATCH_OK) == 2);
  CHECK_OK(spillway_batch_merge(session, &key, function, &value), session);
  CHECK(read_one(session, 5, SPILLWAY_BATCH_OK) == 42 && calls == 2);
  CHECK_OK(spillway_batch_remove(session, &key), session);
  CHECK(read_one(session, 5, SPILLWAY_BATCH_ABSENT) == 77);
  CHECK_OK(spillway_batch_merge(session, &key, function, &two), session);
  CHECK(read_one(session, 5, SPILLWAY_BATCH_OK) == 2 && calls == 2);

  close_opened((struct opened){table, session});
}

struct walk {
  const uint64_t *values;
  uint64_t seen, most;
};

static int walk_on(void *context, const void *key_at, const void *value_at) {
  struct walk *const walk = context;
  uint64_t key, value;
  memcpy(&key, key_at, sizeof key);
  memcpy(&value, value_at, sizeof value);
  CHECK(key < kKeys && value == walk->values[key]);
  return ++walk->seen == walk->most;
}

// Jobs of many keys, compared with an array: what is read, outcomes, counts, and all records at the end. The table grows.
static void jobs(const char *engine, uint64_t staging_bytes) {
  spillway_batch_options options = of_numbers(engine);
  options.staging_bytes = staging_bytes;
  const struct opened opened = open_with(&options);
  static uint64_t model[kKeys];
  memset(model, 0, sizeof model);  // 0: not there
  uint64_t there = 0, calls = 0, state = 1;
  for (int round = 0; round < 2000; ++round) {
    uint64_t keys[kGroup], values[kGroup], read[kGroup];
    uint8_t outcomes[kGroup];
    memset(read, 0xee, sizeof read);
    static const uint32_t kActions[] = {SPILLWAY_BATCH_UPSERT, SPILLWAY_BATCH_MERGE,  SPILLWAY_BATCH_READ,
                                        SPILLWAY_BATCH_REMOVE, SPILLWAY_BATCH_UPDATE, SPILLWAY_BATCH_CHANGE};
    const uint32_t action = kActions[round % 6];
    const int asks = round % 12 < 6;
    for (int i = 0; i < kGroup; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      keys[i] = (state >> 33) % kKeys;
      values[i] = 1 + (state >> 20) % 1000;
    }
    spillway_batch_job job = {.struct_bytes = sizeof job,
                              .action = action,
                              .count = kGroup,
                              .keys = keys,
                              .values = values,
                              .read = read,
                              .outcomes = asks ? outcomes : NULL,
                              .own_function = add,
                              .own_context = &calls};
    CHECK_OK(spillway_batch_run(opened.session, &job), opened.session);
    CHECK(job.done_count == kGroup);
    size_t absent = 0, inserted = 0, removed = 0;
    for (int i = 0; i < kGroup; ++i) {
      uint64_t *const value = &model[keys[i]];
      const int inserts = action == SPILLWAY_BATCH_UPSERT || action == SPILLWAY_BATCH_MERGE;
      if (*value == 0) {
        CHECK(!asks || outcomes[i] == (inserts ? SPILLWAY_BATCH_INSERTED : SPILLWAY_BATCH_NOT_THERE));
        if (action == SPILLWAY_BATCH_READ) CHECK(read[i] == 0xeeeeeeeeeeeeeeeeu);
        if (inserts) *value = values[i], ++inserted;
        absent += !inserts;
        continue;
      }
      CHECK(!asks || outcomes[i] == SPILLWAY_BATCH_DONE);
      if (action == SPILLWAY_BATCH_READ) CHECK(read[i] == *value);
      if (action == SPILLWAY_BATCH_REMOVE) *value = 0, ++removed;
      if (action == SPILLWAY_BATCH_UPSERT || action == SPILLWAY_BATCH_UPDATE) *value = values[i];
      if (action == SPILLWAY_BATCH_CHANGE || action == SPILLWAY_BATCH_MERGE) *value += values[i];
    }
    there += inserted - removed;
    if (asks || action == SPILLWAY_BATCH_READ)
      CHECK(job.absent_count == absent && job.inserted_count == inserted && job.removed_count == removed);
  }
  CHECK(calls > 0);
  CHECK_OK(spillway_batch_flush(opened.session), opened.session);
  struct walk walk = {model, 0, 0};
  CHECK_OK(spillway_batch_for_each(opened.session, walk_on, &walk), opened.session);
  CHECK(walk.seen == there);
  walk = (struct walk){model, 0, 7};
  CHECK_STATUS(spillway_batch_for_each(opened.session, walk_on, &walk), SPILLWAY_BATCH_STOPPED,
               opened.session);
  CHECK(walk.seen == 7);
  close_opened(opened);
}

// One JSON object, which says what the table is and what was done.
static void statistics(void) {
  spillway_batch_options options = of_numbers("tagged");
  const struct opened opened = open_with(&options);
  uint64_t key = 1, value = 2;
  CHECK_OK(spillway_batch_upsert(opened.session, &key, &value), opened.session);
  CHECK_OK(spillway_batch_read(opened.session, &key, &value), opened.session);
  char text[4096];
  size_t needed = 0;
  CHECK_OK(spillway_batch_stats(opened.table, text, sizeof text, &needed), NULL);
  CHECK(needed == strlen(text) + 1);
  CHECK(strstr(text,
               "{\"table\": {\"engine\": \"tagged\", \"key_bytes\": 8, \"value_bytes\": 8, \"bucket_bytes\": "
               "256, \"records\": 1,"));
  CHECK(strstr(text, "\"sessions\": 1, "));
  CHECK(strstr(text, "\"use\": {\"keys\": 2, \"answers\": 1, \"missed\": 0, \"dropped\": 0}}"));
  char few[10];
  CHECK_STATUS(spillway_batch_stats(opened.table, few, sizeof few, NULL), SPILLWAY_BATCH_TOO_SMALL, NULL);
  CHECK(strcmp(few, "{\"table\":") == 0);
  CHECK_STATUS(spillway_batch_stats(opened.table, NULL, 0, &needed), SPILLWAY_BATCH_TOO_SMALL, NULL);
  close_opened(opened);

  options = of_numbers(NULL);
  const struct opened choosing = open_with(&options);
  CHECK_OK(spillway_batch_stats(choosing.table, text, sizeof text, NULL), NULL);
  CHECK(strstr(text, "\"choice\": {\"trying\": true, \"decisions\": 0, \"why\": "));
  CHECK(strstr(text, "{\"engine\": \"prefetch\", \"modelled_ns\": "));
  CHECK(strstr(text, "partitioned") == NULL);  // nothing is staged without a budget
  close_opened(choosing);
}

void test_calls(void) {
  static const char *const kEngines[] = {NULL,     "auto",          "linear",    "direct",     "prefetch",
                                         "tagged", "cache_buckets", "decoupled", "partitioned"};
  for (size_t i = 0; i < sizeof kEngines / sizeof *kEngines; ++i) {
    single_keys(kEngines[i]);
    jobs(kEngines[i], 1 << 20);
  }
  statistics();
  CHECK(strcmp(spillway_batch_version(), "0.1.0") == 0);
}
