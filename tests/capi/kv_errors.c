// Every error, and what its line says.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kv_test.h"

#include "folder.h"

enum { kCapacity = 32 << 20 };
static const spillway_kv_make_options kMake = {.struct_bytes = sizeof kMake, .capacity_bytes = kCapacity};

static void open_as_reader(const char *path) {
  spillway_kv *store;
  CHECK_ERROR(spillway_kv_open(path, NULL, &store), SPILLWAY_KV_DENIED, NULL, path);
  CHECK(store == NULL);
}

static void denied(const char *path) {
  const int descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
  CHECK(descriptor >= 0 && close(descriptor) == 0);
  call_as_reader(path, open_as_reader);
}

static void mistakes(void) {
  spillway_kv *store;
  CHECK_ERROR(spillway_kv_make(NULL, NULL), SPILLWAY_KV_INVALID, NULL, "device is null");
  CHECK_ERROR(spillway_kv_open(NULL, NULL, &store), SPILLWAY_KV_INVALID, NULL, "device is null");
  CHECK_ERROR(spillway_kv_open("x", NULL, NULL), SPILLWAY_KV_INVALID, NULL, "null");
  CHECK_ERROR(spillway_kv_open("floppy:/a", NULL, &store), SPILLWAY_KV_INVALID, NULL, "floppy");
  CHECK_ERROR(spillway_kv_open_memory(100, NULL, &store), SPILLWAY_KV_INVALID, NULL, "");
  CHECK_ERROR(spillway_kv_open_memory(1 << 20, NULL, &store), SPILLWAY_KV_FULL, NULL, "too small");
  CHECK_ERROR(spillway_kv_open_memory(64 << 20, NULL, NULL), SPILLWAY_KV_INVALID, NULL, "null");
  spillway_kv_open_options options = {.struct_bytes = 0};
  CHECK_ERROR(spillway_kv_open_memory(64 << 20, &options, &store), SPILLWAY_KV_INVALID, NULL,
              "struct_bytes is 0");
  options.struct_bytes = sizeof options, options.reserved = 1;
  CHECK_ERROR(spillway_kv_open_memory(64 << 20, &options, &store), SPILLWAY_KV_INVALID, NULL,
              "reserved is 1");
  options.reserved = 0, options.durability = 9;
  CHECK_ERROR(spillway_kv_open_memory(64 << 20, &options, &store), SPILLWAY_KV_INVALID, NULL, "durability 9");
  CHECK_ERROR(spillway_kv_session_open(NULL, NULL), SPILLWAY_KV_INVALID, NULL, "null");
  spillway_kv_session *none = (spillway_kv_session *)&options;
  CHECK_ERROR(spillway_kv_session_open(NULL, &none), SPILLWAY_KV_INVALID, NULL, "null");
  CHECK(none == NULL);
  CHECK_ERROR(spillway_kv_stats(NULL, NULL, 0, NULL), SPILLWAY_KV_INVALID, NULL, "null");
  CHECK_ERROR(spillway_kv_get(NULL, "k", 1, NULL, 0, NULL), SPILLWAY_KV_INVALID, NULL, "session is null");
  CHECK_ERROR(spillway_kv_put(NULL, "k", 1, NULL, 0, NULL, NULL), SPILLWAY_KV_INVALID, NULL,
              "session is null");
  CHECK_ERROR(spillway_kv_remove(NULL, "k", 1, NULL, NULL), SPILLWAY_KV_INVALID, NULL, "session is null");
  CHECK_ERROR(spillway_kv_get_many(NULL, NULL, 1, NULL), SPILLWAY_KV_INVALID, NULL, "session is null");
  CHECK_ERROR(spillway_kv_change_many(NULL, NULL, 1), SPILLWAY_KV_INVALID, NULL, "session is null");
}

