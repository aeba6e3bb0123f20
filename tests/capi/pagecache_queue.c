// Queues: requests that end in callbacks.
#include <poll.h>

#include "pagecache_test.h"

struct ended {
  int count;
  int status;
  size_t bytes;
  uint64_t offset;
  uint32_t kind;
  void *data;
  char text[300];
  spillway_pagecache_queue *again;  // submit once more from the callback
};

static void note(void *context, const spillway_pagecache_result *result) {
  struct ended *const ended = context;
  ++ended->count;
  CHECK(result->struct_bytes >= sizeof *result && result->error_text != NULL);
  ended->status = result->status;
  ended->bytes = result->bytes;
  ended->offset = result->offset;
  ended->kind = result->kind;
  ended->data = result->data;
  snprintf(ended->text, sizeof ended->text, "%s", result->error_text);
  if (ended->again == NULL) return;
  spillway_pagecache_queue *const queue = ended->again;
  ended->again = NULL;
  const spillway_pagecache_request request = {.struct_bytes = sizeof request,
                                              .file = result->file,
                                              .data = result->data,
                                              .bytes = 1,
                                              .done = note,
                                              .context = ended};
  CHECK_OK(spillway_pagecache_submit(queue, &request, 1, NULL), NULL);
  CHECK(spillway_pagecache_poll(queue, -1) == 0);
  CHECK_STATUS(spillway_pagecache_queue_close(queue), SPILLWAY_PAGECACHE_IN_USE, NULL);
}

// Submits it and polls until it has ended.
static void run(spillway_pagecache_queue *queue, spillway_pagecache_request request, struct ended *ended) {
  size_t taken = 7;
  request.done = note;
  request.context = ended;
  ended->count = 0;
  CHECK_OK(spillway_pagecache_submit(queue, &request, 1, &taken), NULL);
  CHECK(taken == 1 && ended->count == 0);
  request.offset = ~(uint64_t)0;  // was copied
  while (ended->count == 0) spillway_pagecache_poll(queue, -1);
  CHECK(ended->count == 1);
}

static void requests(const struct opened *own) {
  spillway_pagecache_queue *queue;
  CHECK_OK(spillway_pagecache_queue_open(own->cache, NULL, &queue), NULL);
  CHECK(spillway_pagecache_poll(queue, -1) == 0 &&
        spillway_pagecache_poll(queue, 0) == 0);  // nothing is submitted
  struct ended ended = {0};
  static char written[3 * kPage], found[3 * kPage];
  memset(written, 'w', sizeof written);
  const spillway_pagecache_request write = {.struct_bytes = sizeof write,
                                            .file = own->file,
                                            .offset = 1000,
                                            .data = written,
                                            .bytes = sizeof written,
                                            .kind = SPILLWAY_PAGECACHE_WRITE};
  run(queue, write, &ended);
  CHECK(ended.status == SPILLWAY_PAGECACHE_OK && ended.bytes == sizeof written && ended.offset == 1000 &&
        ended.kind == SPILLWAY_PAGECACHE_WRITE && ended.data == written && ended.text[0] == 0);
  spillway_pagecache_request read = write;
  read.kind = SPILLWAY_PAGECACHE_READ, read.data = found;
  run(queue, read, &ended);
  CHECK(ended.status == SPILLWAY_PAGECACHE_OK && ended.kind == SPILLWAY_PAGECACHE_READ &&
        memcmp(found, written, sizeof found) == 0);
  read.bytes = 2, read.offset = spillway_pagecache_file_bytes(own->file) - 1;
  run(queue, read, &ended);
  CHECK(ended.status == SPILLWAY_PAGECACHE_INVALID && strstr(ended.text, "cannot read 2 bytes") != NULL);
  read.bytes = 0, read.data = NULL;
  run(queue, read, &ended);
  CHECK(ended.status == SPILLWAY_PAGECACHE_OK);
  // From a callback.
  read.bytes = 1, read.data = found, read.offset = 0, found[0] = 'x';
  ended.again = queue;
  read.done = note, read.context = &ended, ended.count = 0;
  CHECK_OK(spillway_pagecache_submit(queue, &read, 1, NULL), NULL);
  while (ended.count < 2) spillway_pagecache_poll(queue, 1000);
  CHECK(ended.count == 2 && ended.status == SPILLWAY_PAGECACHE_OK && found[0] == 0);
  CHECK_OK(spillway_pagecache_queue_close(queue), NULL);
  CHECK_OK(spillway_pagecache_queue_close(NULL), NULL);
}

