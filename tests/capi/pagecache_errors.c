// Every error, and what its line says.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pagecache_test.h"

#include "folder.h"

static void make_file(const char *path, off_t bytes) {
  const int descriptor = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  CHECK(descriptor >= 0 && ftruncate(descriptor, bytes) == 0 && close(descriptor) == 0);
}

static void add_as_reader(const char *path) {
  const spillway_pagecache_options options = with_memory(1 << 20);
  spillway_pagecache *cache;
  spillway_pagecache_file *file;
  CHECK_OK(spillway_pagecache_open(&options, &cache), NULL);
  CHECK_ERROR(spillway_pagecache_add(cache, path, NULL, &file), SPILLWAY_PAGECACHE_DENIED, NULL, path);
  CHECK(file == NULL);
  const spillway_pagecache_file_options read_only = {.struct_bytes = sizeof read_only, .read_only = 1};
  CHECK_OK(spillway_pagecache_add(cache, path, &read_only, &file), NULL);
  CHECK_OK(spillway_pagecache_close(cache), NULL);
}

static void denied(const char *path) {
  make_file(path, kPage);
  call_as_reader(path, add_as_reader);
}

// One wrong option at a time.
static void options_that_are_refused(void) {
  const struct {
    spillway_pagecache_options options;
    const char *words;
  } wrong[] = {
      {{.struct_bytes = 0, .memory_bytes = 1 << 20}, "struct_bytes is 0"},
      {{.struct_bytes = sizeof wrong[0].options}, "memory_bytes is 0"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = 60000},
       "60000 bytes of memory are less than the 66112 that one set of 16 pages takes"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = 1 << 20, .memory_bytes_max = 1 << 19},
       "memory_bytes_max is 524288"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = (uint64_t)1 << 62}, "page cache"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = 1 << 20, .policy = "clock"},
       "no policy is called 'clock'; there are lru, lfu, nrlfu, alfu, gclock and s3fifo"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = 1 << 20, .policy = ""}, "called ''"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = 1 << 20, .page_bytes = 5000}, "5000"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = 1 << 20, .page_bytes = 512}, "512"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = 1 << 20, .dirty_percent_max = 101}, "101"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = 1 << 20, .threads = 65}, "65"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = 1 << 20, .requests_each = 1025}, "1025"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = 64 << 20, .nodes = 65},
       "it has 64 nodes at most, not 65"},
      {{.struct_bytes = sizeof wrong[0].options, .memory_bytes = 100000, .nodes = 2},
       "each of 2 nodes has a share"},
  };
  spillway_pagecache *cache = (spillway_pagecache *)&wrong;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    CHECK_ERROR(spillway_pagecache_open(&wrong[i].options, &cache), SPILLWAY_PAGECACHE_INVALID, NULL,
                wrong[i].words);
    CHECK(cache == NULL && strchr(spillway_pagecache_error_text(NULL), '\n') == NULL);
  }
  CHECK_ERROR(spillway_pagecache_open(NULL, &cache), SPILLWAY_PAGECACHE_INVALID, NULL, "memory_bytes is 0");
  CHECK_ERROR(spillway_pagecache_open(&wrong[0].options, NULL), SPILLWAY_PAGECACHE_INVALID, NULL, "null");

  // Structs of other versions: a shorter one, a longer one that asks for nothing, and one that asks for something.
  struct {
    spillway_pagecache_options known;
    uint64_t later;
  } newer = {.known = with_memory(1 << 20)};
  newer.known.struct_bytes = sizeof newer;
  CHECK_OK(spillway_pagecache_open(&newer.known, &cache), NULL);
  CHECK_OK(spillway_pagecache_close(cache), NULL);
  newer.later = 1;
  CHECK_ERROR(spillway_pagecache_open(&newer.known, &cache), SPILLWAY_PAGECACHE_INVALID, NULL,
              "does not know");
  newer.known.struct_bytes = offsetof(spillway_pagecache_options, memory_bytes_max);
  newer.known.page_bytes = 3;  // behind the bytes that the struct says it has
  CHECK_OK(spillway_pagecache_open(&newer.known, &cache), NULL);
  CHECK_OK(spillway_pagecache_close(cache), NULL);
}

