// What the parts of the page cache's C test share: checks that end the program with a line, and caches for a moment.
#ifndef PAGECACHE_TEST_H
#define PAGECACHE_TEST_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spillway/pagecache.h"

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)
// Both are evaluated once; `session` may be null.
#define CHECK_STATUS(call, expected, session)                                                              \
  do {                                                                                                     \
    const int status_ = (call), expected_ = (expected);                                                    \
    if (status_ != expected_) {                                                                            \
      fprintf(stderr, "%s:%d: %s is %d (%s: %s), not %d\n", __FILE__, __LINE__, #call, status_,            \
              spillway_pagecache_status_text(status_), spillway_pagecache_error_text(session), expected_); \
      exit(1);                                                                                             \
    }                                                                                                      \
  } while (0)
#define CHECK_OK(call, session) CHECK_STATUS(call, SPILLWAY_PAGECACHE_OK, session)
// The call failed with the status, and its line has the words.
#define CHECK_ERROR(call, expected, session, words)                              \
  do {                                                                           \
    CHECK_STATUS(call, expected, session);                                       \
    if (strstr(spillway_pagecache_error_text(session), words) == NULL) {         \
      fprintf(stderr, "%s:%d: no \"%s\" in \"%s\"\n", __FILE__, __LINE__, words, \
              spillway_pagecache_error_text(session));                           \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

enum { kPage = 4096 };

// An open cache with a session and a file.
struct opened {
  spillway_pagecache *cache;
  spillway_pagecache_session *session;
  spillway_pagecache_file *file;
};

static inline spillway_pagecache_options with_memory(uint64_t memory_bytes) {
  const spillway_pagecache_options options = {.struct_bytes = sizeof options, .memory_bytes = memory_bytes};
  return options;
}

static inline struct opened open_with(const spillway_pagecache_options *options, const char *device) {
  struct opened opened;
  CHECK_OK(spillway_pagecache_open(options, &opened.cache), NULL);
  CHECK_OK(spillway_pagecache_session_open(opened.cache, &opened.session), NULL);
  CHECK_OK(spillway_pagecache_add(opened.cache, device, NULL, &opened.file), NULL);
  return opened;
}

static inline void close_opened(struct opened opened) {
  CHECK_OK(spillway_pagecache_session_close(opened.session), opened.session);
  CHECK_OK(spillway_pagecache_close(opened.cache), NULL);
}

void test_calls(const char *folder);
void test_errors(const char *folder);
void test_queue(void);
#endif
