// The calls that block.
#include "kv_test.h"

static void gets(void) {
  const struct opened own = open_memory(64 << 20);
  spillway_kv_session* const session = own.session;
  CHECK(has(session, "key", NULL));
  CHECK_STATUS(put(session, "key", "value"), SPILLWAY_KV_OK, session);
  char buffer[8] = "";
  CHECK_STATUS(spillway_kv_get(session, "key", 3, buffer, sizeof buffer, NULL), SPILLWAY_KV_OK, session);
  CHECK(memcmp(buffer, "value", 5) == 0);
  CHECK_STATUS(spillway_kv_get(session, "nokey", 5, buffer, sizeof buffer, NULL), SPILLWAY_KV_ABSENT,
               session);
  spillway_kv_value value = {.struct_bytes = sizeof value, .flags = 77};
  CHECK_STATUS(spillway_kv_get(session, "key", 3, buffer, 5, &value), SPILLWAY_KV_OK, session);
  CHECK(value.data == buffer && value.data_bytes == 5 && value.version > 0 && value.flags == 0 &&
        value.expires_ms == 0 && value.status == SPILLWAY_KV_OK && value.holder == NULL);
  CHECK_STATUS(spillway_kv_get(session, "key", 3, buffer, 4, &value), SPILLWAY_KV_TOO_SMALL, session);
  CHECK(value.data_bytes == 5 && value.data == NULL && value.status == SPILLWAY_KV_TOO_SMALL);
  CHECK_STATUS(spillway_kv_get(session, "key", 3, NULL, 0, &value), SPILLWAY_KV_TOO_SMALL, session);
  CHECK(value.data_bytes == 5);
  CHECK_STATUS(spillway_kv_get(session, "nokey", 5, NULL, 0, &value), SPILLWAY_KV_ABSENT, session);
  CHECK(value.data_bytes == 0 && value.version == 0 && value.status == SPILLWAY_KV_ABSENT);

  // Without a copy: the value stays as it was found, whatever happens later.
  spillway_kv_value held = {.struct_bytes = sizeof held};
  CHECK_STATUS(spillway_kv_get_value(session, "key", 3, &held), SPILLWAY_KV_OK, session);
  CHECK_STATUS(put(session, "key", "other"), SPILLWAY_KV_OK, session);
  CHECK(has(session, "key", "other") && held.data_bytes == 5 && memcmp(held.data, "value", 5) == 0);
  CHECK_STATUS(spillway_kv_session_close(session), SPILLWAY_KV_IN_USE, session);
  CHECK(strstr(spillway_kv_error_text(session), "1 values") != NULL);
  spillway_kv_value_release(&held, 1);
  CHECK(held.data == NULL && held.holder == NULL);
  spillway_kv_value_release(&held, 1);  // it holds nothing any more
  spillway_kv_value_release(NULL, 0);

  // An empty value is a value.
  CHECK_STATUS(spillway_kv_put(session, "empty", 5, NULL, 0, NULL, NULL), SPILLWAY_KV_OK, session);
  CHECK(has(session, "empty", ""));
  close_opened(own);
}

