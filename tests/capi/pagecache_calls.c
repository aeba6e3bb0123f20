// The calls that block.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pagecache_test.h"

// Byte i of a file.
static char byte_of(size_t i, int seed) { return (char)(i * 7 + i / 1000 + (size_t)seed); }

static void fill(char *bytes, size_t count, size_t offset, int seed) {
  for (size_t i = 0; i < count; ++i) bytes[i] = byte_of(offset + i, seed);
}

static int is_filled(const char *bytes, size_t count, size_t offset, int seed) {
  for (size_t i = 0; i < count; ++i)
    if (bytes[i] != byte_of(offset + i, seed)) return 0;
  return 1;
}

enum { kFileBytes = 400 * kPage };

// Any range, with each policy, in a cache of about 16 pages.
static void ranges(const char *policy, uint32_t page_bytes) {
  spillway_pagecache_options options = with_memory(20 * page_bytes);
  options.policy = policy;
  options.page_bytes = page_bytes;
  const struct opened own = open_with(&options, "memory:1638400");
  CHECK(spillway_pagecache_file_bytes(own.file) == kFileBytes);
  static char expected[kFileBytes], found[kFileBytes];
  memset(expected, 0, sizeof expected);
  srand(1);
  for (int round = 0; round < 2000; ++round) {
    const size_t offset = (size_t)rand() % kFileBytes;
    size_t bytes = (size_t)rand() % (round % 10 == 0 ? 100000 : 300);
    if (bytes > kFileBytes - offset) bytes = kFileBytes - offset;
    if (round % 3 == 0) {
      fill(expected + offset, bytes, offset, round);
      CHECK_OK(spillway_pagecache_write(own.session, own.file, offset, expected + offset, bytes),
               own.session);
    } else {
      CHECK_OK(spillway_pagecache_read(own.session, own.file, offset, found, bytes), own.session);
      CHECK(memcmp(found, expected + offset, bytes) == 0);
    }
  }
  CHECK_OK(spillway_pagecache_read(own.session, own.file, 0, found, kFileBytes), own.session);
  CHECK(memcmp(found, expected, kFileBytes) == 0);
  CHECK_OK(spillway_pagecache_read(own.session, own.file, kFileBytes, NULL, 0), own.session);
  CHECK_OK(spillway_pagecache_write(own.session, own.file, 0, NULL, 0), own.session);
  close_opened(own);
}

struct seen {
  int calls;
  uint64_t offset;  // of the next piece
};

static void add_one(void *context, void *piece, size_t piece_bytes, uint64_t offset) {
  struct seen *const seen = context;
  CHECK(offset == seen->offset && piece_bytes > 0 && offset / kPage == (offset + piece_bytes - 1) / kPage);
  seen->offset += piece_bytes;
  ++seen->calls;
  for (size_t i = 0; i < piece_bytes; ++i) ++((char *)piece)[i];
}

static void updates(void) {
  const spillway_pagecache_options options = with_memory(80 * kPage);
  const struct opened own = open_with(&options, "memory:1M");
  static char found[4 * kPage];
  for (int round = 1; round <= 3; ++round) {
    struct seen seen = {0, 1000};
    CHECK_OK(spillway_pagecache_update(own.session, own.file, 1000, 3 * kPage, add_one, &seen), own.session);
    CHECK(seen.calls == 4 && seen.offset == 1000 + 3 * kPage);
    CHECK_OK(spillway_pagecache_read(own.session, own.file, 0, found, sizeof found), own.session);
    for (int i = 0; i < 4 * kPage; ++i) CHECK(found[i] == (i >= 1000 && i < 1000 + 3 * kPage ? round : 0));
  }
  struct seen none = {0, 0};
  CHECK_OK(spillway_pagecache_update(own.session, own.file, 5, 0, add_one, &none), own.session);
  CHECK(none.calls == 0);
  close_opened(own);
}