static void mistakes_in_a_session(void) {
  const struct opened own = open_memory(64 << 20);
  spillway_kv_session *const s = own.session;
  CHECK(strcmp(spillway_kv_error_text(s), "") == 0);
  char buffer[10];
  static char long_key[65537];
  spillway_kv_value value = {.struct_bytes = 8};
  CHECK_ERROR(spillway_kv_get(s, "", 0, buffer, 10, NULL), SPILLWAY_KV_INVALID, s, "a key of 0 bytes");
  CHECK_ERROR(spillway_kv_get(s, long_key, sizeof long_key, buffer, 10, NULL), SPILLWAY_KV_INVALID, s,
              "65537");
  CHECK_STATUS(spillway_kv_get(s, long_key, sizeof long_key - 1, buffer, 10, NULL), SPILLWAY_KV_ABSENT, s);
  CHECK_ERROR(spillway_kv_get(s, NULL, 3, buffer, 10, NULL), SPILLWAY_KV_INVALID, s, "key is null");
  CHECK_ERROR(spillway_kv_get(s, "k", 1, NULL, 10, NULL), SPILLWAY_KV_INVALID, s, "buffer is null");
  CHECK_ERROR(spillway_kv_get(s, "k", 1, buffer, 10, &value), SPILLWAY_KV_INVALID, s, "struct_bytes");
  CHECK_ERROR(spillway_kv_get_value(s, "k", 1, &value), SPILLWAY_KV_INVALID, s, "struct_bytes");
  CHECK_ERROR(spillway_kv_get_many(s, NULL, 1, &value), SPILLWAY_KV_INVALID, s, "null");
  const struct iovec bad = {NULL, 3}, huge[2] = {{buffer, SIZE_MAX}, {buffer, 10}};
  CHECK_ERROR(spillway_kv_put(s, "k", 1, NULL, 1, NULL, NULL), SPILLWAY_KV_INVALID, s, "value is null");
  CHECK_ERROR(spillway_kv_put(s, "k", 1, &bad, 1, NULL, NULL), SPILLWAY_KV_INVALID, s, "piece");
  CHECK_ERROR(spillway_kv_put(s, "k", 1, huge, 2, NULL, NULL), SPILLWAY_KV_TOO_LARGE, s,
              "larger than memory");
  CHECK_ERROR(spillway_kv_put(s, NULL, 1, NULL, 0, NULL, NULL), SPILLWAY_KV_INVALID, s, "key is null");
  const struct iovec over[2] = {{buffer, (size_t)4 << 30}, {buffer, 1}};
  CHECK_ERROR(spillway_kv_put(s, "k", 1, over, 2, NULL, NULL), SPILLWAY_KV_TOO_LARGE, s, "4294967297");
  CHECK_ERROR(spillway_kv_put(s, "k", 1, huge, 1, NULL, NULL), SPILLWAY_KV_TOO_LARGE, s, "or fewer");
  spillway_kv_change_options options = {.struct_bytes = sizeof options, .when = 4};
  CHECK_ERROR(spillway_kv_put(s, "k", 1, NULL, 0, &options, NULL), SPILLWAY_KV_INVALID, s, "_IF_ABSENT");
  options.when = SPILLWAY_KV_IF_ABSENT;
  CHECK_ERROR(spillway_kv_remove(s, "k", 1, &options, NULL), SPILLWAY_KV_INVALID, s, "a remove when 1");
  CHECK_ERROR(spillway_kv_remove(s, NULL, 1, NULL, NULL), SPILLWAY_KV_INVALID, s, "key is null");
  options.when = 0, options.expires_ms = (uint64_t)1 << 48;
  CHECK_ERROR(spillway_kv_put(s, "k", 1, NULL, 0, &options, NULL), SPILLWAY_KV_INVALID, s, "expiry");
  spillway_kv_change change = {.struct_bytes = 0};
  CHECK_ERROR(spillway_kv_change_many(s, &change, 1), SPILLWAY_KV_INVALID, s, "struct_bytes");
  CHECK_ERROR(spillway_kv_change_many(s, NULL, 1), SPILLWAY_KV_INVALID, s, "null");
  CHECK_ERROR(spillway_kv_close(own.store), SPILLWAY_KV_IN_USE, NULL, "1 sessions");

  // Structs of other versions: a shorter one, a longer one that asks for nothing, and one that asks for something.
  struct {
    spillway_kv_change_options known;
    uint64_t later;
  } newer = {.known = {.struct_bytes = sizeof newer}};
  CHECK_STATUS(spillway_kv_put(s, "k", 1, NULL, 0, &newer.known, NULL), SPILLWAY_KV_OK, s);
  newer.later = 1;
  CHECK_ERROR(spillway_kv_put(s, "k", 1, NULL, 0, &newer.known, NULL), SPILLWAY_KV_INVALID, s,
              "does not know");
  newer.known = (spillway_kv_change_options){.struct_bytes = 16, .flags = 5, .expires_ms = 1};
  CHECK_STATUS(spillway_kv_put(s, "k", 1, NULL, 0, &newer.known, NULL), SPILLWAY_KV_OK, s);
  CHECK(has(s, "k", ""));  // the expiry lies behind the bytes that the struct says it has
  close_opened(own);
}

