// Shared by the parts of the key-value store's C test: stores in memory.
#ifndef KV_TEST_H
#define KV_TEST_H
#include "spillway/kv.h"

#define API(name) spillway_kv_##name
#include "check.h"

// An open store in memory with a session.
struct opened {
  spillway_kv *store;
  spillway_kv_session *session;
};

static inline struct opened open_memory(uint64_t capacity_bytes) {
  struct opened opened;
  CHECK_STATUS(spillway_kv_open_memory(capacity_bytes, NULL, &opened.store), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_session_open(opened.store, &opened.session), SPILLWAY_KV_OK, NULL);
  return opened;
}

static inline void close_opened(struct opened opened) {
  CHECK_STATUS(spillway_kv_session_close(opened.session), SPILLWAY_KV_OK, opened.session);
  CHECK_STATUS(spillway_kv_close(opened.store), SPILLWAY_KV_OK, NULL);
}

static inline int put(spillway_kv_session *session, const char *key, const char *value) {
  const struct iovec piece = {(void *)value, strlen(value)};
  return spillway_kv_put(session, key, strlen(key), &piece, 1, NULL, NULL);
}

// Is this the key's value? Null: does it have none?
static inline int has(spillway_kv_session *session, const char *key, const char *value) {
  spillway_kv_value found = {.struct_bytes = sizeof found};
  const int status = spillway_kv_get_value(session, key, strlen(key), &found);
  CHECK(status == found.status);
  const int is_it = value == NULL ? status == SPILLWAY_KV_ABSENT
                                  : status == SPILLWAY_KV_OK && found.data_bytes == strlen(value) &&
                                        memcmp(found.data, value, found.data_bytes) == 0;
  spillway_kv_value_release(&found, 1);
  return is_it;
}

void test_calls(void);
void test_errors(const char *folder);
void test_iterate(void);
void test_queue(void);
#endif
