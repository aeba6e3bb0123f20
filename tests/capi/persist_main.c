// Every call of the persistence runtime's C API and every status that can be provoked, from C.
#define _GNU_SOURCE
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "persist_test.h"

#include "folder.h"

uint64_t dirty_bytes(const char *path) {
  struct statfs facts;
  CHECK(statfs(path, &facts) == 0);
  if (facts.f_type == TMPFS_MAGIC) return 0;
  FILE *const maps = fopen("/proc/self/smaps", "r");
  char *const whole = realpath(path, NULL);
  CHECK(maps != NULL && whole != NULL);
  char line[4096];
  uint64_t bytes = 0;
  int is_mapped = 0;
  for (int is_here = 0; fgets(line, sizeof line, maps) != NULL;) {
    unsigned long kib;
    if (strstr(line, whole) != NULL) is_here = is_mapped = 1;
    if (is_here &&
        (sscanf(line, "Shared_Dirty: %lu", &kib) == 1 || sscanf(line, "Private_Dirty: %lu", &kib) == 1))
      bytes += kib * 1024;
    if (strncmp(line, "VmFlags", 7) == 0) is_here = 0;
  }
  CHECK(is_mapped);
  fclose(maps);
  free(whole);
  return bytes;
}

uint64_t statistic(const char *name) {
  char text[4096], quoted[100];
  CHECK_OK(spillway_persist_stats(text, sizeof text, NULL));
  CHECK(snprintf(quoted, sizeof quoted, "\"%s\": ", name) < (int)sizeof quoted);
  const char *const at = strstr(text, quoted);
  CHECK(at != NULL);
  return strtoull(at + strlen(quoted), NULL, 10);
}

const char *path_in(const char *folder, const char *name) {
  static char path[4200];
  CHECK(snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path);
  return path;
}

void *map_new(const char *path, size_t bytes, const char *kind) {
  void *address = NULL;
  size_t mapped = 0;
  unlink(path);
  CHECK_OK(spillway_persist_map(path, bytes, kind, &address, &mapped));
  CHECK(address != NULL && mapped == bytes);
  return address;
}

int main(void) {
  check_status_texts(SPILLWAY_PERSIST_UNSUPPORTED, SPILLWAY_PERSIST_TOO_SMALL);
  char folder[4096];
  // Usually on a disk: a file system in memory never writes anything.
  setenv("TMPDIR", "/var/tmp", 0);
  make_folder(folder, sizeof folder);
  test_errors(folder);
  test_calls(folder);
  test_process(folder);
  CHECK(rmdir(folder) == 0);
  puts("all calls of the persistence runtime's C API do what they should");
  return 0;
}