static void no_room(void) {
  const struct opened own = open_memory(9 << 20);
  static char large[200000];
  const struct iovec piece = {large, sizeof large};
  int status = SPILLWAY_KV_OK;
  uint32_t count = 0;
  for (; status == SPILLWAY_KV_OK; ++count) {
    CHECK(count < 1000);
    status = spillway_kv_put(own.session, &count, sizeof count, &piece, 1, NULL, NULL);
  }
  CHECK_STATUS(status, SPILLWAY_KV_FULL, own.session);
  CHECK(count > 10 && strstr(spillway_kv_error_text(own.session), "full") != NULL);
  close_opened(own);
}

static void no_descriptors(void) {
  const struct opened own = open_memory(64 << 20);
  struct rlimit limit, low;
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  low = limit;
  low.rlim_cur = 3;
  CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
  spillway_kv_queue *queue;
  CHECK_STATUS(spillway_kv_queue_open(own.store, NULL, &queue), SPILLWAY_KV_NO_MEMORY, NULL);
  CHECK(queue == NULL);
  const spillway_kv_change change = {.struct_bytes = sizeof change, .key = "k", .key_bytes = 1, .version = 7};
  spillway_kv_change changes[2] = {change, change};
  CHECK_STATUS(spillway_kv_change_many(own.session, changes, 2), SPILLWAY_KV_NO_MEMORY, own.session);
  for (int i = 0; i < 2; ++i) CHECK(changes[i].status == SPILLWAY_KV_NO_MEMORY && changes[i].version == 0);
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  close_opened(own);
}