static void views(void) {
  spillway_pagecache_options options = with_memory(80 * kPage);
  options.wait_ms_max = 30;
  const struct opened own = open_with(&options, "memory:1M");
  spillway_pagecache_session *const session = own.session;
  CHECK_OK(spillway_pagecache_write(session, own.file, 3 * kPage - 4, "one two", 7), session);
  spillway_pagecache_view view = {.struct_bytes = sizeof view}, other = view, none = view;
  // A range that crosses into another page continues in the next view.
  CHECK_OK(spillway_pagecache_view_get(session, own.file, 3 * kPage - 4, 7, &view), session);
  CHECK(view.data_bytes == 4 && memcmp(view.data, "one ", 4) == 0 && view.holder != NULL);
  CHECK_OK(spillway_pagecache_view_get(session, own.file, 3 * kPage, 3, &other), session);
  CHECK(other.data_bytes == 3 && memcmp(other.data, "two", 3) == 0 && (uintptr_t)other.data % kPage == 0);
  CHECK_OK(spillway_pagecache_view_get(session, own.file, 7, 0, &none), session);
  CHECK(none.data == NULL && none.data_bytes == 0 && none.holder == NULL);
  // Meanwhile the page cannot be written; other pages can, and all can be read.
  CHECK_ERROR(spillway_pagecache_write(session, own.file, 3 * kPage, "x", 1), SPILLWAY_PAGECACHE_IN_USE,
              session, "hold");
  CHECK_OK(spillway_pagecache_write(session, own.file, 4 * kPage, "x", 1), session);
  char found[3];
  CHECK_OK(spillway_pagecache_read(session, own.file, 3 * kPage, found, 3), session);
  CHECK(memcmp(found, "two", 3) == 0);
  CHECK_ERROR(spillway_pagecache_remove(session, own.file), SPILLWAY_PAGECACHE_IN_USE, session, "2 views");
  CHECK_ERROR(spillway_pagecache_session_close(session), SPILLWAY_PAGECACHE_IN_USE, session, "2 views");
  spillway_pagecache_view_release(&other);
  CHECK(other.data == NULL && other.holder == NULL);
  spillway_pagecache_view_release(&other);  // it holds nothing any more
  spillway_pagecache_view_release(NULL);
  CHECK_OK(spillway_pagecache_write(session, own.file, 3 * kPage, "x", 1), session);

  // Another session's views keep a file from being removed; whatever else it has done with the file does not.
  spillway_pagecache_session *second;
  CHECK_OK(spillway_pagecache_session_open(own.cache, &second), NULL);
  CHECK_OK(spillway_pagecache_view_get(second, own.file, 50 * kPage, 1, &other), second);
  CHECK_ERROR(spillway_pagecache_remove(session, own.file), SPILLWAY_PAGECACHE_IN_USE, session, "2 views");
  spillway_pagecache_view_release(&view);
  CHECK_ERROR(spillway_pagecache_remove(session, own.file), SPILLWAY_PAGECACHE_IN_USE, session, "1 views");
  spillway_pagecache_view_release(&other);
  CHECK_OK(spillway_pagecache_remove(session, own.file), session);
  CHECK_OK(spillway_pagecache_remove(session, NULL), session);
  // Another file has its number now.
  spillway_pagecache_file *next;
  CHECK_OK(spillway_pagecache_add(own.cache, "memory:64K", NULL, &next), NULL);
  CHECK_OK(spillway_pagecache_read(second, next, 0, found, 3), second);
  CHECK(memcmp(found, "\0\0\0", 3) == 0);
  CHECK_OK(spillway_pagecache_session_close(second), second);
  close_opened(own);
}

static void check_file(const char *path, size_t bytes, size_t offset, const char *expected, size_t count) {
  char *const found = malloc(count);
  struct stat facts;
  const int descriptor = open(path, O_RDONLY);
  CHECK(descriptor >= 0 && fstat(descriptor, &facts) == 0 && (size_t)facts.st_size == bytes);
  CHECK(found != NULL && pread(descriptor, found, count, (off_t)offset) == (ssize_t)count &&
        memcmp(found, expected, count) == 0);
  CHECK(close(descriptor) == 0);
  free(found);
}