static void mistakes(void) {
  const spillway_pagecache_options options = with_memory(1 << 20);
  const struct opened own = open_with(&options, "memory:1M"), second = open_with(&options, "memory:1M");
  spillway_pagecache_session *const s = own.session;
  spillway_pagecache_file *const f = own.file;
  spillway_pagecache_session *none = s;
  spillway_pagecache_view view = {.struct_bytes = 8};
  char buffer[10];
  CHECK(strcmp(spillway_pagecache_error_text(s), "") == 0);
  CHECK_ERROR(spillway_pagecache_session_open(NULL, &none), SPILLWAY_PAGECACHE_INVALID, NULL, "null");
  CHECK(none == NULL);
  CHECK_ERROR(spillway_pagecache_session_open(own.cache, NULL), SPILLWAY_PAGECACHE_INVALID, NULL, "null");
  CHECK_ERROR(spillway_pagecache_stats(NULL, buffer, 10, NULL), SPILLWAY_PAGECACHE_INVALID, NULL, "null");
  CHECK_ERROR(spillway_pagecache_stats(own.cache, NULL, 10, NULL), SPILLWAY_PAGECACHE_INVALID, NULL, "null");
  CHECK_ERROR(spillway_pagecache_read(NULL, f, 0, buffer, 1), SPILLWAY_PAGECACHE_INVALID, NULL,
              "session is null");
  CHECK_ERROR(spillway_pagecache_read(s, NULL, 0, buffer, 1), SPILLWAY_PAGECACHE_INVALID, s, "file is null");
  CHECK_ERROR(spillway_pagecache_read(s, f, 0, NULL, 1), SPILLWAY_PAGECACHE_INVALID, s, "memory is null");
  CHECK_ERROR(spillway_pagecache_write(s, f, 0, NULL, 1), SPILLWAY_PAGECACHE_INVALID, s, "memory is null");
  CHECK_ERROR(spillway_pagecache_update(s, f, 0, 1, NULL, NULL), SPILLWAY_PAGECACHE_INVALID, s,
              "callback is null");
  CHECK_ERROR(spillway_pagecache_view_get(s, f, 0, 1, NULL), SPILLWAY_PAGECACHE_INVALID, s, "view is null");
  CHECK_ERROR(spillway_pagecache_view_get(s, f, 0, 1, &view), SPILLWAY_PAGECACHE_INVALID, s, "struct_bytes");
  view.struct_bytes = sizeof view;
  CHECK_ERROR(spillway_pagecache_view_get(NULL, f, 0, 1, &view), SPILLWAY_PAGECACHE_INVALID, NULL,
              "session is null");
  CHECK_ERROR(spillway_pagecache_sync(s, NULL), SPILLWAY_PAGECACHE_INVALID, s, "file is null");
  CHECK_ERROR(spillway_pagecache_remove(NULL, f), SPILLWAY_PAGECACHE_INVALID, NULL, "session is null");
  CHECK_ERROR(spillway_pagecache_sync(NULL, f), SPILLWAY_PAGECACHE_INVALID, NULL, "session is null");
  // A file belongs to one cache.
  CHECK_ERROR(spillway_pagecache_read(s, second.file, 0, buffer, 1), SPILLWAY_PAGECACHE_INVALID, s,
              "another cache");
  CHECK_ERROR(spillway_pagecache_write(s, second.file, 0, buffer, 1), SPILLWAY_PAGECACHE_INVALID, s,
              "another cache");
  CHECK_ERROR(spillway_pagecache_view_get(s, second.file, 0, 1, &view), SPILLWAY_PAGECACHE_INVALID, s,
              "another cache");
  CHECK_ERROR(spillway_pagecache_remove(s, second.file), SPILLWAY_PAGECACHE_INVALID, s, "another cache");

  // Ranges that are not within the file.
  const struct {
    uint64_t offset;
    size_t bytes;
  } ranges[] = {{1 << 20, 1},    {(1 << 20) - 1, 2}, {(1 << 20) + 1, 0},
                {UINT64_MAX, 1}, {0, SIZE_MAX},      {5, SIZE_MAX}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; ++i) {
    CHECK_ERROR(spillway_pagecache_read(s, f, ranges[i].offset, buffer, ranges[i].bytes),
                SPILLWAY_PAGECACHE_INVALID, s, "cannot read");
    CHECK_ERROR(spillway_pagecache_write(s, f, ranges[i].offset, buffer, ranges[i].bytes),
                SPILLWAY_PAGECACHE_INVALID, s, "has 1048576 bytes");
    CHECK_ERROR(spillway_pagecache_update(s, f, ranges[i].offset, ranges[i].bytes,
                                          (spillway_pagecache_change)abort, NULL),
                SPILLWAY_PAGECACHE_INVALID, s, "cannot update");
    view.data = buffer, view.holder = buffer, view.data_bytes = 7;
    CHECK_ERROR(spillway_pagecache_view_get(s, f, ranges[i].offset, ranges[i].bytes, &view),
                SPILLWAY_PAGECACHE_INVALID, s, "cannot view");
    CHECK(view.data == NULL && view.holder == NULL && view.data_bytes == 0);
  }
  CHECK_ERROR(spillway_pagecache_close(own.cache), SPILLWAY_PAGECACHE_IN_USE, NULL, "1 sessions");
  close_opened(own);
  close_opened(second);
}