// Stores in files.
static void files(const char *path) {
  spillway_kv *store, *other;
  CHECK_ERROR(spillway_kv_open(path, NULL, &store), SPILLWAY_KV_NOT_FOUND, NULL, path);
  CHECK(access(path, F_OK) != 0);
  CHECK_ERROR(spillway_kv_make(path, NULL), SPILLWAY_KV_INVALID, NULL, "capacity_bytes");
  CHECK(access(path, F_OK) != 0);
  CHECK(symlink(path, path) == 0);
  CHECK_ERROR(spillway_kv_open(path, NULL, &store), SPILLWAY_KV_INVALID, NULL, path);
  CHECK_ERROR(spillway_kv_make(path, &kMake), SPILLWAY_KV_INVALID, NULL, path);
  CHECK(unlink(path) == 0);
  CHECK_STATUS(spillway_kv_make(path, &kMake), SPILLWAY_KV_OK, NULL);
  CHECK_ERROR(spillway_kv_make(path, &kMake), SPILLWAY_KV_EXISTS, NULL, "overwrite");
  CHECK_STATUS(spillway_kv_open(path, NULL, &store), SPILLWAY_KV_OK, NULL);
  CHECK_ERROR(spillway_kv_open(path, NULL, &other), SPILLWAY_KV_IN_USE, NULL, path);
  spillway_kv_session *session;
  CHECK_STATUS(spillway_kv_session_open(store, &session), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(put(session, "key", "a value to be found and damaged"), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_session_close(session), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_OK, NULL);

  // The value is there after the store was opened again, with each durability.
  for (uint32_t durability = SPILLWAY_KV_SYNC; durability <= SPILLWAY_KV_NONE; ++durability) {
    const spillway_kv_open_options options = {
        .struct_bytes = sizeof options, .durability = durability, .batch_ms = 1};
    CHECK_STATUS(spillway_kv_open(path, &options, &store), SPILLWAY_KV_OK, NULL);
    CHECK_STATUS(spillway_kv_session_open(store, &session), SPILLWAY_KV_OK, NULL);
    CHECK(has(session, "key", "a value to be found and damaged"));
    CHECK_STATUS(put(session, "another", "one"), SPILLWAY_KV_OK, session);
    CHECK_STATUS(spillway_kv_session_close(session), SPILLWAY_KV_OK, session);
    CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_OK, NULL);
  }

  // For reading only, which programs with the struct's first version cannot ask for: it ends before that.
  const spillway_kv_open_options options = {.struct_bytes = sizeof options, .read_only = 1};
  CHECK_STATUS(spillway_kv_open(path, &options, &store), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_session_open(store, &session), SPILLWAY_KV_OK, NULL);
  CHECK(has(session, "key", "a value to be found and damaged"));
  CHECK_ERROR(put(session, "key", "other"), SPILLWAY_KV_DENIED, session, "reading only");
  CHECK_STATUS(spillway_kv_session_close(session), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_OK, NULL);
  spillway_kv_open_options first = {.struct_bytes = offsetof(spillway_kv_open_options, read_only),
                                    .read_only = 1};
  CHECK_STATUS(spillway_kv_open(path, &first, &store), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_session_open(store, &session), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(put(session, "another", "one"), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_session_close(session), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_OK, NULL);
}

static void change_bytes(const char *path, const char *bytes, size_t count, size_t at, char by) {
  char *const content = malloc(kCapacity);
  const int descriptor = open(path, O_RDWR);
  const ssize_t size = pread(descriptor, content, kCapacity, 0);
  CHECK(descriptor >= 0 && content != NULL && size > 0);
  const char *found = content;
  size_t changed = 0;
  while ((found = memmem(found, (size_t)(content + size - found), bytes, count)) != NULL) {
    const char byte = (char)(found[at] ^ by);
    CHECK(pwrite(descriptor, &byte, 1, found + at - content) == 1);
    ++changed;
    ++found;
  }
  CHECK(changed > 0 && fsync(descriptor) == 0 && close(descriptor) == 0);
  free(content);
}

static void damage(const char *path) {
  spillway_kv *store;
  spillway_kv_session *session;
  CHECK_STATUS(spillway_kv_open(path, NULL, &store), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_session_open(store, &session), SPILLWAY_KV_OK, NULL);
  change_bytes(path, "to be found", 11, 3, 1);
  char buffer[100];
  spillway_kv_value value = {.struct_bytes = sizeof value};
  CHECK_ERROR(spillway_kv_get(session, "key", 3, buffer, 100, &value), SPILLWAY_KV_DAMAGED, session,
              "damaged record");
  CHECK(value.status == SPILLWAY_KV_DAMAGED && value.data_bytes == 0);
  CHECK_STATUS(spillway_kv_get_value(session, "key", 3, &value), SPILLWAY_KV_DAMAGED, session);
  CHECK(value.holder == NULL);
  CHECK(has(session, "another", "one"));
  CHECK_STATUS(spillway_kv_session_close(session), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_OK, NULL);
}

static void devices_that_fail(const char *path) {
  char text[300];
  snprintf(text, sizeof text, "fault:write_eio=@1+:[%s]", path);
  spillway_kv *store;
  spillway_kv_session *session;
  CHECK_STATUS(spillway_kv_open(text, NULL, &store), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_session_open(store, &session), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(put(session, "key", "value"), SPILLWAY_KV_IO, session);
  const spillway_kv_change change = {.struct_bytes = sizeof change, .key = "key", .key_bytes = 3};
  spillway_kv_change changes[2] = {change, change};
  CHECK_STATUS(spillway_kv_change_many(session, changes, 2), SPILLWAY_KV_IO, session);
  CHECK(changes[0].status == SPILLWAY_KV_IO && changes[1].status == SPILLWAY_KV_IO);
  CHECK(has(session, "another", "one"));
  CHECK_STATUS(spillway_kv_session_close(session), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_OK,
               NULL);  // nothing was acknowledged that could be missing
}

static void other_stores(const char *path) {
  spillway_kv *store;
  const int descriptor = open(path, O_RDWR);
  CHECK(descriptor >= 0);
  for (off_t at = 0; at <= 512 << 10; at += 512 << 10) {
    char superblock[304];  // docs/formats/kv.md
    const uint32_t later = 999;
    CHECK(pread(descriptor, superblock, sizeof superblock, at) == sizeof superblock);
    memcpy(superblock + 12, &later, 4);
    const uint64_t check = XXH3_64bits(superblock, 296);
    memcpy(superblock + 296, &check, 8);
    CHECK(pwrite(descriptor, superblock, sizeof superblock, at) == sizeof superblock);
  }
  CHECK(fsync(descriptor) == 0);
  CHECK_ERROR(spillway_kv_open(path, NULL, &store), SPILLWAY_KV_NEWER, NULL, path);
  for (off_t at = 0; at <= 512 << 10; at += 512 << 10) CHECK(pwrite(descriptor, "no store", 8, at) == 8);
  CHECK(fsync(descriptor) == 0 && close(descriptor) == 0);
  CHECK_ERROR(spillway_kv_open(path, NULL, &store), SPILLWAY_KV_INVALID, NULL, "holds no store");
  CHECK_STATUS(spillway_kv_make(path, NULL), SPILLWAY_KV_EXISTS, NULL);
  const spillway_kv_make_options anew = {.struct_bytes = sizeof anew,
                                         .overwrite = 1,
                                         .segment_bytes = 2 << 20,
                                         .grain_bytes = 4096,
                                         .spare_percent = 20};
  CHECK_STATUS(spillway_kv_make(path, &anew), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_open(path, NULL, &store), SPILLWAY_KV_OK, NULL);
  char text[4096];
  CHECK_STATUS(spillway_kv_stats(store, text, sizeof text, NULL), SPILLWAY_KV_OK, NULL);
  CHECK(strstr(text, "\"segment_bytes\": 2097152") != NULL && strstr(text, "\"grain_bytes\": 4096") != NULL &&
        strstr(text, "\"entries\": 0,") != NULL);
  CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_OK, NULL);
  spillway_kv_make_options wrong = {.struct_bytes = sizeof wrong, .overwrite = 1, .segment_bytes = 3000000};
  CHECK_ERROR(spillway_kv_make(path, &wrong), SPILLWAY_KV_INVALID, NULL, "3000000");
}

static void make_file(const char *path, off_t bytes, off_t at, const char *content) {
  const int descriptor = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  const ssize_t count = (ssize_t)strlen(content);
  CHECK(descriptor >= 0 && ftruncate(descriptor, bytes) == 0);
  CHECK(pwrite(descriptor, content, (size_t)count, at) == count && close(descriptor) == 0);
}

// What a file holds is not lost, wherever in the file it is; a make that is refused leaves no new file, and none that is larger.
static void makes_that_are_refused(const char *path) {
  struct stat facts;
  const off_t places[] = {0, 100, 4096, 64 << 10, 512 << 10, 10 << 20, kCapacity - 4, kCapacity + 5000};
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    char found[4];
    make_file(path, 0, places[i], "mine");
    CHECK_ERROR(spillway_kv_make(path, &kMake), SPILLWAY_KV_EXISTS, NULL, "overwrite");
    const int descriptor = open(path, O_RDONLY);
    CHECK(descriptor >= 0 && fstat(descriptor, &facts) == 0 && facts.st_size == places[i] + 4);
    CHECK(pread(descriptor, found, 4, places[i]) == 4 && memcmp(found, "mine", 4) == 0);
    CHECK(close(descriptor) == 0);
  }
  // Zeros do not count as content, whether they were written or not.
  static const char zeros[70000];
  make_file(path, 5000, 0, "");
  CHECK_STATUS(spillway_kv_make(path, &kMake), SPILLWAY_KV_OK, NULL);
  make_file(path, kCapacity, 0, "");
  const int descriptor = open(path, O_WRONLY);
  CHECK(descriptor >= 0 && pwrite(descriptor, zeros, sizeof zeros, 3 << 20) == sizeof zeros &&
        close(descriptor) == 0);
  CHECK_STATUS(spillway_kv_make(path, &kMake), SPILLWAY_KV_OK, NULL);
  CHECK(unlink(path) == 0);

  char text[600], second[300];
  snprintf(second, sizeof second, "%s.2", path);
  const spillway_kv_make_options small = {.struct_bytes = sizeof small, .capacity_bytes = 1 << 20},
                                 grain = {.struct_bytes = sizeof grain,
                                          .capacity_bytes = kCapacity,
                                          .grain_bytes = 511};
  for (int overwrite = 0; overwrite < 2; ++overwrite) {
    spillway_kv_make_options options = small;
    options.overwrite = (uint32_t)overwrite;
    CHECK_ERROR(spillway_kv_make(path, &options), SPILLWAY_KV_FULL, NULL, "too small");
    CHECK(access(path, F_OK) != 0);
    options = grain, options.overwrite = (uint32_t)overwrite;
    CHECK_ERROR(spillway_kv_make(path, &options), SPILLWAY_KV_INVALID, NULL, "511");
    CHECK(access(path, F_OK) != 0);
    snprintf(text, sizeof text, "fault:write_eio=@4+:[%s]", path);
    options = kMake, options.overwrite = (uint32_t)overwrite;
    CHECK_STATUS(spillway_kv_make(text, &options), SPILLWAY_KV_IO, NULL);
    CHECK(access(path, F_OK) != 0);
    make_file(path, 100, 0, "");
    CHECK_STATUS(spillway_kv_make(text, &options), SPILLWAY_KV_IO, NULL);
    CHECK(stat(path, &facts) == 0 && facts.st_size == 100 && unlink(path) == 0);
    snprintf(text, sizeof text, "stripe:[%s,%s/none/x]", path, second);
    CHECK_STATUS(spillway_kv_make(text, &options), SPILLWAY_KV_NOT_FOUND, NULL);
    CHECK(access(path, F_OK) != 0);
  }
  snprintf(text, sizeof text, "stripe:[%s,%s]", path, second);
  make_file(second, 0, 20 << 20, "mine");
  CHECK_STATUS(spillway_kv_make(text, &kMake), SPILLWAY_KV_EXISTS, NULL);
  CHECK(access(path, F_OK) != 0 && unlink(second) == 0);
}