// Of an array of requests, those before the wrong one are taken.
static void mistakes(const struct opened *own, const struct opened *second) {
  spillway_pagecache_queue *queue;
  CHECK_OK(spillway_pagecache_queue_open(own->cache, NULL, &queue), NULL);
  struct ended ended = {0};
  char byte = 'e';
  const spillway_pagecache_request good = {.struct_bytes = sizeof good,
                                           .file = own->file,
                                           .data = &byte,
                                           .bytes = 1,
                                           .done = note,
                                           .context = &ended};
  const char *const words[] = {"file of a request", "another cache", "callback", "memory", "kind 2",
                               "struct_bytes is 1", "reserved is 3"};
  for (int i = 0; i < 7; ++i) {
    spillway_pagecache_request all[3] = {good, good, good};
    if (i == 0) all[1].file = NULL;
    if (i == 1) all[1].file = second->file;
    if (i == 2) all[1].done = NULL;
    if (i == 3) all[1].data = NULL;
    if (i == 4) all[1].kind = 2;
    if (i == 5) all[1].struct_bytes = 1;
    if (i == 6) all[1].reserved = 3;
    size_t taken = 9;
    ended.count = 0;
    CHECK_ERROR(spillway_pagecache_submit(queue, all, 3, &taken), SPILLWAY_PAGECACHE_INVALID, NULL, words[i]);
    CHECK(taken == 1);
    while (spillway_pagecache_poll(queue, -1) != 0) continue;
    CHECK(ended.count == 1);
  }
  size_t taken = 9;
  CHECK_STATUS(spillway_pagecache_submit(NULL, &good, 1, &taken), SPILLWAY_PAGECACHE_INVALID, NULL);
  CHECK(taken == 0);
  CHECK_STATUS(spillway_pagecache_submit(queue, NULL, 1, &taken), SPILLWAY_PAGECACHE_INVALID, NULL);
  spillway_pagecache_request early = good;
  early.struct_bytes = 8;
  CHECK_STATUS(spillway_pagecache_submit(queue, &early, 1, &taken), SPILLWAY_PAGECACHE_INVALID, NULL);
  CHECK_OK(spillway_pagecache_submit(queue, NULL, 0, &taken), NULL);
  CHECK(spillway_pagecache_poll(NULL, 0) == 0);
  CHECK_STATUS(spillway_pagecache_event(NULL), SPILLWAY_PAGECACHE_INVALID, NULL);
  CHECK_OK(spillway_pagecache_queue_close(queue), NULL);

  const spillway_pagecache_queue_options wrong[] = {{.struct_bytes = sizeof wrong[0], .requests = 65537},
                                                    {.struct_bytes = sizeof wrong[0], .reserved = 1},
                                                    {.struct_bytes = 1}};
  for (int i = 0; i < 3; ++i) {
    CHECK_STATUS(spillway_pagecache_queue_open(own->cache, &wrong[i], &queue), SPILLWAY_PAGECACHE_INVALID,
                 NULL);
    CHECK(queue == NULL);
  }
  CHECK_STATUS(spillway_pagecache_queue_open(NULL, NULL, &queue), SPILLWAY_PAGECACHE_INVALID, NULL);
  CHECK_STATUS(spillway_pagecache_queue_open(own->cache, NULL, NULL), SPILLWAY_PAGECACHE_INVALID, NULL);
}

// A queue takes only so many requests; nothing can be closed or removed while requests are under way.
static void limits(const struct opened *own) {
  const spillway_pagecache_queue_options options = {.struct_bytes = sizeof options, .requests = 3};
  spillway_pagecache_queue *queue;
  CHECK_OK(spillway_pagecache_queue_open(own->cache, &options, &queue), NULL);
  struct ended ended = {0};
  char bytes[5];
  spillway_pagecache_request all[5];
  for (int i = 0; i < 5; ++i)
    all[i] = (spillway_pagecache_request){.struct_bytes = sizeof all[i],
                                          .file = own->file,
                                          .offset = (uint64_t)(100 + i) * kPage,
                                          .data = bytes + i,
                                          .bytes = 1,
                                          .done = note,
                                          .context = &ended};
  size_t taken = 0;
  CHECK_STATUS(spillway_pagecache_submit(queue, all, 5, &taken), SPILLWAY_PAGECACHE_BUSY, NULL);
  CHECK(taken == 3);
  CHECK_STATUS(spillway_pagecache_submit(queue, all + 3, 2, &taken), SPILLWAY_PAGECACHE_BUSY, NULL);
  CHECK(taken == 0);
  CHECK_ERROR(spillway_pagecache_queue_close(queue), SPILLWAY_PAGECACHE_IN_USE, NULL, "3 requests");
  CHECK_ERROR(spillway_pagecache_remove(own->session, own->file), SPILLWAY_PAGECACHE_IN_USE, own->session,
              "3 requests");
  CHECK_ERROR(spillway_pagecache_close(own->cache), SPILLWAY_PAGECACHE_IN_USE, NULL, "1 queues");
  while (ended.count < 3) CHECK(spillway_pagecache_poll(queue, 60000) > 0);
  CHECK_OK(spillway_pagecache_submit(queue, all + 3, 2, &taken), NULL);
  CHECK(taken == 2);
  while (ended.count < 5) CHECK(spillway_pagecache_poll(queue, 60000) > 0);

  // The descriptor tells when requests for pages that were not in memory have ended.
  struct pollfd event = {.fd = spillway_pagecache_event(queue), .events = POLLIN};
  CHECK(event.fd > 2 && spillway_pagecache_event(queue) == event.fd);
  for (int i = 0; i < 3; ++i) {
    ended.count = 0;
    all[0].offset = (uint64_t)(120 + i) * kPage;
    CHECK_OK(spillway_pagecache_submit(queue, all, 1, NULL), NULL);
    while (spillway_pagecache_poll(queue, 0) != 0) continue;
    while (ended.count == 0) {
      CHECK(poll(&event, 1, 60000) == 1);
      spillway_pagecache_poll(queue, 0);
    }
    CHECK(ended.count == 1);
  }
  spillway_pagecache_poll(queue, 0);
  CHECK(poll(&event, 1, 0) == 0);
  // What servers did counts, too.
  char text[8192];
  CHECK_OK(spillway_pagecache_stats(own->cache, text, sizeof text, NULL), NULL);
  CHECK(strstr(text, "\"queues\": 1}") != NULL && strstr(text, "\"misses\": 0,") == NULL &&
        strstr(text, "\"messages\": {\"requests\": 0,") == NULL);
  // A request for a page that is held: a poll waits only as long as it may.
  spillway_pagecache_view view = {.struct_bytes = sizeof view};
  CHECK_OK(spillway_pagecache_view_get(own->session, own->file, 0, 1, &view), own->session);
  all[0].offset = 0, all[0].kind = SPILLWAY_PAGECACHE_WRITE, ended.count = 0;
  CHECK_OK(spillway_pagecache_submit(queue, all, 1, NULL), NULL);
  CHECK(spillway_pagecache_poll(queue, 20) == 0);
  spillway_pagecache_view_release(&view);
  CHECK(spillway_pagecache_poll(queue, 60000) == 1 && ended.status == SPILLWAY_PAGECACHE_OK);
  CHECK_OK(spillway_pagecache_queue_close(queue), NULL);
}

