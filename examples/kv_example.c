// Counts how often each word was given, in a store that outlives the program.  kv_example FILE WORD...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spillway/kv.h>

static void check(int status, const spillway_kv_session *session) {
  if (status >= 0) return;
  fprintf(stderr, "kv_example: %s\n", spillway_kv_error_text(session));
  exit(1);
}

int main(int argc, char **argv) {
  if (argc < 2) return fputs("usage: kv_example FILE WORD...\n", stderr), 2;
  const spillway_kv_make_options size = {.struct_bytes = sizeof size, .capacity_bytes = 64 << 20};
  const int made = spillway_kv_make(argv[1], &size);
  if (made != SPILLWAY_KV_EXISTS) check(made, NULL);
  spillway_kv *store;
  spillway_kv_session *session;
  check(spillway_kv_open(argv[1], NULL, &store), NULL);
  check(spillway_kv_session_open(store, &session), NULL);

  for (int i = 2; i < argc; ++i) {
    const char *word = argv[i];
    spillway_kv_change_options options = {.struct_bytes = sizeof options};
    int status;
    do {  // once more if another thread or session was faster
      unsigned long count = 0;
      spillway_kv_value value = {.struct_bytes = sizeof value};
      status = spillway_kv_get(session, word, strlen(word), &count, sizeof count, &value);
      check(status, session);
      options.when = status == SPILLWAY_KV_ABSENT ? SPILLWAY_KV_IF_ABSENT : SPILLWAY_KV_IF_VERSION;
      options.version = value.version;
      ++count;
      const struct iovec pieces[] = {{&count, sizeof count}};
      status = spillway_kv_put(session, word, strlen(word), pieces, 1, &options, NULL);
      check(status, session);
      if (status == SPILLWAY_KV_OK) printf("%s %lu\n", word, count);
    } while (status != SPILLWAY_KV_OK);
  }

  check(spillway_kv_session_close(session), NULL);
  check(spillway_kv_close(store), NULL);
  return 0;
}