// Each file of a stripe is this store's alone, and as large as its part.
static void stripes(const char *path) {
  char text[600], second[300];
  snprintf(second, sizeof second, "%s.2", path);
  snprintf(text, sizeof text, "stripe:[%s,%s]?unit=4K", path, second);
  const char *devices[] = {text, path, second};
  spillway_kv *store, *other;
  struct stat facts;
  CHECK_STATUS(spillway_kv_make(text, &kMake), SPILLWAY_KV_OK, NULL);
  CHECK(stat(path, &facts) == 0 && facts.st_size == kCapacity / 2);
  CHECK(stat(second, &facts) == 0 && facts.st_size == kCapacity / 2);
  CHECK_STATUS(spillway_kv_open(text, NULL, &store), SPILLWAY_KV_OK, NULL);
  for (size_t i = 0; i < sizeof devices / sizeof *devices; ++i) {
    CHECK_ERROR(spillway_kv_open(devices[i], NULL, &other), SPILLWAY_KV_IN_USE, NULL, path);
    CHECK_ERROR(spillway_kv_make(devices[i], &kMake), SPILLWAY_KV_IN_USE, NULL, path);
  }
  CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_open(text, NULL, &store), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_OK, NULL);
  CHECK(truncate(second, kCapacity / 2 - 4096) == 0);
  CHECK_ERROR(spillway_kv_open(text, NULL, &store), SPILLWAY_KV_FULL, NULL, "smaller than the store in it");
  CHECK(unlink(path) == 0 && unlink(second) == 0);
}