static void puts_and_removes(void) {
  const struct opened own = open_memory(64 << 20);
  spillway_kv_session* const session = own.session;
  const struct iovec pieces[] = {{"one ", 4}, {NULL, 0}, {"two ", 4}, {"three", 5}};
  uint64_t first = 0, version = 0;
  CHECK_STATUS(spillway_kv_put(session, "key", 3, pieces, 4, NULL, &first), SPILLWAY_KV_OK, session);
  CHECK(first > 0 && has(session, "key", "one two three"));

  spillway_kv_change_options options = {.struct_bytes = sizeof options, .when = SPILLWAY_KV_IF_ABSENT};
  CHECK_STATUS(spillway_kv_put(session, "key", 3, pieces, 1, &options, &version), SPILLWAY_KV_PRESENT,
               session);
  CHECK(version == first);
  options.when = SPILLWAY_KV_IF_PRESENT;
  CHECK_STATUS(spillway_kv_put(session, "none", 4, pieces, 1, &options, &version), SPILLWAY_KV_ABSENT,
               session);
  CHECK(version == 0);
  CHECK_STATUS(spillway_kv_put(session, "key", 3, pieces, 1, &options, &version), SPILLWAY_KV_OK, session);
  CHECK(version > first && has(session, "key", "one "));
  options.when = SPILLWAY_KV_IF_VERSION;
  options.version = first;
  CHECK_STATUS(spillway_kv_put(session, "key", 3, pieces, 1, &options, NULL), SPILLWAY_KV_OTHER_VERSION,
               session);
  CHECK_STATUS(spillway_kv_remove(session, "key", 3, &options, NULL), SPILLWAY_KV_OTHER_VERSION, session);
  options.version = version;
  CHECK_STATUS(spillway_kv_remove(session, "key", 3, &options, &version), SPILLWAY_KV_OK, session);
  CHECK(has(session, "key", NULL));
  CHECK_STATUS(spillway_kv_remove(session, "key", 3, NULL, NULL), SPILLWAY_KV_ABSENT, session);

  spillway_kv_change_options kept = {
      .struct_bytes = sizeof kept, .flags = 42, .expires_ms = (uint64_t)1 << 47};
  CHECK_STATUS(spillway_kv_put(session, "kept", 4, pieces, 1, &kept, NULL), SPILLWAY_KV_OK, session);
  spillway_kv_value value = {.struct_bytes = sizeof value};
  CHECK_STATUS(spillway_kv_get(session, "kept", 4, NULL, 0, &value), SPILLWAY_KV_TOO_SMALL, session);
  CHECK(value.flags == 42 && value.expires_ms == (uint64_t)1 << 47);
  kept.expires_ms = 1;
  CHECK_STATUS(spillway_kv_put(session, "kept", 4, pieces, 1, &kept, NULL), SPILLWAY_KV_OK, session);
  CHECK(has(session, "kept", NULL));
  close_opened(own);
}

enum { kMany = 700 };

static void many(void) {
  const struct opened own = open_memory(64 << 20);
  spillway_kv_session* const session = own.session;
  static char keys[kMany][16], texts[kMany][16];
  static spillway_kv_change changes[kMany];
  static struct iovec pieces[kMany][2], wanted[kMany];
  static spillway_kv_value values[kMany];
  for (int i = 0; i < kMany; ++i) {
    snprintf(keys[i], sizeof keys[i], "key%d", i);
    snprintf(texts[i], sizeof texts[i], "%d", i);
    pieces[i][0] = (struct iovec){"value", 5};
    pieces[i][1] = (struct iovec){texts[i], strlen(texts[i])};
    changes[i] = (spillway_kv_change){.struct_bytes = sizeof changes[i],
                                      .key = keys[i],
                                      .key_bytes = strlen(keys[i]),
                                      .value = pieces[i],
                                      .value_count = 2,
                                      .status = 99};
    wanted[i] = (struct iovec){keys[i], strlen(keys[i])};
    values[i].struct_bytes = sizeof values[i];
  }
  CHECK_STATUS(spillway_kv_change_many(session, changes, kMany), SPILLWAY_KV_OK, session);
  for (int i = 0; i < kMany; ++i) CHECK(changes[i].status == SPILLWAY_KV_OK && changes[i].version > 0);
  wanted[3] = (struct iovec){"none", 4};
  wanted[5] = (struct iovec){"", 0};
  wanted[100] = (struct iovec){NULL, 4};
  CHECK_STATUS(spillway_kv_get_many(session, wanted, kMany, values), SPILLWAY_KV_INVALID, session);
  CHECK(strstr(spillway_kv_error_text(session), "a key of 0 bytes") != NULL);
  for (int i = 0; i < kMany; ++i) {
    if (i == 3) {
      CHECK(values[i].status == SPILLWAY_KV_ABSENT && values[i].data == NULL);
    } else if (i == 5 || i == 100) {
      CHECK(values[i].status == SPILLWAY_KV_INVALID && values[i].holder == NULL);
    } else {
      char expected[32];
      snprintf(expected, sizeof expected, "value%d", i);
      CHECK(values[i].status == SPILLWAY_KV_OK && values[i].data_bytes == strlen(expected) &&
            memcmp(values[i].data, expected, strlen(expected)) == 0 &&
            values[i].version == changes[i].version);
    }
  }
  spillway_kv_value_release(values, kMany);
  CHECK_STATUS(spillway_kv_get_many(session, NULL, 0, NULL), SPILLWAY_KV_OK, session);

  // Changes of one key are made in their order, with a remove among them, one whose condition does not hold, and one that is wrong.
  const spillway_kv_change_options if_absent = {.struct_bytes = sizeof if_absent,
                                                .when = SPILLWAY_KV_IF_ABSENT};
  for (int i = 0; i < kMany; ++i) changes[i].key = "same", changes[i].key_bytes = 4;
  changes[kMany - 3].is_remove = 1;
  changes[kMany - 1].options = &if_absent;
  changes[7].key_bytes = 0;
  CHECK_STATUS(spillway_kv_change_many(session, changes, kMany), SPILLWAY_KV_INVALID, session);
  CHECK(changes[7].status == SPILLWAY_KV_INVALID && changes[kMany - 1].status == SPILLWAY_KV_PRESENT);
  CHECK(changes[8].status == SPILLWAY_KV_OK && changes[kMany - 1].version == changes[kMany - 2].version);
  char last[32];
  snprintf(last, sizeof last, "value%d", kMany - 2);
  CHECK(has(session, "same", last));
  CHECK_STATUS(spillway_kv_change_many(session, NULL, 0), SPILLWAY_KV_OK, session);
  close_opened(own);
}

