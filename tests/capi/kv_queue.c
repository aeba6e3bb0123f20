// Queues: requests that end in callbacks.
#include <poll.h>

#include "kv_test.h"

struct ended {
  int count;
  int status;
  uint64_t version;
  size_t bytes;
  uint32_t flags;
  char text[300];
  spillway_kv_queue *again;  // submit once more from the callback
};

static void note(void *context, const spillway_kv_result *result) {
  struct ended *const ended = context;
  ++ended->count;
  CHECK(result->struct_bytes >= sizeof *result && result->status == result->value.status);
  ended->status = result->status;
  ended->version = result->value.version;
  ended->bytes = result->value.data_bytes;
  ended->flags = result->value.flags;
  if (result->status < 0)
    snprintf(ended->text, sizeof ended->text, "%s", result->error_text);
  else if (result->value.data != NULL)
    snprintf(ended->text, sizeof ended->text, "%.*s", (int)result->value.data_bytes,
             (const char *)result->value.data);
  if (ended->again == NULL) return;
  spillway_kv_queue *const queue = ended->again;
  ended->again = NULL;
  CHECK_STATUS(spillway_kv_submit_get(queue, "key", 3, NULL, 0, note, ended), SPILLWAY_KV_OK, NULL);
}

// Polls until the request has ended.
static struct ended *end(spillway_kv_queue *queue, struct ended *ended) {
  while (ended->count == 0) spillway_kv_poll(queue, 0, -1);
  CHECK(ended->count == 1);
  ended->count = 0;
  return ended;
}

static void requests(spillway_kv *store) {
  spillway_kv_queue *queue;
  CHECK_STATUS(spillway_kv_queue_open(store, NULL, &queue), SPILLWAY_KV_OK, NULL);
  CHECK(spillway_kv_poll(queue, 0, -1) == 0);  // nothing is submitted
  struct ended ended = {0};
  struct iovec pieces[17] = {{"va", 2}, {"lue", 3}};
  spillway_kv_change_options options = {
      .struct_bytes = sizeof options, .when = SPILLWAY_KV_IF_ABSENT, .flags = 3};
  CHECK_STATUS(spillway_kv_submit_put(queue, "key", 3, pieces, 2, &options, note, &ended), SPILLWAY_KV_OK,
               NULL);
  options.flags = 8;  // was copied, as was the list of pieces
  pieces[0].iov_len = 1;
  CHECK(end(queue, &ended)->status == SPILLWAY_KV_OK && ended.version > 0);
  const uint64_t version = ended.version;
  pieces[0].iov_len = 2;
  CHECK_STATUS(spillway_kv_submit_put(queue, "key", 3, pieces, 2, &options, note, &ended), SPILLWAY_KV_OK,
               NULL);
  CHECK(end(queue, &ended)->status == SPILLWAY_KV_PRESENT && ended.version == version);
  char buffer[5];
  CHECK_STATUS(spillway_kv_submit_get(queue, "key", 3, buffer, 5, note, &ended), SPILLWAY_KV_OK, NULL);
  CHECK(end(queue, &ended)->status == SPILLWAY_KV_OK && ended.bytes == 5 && ended.flags == 3);
  CHECK(memcmp(buffer, "value", 5) == 0 && ended.version == version);
  CHECK_STATUS(spillway_kv_submit_get(queue, "key", 3, buffer, 4, note, &ended), SPILLWAY_KV_OK, NULL);
  CHECK(end(queue, &ended)->status == SPILLWAY_KV_TOO_SMALL && ended.bytes == 5);
  ended.text[0] = 0;
  CHECK_STATUS(spillway_kv_submit_get(queue, "key", 3, NULL, 0, note, &ended), SPILLWAY_KV_OK, NULL);
  CHECK(end(queue, &ended)->status == SPILLWAY_KV_OK && strcmp(ended.text, "value") == 0);
  CHECK_STATUS(spillway_kv_submit_get(queue, "none", 4, NULL, 0, note, &ended), SPILLWAY_KV_OK, NULL);
  CHECK(end(queue, &ended)->status == SPILLWAY_KV_ABSENT);
  CHECK_STATUS(spillway_kv_submit_get(queue, "", 0, NULL, 0, note, &ended), SPILLWAY_KV_OK, NULL);
  CHECK(end(queue, &ended)->status == SPILLWAY_KV_INVALID && strstr(ended.text, "a key of 0 bytes") != NULL);

  // From a callback.
  ended.again = queue;
  CHECK_STATUS(spillway_kv_submit_remove(queue, "none", 4, NULL, note, &ended), SPILLWAY_KV_OK, NULL);
  while (ended.count < 2) spillway_kv_poll(queue, 0, 1000);
  CHECK(ended.status == SPILLWAY_KV_OK && ended.bytes == 5);
  ended.count = 0;
  CHECK_STATUS(spillway_kv_submit_remove(queue, "key", 3, NULL, note, &ended), SPILLWAY_KV_OK, NULL);
  CHECK(end(queue, &ended)->status == SPILLWAY_KV_OK);

  CHECK_STATUS(spillway_kv_submit_get(NULL, "k", 1, NULL, 0, note, NULL), SPILLWAY_KV_INVALID, NULL);
  CHECK_STATUS(spillway_kv_submit_get(queue, "k", 1, NULL, 0, NULL, NULL), SPILLWAY_KV_INVALID, NULL);
  CHECK_STATUS(spillway_kv_submit_get(queue, NULL, 1, NULL, 0, note, NULL), SPILLWAY_KV_INVALID, NULL);
  CHECK_STATUS(spillway_kv_submit_put(queue, "k", 1, pieces, 17, NULL, note, NULL), SPILLWAY_KV_INVALID,
               NULL);
  CHECK_STATUS(spillway_kv_submit_put(queue, "k", 1, NULL, 1, NULL, note, NULL), SPILLWAY_KV_INVALID, NULL);
  CHECK_STATUS(spillway_kv_submit_remove(queue, "k", 1, &options, note, NULL), SPILLWAY_KV_INVALID, NULL);
  CHECK(spillway_kv_poll(NULL, 0, 0) == 0);
  CHECK_STATUS(spillway_kv_queue_close(queue), SPILLWAY_KV_OK, NULL);
}