// If two processes make a store at the same time, one of them has made it, and what was put into it stays.
static void makes_at_the_same_time(const char *path) {
  for (int round = 0; round < 20; ++round) {
    if (round % 2 == 1) make_file(path, 0, 0, "");
    pid_t children[2];
    for (int i = 0; i < 2; ++i) {
      children[i] = fork();
      if (children[i] != 0) continue;
      const int made = spillway_kv_make(path, &kMake);
      spillway_kv *store = NULL;
      spillway_kv_session *session;
      if (spillway_kv_open(path, NULL, &store) != SPILLWAY_KV_OK ||
          spillway_kv_session_open(store, &session) != SPILLWAY_KV_OK ||
          put(session, i == 0 ? "0" : "1", "value") != SPILLWAY_KV_OK ||
          spillway_kv_session_close(session) != SPILLWAY_KV_OK || spillway_kv_close(store) != SPILLWAY_KV_OK)
        _exit(9);
      _exit(made == SPILLWAY_KV_OK ? 1 : made == SPILLWAY_KV_EXISTS || made == SPILLWAY_KV_IN_USE ? 0 : 9);
    }
    int makers = 0, status;
    for (int i = 0; i < 2; ++i) {
      CHECK(waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status));
      makers += WEXITSTATUS(status);
    }
    CHECK(makers == 1);
    spillway_kv *store;
    spillway_kv_session *session;
    CHECK_STATUS(spillway_kv_open(path, NULL, &store), SPILLWAY_KV_OK, NULL);
    CHECK_STATUS(spillway_kv_session_open(store, &session), SPILLWAY_KV_OK, NULL);
    CHECK(has(session, "0", "value") && has(session, "1", "value"));
    CHECK_STATUS(spillway_kv_session_close(session), SPILLWAY_KV_OK, session);
    CHECK_STATUS(spillway_kv_close(store), SPILLWAY_KV_OK, NULL);
    CHECK(unlink(path) == 0);
  }
}

