// Counts how often each run of 12 letters comes in a sequence of A, C, G and T, and prints the most frequent ones.  batch_example FILE [COUNT]
#include <stdio.h>
#include <stdlib.h>

#include <spillway/batch.h>

enum { kLetters = 12, kMask = (1 << 2 * kLetters) - 1, kGroup = 1024, kMax = 100 };

static spillway_batch_session *session;

static void check(int status) {
  if (status >= 0) return;
  fprintf(stderr, "batch_example: %s\n", spillway_batch_error_text(session));
  exit(1);
}

// What the library calls for a record that is there: its count, and what is to be added.
static void add(void *context, void *value, const void *given) {
  (void)context;
  *(uint32_t *)value += *(const uint32_t *)given;  // keys and values of 4 bytes are aligned to 4
}

// Runs that wait until they are a call's worth.
static uint32_t runs[kGroup], ones[kGroup];
static size_t run_count;

static void count_runs(uint32_t function) {
  spillway_batch_job job = {.struct_bytes = sizeof job,
                            .action = SPILLWAY_BATCH_MERGE,
                            .function = function,
                            .count = run_count,
                            .keys = runs,
                            .values = ones};
  check(spillway_batch_run(session, &job));
  run_count = 0;
}

// The most frequent runs so far, in their order.
static struct found {
  uint32_t run, count;
} found[kMax + 1];
static size_t wanted = 3, found_count;

static int look(void *context, const void *key, const void *value) {
  const struct found one = {*(const uint32_t *)key, *(const uint32_t *)value};
  size_t at = found_count;
  for (; at > 0 && (found[at - 1].count < one.count ||
                    (found[at - 1].count == one.count && found[at - 1].run > one.run));
       --at)
    found[at] = found[at - 1];
  found[at] = one;
  if (found_count < wanted) ++found_count;
  ++*(uint64_t *)context;
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3) wanted = strtoul(argv[2], NULL, 10);
  if (argc < 2 || argc > 3 || wanted == 0 || wanted > kMax)
    return fprintf(stderr, "usage: batch_example FILE [COUNT]; a count is up to %d\n", kMax), 2;
  FILE *const file = fopen(argv[1], "r");
  if (file == NULL) return perror(argv[1]), 1;

  // Runs are numbers, two bits a letter: more than a million of them, of which the table learns by itself how it counts them fastest.
  const spillway_batch_options options = {.struct_bytes = sizeof options,
                                          .key_bytes = 4,
                                          .value_bytes = 4,
                                          .records = 1 << 20,
                                          .staging_bytes = 64 << 20};
  spillway_batch *table;
  uint32_t function;
  check(spillway_batch_open(&options, &table));
  check(spillway_batch_add_function(table, add, NULL, &function));
  check(spillway_batch_session_open(table, &session));

  uint32_t run = 0;
  for (int letter, length = 0; (letter = getc(file)) != EOF;) {
    if (letter == '\n') continue;
    const int code = letter == 'A' ? 0 : letter == 'C' ? 1 : letter == 'G' ? 2 : letter == 'T' ? 3 : -1;
    length = code < 0 ? 0 : length + 1;
    run = (run << 2 | (uint32_t)code) & kMask;
    if (length < kLetters) continue;
    runs[run_count] = run;
    ones[run_count++] = 1;
    if (run_count == kGroup) count_runs(function);
  }
  if (ferror(file)) return perror(argv[1]), 1;
  fclose(file);
  count_runs(function);

  uint64_t different = 0;
  check(spillway_batch_flush(session));  // for_each sees only what is made
  check(spillway_batch_for_each(session, look, &different));
  printf("%lu runs\n", (unsigned long)different);
  for (size_t i = 0; i < found_count; ++i) {
    for (int at = 2 * kLetters - 2; at >= 0; at -= 2) putchar("ACGT"[found[i].run >> at & 3]);
    printf(" %u\n", found[i].count);
  }
  check(spillway_batch_session_close(session));
  check(spillway_batch_close(table));
  return 0;
}
