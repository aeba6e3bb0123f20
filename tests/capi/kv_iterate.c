// Iterations.
#include "kv_test.h"

enum { kKeys = 500 };

static void text_of(char *text, size_t bytes, const char *what, int i) {
  snprintf(text, bytes, "%s%d", what, i);
}

static void all_keys_of_one_moment(void) {
  const struct opened own = open_memory(64 << 20);
  spillway_kv_session *const session = own.session;
  char key[32], text[32];
  for (int i = 0; i < kKeys; ++i) {
    text_of(key, sizeof key, "key", i);
    text_of(text, sizeof text, "value", i);
    CHECK_STATUS(put(session, key, text), SPILLWAY_KV_OK, session);
  }
  char *const large = malloc(1000000);
  memset(large, 'l', 1000000);
  const struct iovec piece = {large, 1000000};
  const spillway_kv_change_options options = {.struct_bytes = sizeof options, .flags = 7};
  CHECK_STATUS(spillway_kv_put(session, "large", 5, &piece, 1, &options, NULL), SPILLWAY_KV_OK, session);

  spillway_kv_iteration *iteration;
  CHECK_STATUS(spillway_kv_iterate_open(session, &iteration), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_session_close(session), SPILLWAY_KV_IN_USE, session);
  CHECK(strstr(spillway_kv_error_text(session), "iteration") != NULL);
  for (int i = 0; i < kKeys; ++i) {
    text_of(key, sizeof key, i % 2 == 0 ? "key" : "new", i);
    CHECK_STATUS(put(session, key, "other"), SPILLWAY_KV_OK, session);
  }
  CHECK_STATUS(spillway_kv_remove(session, "large", 5, NULL, NULL), SPILLWAY_KV_OK, session);

  char seen[kKeys] = {0};
  int count = 0, larges = 0;
  const void *found;
  size_t found_bytes, read_bytes;
  spillway_kv_value value = {.struct_bytes = sizeof value};
  while (spillway_kv_iterate_next(iteration, &found, &found_bytes, &value) == SPILLWAY_KV_OK) {
    CHECK(value.status == SPILLWAY_KV_OK && value.holder == NULL && value.version > 0);
    memset(text, 0, sizeof text);
    if (value.data == NULL) {
      CHECK(found_bytes == 5 && memcmp(found, "large", 5) == 0 && value.data_bytes == 1000000 &&
            value.flags == 7);
      CHECK_STATUS(spillway_kv_iterate_read(iteration, 999990, text, sizeof text, &read_bytes),
                   SPILLWAY_KV_OK, session);
      CHECK(read_bytes == 10 && strcmp(text, "llllllllll") == 0);
      ++larges;
      continue;
    }
    int i = -1;
    memcpy(key, found, found_bytes);
    key[found_bytes] = 0;
    CHECK(sscanf(key, "key%d", &i) == 1 && i >= 0 && i < kKeys && seen[i]++ == 0);
    text_of(text, sizeof text, "value", i);
    CHECK(value.data_bytes == strlen(text) && memcmp(value.data, text, value.data_bytes) == 0);
    CHECK_STATUS(spillway_kv_iterate_read(iteration, 5, text, sizeof text, &read_bytes), SPILLWAY_KV_OK,
                 session);
    CHECK(read_bytes == value.data_bytes - 5);
    CHECK_STATUS(spillway_kv_iterate_read(iteration, 0, text, 2, NULL), SPILLWAY_KV_OK, session);
    CHECK(memcmp(text, "va", 2) == 0);
    ++count;
  }
  CHECK(count == kKeys && larges == 1);
  CHECK_STATUS(spillway_kv_iterate_next(iteration, &found, &found_bytes, NULL), SPILLWAY_KV_ABSENT, session);
  CHECK(found == NULL && found_bytes == 0);
  CHECK_STATUS(spillway_kv_iterate_read(iteration, 0, text, sizeof text, &read_bytes), SPILLWAY_KV_INVALID,
               session);
  CHECK_STATUS(spillway_kv_iterate_close(iteration), SPILLWAY_KV_OK, session);
  free(large);
  close_opened(own);
}

static void mistakes(void) {
  const struct opened own = open_memory(64 << 20);
  spillway_kv_session *const session = own.session;
  spillway_kv_iteration *iterations[9];
  CHECK_STATUS(spillway_kv_iterate_open(NULL, &iterations[0]), SPILLWAY_KV_INVALID, NULL);
  CHECK_STATUS(spillway_kv_iterate_open(session, NULL), SPILLWAY_KV_INVALID, session);
  CHECK_STATUS(spillway_kv_iterate_next(NULL, NULL, NULL, NULL), SPILLWAY_KV_INVALID, NULL);
  CHECK_STATUS(spillway_kv_iterate_close(NULL), SPILLWAY_KV_OK, NULL);
  for (int i = 0; i < 8; ++i)
    CHECK_STATUS(spillway_kv_iterate_open(session, &iterations[i]), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_iterate_open(session, &iterations[8]), SPILLWAY_KV_IN_USE, session);
  CHECK(iterations[8] == NULL);
  spillway_kv_value value = {.struct_bytes = 0};
  CHECK_STATUS(spillway_kv_iterate_next(iterations[0], NULL, NULL, &value), SPILLWAY_KV_INVALID, session);
  for (int i = 0; i < 8; ++i) CHECK_STATUS(spillway_kv_iterate_close(iterations[i]), SPILLWAY_KV_OK, session);
  close_opened(own);
}

// More is changed than the store has room to keep for the iteration.
static void changed_too_much(void) {
  enum { kOld = 400 };  // of 100,000 bytes each, twice: more than the store has room for
  const struct opened own = open_memory(64 << 20);
  char *const bytes = calloc(1, 100000);
  const struct iovec piece = {bytes, 100000};
  spillway_kv_iteration *iteration = NULL;
  for (int i = 0; i < 3 * kOld; ++i) {
    if (i == kOld)
      CHECK_STATUS(spillway_kv_iterate_open(own.session, &iteration), SPILLWAY_KV_OK, own.session);
    char key[32];
    text_of(key, sizeof key, "key", i % kOld);
    CHECK_STATUS(spillway_kv_put(own.session, key, strlen(key), &piece, 1, NULL, NULL), SPILLWAY_KV_OK,
                 own.session);
  }
  CHECK_STATUS(spillway_kv_iterate_next(iteration, NULL, NULL, NULL), SPILLWAY_KV_CANCELED, own.session);
  CHECK_STATUS(spillway_kv_iterate_close(iteration), SPILLWAY_KV_OK, own.session);
  free(bytes);
  close_opened(own);
}

void test_iterate(void) {
  all_keys_of_one_moment();
  mistakes();
  changed_too_much();
}