static void devices_that_are_refused(const char *folder, const char *path) {
  const spillway_pagecache_options options = with_memory(1 << 20);
  const struct opened own = open_with(&options, "memory:1M");
  spillway_pagecache_file *file;
  CHECK_ERROR(spillway_pagecache_add(NULL, path, NULL, &file), SPILLWAY_PAGECACHE_INVALID, NULL, "null");
  CHECK_ERROR(spillway_pagecache_add(own.cache, NULL, NULL, &file), SPILLWAY_PAGECACHE_INVALID, NULL, "null");
  CHECK_ERROR(spillway_pagecache_add(own.cache, path, NULL, NULL), SPILLWAY_PAGECACHE_INVALID, NULL, "null");
  CHECK_ERROR(spillway_pagecache_add(own.cache, "floppy:/a", NULL, &file), SPILLWAY_PAGECACHE_INVALID, NULL,
              "floppy");
  CHECK_ERROR(spillway_pagecache_add(own.cache, "memory:100", NULL, &file), SPILLWAY_PAGECACHE_INVALID, NULL,
              "");
  CHECK_ERROR(spillway_pagecache_add(own.cache, folder, NULL, &file), SPILLWAY_PAGECACHE_INVALID, NULL,
              "directory");
  CHECK_ERROR(spillway_pagecache_add(own.cache, path, NULL, &file), SPILLWAY_PAGECACHE_NOT_FOUND, NULL, path);
  CHECK_ERROR(spillway_pagecache_add(own.cache, "/dev/none", NULL, &file), SPILLWAY_PAGECACHE_NOT_FOUND, NULL,
              "/dev/none");
  CHECK(file == NULL && access(path, F_OK) != 0);
  const spillway_pagecache_file_options both = {.struct_bytes = sizeof both, .bytes = kPage, .read_only = 1},
                                        huge = {.struct_bytes = sizeof huge, .bytes = UINT64_MAX},
                                        early = {.struct_bytes = 3},
                                        huge_checked = {.struct_bytes = sizeof huge_checked,
                                                        .bytes = UINT64_MAX,
                                                        .checksums = 1},
                                        strange = {.struct_bytes = sizeof strange, .checksums = 9};
  CHECK_ERROR(spillway_pagecache_add(own.cache, path, &both, &file), SPILLWAY_PAGECACHE_INVALID, NULL,
              "for reading only");
  CHECK_ERROR(spillway_pagecache_add(own.cache, path, &huge, &file), SPILLWAY_PAGECACHE_INVALID, NULL,
              "more than any file may have");
  CHECK_ERROR(spillway_pagecache_add(own.cache, path, &huge_checked, &file), SPILLWAY_PAGECACHE_INVALID, NULL,
              "more than any file may have");
  CHECK_ERROR(spillway_pagecache_add(own.cache, path, &early, &file), SPILLWAY_PAGECACHE_INVALID, NULL,
              "struct_bytes is 3");
  CHECK_ERROR(spillway_pagecache_add(own.cache, path, &strange, &file), SPILLWAY_PAGECACHE_INVALID, NULL,
              "checksums is 9; give 0 or 1");
  CHECK(access(path, F_OK) != 0);  // what fails makes no file
  // Sizes that are not whole pages: the end would be left out.
  const off_t sizes[] = {0, 1, 4095, 4097, 10001};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    struct stat facts;
    make_file(path, sizes[i]);
    char words[50];
    snprintf(words, sizeof words, "has %lu bytes, and not a multiple of 4096", (unsigned long)sizes[i]);
    CHECK_ERROR(spillway_pagecache_add(own.cache, path, NULL, &file), SPILLWAY_PAGECACHE_INVALID, NULL,
                sizes[i] == 0 ? "is empty" : words);
    const spillway_pagecache_file_options checked = {
        .struct_bytes = sizeof checked, .read_only = 1, .checksums = 1};
    if (sizes[i] < kPage)
      CHECK_ERROR(spillway_pagecache_add(own.cache, path, &checked, &file), SPILLWAY_PAGECACHE_INVALID, NULL,
                  sizes[i] == 0 ? "is empty" : "less than a page with a checksum");
    CHECK(stat(path, &facts) == 0 && facts.st_size == sizes[i]);
    const spillway_pagecache_file_options make = {.struct_bytes = sizeof make,
                                                  .bytes = (uint64_t)sizes[i] + 1};
    CHECK_OK(spillway_pagecache_add(own.cache, path, &make, &file), NULL);
    CHECK(spillway_pagecache_file_bytes(file) == ((uint64_t)sizes[i] / kPage + 1) * kPage);
    CHECK_OK(spillway_pagecache_remove(own.session, file), own.session);
  }
  CHECK(unlink(path) == 0);
  close_opened(own);
}