static void files(const char *path) {
  const spillway_pagecache_options options = with_memory(80 * kPage);
  spillway_pagecache *cache;
  spillway_pagecache_session *session;
  spillway_pagecache_file *file, *other;
  CHECK_OK(spillway_pagecache_open(&options, &cache), NULL);
  CHECK_OK(spillway_pagecache_session_open(cache, &session), NULL);
  // Made with the size that is asked for.
  const spillway_pagecache_file_options make = {.struct_bytes = sizeof make, .bytes = 10001};
  CHECK_OK(spillway_pagecache_add(cache, path, &make, &file), NULL);
  CHECK(spillway_pagecache_file_bytes(file) == 3 * kPage);
  CHECK_OK(spillway_pagecache_write(session, file, 9000, "kept", 4), session);
  check_file(path, 3 * kPage, 9000, "\0\0\0\0", 4);
  CHECK_OK(spillway_pagecache_sync(session, file), session);
  check_file(path, 3 * kPage, 9000, "kept", 4);
  // It can be added only once, except for reading only.
  CHECK_ERROR(spillway_pagecache_add(cache, path, NULL, &other), SPILLWAY_PAGECACHE_IN_USE, NULL, path);
  CHECK(other == NULL);
  const spillway_pagecache_file_options read_only = {.struct_bytes = sizeof read_only, .read_only = 1};
  CHECK_OK(spillway_pagecache_add(cache, path, &read_only, &other), NULL);
  char found[4];
  CHECK_OK(spillway_pagecache_read(session, other, 9000, found, 4), session);
  CHECK(memcmp(found, "kept", 4) == 0);
  CHECK_ERROR(spillway_pagecache_write(session, other, 0, "x", 1), SPILLWAY_PAGECACHE_DENIED, session,
              "for reading only");
  CHECK_ERROR(spillway_pagecache_update(session, other, 0, 1, add_one, NULL), SPILLWAY_PAGECACHE_DENIED,
              session, "for reading only");
  CHECK_OK(spillway_pagecache_remove(session, other), session);
  CHECK_OK(spillway_pagecache_write(session, file, 0, "removed", 7), session);
  CHECK_OK(spillway_pagecache_remove(session, file), session);
  check_file(path, 3 * kPage, 0, "removed", 7);
  // A file that is large enough keeps its size; a smaller one grows.
  CHECK_OK(spillway_pagecache_add(cache, path, &make, &file), NULL);
  CHECK(spillway_pagecache_file_bytes(file) == 3 * kPage);
  CHECK_OK(spillway_pagecache_remove(session, file), session);
  const spillway_pagecache_file_options grow = {.struct_bytes = sizeof grow, .bytes = 5 * kPage};
  CHECK_OK(spillway_pagecache_add(cache, path, &grow, &file), NULL);
  CHECK(spillway_pagecache_file_bytes(file) == 5 * kPage);
  CHECK_OK(spillway_pagecache_read(session, file, 9000, found, 4), session);
  CHECK(memcmp(found, "kept", 4) == 0);
  // A close syncs what is left.
  CHECK_OK(spillway_pagecache_write(session, file, 4 * kPage, "closed", 6), session);
  CHECK_OK(spillway_pagecache_session_close(session), session);
  CHECK_OK(spillway_pagecache_close(cache), NULL);
  check_file(path, 5 * kPage, 4 * kPage, "closed", 6);
  CHECK(unlink(path) == 0);
}