static void statistics(void) {
  const struct opened own = open_memory(64 << 20);
  for (int i = 0; i < 9; ++i) {
    const char key[] = {'k', (char)('0' + i), 0};
    CHECK_STATUS(put(own.session, key, "value"), SPILLWAY_KV_OK, own.session);
  }
  char text[4096];
  size_t needed = 0;
  CHECK_STATUS(spillway_kv_stats(own.store, text, sizeof text, &needed), SPILLWAY_KV_OK, NULL);
  CHECK(needed == strlen(text) + 1 && text[0] == '{' && text[needed - 2] == '}');
  CHECK(strstr(text, "\"put_latency\": {\"count\": 9, \"mean_ns\": ") != NULL &&
        strstr(text, "\"remove_latency\": {\"count\": 0, \"mean_ns\": 0, \"p50_ns\": 0, \"p99_ns\": 0, ") !=
            NULL);
  CHECK(strstr(text,
               "\"asked_keys\": 0, \"from_memory\": 0, \"got_bytes\": 0, \"put_bytes\": 63, "
               "\"reads_per_get\": 0.000, ") != NULL);
  CHECK(strstr(text,
               "\"io_for_changes\": {\"reads\": 0, \"read_bytes\": 0, \"writes\": 9, \"written_bytes\": "
               "4608, \"flushes\": 9}") != NULL);
  CHECK(strstr(text, "\"entries\": 9,") != NULL &&
        strstr(text, "\"plain_value_bytes_max\": 262144}") != NULL);
  char small[10];
  CHECK_STATUS(spillway_kv_stats(own.store, small, sizeof small, &needed), SPILLWAY_KV_TOO_SMALL, NULL);
  CHECK(strlen(small) == 9 && needed > 100 && memcmp(small, text, 9) == 0);
  CHECK_STATUS(spillway_kv_stats(own.store, NULL, 0, NULL), SPILLWAY_KV_TOO_SMALL, NULL);
  // Gets of two keys, one of which is there: half a read for each. A closed session's counts stay.
  CHECK(has(own.session, "k1", "value"));
  CHECK_STATUS(spillway_kv_get(own.session, "none", 4, NULL, 0, NULL), SPILLWAY_KV_ABSENT, own.session);
  CHECK_STATUS(spillway_kv_session_close(own.session), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_stats(own.store, text, sizeof text, NULL), SPILLWAY_KV_OK, NULL);
  CHECK(strstr(text,
               "\"asked_keys\": 2, \"from_memory\": 0, \"got_bytes\": 7, \"put_bytes\": 63, "
               "\"reads_per_get\": 0.500, ") != NULL);
  CHECK(strstr(text, "\"get_latency\": {\"count\": 2, ") != NULL);
  CHECK_STATUS(spillway_kv_close(own.store), SPILLWAY_KV_OK, NULL);
}

enum { kLarge = 3000001 };

// Byte i of a large value.
static char byte_of(size_t i, int seed) { return (char)(i * 7 + i / 1000 + (size_t)seed); }

