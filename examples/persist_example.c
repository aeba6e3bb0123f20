// Counts how often each word was given, by a log in persistent memory or any file, which survives a crash at any moment.  persist_example FILE WORD...
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spillway/persist.h>

enum { kBytes = 1 << 20 };

// What is at the file's begin. A new file is all zeros: a log without entries, too.
struct log {
  _Atomic uint64_t used_bytes;  // of `entries`; what lies behind them is what a crash may have left
  char format[8];
  char entries[kBytes - 16];  // each a byte, how long the word is, and the word
};

static const char kFormat[8] = "words 1";

static void check(int status) {
  if (status >= 0) return;
  fprintf(stderr, "persist_example: %s\n", spillway_persist_error_text());
  exit(1);
}

static struct log *open_log(const char *path) {
  void *address;
  // "auto": by the CPU's instructions where the file is memory, else by the kernel. The program is the same.
  check(spillway_persist_map(path, kBytes, "auto", &address, NULL));
  struct log *const log = address;
  if (atomic_load(&log->used_bytes) == 0) {
    spillway_persist_copy(log->format, kFormat, sizeof kFormat);
    check(spillway_persist_fence());
  }
  if (memcmp(log->format, kFormat, sizeof kFormat) != 0 ||
      atomic_load(&log->used_bytes) > sizeof log->entries) {
    fprintf(stderr, "persist_example: %s is no log of words\n", path);
    exit(1);
  }
  return log;
}

static void append(struct log *log, const char *word) {
  const uint64_t used = atomic_load(&log->used_bytes);
  const size_t length = strlen(word);
  if (length > 255 || sizeof log->entries - used < 1 + length) {
    fprintf(stderr, "persist_example: the log has no room for %s\n", word);
    exit(1);
  }
  // 1. The entry, where nothing counts yet. Copies are flushed; after the fence it is there for good.
  const unsigned char first = (unsigned char)length;
  spillway_persist_copy(log->entries + used, &first, 1);
  spillway_persist_copy(log->entries + used + 1, word, length);
  check(spillway_persist_fence());
  // 2. What makes it count: 8 aligned bytes, which no crash tears. Without the fence before, they might be durable first.
  atomic_store(&log->used_bytes, used + 1 + length);
  check(spillway_persist(&log->used_bytes, sizeof log->used_bytes));
}

static unsigned long count(const struct log *log, const char *word) {
  const size_t length = strlen(word);
  const uint64_t used = atomic_load(&log->used_bytes);
  unsigned long found = 0;
  for (uint64_t at = 0; at < used; at += 1 + (unsigned char)log->entries[at])
    if ((unsigned char)log->entries[at] == length && memcmp(log->entries + at + 1, word, length) == 0)
      ++found;
  return found;
}

int main(int argc, char **argv) {
  if (argc < 2) return fputs("usage: persist_example FILE WORD...\n", stderr), 2;
  struct log *const log = open_log(argv[1]);  // there is nothing else to recover
  for (int i = 2; i < argc; ++i) {
    append(log, argv[i]);
    printf("%s %lu\n", argv[i], count(log, argv[i]));
  }
  check(spillway_persist_unmap(log));
  return 0;
}