// Files that end anywhere can be read to their last byte, and not beyond.
static void ends(const char *path, const char *scheme, uint32_t page_bytes) {
  static const size_t sizes[] = {1, 511, 512, 4095, 4097, 10001, 7 * kPage + 512, 100001};
  static char bytes[100001], found[sizeof bytes];
  spillway_pagecache_options options = with_memory(40 * page_bytes);
  options.page_bytes = page_bytes;
  const struct opened own = open_with(&options, "memory:1M");
  const spillway_pagecache_file_options read_only = {.struct_bytes = sizeof read_only, .read_only = 1};
  char device[250];
  snprintf(device, sizeof device, "%s%s", scheme, path);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const size_t size = sizes[i];
    fill(bytes, size, 0, (int)i);
    FILE *const out = fopen(path, "w");
    CHECK(out != NULL && fwrite(bytes, size, 1, out) == 1 && fclose(out) == 0);
    spillway_pagecache_file *file;
    CHECK_OK(spillway_pagecache_add(own.cache, device, &read_only, &file), NULL);
    CHECK(spillway_pagecache_file_bytes(file) == size);
    for (int again = 0; again < 2; ++again) {
      CHECK_OK(spillway_pagecache_read(own.session, file, size - 1, found, 1), own.session);
      CHECK(found[0] == bytes[size - 1]);
      CHECK_OK(spillway_pagecache_read(own.session, file, 0, found, size), own.session);
      CHECK(memcmp(found, bytes, size) == 0);
    }
    spillway_pagecache_view view = {.struct_bytes = sizeof view};
    CHECK_OK(spillway_pagecache_view_get(own.session, file, size - 1, 1, &view), own.session);
    CHECK(view.data_bytes == 1 && *(const char *)view.data == bytes[size - 1]);
    spillway_pagecache_view_release(&view);
    char words[50];
    snprintf(words, sizeof words, "has %lu bytes", (unsigned long)size);
    CHECK_ERROR(spillway_pagecache_read(own.session, file, size, found, 1), SPILLWAY_PAGECACHE_INVALID,
                own.session, words);
    CHECK_STATUS(spillway_pagecache_read(own.session, file, size - 1, found, 2), SPILLWAY_PAGECACHE_INVALID,
                 own.session);
    CHECK_ERROR(spillway_pagecache_write(own.session, file, 0, "x", 1), SPILLWAY_PAGECACHE_DENIED,
                own.session, "for reading only");
    CHECK_OK(spillway_pagecache_remove(own.session, file), own.session);
    check_file(path, size, 0, bytes, size);
  }
  close_opened(own);
  CHECK(unlink(path) == 0);
}

// A file whose last byte is gone by the time that it is read.
static void an_end_that_is_gone(const char *path) {
  const spillway_pagecache_options options = with_memory(80 * kPage);
  const struct opened own = open_with(&options, "memory:1M");
  const int descriptor = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  CHECK(descriptor >= 0 && ftruncate(descriptor, 10001) == 0 && close(descriptor) == 0);
  spillway_pagecache_file *file;
  const spillway_pagecache_file_options read_only = {.struct_bytes = sizeof read_only, .read_only = 1};
  CHECK_OK(spillway_pagecache_add(own.cache, path, &read_only, &file), NULL);
  CHECK(truncate(path, 10000) == 0);
  char byte;
  CHECK_ERROR(spillway_pagecache_read(own.session, file, 9000, &byte, 1), SPILLWAY_PAGECACHE_IO, own.session,
              "it ends at 10000, and had 10001 bytes");
  CHECK_OK(spillway_pagecache_read(own.session, file, 5000, &byte, 1), own.session);
  close_opened(own);
  CHECK(unlink(path) == 0);
}