static void check_large(spillway_kv_session* session, const char* key, int seed) {
  static char read[kLarge + 1];
  spillway_kv_value value = {.struct_bytes = sizeof value};
  CHECK_STATUS(spillway_kv_get(session, key, strlen(key), read, kLarge - 1, &value), SPILLWAY_KV_TOO_SMALL,
               session);
  CHECK(value.data_bytes == kLarge);
  CHECK_STATUS(spillway_kv_get(session, key, strlen(key), read, kLarge, &value), SPILLWAY_KV_OK, session);
  for (size_t i = 0; i < kLarge; ++i) CHECK(read[i] == byte_of(i, seed));
}

// Records in use are kept in memory, and then not read from the device.
static void memory(void) {
  const spillway_kv_open_options options = {.struct_bytes = sizeof options, .memory_bytes = 8 << 20};
  struct opened own;
  CHECK_STATUS(spillway_kv_open_memory(64 << 20, &options, &own.store), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_session_open(own.store, &own.session), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(put(own.session, "key", "value"), SPILLWAY_KV_OK, own.session);
  CHECK(has(own.session, "key", "value") && has(own.session, "key", "value"));
  char text[8192];
  CHECK_STATUS(spillway_kv_stats(own.store, text, sizeof text, NULL), SPILLWAY_KV_OK, NULL);
  CHECK(strstr(text, "\"from_memory\": 2,") != NULL && strstr(text, "\"reads_per_get\": 0.000,") != NULL);
  CHECK(strstr(text, "\"tier\": {\"budget_bytes\": 8388608, ") != NULL);
  close_opened(own);
}

static void large_values(void) {
  const struct opened own = open_memory(64 << 20);
  spillway_kv_session* const session = own.session;
  static char large[kLarge];
  for (size_t i = 0; i < kLarge; ++i) large[i] = byte_of(i, 1);
  const struct iovec whole = {large, kLarge},
                     pieces[] = {{large, 1000000}, {NULL, 0}, {large + 1000000, kLarge - 1000000}};
  CHECK_STATUS(spillway_kv_put(session, "whole", 5, &whole, 1, NULL, NULL), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_put(session, "pieces", 6, pieces, 3, NULL, NULL), SPILLWAY_KV_OK, session);
  check_large(session, "whole", 1);
  check_large(session, "pieces", 1);

  // A value that is held can be read a part at a time, although it has been replaced.
  spillway_kv_value values[3] = {{.struct_bytes = sizeof values[0]},
                                 {.struct_bytes = sizeof values[0]},
                                 {.struct_bytes = sizeof values[0]}};
  const struct iovec keys[3] = {{"whole", 5}, {"none", 4}, {"small", 5}};
  CHECK_STATUS(put(session, "small", "a small one"), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_get_many(session, keys, 3, values), SPILLWAY_KV_OK, session);
  CHECK(values[0].data == NULL && values[0].data_bytes == kLarge && values[1].status == SPILLWAY_KV_ABSENT);
  CHECK_STATUS(put(session, "whole", "another"), SPILLWAY_KV_OK, session);
  char part[100];
  size_t read = 7;
  CHECK_STATUS(spillway_kv_value_read(&values[0], kLarge - 50, part, 100, &read), SPILLWAY_KV_OK, session);
  CHECK(read == 50 && part[49] == byte_of(kLarge - 1, 1));
  CHECK_STATUS(spillway_kv_value_read(&values[0], 1048570, part, 100, &read), SPILLWAY_KV_OK, session);
  for (size_t i = 0; i < 100; ++i) CHECK(part[i] == byte_of(1048570 + i, 1));
  CHECK_STATUS(spillway_kv_value_read(&values[0], kLarge, part, 100, &read), SPILLWAY_KV_OK, session);
  CHECK(read == 0);
  CHECK_STATUS(spillway_kv_value_read(&values[2], 2, part, 100, &read), SPILLWAY_KV_OK, session);
  CHECK(read == 9 && memcmp(part, "small one", 9) == 0);
  CHECK_STATUS(spillway_kv_value_read(&values[1], 0, part, 100, &read), SPILLWAY_KV_INVALID, NULL);
  CHECK_STATUS(spillway_kv_value_read(NULL, 0, part, 100, NULL), SPILLWAY_KV_INVALID, NULL);
  spillway_kv_value_release(values, 3);
  CHECK_STATUS(spillway_kv_value_read(&values[0], 0, part, 100, NULL), SPILLWAY_KV_INVALID, NULL);
  CHECK(has(session, "whole", "another"));
  close_opened(own);
}

static void writers(void) {
  const struct opened own = open_memory(64 << 20);
  spillway_kv_session* const session = own.session;
  static char large[kLarge];
  for (size_t i = 0; i < kLarge; ++i) large[i] = byte_of(i, 2);
  spillway_kv_writer* writer;
  CHECK_STATUS(spillway_kv_writer_open(session, "key", 3, &writer), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_session_close(session), SPILLWAY_KV_IN_USE, session);
  for (size_t at = 0; at < kLarge; at += 12345)
    CHECK_STATUS(spillway_kv_writer_append(writer, large + at, kLarge - at < 12345 ? kLarge - at : 12345),
                 SPILLWAY_KV_OK, session);
  CHECK(has(session, "key", NULL));  // not yet
  const spillway_kv_change_options options = {
      .struct_bytes = sizeof options, .when = SPILLWAY_KV_IF_ABSENT, .flags = 4};
  uint64_t version = 0;
  CHECK_STATUS(spillway_kv_writer_commit(writer, &options, &version), SPILLWAY_KV_OK, session);
  CHECK(version > 0);
  check_large(session, "key", 2);

  CHECK_STATUS(spillway_kv_writer_open(session, "key", 3, &writer), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_writer_append(writer, "small", 5), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_writer_append(writer, NULL, 0), SPILLWAY_KV_OK, session);
  uint64_t other = 0;
  CHECK_STATUS(spillway_kv_writer_commit(writer, &options, &other), SPILLWAY_KV_PRESENT, session);
  CHECK(other == version);
  CHECK_STATUS(spillway_kv_writer_open(session, "key", 3, &writer), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_writer_append(writer, large, kLarge), SPILLWAY_KV_OK, session);
  spillway_kv_writer_abandon(writer);
  spillway_kv_writer_abandon(NULL);
  check_large(session, "key", 2);

  CHECK_STATUS(spillway_kv_writer_open(session, "", 0, &writer), SPILLWAY_KV_INVALID, session);
  CHECK_STATUS(spillway_kv_writer_open(session, NULL, 3, &writer), SPILLWAY_KV_INVALID, session);
  CHECK_STATUS(spillway_kv_writer_open(NULL, "k", 1, &writer), SPILLWAY_KV_INVALID, NULL);
  CHECK_STATUS(spillway_kv_writer_append(NULL, "k", 1), SPILLWAY_KV_INVALID, NULL);
  CHECK_STATUS(spillway_kv_writer_commit(NULL, NULL, NULL), SPILLWAY_KV_INVALID, NULL);
  CHECK_STATUS(spillway_kv_writer_open(session, "key", 3, &writer), SPILLWAY_KV_OK, session);
  CHECK_STATUS(spillway_kv_writer_append(writer, NULL, 3), SPILLWAY_KV_INVALID, session);
  CHECK_STATUS(spillway_kv_writer_append(writer, large, ((size_t)4 << 30) + 1), SPILLWAY_KV_TOO_LARGE,
               session);
  CHECK_STATUS(spillway_kv_writer_append(writer, large, 1), SPILLWAY_KV_INVALID, session);  // it has failed
  CHECK_STATUS(spillway_kv_writer_commit(writer, NULL, &version), SPILLWAY_KV_INVALID, session);
  CHECK(version == 0);
  check_large(session, "key", 2);
  close_opened(own);
}

void test_calls(void) {
  int major = -1, minor = -1;
  CHECK(sscanf(spillway_kv_version(), "%d.%d.", &major, &minor) == 2 && major >= 0);
  CHECK_STATUS(spillway_kv_close(NULL), SPILLWAY_KV_OK, NULL);
  CHECK_STATUS(spillway_kv_session_close(NULL), SPILLWAY_KV_OK, NULL);
  gets();
  puts_and_removes();
  many();
  statistics();
  memory();
  large_values();
  writers();
}