// A queue takes only so many requests; its descriptor tells when some have ended; nothing can be closed while requests are under way.
static void limits(spillway_kv *store) {
  const spillway_kv_queue_options options = {
      .struct_bytes = sizeof options, .requests = 3, .outstanding = 2, .threads = 2};
  spillway_kv_queue *queue;
  CHECK_STATUS(spillway_kv_queue_open(store, &options, &queue), SPILLWAY_KV_OK, NULL);
  struct ended ended = {0};
  for (int i = 0; i < 3; ++i)
    CHECK_STATUS(spillway_kv_submit_put(queue, "key", 3, NULL, 0, NULL, note, &ended), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_submit_put(queue, "key", 3, NULL, 0, NULL, note, &ended), SPILLWAY_KV_BUSY, NULL);
  CHECK_STATUS(spillway_kv_queue_close(queue), SPILLWAY_KV_IN_USE, NULL);
  CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_IN_USE, NULL);
  CHECK(poll(NULL, 0, 100) == 0);  // usually all have ended after that
  struct pollfd event = {.fd = spillway_kv_event(queue), .events = POLLIN};
  for (int expected = 1; expected <= 3; ++expected) {
    // One at a time: the descriptor tells of the rest, too.
    for (size_t polled = 0; polled == 0;) {
      CHECK(poll(&event, 1, 60000) == 1);
      polled = spillway_kv_poll(queue, 1, 0);
      CHECK(polled <= 1);
    }
    CHECK(ended.count == expected);
  }
  spillway_kv_poll(queue, 0, 0);
  CHECK(poll(&event, 1, 0) == 0);
  CHECK_STATUS(spillway_kv_queue_close(queue), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_queue_close(NULL), SPILLWAY_KV_OK, NULL);

  spillway_kv_queue_options wrong[] = {{.struct_bytes = sizeof wrong[0], .requests = 65537},
                                       {.struct_bytes = sizeof wrong[0], .outstanding = 4097},
                                       {.struct_bytes = sizeof wrong[0], .threads = 65},
                                       {.struct_bytes = 1}};
  for (int i = 0; i < 4; ++i) {
    CHECK_STATUS(spillway_kv_queue_open(store, &wrong[i], &queue), SPILLWAY_KV_INVALID, NULL);
    CHECK(queue == NULL);
  }
  CHECK_STATUS(spillway_kv_queue_open(NULL, NULL, &queue), SPILLWAY_KV_INVALID, NULL);
}

void test_queue(void) {
  spillway_kv *store;
  CHECK_STATUS(spillway_kv_open_memory(64 << 20, NULL, &store), SPILLWAY_KV_OK, NULL);
  requests(store);
  limits(store);
  CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_OK, NULL);
}