static void descriptors(const char *path) {
  const spillway_pagecache_options options = with_memory(80 * kPage);
  const struct opened own = open_with(&options, "memory:1M");
  // A file that has no name any more.
  const int descriptor = open(path, O_CREAT | O_RDWR, 0600);
  CHECK(descriptor >= 0 && ftruncate(descriptor, 8 * kPage) == 0 && unlink(path) == 0);
  CHECK(pwrite(descriptor, "nameless", 8, 2 * kPage) == 8);
  spillway_pagecache_file *file;
  CHECK_OK(spillway_pagecache_add_descriptor(own.cache, descriptor, NULL, &file), NULL);
  CHECK(spillway_pagecache_file_bytes(file) == 8 * kPage);
  char found[8];
  CHECK_OK(spillway_pagecache_read(own.session, file, 2 * kPage, found, 8), own.session);
  CHECK(memcmp(found, "nameless", 8) == 0);
  CHECK_OK(spillway_pagecache_write(own.session, file, 2 * kPage, "NAME", 4), own.session);
  CHECK_OK(spillway_pagecache_remove(own.session, file), own.session);
  CHECK(pread(descriptor, found, 8, 2 * kPage) == 8 && memcmp(found, "NAMEless", 8) == 0);
  // The same file, made larger; and a memory file.
  const spillway_pagecache_file_options grow = {.struct_bytes = sizeof grow, .bytes = 9 * kPage};
  CHECK_OK(spillway_pagecache_add_descriptor(own.cache, descriptor, &grow, &file), NULL);
  CHECK(spillway_pagecache_file_bytes(file) == 9 * kPage);
  CHECK(close(descriptor) == 0);
  CHECK_OK(spillway_pagecache_write(own.session, file, 8 * kPage, "end", 3), own.session);
  CHECK_OK(spillway_pagecache_remove(own.session, file), own.session);
  const int memory = memfd_create("pages", MFD_CLOEXEC);
  CHECK(memory >= 0);
  CHECK_OK(spillway_pagecache_add_descriptor(own.cache, memory, &grow, &file), NULL);
  CHECK_OK(spillway_pagecache_write(own.session, file, 8 * kPage, "end", 3), own.session);
  CHECK_OK(spillway_pagecache_remove(own.session, file), own.session);
  CHECK(pread(memory, found, 3, 8 * kPage) == 3 && memcmp(found, "end", 3) == 0 && close(memory) == 0);

  // A file may be used for what its descriptor was opened for.
  const int made = open(path, O_CREAT | O_WRONLY, 0600);
  CHECK(made >= 0 && ftruncate(made, kPage) == 0);
  CHECK_ERROR(spillway_pagecache_add_descriptor(own.cache, made, NULL, &file), SPILLWAY_PAGECACHE_INVALID,
              NULL, "cannot be read");
  CHECK(file == NULL && close(made) == 0);
  CHECK_ERROR(spillway_pagecache_add_descriptor(own.cache, made, NULL, &file), SPILLWAY_PAGECACHE_INVALID,
              NULL, "is not open");
  const int reader = open(path, O_RDONLY);
  CHECK_OK(spillway_pagecache_add_descriptor(own.cache, reader, NULL, &file), NULL);
  CHECK(close(reader) == 0);
  CHECK_STATUS(spillway_pagecache_write(own.session, file, 0, "x", 1), SPILLWAY_PAGECACHE_DENIED,
               own.session);
  CHECK_OK(spillway_pagecache_read(own.session, file, 0, found, 1), own.session);
  CHECK_OK(spillway_pagecache_remove(own.session, file), own.session);
  CHECK_ERROR(spillway_pagecache_add_descriptor(NULL, 0, NULL, &file), SPILLWAY_PAGECACHE_INVALID, NULL,
              "null");
  CHECK_ERROR(spillway_pagecache_add_descriptor(own.cache, 0, NULL, NULL), SPILLWAY_PAGECACHE_INVALID, NULL,
              "null");
  CHECK(unlink(path) == 0);
  close_opened(own);
}

static void sizes(void) {
  spillway_pagecache_options options = with_memory(1 << 20);
  options.memory_bytes_max = 4 << 20;
  options.wait_ms_max = 30;
  const struct opened own = open_with(&options, "memory:8M");
  static char bytes[8 << 20], found[8 << 20];
  fill(bytes, sizeof bytes, 0, 5);
  CHECK_OK(spillway_pagecache_write(own.session, own.file, 0, bytes, sizeof bytes), own.session);
  const uint64_t all[] = {4 << 20, 3 << 20, 100000, 2 << 20};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    CHECK_OK(spillway_pagecache_resize(own.session, all[i]), own.session);
    CHECK_OK(spillway_pagecache_read(own.session, own.file, 0, found, sizeof found), own.session);
    CHECK(is_filled(found, sizeof found, 0, 5));
  }
  CHECK_ERROR(spillway_pagecache_resize(own.session, (4 << 20) + 1), SPILLWAY_PAGECACHE_INVALID, own.session,
              "memory_bytes_max");
  CHECK_ERROR(spillway_pagecache_resize(own.session, 1000), SPILLWAY_PAGECACHE_INVALID, own.session,
              "less than");
  CHECK_ERROR(spillway_pagecache_resize(NULL, 1 << 20), SPILLWAY_PAGECACHE_INVALID, NULL, "session is null");
  // Pages in views do not move.
  spillway_pagecache_view views[9];
  for (int i = 0; i < 9; ++i) {
    views[i] = (spillway_pagecache_view){.struct_bytes = sizeof views[i]};
    CHECK_OK(spillway_pagecache_view_get(own.session, own.file, (uint64_t)i * kPage, 1, &views[i]),
             own.session);
  }
  CHECK_ERROR(spillway_pagecache_resize(own.session, 4 << 20), SPILLWAY_PAGECACHE_IN_USE, own.session,
              "held");
  for (int i = 0; i < 9; ++i) CHECK(*(const char *)views[i].data == bytes[i * kPage]);
  for (int i = 0; i < 9; ++i) spillway_pagecache_view_release(&views[i]);
  CHECK_OK(spillway_pagecache_resize(own.session, 4 << 20), own.session);
  close_opened(own);
}