// What was cut off can be read as long as it is in memory, and is an error afterwards; the rest can still be used.
static void a_file_that_shrinks(const char *path) {
  make_file(path, 100 * kPage);
  const spillway_pagecache_options options = with_memory(1 << 20);
  const struct opened own = open_with(&options, path);
  char byte = 'c', many[3 * kPage];
  CHECK_OK(spillway_pagecache_read(own.session, own.file, 90 * kPage, &byte, 1), own.session);
  CHECK(truncate(path, 50 * kPage + 100) == 0);
  CHECK_OK(spillway_pagecache_read(own.session, own.file, 90 * kPage, &byte, 1), own.session);
  CHECK_ERROR(spillway_pagecache_read(own.session, own.file, 80 * kPage, &byte, 1), SPILLWAY_PAGECACHE_IO,
              own.session, "and had 409600 bytes when it was opened");
  CHECK_ERROR(spillway_pagecache_read(own.session, own.file, 50 * kPage, &byte, 1), SPILLWAY_PAGECACHE_IO,
              own.session, "it ends at");
  CHECK_STATUS(spillway_pagecache_read(own.session, own.file, 48 * kPage, many, sizeof many),
               SPILLWAY_PAGECACHE_IO, own.session);
  spillway_pagecache_view view = {.struct_bytes = sizeof view};
  CHECK_STATUS(spillway_pagecache_view_get(own.session, own.file, 70 * kPage, 1, &view),
               SPILLWAY_PAGECACHE_IO, own.session);
  CHECK(view.holder == NULL);
  CHECK_OK(spillway_pagecache_read(own.session, own.file, 49 * kPage, &byte, 1), own.session);
  // Writing a whole page makes the file longer again.
  CHECK_OK(spillway_pagecache_write(own.session, own.file, 98 * kPage, many, kPage), own.session);
  CHECK_OK(spillway_pagecache_sync(own.session, own.file), own.session);
  CHECK_OK(spillway_pagecache_read(own.session, own.file, 80 * kPage, &byte, 1), own.session);
  close_opened(own);
  CHECK(unlink(path) == 0);
}