static void files_that_are_short(const char *path) {
  const off_t sizes[] = {0, 1, 100, 512, 4096, 5000, 512 << 10, (512 << 10) + 100};
  CHECK_STATUS(spillway_kv_make(path, &kMake), SPILLWAY_KV_OK, NULL);
  CHECK(truncate(path, kCapacity - (5 << 20)) == 0);
  spillway_kv *cut;
  CHECK_ERROR(spillway_kv_open(path, NULL, &cut), SPILLWAY_KV_FULL, NULL, "smaller than the store in it");
  CHECK(unlink(path) == 0);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    spillway_kv *store;
    struct stat facts;
    make_file(path, sizes[i], 0, sizes[i] >= 4 ? "mine" : "");
    CHECK_ERROR(spillway_kv_open(path, NULL, &store), SPILLWAY_KV_INVALID, NULL, "holds no store");
    CHECK(store == NULL && stat(path, &facts) == 0 && facts.st_size == sizes[i] && unlink(path) == 0);
  }
}

void test_errors(const char *folder) {
  char path[200];
  snprintf(path, sizeof path, "%s/store", folder);
  CHECK(chmod(folder, 0755) == 0);
  denied(path);
  check_status_texts(SPILLWAY_KV_CANCELED, SPILLWAY_KV_BUSY);
  mistakes();
  mistakes_in_a_session();
  no_room();
  no_descriptors();
  files(path);
  damage(path);
  devices_that_fail(path);
  other_stores(path);
  CHECK(unlink(path) == 0);
  makes_that_are_refused(path);
  stripes(path);
  makes_at_the_same_time(path);
  files_that_are_short(path);
}
