// What the parts of the persistence runtime's C test share. There is one runtime in a process, so each test is a child's.
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

// Runs it in a child, which exits as its parent would. Returns the exit status, 128 + the signal that killed it.
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

// How many bytes of the file's mappings the process has changed that the kernel has not written. 0 where the file system writes nothing.
uint64_t dirty_bytes(const char *path);
// A number of the runtime's statistics, the first of that name.
uint64_t statistic(const char *name);
// "folder/name"; the caller is done with it before the next.
const char *path_in(const char *folder, const char *name);
void *map_new(const char *path, size_t bytes, const char *kind);

void test_calls(const char *folder);
void test_errors(const char *folder);
void test_process(const char *folder);
#endif