// A number of the statistics.
static uint64_t number(spillway_pagecache *cache, const char *object, const char *name) {
  char text[16384], key[50];
  CHECK_OK(spillway_pagecache_stats(cache, text, sizeof text, NULL), NULL);
  snprintf(key, sizeof key, "\"%s\": {", object);
  const char *at = strstr(text, key);
  CHECK(at != NULL);
  snprintf(key, sizeof key, "\"%s\": ", name);
  const char *const found = strstr(at, key);
  CHECK(found != NULL && found < strchr(at, '}'));
  return strtoull(found + strlen(key), NULL, 10);
}

// A file with checksums, of which a byte is changed behind the cache's back.
static void checksums(const char *path) {
  enum { kData = kPage - 8, kPages = 600 };
  const spillway_pagecache_options options = with_memory(20 * kPage);
  const spillway_pagecache_file_options checked = {
      .struct_bytes = sizeof checked, .bytes = kPages * kData - 100, .checksums = 1};
  spillway_pagecache *cache;
  spillway_pagecache_session *session;
  spillway_pagecache_file *file;
  static char expected[kPages * kData], found[kPages * kData];
  struct stat facts;
  fill(expected, sizeof expected, 0, 5);
  for (int round = 0; round < 3; ++round) {
    CHECK_OK(spillway_pagecache_open(&options, &cache), NULL);
    CHECK_OK(spillway_pagecache_session_open(cache, &session), NULL);
    CHECK_OK(spillway_pagecache_add(cache, path, &checked, &file), NULL);
    CHECK(spillway_pagecache_file_bytes(file) == sizeof expected);
    CHECK(stat(path, &facts) == 0 && facts.st_size == kPages * kPage);
    if (round == 0) {
      CHECK_OK(spillway_pagecache_read(session, file, 0, found, sizeof found), session);
      for (size_t i = 0; i < sizeof found; ++i) CHECK(found[i] == 0);
      CHECK_OK(spillway_pagecache_write(session, file, 0, expected, sizeof expected), session);
    } else if (round == 1) {
      CHECK_OK(spillway_pagecache_read(session, file, 0, found, sizeof found), session);
      CHECK(memcmp(found, expected, sizeof found) == 0);
      spillway_pagecache_view view = {.struct_bytes = sizeof view};
      CHECK_OK(spillway_pagecache_view_get(session, file, kData - 10, 100, &view), session);
      CHECK(view.data_bytes == 10 && memcmp(view.data, expected + kData - 10, 10) == 0);
      spillway_pagecache_view_release(&view);
    } else {
      CHECK_ERROR(spillway_pagecache_read(session, file, 7 * kData, found, 1), SPILLWAY_PAGECACHE_DAMAGED,
                  session, "page 7 of ");
      CHECK_ERROR(spillway_pagecache_read(session, file, 0, found, sizeof found), SPILLWAY_PAGECACHE_DAMAGED,
                  session, "at offset 28672, has not its checksum");
      CHECK_ERROR(spillway_pagecache_write(session, file, 7 * kData, "a", 1), SPILLWAY_PAGECACHE_DAMAGED,
                  session, "write the whole page anew");
      CHECK(number(cache, "use", "damaged_pages") == 3);
      CHECK_OK(spillway_pagecache_write(session, file, 7 * kData, expected + 7 * kData, kData), session);
      CHECK_OK(spillway_pagecache_read(session, file, 0, found, sizeof found), session);
      CHECK(memcmp(found, expected, sizeof found) == 0);
    }
    CHECK_OK(spillway_pagecache_remove(session, file), session);
    CHECK_OK(spillway_pagecache_session_close(session), session);
    CHECK_OK(spillway_pagecache_close(cache), NULL);
    if (round == 1) {
      const int descriptor = open(path, O_RDWR);
      char byte;
      CHECK(descriptor >= 0 && pread(descriptor, &byte, 1, 7 * kPage + 123) == 1);
      byte ^= 16;
      CHECK(pwrite(descriptor, &byte, 1, 7 * kPage + 123) == 1 && close(descriptor) == 0);
    }
  }
  CHECK(unlink(path) == 0);
}