// Requests whose struct is larger than the library's.
static void requests_of_a_later_version(const struct opened *own) {
  spillway_pagecache_queue *queue;
  CHECK_OK(spillway_pagecache_queue_open(own->cache, NULL, &queue), NULL);
  struct later {
    spillway_pagecache_request known;
    uint64_t later;
  } all[100];
  struct ended ended = {0};
  char byte;
  for (int i = 0; i < 100; ++i)
    all[i] = (struct later){.known = {.struct_bytes = sizeof all[i],
                                      .file = own->file,
                                      .offset = (uint64_t)i * kPage,
                                      .data = &byte,
                                      .bytes = 1,
                                      .done = note,
                                      .context = &ended,
                                      .kind = SPILLWAY_PAGECACHE_WRITE}};
  size_t taken = 0;
  CHECK_OK(spillway_pagecache_submit(queue, &all[0].known, 100, &taken), NULL);
  CHECK(taken == 100);
  while (ended.count < 100) CHECK(spillway_pagecache_poll(queue, -1) > 0);
  all[70].later = 1;
  CHECK_ERROR(spillway_pagecache_submit(queue, &all[0].known, 100, &taken), SPILLWAY_PAGECACHE_INVALID, NULL,
              "does not know");
  CHECK(taken == 70);
  while (spillway_pagecache_poll(queue, -1) != 0) continue;
  CHECK(ended.count == 170);
  CHECK_OK(spillway_pagecache_queue_close(queue), NULL);
}

void test_queue(void) {
  spillway_pagecache_options options = with_memory(1 << 20);
  const struct opened own = open_with(&options, "memory:4M"), second = open_with(&options, "memory:4M");
  requests(&own);
  mistakes(&own, &second);
  limits(&own);
  requests_of_a_later_version(&own);
  close_opened(second);
  // A file can be removed when its requests have ended, however many there were.
  CHECK_OK(spillway_pagecache_remove(own.session, own.file), own.session);
  close_opened(own);
  // A queue alone keeps a cache open.
  const struct opened last = open_with(&options, "memory:1M");
  spillway_pagecache_queue *queue;
  CHECK_OK(spillway_pagecache_queue_open(last.cache, NULL, &queue), NULL);
  CHECK_OK(spillway_pagecache_session_close(last.session), NULL);
  CHECK_ERROR(spillway_pagecache_close(last.cache), SPILLWAY_PAGECACHE_IN_USE, NULL,
              "0 sessions and 1 queues");
  CHECK_OK(spillway_pagecache_queue_close(queue), NULL);
  CHECK_OK(spillway_pagecache_close(last.cache), NULL);
  options.threads = SPILLWAY_PAGECACHE_NO_THREADS;
  const struct opened without = open_with(&options, "memory:1M");
  CHECK_ERROR(spillway_pagecache_queue_open(without.cache, NULL, &queue), SPILLWAY_PAGECACHE_INVALID, NULL,
              "without threads");
  close_opened(without);
}
