// Counts how often each word was given, in a table of 64 MiB that a file holds, with 1 MiB of memory.  pagecache_example FILE WORD...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spillway/pagecache.h>

enum { kEntries = 1 << 20 };

struct entry {
  uint64_t count;  // 0: nobody's
  char word[56];
};

struct counting {
  const char *word;
  uint64_t count;  // once its entry has been found
};

static void check(int status, const spillway_pagecache_session *session) {
  if (status >= 0) return;
  fprintf(stderr, "pagecache_example: %s\n", spillway_pagecache_error_text(session));
  exit(1);
}

// One entry, in memory. Nobody else sees it meanwhile: many threads could count at the same time.
static void count_up(void *context, void *piece, size_t bytes, uint64_t offset) {
  struct counting *const counting = context;
  struct entry *const entry = piece;
  (void)bytes, (void)offset;
  if (entry->count == 0) strcpy(entry->word, counting->word);
  if (strcmp(entry->word, counting->word) == 0) counting->count = ++entry->count;
}

int main(int argc, char **argv) {
  if (argc < 2) return fputs("usage: pagecache_example FILE WORD...\n", stderr), 2;
  for (int i = 2; i < argc; ++i)
    if (strlen(argv[i]) >= sizeof((struct entry *)0)->word)
      return fprintf(stderr, "pagecache_example: %s is too long\n", argv[i]), 2;
  const spillway_pagecache_options options = {
      .struct_bytes = sizeof options, .memory_bytes = 1 << 20, .policy = "alfu"};
  const spillway_pagecache_file_options size = {.struct_bytes = sizeof size,
                                                .bytes = kEntries * sizeof(struct entry)};
  spillway_pagecache *cache;
  spillway_pagecache_file *file;
  spillway_pagecache_session *session;
  check(spillway_pagecache_open(&options, &cache), NULL);
  check(spillway_pagecache_add(cache, argv[1], &size, &file), NULL);
  check(spillway_pagecache_session_open(cache, &session), NULL);

  for (int i = 2; i < argc; ++i) {
    struct counting counting = {.word = argv[i]};
    uint64_t hash = 14695981039346656037u;
    for (const char *byte = counting.word; *byte != 0; ++byte)
      hash = (hash ^ (unsigned char)*byte) * 1099511628211u;
    // The entry that the hash says, or one of those that follow.
    for (uint64_t tries = 0; counting.count == 0 && tries < kEntries; ++tries)
      check(spillway_pagecache_update(session, file, (hash + tries) % kEntries * sizeof(struct entry),
                                      sizeof(struct entry), count_up, &counting),
            session);
    printf("%s %lu\n", counting.word, (unsigned long)counting.count);
  }

  check(spillway_pagecache_remove(session, file), session);  // what was written is in the file for good
  check(spillway_pagecache_session_close(session), NULL);
  check(spillway_pagecache_close(cache), NULL);
  return 0;
}