static void statistics(void) {
  spillway_pagecache_options options = with_memory(16 * kPage * 4 + 4 * 576);
  options.threads = SPILLWAY_PAGECACHE_NO_THREADS;
  const struct opened own = open_with(&options, "memory:4M");
  char byte = 'b';
  for (int i = 0; i < 1000; ++i)
    CHECK_OK(spillway_pagecache_read(own.session, own.file, (uint64_t)i * kPage, &byte, 1), own.session);
  CHECK_OK(spillway_pagecache_read(own.session, own.file, 999 * kPage, &byte, 1), own.session);
  CHECK_OK(spillway_pagecache_write(own.session, own.file, 999 * kPage, &byte, 1), own.session);
  spillway_pagecache_view view = {.struct_bytes = sizeof view};
  CHECK_OK(spillway_pagecache_view_get(own.session, own.file, 999 * kPage, 1, &view), own.session);
  char text[8192];
  size_t needed = 0;
  CHECK_OK(spillway_pagecache_stats(own.cache, text, sizeof text, &needed), NULL);
  CHECK(needed == strlen(text) + 1 && text[0] == '{' && text[needed - 2] == '}');
  const char *const cache =
      "{\"cache\": {\"policy\": \"alfu\", \"page_bytes\": 4096, \"frames\": 64, \"sets\": 4, "
      "\"pages\": 64, \"dirty_pages\": 1, \"held_pages\": 1, \"files\": 1, \"sessions\": 1, "
      "\"queues\": 0}, \"use\": {\"hits\": 3, \"misses\": 1000, \"evictions\": 936, "
      "\"read_pages\": 1000, \"written_pages\": 0, \"damaged_pages\": 0, "
      "\"waits\": 0}, ";
  if (strncmp(text, cache, strlen(cache)) != 0) fprintf(stderr, "%s\n", text);
  CHECK(strncmp(text, cache, strlen(cache)) == 0);
  CHECK(strstr(text, "\"set_frames\": {\"min\": 16, \"mean\": 16.000, \"p50\": 16, ") != NULL);
  CHECK(strstr(text, "\"mean\": 250.000, ") != NULL);
  spillway_pagecache_view_release(&view);
  char small[10];
  CHECK_STATUS(spillway_pagecache_stats(own.cache, small, sizeof small, &needed),
               SPILLWAY_PAGECACHE_TOO_SMALL, NULL);
  CHECK(strlen(small) == 9 && needed > 100 && memcmp(small, text, 9) == 0);
  CHECK_STATUS(spillway_pagecache_stats(own.cache, NULL, 0, NULL), SPILLWAY_PAGECACHE_TOO_SMALL, NULL);
  // Counts of closed sessions stay.
  CHECK_OK(spillway_pagecache_session_close(own.session), own.session);
  CHECK(number(own.cache, "use", "hits") == 3 && number(own.cache, "cache", "sessions") == 0);
  CHECK_OK(spillway_pagecache_close(own.cache), NULL);
}

