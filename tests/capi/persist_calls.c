// What calls do when all is well.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "persist_test.h"

enum { kBytes = 1 << 18 };

static const char *const kPolicies[] = {"auto", "inline", "epoch", "decoupled", "proactive"};
enum { kPolicyCount = sizeof kPolicies / sizeof *kPolicies };

// What was flushed is in the file after the fence, as another descriptor reads it; the kernel has nothing left to write.
static void files(const char *folder) {
  const char *const kinds[] = {"auto", "file"};
  for (int k = 0; k < 2; ++k) {
    const char *const path = path_in(folder, "file");
    char *const memory = map_new(path, kBytes, kinds[k]);
    const int reader = open(path, O_RDONLY);
    for (int i = 0; i < 50; ++i) {
      char read_back[64];
      memset(memory + i * 4000, 'a' + i % 26, 64);
      spillway_persist_flush(memory + i * 4000, 64);
      if (i % 7 != 0) continue;
      CHECK_OK(spillway_persist_fence());
      CHECK(dirty_bytes(path) == 0);
      CHECK(pread(reader, read_back, 64, i * 4000) == 64 && memcmp(read_back, memory + i * 4000, 64) == 0);
    }
    memory[99] = 'x';
    CHECK_OK(spillway_persist(memory + 99, 1));
    CHECK(dirty_bytes(path) == 0);
    CHECK(statistic("executed_lines") == 0);  // none by the CPU
    memset(memory, 'm', kBytes);
    CHECK_OK(spillway_persist(memory, kBytes));
    CHECK(dirty_bytes(path) == 0);
    // What nobody has flushed is written when the mapping ends.
    memory[kBytes - 1] = 'y';
    CHECK_OK(spillway_persist_unmap(memory));
    char last = 0;
    CHECK(pread(reader, &last, 1, kBytes - 1) == 1 && last == 'y');
    close(reader);
    unlink(path);
  }
}

// A file that is there is mapped in its size if none is given; it grows, and is not cut.
static void sizes(const char *folder) {
  const char *const path = path_in(folder, "file");
  char *memory = map_new(path, 8192, "dram");
  memcpy(memory + 8000, "kept", 4);
  CHECK_OK(spillway_persist_unmap(memory));
  const size_t sizes[][2] = {{0, 8192}, {4096, 4096}, {0, 8192}, {12288, 12288}, {0, 12288}};
  for (int i = 0; i < 5; ++i) {
    void *address;
    size_t mapped = 0;
    CHECK_OK(spillway_persist_map(path, sizes[i][0], "auto", &address, &mapped));
    CHECK(mapped == sizes[i][1]);
    if (mapped > 4096) CHECK(memcmp((char *)address + 8000, "kept", 4) == 0);
    CHECK_OK(spillway_persist_unmap(address));
    CHECK_OK(spillway_persist_map(path, sizes[i][0], "dram", &address, NULL));
    CHECK_OK(spillway_persist_unmap(address));
  }
  unlink(path);
}

// All policies in one thread, one after the other, on lines that are flushed again and again, and on lines that are not.
static void policies(const char *folder) {
  char *const memory = map_new(path_in(folder, "file"), kBytes, "dram");
  uint64_t asked = 0, fences = 0;
  for (int round = 0; round < 3 * kPolicyCount; ++round) {
    CHECK_OK(spillway_persist_set_policy(kPolicies[round % kPolicyCount]));
    for (int i = 0; i < 2000; ++i) {
      char *const at = memory + (i % 3 == 0 ? i % 8 : i) * 64;
      ++*at;
      spillway_persist_flush(at, 1);
      ++asked;
      if (i % 50 == 0) {
        CHECK_OK(spillway_persist_fence());
        ++fences;
      }
    }
  }
  CHECK_OK(spillway_persist_fence());
  CHECK(statistic("asked_lines") == asked && statistic("fences") == fences + 1);
  CHECK(statistic("executed_lines") + statistic("pushed_lines") < asked);  // some had been put off
  CHECK(statistic("pushed_lines") > 0);
  CHECK_OK(spillway_persist_unmap(memory));
  unlink(path_in(folder, "file"));
}

// Copies of many lengths, from and to many alignments, are what memmove makes, and are flushed.
static void copies(const char *folder) {
  const char *const kinds[] = {"dram", "file"};
  static char expected[8192], source[8192];
  for (size_t i = 0; i < sizeof source; ++i) source[i] = (char)(i * 31 + i / 256);
  for (int k = 0; k < 2; ++k) {
    const char *const path = path_in(folder, "file");
    char *const memory = map_new(path, sizeof expected, kinds[k]);
    memset(expected, 0, sizeof expected);
    for (size_t to = 0; to < 64; to += k == 0 ? 1 : 21)
      for (size_t from = 0; from < 64; from += 13)
        for (size_t bytes = 0; bytes < 1200; bytes = bytes < 200 ? bytes + 17 : bytes + 333) {
          CHECK(spillway_persist_copy(memory + to, source + from, bytes) == memory + to);
          memmove(expected + to, source + from, bytes);
          // Onto itself, upwards and downwards.
          spillway_persist_copy(memory + to + 5, memory + to, bytes);
          memmove(expected + to + 5, expected + to, bytes);
          spillway_persist_copy(memory + from, memory + to, bytes);
          memmove(expected + from, expected + to, bytes);
          CHECK(spillway_persist_set(memory + 4096 + from, (int)to, bytes) == memory + 4096 + from);
          memset(expected + 4096 + from, (int)to, bytes);
          CHECK(memcmp(memory, expected, sizeof expected) == 0);
        }
    CHECK_OK(spillway_persist_fence());
    if (k == 0)
      CHECK(statistic("copied_lines") > 1000);
    else
      CHECK(dirty_bytes(path) == 0);
    CHECK_OK(spillway_persist_unmap(memory));
    unlink(path);
  }
}

