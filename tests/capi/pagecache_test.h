// Shared by the parts of the page cache's C test: caches with a session and a file.
#ifndef PAGECACHE_TEST_H
#define PAGECACHE_TEST_H
#include "spillway/pagecache.h"

#define API(name) spillway_pagecache_##name
#include "check.h"

#define CHECK_OK(call, session) CHECK_STATUS(call, SPILLWAY_PAGECACHE_OK, session)

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