// A dirty page that nobody syncs, and whose frame nobody needs, is written when it is old enough.
static void age(const char *path) {
  spillway_pagecache_options options = with_memory(1 << 20);
  const spillway_pagecache_file_options size = {.struct_bytes = sizeof size, .bytes = kPage};
  for (int round = 0; round < 2; ++round) {
    options.dirty_ms_max = round == 0 ? 20 : SPILLWAY_PAGECACHE_FOR_EVER;
    struct opened own;
    CHECK_OK(spillway_pagecache_open(&options, &own.cache), NULL);
    CHECK_OK(spillway_pagecache_session_open(own.cache, &own.session), NULL);
    CHECK_OK(spillway_pagecache_add(own.cache, path, &size, &own.file), NULL);
    const char byte = (char)('a' + round);
    CHECK_OK(spillway_pagecache_write(own.session, own.file, 5, &byte, 1), own.session);
    for (int i = 0; i < (round == 0 ? 10000 : 100) && number(own.cache, "use", "written_pages") == 0; ++i)
      usleep(1000);
    CHECK(number(own.cache, "cache", "dirty_pages") == (uint64_t)round);
    char found = 0;
    const int descriptor = open(path, O_RDONLY);
    CHECK(descriptor >= 0 && pread(descriptor, &found, 1, 5) == 1 && close(descriptor) == 0);
    CHECK(found == 'a');
    // Also in a file whose removal was refused.
    spillway_pagecache_view view = {.struct_bytes = sizeof view};
    CHECK_OK(spillway_pagecache_view_get(own.session, own.file, 0, 1, &view), own.session);
    CHECK_ERROR(spillway_pagecache_remove(own.session, own.file), SPILLWAY_PAGECACHE_IN_USE, own.session, "");
    spillway_pagecache_view_release(&view);
    const uint64_t before = number(own.cache, "use", "written_pages");
    CHECK_OK(spillway_pagecache_write(own.session, own.file, 5, "a", 1), own.session);
    for (int i = 0; i < 10000 && round == 0 && number(own.cache, "use", "written_pages") == before; ++i)
      usleep(1000);
    CHECK(number(own.cache, "use", "written_pages") == before + (round == 0));
    close_opened(own);
  }
  CHECK(unlink(path) == 0);
}

// A cache of three nodes, one of which has all pages that are read.
static void nodes(void) {
  spillway_pagecache_options options = with_memory(3 << 20);
  options.nodes = 3;
  options.no_balancing = 1;
  const struct opened own = open_with(&options, "memory:12M");
  char byte, text[16384];
  for (int round = 0; round < 20; ++round)
    for (int i = 0; i < 64; ++i)
      CHECK_OK(spillway_pagecache_read(own.session, own.file, (uint64_t)i * kPage, &byte, 1), own.session);
  CHECK_OK(spillway_pagecache_stats(own.cache, text, sizeof text, NULL), NULL);
  const char *at = strstr(text, "\"nodes\": [");
  uint64_t frames = 0, pages = 0, full = 0;
  for (int i = 0; i < 3; ++i) {
    unsigned long node_frames, node_pages, misses;
    CHECK(at != NULL && (at = strstr(at + 1, "{\"sets\": ")) != NULL);
    CHECK(sscanf(at, "{\"sets\": %*u, \"frames\": %lu, \"pages\": %lu, \"dirty_pages\": 0, \"misses\": %lu}",
                 &node_frames, &node_pages, &misses) == 3);
    CHECK(misses == node_pages && node_frames > 200);
    frames += node_frames;
    pages += node_pages;
    full += node_pages == 64;
  }
  CHECK(frames == number(own.cache, "cache", "frames") && pages == 64 && full == 1);
  CHECK(strchr(strstr(text, "\"nodes\""), ']') == text + strlen(text) - 2);
  close_opened(own);
}

void test_calls(const char *folder) {
  char path[200];
  snprintf(path, sizeof path, "%s/file", folder);
  checksums(path);
  int major = -1, minor = -1;
  CHECK(sscanf(spillway_pagecache_version(), "%d.%d.", &major, &minor) == 2 && major >= 0);
  CHECK_OK(spillway_pagecache_close(NULL), NULL);
  CHECK_OK(spillway_pagecache_session_close(NULL), NULL);
  CHECK(spillway_pagecache_file_bytes(NULL) == 0);
  const char *const policies[] = {NULL, "lru", "lfu", "nrlfu", "alfu", "gclock", "s3fifo"};
  for (size_t i = 0; i < sizeof policies / sizeof *policies; ++i)
    ranges(policies[i], 0 == i % 2 ? kPage : 4 * kPage);
  updates();
  views();
  files(path);
  ends(path, "", kPage);
  ends(path, "file:", 4 * kPage);
  ends(path, "aio:", 16 * kPage);
  an_end_that_is_gone(path);
  descriptors(path);
  sizes();
  age(path);
  nodes();
  statistics();
}
