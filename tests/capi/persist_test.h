// Shared by the parts of the persistence runtime's C test. There is one runtime in a process, so each test runs in a child.
#ifndef PERSIST_TEST_H
#define PERSIST_TEST_H
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spillway/persist.h"

static inline const char *persist_status_text(int status) { return spillway_persist_status_text(status); }
// Of the calling thread: there are no sessions.
static inline const char *persist_error_text(const void *none) {
  (void)none;
  return spillway_persist_error_text();
}
#define API(name) persist_##name
#include "check.h"

#define CHECK_OK(call) CHECK_STATUS(call, SPILLWAY_PERSIST_OK, NULL)
#define CHECK_REFUSED(call, expected, words) CHECK_ERROR(call, expected, NULL, words)

// Runs it in a child, which ends by exit(). Returns its exit status, or 128 + the signal that killed it.
static inline int in_child(void (*run)(const char *folder), const char *folder) {
  fflush(NULL);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    run(folder);
    exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// How many bytes the process has changed in the file's mappings that the kernel has not written yet. 0 if the file system writes nothing.
uint64_t dirty_bytes(const char *path);
// A number of the runtime's statistics, the first of that name.
uint64_t statistic(const char *name);
// "folder/name", valid until the next call.
const char *path_in(const char *folder, const char *name);
void *map_new(const char *path, size_t bytes, const char *kind);

void test_calls(const char *folder);
void test_errors(const char *folder);
void test_process(const char *folder);
#endif