static void layouts(const char *folder) {
  (void)folder;
  const size_t parts[] = {40, 24, 64, 8};
  size_t offsets[4];
  CHECK(spillway_persist_layout(parts, 4, 8, offsets) == 192);
  for (int i = 0; i < 4; ++i) {
    CHECK(offsets[i] % 8 == 0 && offsets[i] / 64 == (offsets[i] + parts[i] - 1) / 64);  // each in one line
    for (int j = 0; j < i; ++j)
      CHECK(offsets[i] + parts[i] <= offsets[j] || offsets[j] + parts[j] <= offsets[i]);
  }
  CHECK(spillway_persist_layout(parts, 4, 3, offsets) == 0);
  CHECK(spillway_persist_layout(parts, 4, 128, offsets) == 0);
  CHECK(spillway_persist_layout(parts, 65, 8, offsets) == 0);
  CHECK(spillway_persist_layout(NULL, 4, 8, offsets) == 0);
  CHECK(spillway_persist_layout(parts, 4, 8, NULL) == 0);
  const size_t too_large[] = {SIZE_MAX / 2, SIZE_MAX / 2};
  CHECK(spillway_persist_layout(too_large, 2, 8, offsets) == 0);
}

// Domains in the caller's mapping come and go in parts; what is in no domain is flushed all the same.
static void parts_of_mappings(const char *folder) {
  (void)folder;
  char *const memory = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  const char *const kinds[] = {"dram", "memory", "flush_on_fail", "file"};
  for (int k = 0; k < 4; ++k) {
    CHECK_OK(spillway_persist_add(memory, kBytes, kinds[k], -1));
    CHECK(statistic("domains") == 1);
    const uint64_t outside = statistic("outside_lines");
    CHECK_OK(spillway_persist(memory, kBytes));
    CHECK(statistic("outside_lines") == outside);
    CHECK_OK(spillway_persist_remove(memory + 4096, 8192));
    CHECK(statistic("domains") == 2);
    CHECK_OK(spillway_persist(memory, kBytes));
    CHECK(statistic("outside_lines") == outside + 8192 / 64);
    CHECK_STATUS(spillway_persist_remove(memory + 4096, 8192), SPILLWAY_PERSIST_ABSENT, NULL);
    CHECK_OK(spillway_persist_remove(memory, kBytes));
    CHECK(statistic("domains") == 0);
    CHECK_OK(spillway_persist(memory, 64));
    CHECK(statistic("outside_lines") == outside + 8192 / 64 + 1);
  }
  // Lines that were put off are dropped with their domain, before its memory goes.
  CHECK_OK(spillway_persist_set_policy("epoch"));
  CHECK_OK(spillway_persist_add(memory, kBytes, "dram", -1));
  for (int i = 0; i < 5; ++i) spillway_persist_flush(memory, kBytes / 16);
  CHECK_OK(spillway_persist_remove(memory, kBytes));
  munmap(memory, kBytes);
  CHECK_OK(spillway_persist_fence());
}

static void statistics(const char *folder) {
  (void)folder;
  static const char *const kNames[] = {"asked_lines",    "executed_lines", "pushed_lines",   "noted_lines",
                                       "outside_lines",  "copied_lines",   "sampled_stores", "fences",
                                       "domains",        "instruction",    "policy",         "running",
                                       "proactive_lines"};
  CHECK_OK(spillway_persist_set_policy("inline"));
  char line[128];
  spillway_persist_flush(line, 1);
  spillway_persist_flush(line, 0);
  spillway_persist_mark("nobody looks");
  spillway_persist_mark(NULL);
  char text[4096], few[10];
  size_t needed = 0;
  CHECK_OK(spillway_persist_stats(text, sizeof text, &needed));
  CHECK(needed == strlen(text) + 1 && strncmp(text, "{\"persist\": {\"asked_lines\": 1, ", 31) == 0);
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) CHECK(strstr(text, kNames[i]) != NULL);
  CHECK_OK(spillway_persist_stats(text, needed, NULL));
  CHECK_STATUS(spillway_persist_stats(text, needed - 1, NULL), SPILLWAY_PERSIST_TOO_SMALL, NULL);
  CHECK_STATUS(spillway_persist_stats(few, sizeof few, NULL), SPILLWAY_PERSIST_TOO_SMALL, NULL);
  CHECK(strcmp(few, "{\"persist") == 0);
  CHECK_STATUS(spillway_persist_stats(NULL, 0, &needed), SPILLWAY_PERSIST_TOO_SMALL, NULL);
  CHECK(strcmp(spillway_persist_version(), "0.1.0") == 0);
}

void test_calls(const char *folder) {
  void (*const all[])(const char *) = {files,     sizes, policies, copies, layouts, parts_of_mappings,
                                       statistics};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) CHECK(in_child(all[i], folder) == 0);
}