static void devices_that_fail(void) {
  spillway_pagecache_options options = with_memory(1 << 20);
  options.threads = SPILLWAY_PAGECACHE_NO_THREADS;
  struct opened own = open_with(&options, "fault:read_eio=@3+:[memory:1M]");
  char byte = 'd';
  CHECK_OK(spillway_pagecache_read(own.session, own.file, 0, &byte, 1), own.session);
  CHECK_OK(spillway_pagecache_read(own.session, own.file, kPage, &byte, 1), own.session);
  CHECK_ERROR(spillway_pagecache_read(own.session, own.file, 2 * kPage, &byte, 1), SPILLWAY_PAGECACHE_IO,
              own.session, "cannot read");
  CHECK_OK(spillway_pagecache_read(own.session, own.file, 0, &byte, 1), own.session);
  close_opened(own);

  // What cannot be written stays in memory, and each sync reports it, as does a close.
  const char *const faults[] = {"fault:write_eio=@1+:[memory:1M]", "fault:flush_eio=@1+:[memory:1M]",
                                "fault:write_enospc=@1+:[memory:1M]"};
  const int statuses[] = {SPILLWAY_PAGECACHE_IO, SPILLWAY_PAGECACHE_IO, SPILLWAY_PAGECACHE_FULL};
  for (int i = 0; i < 3; ++i) {
    own = open_with(&options, faults[i]);
    CHECK_OK(spillway_pagecache_write(own.session, own.file, 5, "kept", 4), own.session);
    for (int round = 0; round < 2; ++round)
      CHECK_STATUS(spillway_pagecache_sync(own.session, own.file), statuses[i], own.session);
    CHECK_STATUS(spillway_pagecache_remove(own.session, own.file), statuses[i], own.session);
    char found[4];
    CHECK_OK(spillway_pagecache_read(own.session, own.file, 5, found, 4), own.session);
    CHECK(memcmp(found, "kept", 4) == 0);
    CHECK_OK(spillway_pagecache_session_close(own.session), own.session);
    CHECK_STATUS(spillway_pagecache_close(own.cache), statuses[i], NULL);
    CHECK(strstr(spillway_pagecache_error_text(NULL), "page cache: ") != NULL);
  }
}

static void no_descriptors(void) {
  const spillway_pagecache_options options = with_memory(1 << 20);
  const struct opened own = open_with(&options, "memory:1M");
  spillway_pagecache_queue *queue;
  spillway_pagecache_file *file;
  CHECK_OK(spillway_pagecache_queue_open(own.cache, NULL, &queue), NULL);
  struct rlimit limit, low;
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  low = limit;
  low.rlim_cur = 3;
  CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
  CHECK_STATUS(spillway_pagecache_event(queue), SPILLWAY_PAGECACHE_NO_MEMORY, NULL);
  CHECK_STATUS(spillway_pagecache_add(own.cache, "/proc/self/exe", NULL, &file), SPILLWAY_PAGECACHE_NO_MEMORY,
               NULL);
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(spillway_pagecache_event(queue) > 2);
  CHECK_OK(spillway_pagecache_queue_close(queue), NULL);
  close_opened(own);
}

void test_errors(const char *folder) {
  char path[200];
  snprintf(path, sizeof path, "%s/file", folder);
  denied(path);
  check_status_texts(SPILLWAY_PAGECACHE_DENIED, SPILLWAY_PAGECACHE_BUSY);
  options_that_are_refused();
  mistakes();
  devices_that_are_refused(folder, path);
  a_file_that_shrinks(path);
  devices_that_fail();
  no_descriptors();
}
