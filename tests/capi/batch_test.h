// Shared by the parts of the batched update table's C test.
#ifndef BATCH_TEST_H
#define BATCH_TEST_H
#include "spillway/batch.h"

#define API(name) spillway_batch_##name
#include "check.h"

#define CHECK_OK(call, session) CHECK_STATUS(call, SPILLWAY_BATCH_OK, session)

// An open table of numbers with a session.
struct opened {
  spillway_batch *table;
  spillway_batch_session *session;
};

static inline spillway_batch_options of_numbers(const char *engine) {
  const spillway_batch_options options = {.struct_bytes = sizeof options,
                                          .key_bytes = 8,
                                          .value_bytes = 8,
                                          .records = 1000,
                                          .engine = engine,
                                          .cache_bytes = 64 << 10};
  return options;
}

static inline struct opened open_with(const spillway_batch_options *options) {
  struct opened opened;
  CHECK_OK(spillway_batch_open(options, &opened.table), NULL);
  CHECK_OK(spillway_batch_session_open(opened.table, &opened.session), NULL);
  return opened;
}

static inline void close_opened(struct opened opened) {
  CHECK_OK(spillway_batch_session_close(opened.session), opened.session);
  CHECK_OK(spillway_batch_close(opened.table), NULL);
}

void test_calls(void);
void test_errors(void);
void test_stored(const char *folder);
#endif
