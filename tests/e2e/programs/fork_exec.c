// fork and exec with the program's name, arguments and environment in spilled memory: as long as that is in
// memory, the child may read it. What it says comes back through a pipe, and the parent goes on.
// chaos: 0
// expect: cache.evictions>=500
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>
#include "e2e.h"

static unsigned* data;
enum { kWords = 500000 };

static void check_data(void) {
  for (unsigned i = 0; i < kWords; i += 97) CHECK(data[i] == i * 7);
}
static char* text(const char* from) {
  char* copied = strdup(from);
  CHECK_SPILLED(copied);
  return copied;
}
static void reap(pid_t child, int wanted) {
  int* status = malloc(sizeof(int));
  CHECK(waitpid(child, status, 0) == child);
  if (!WIFEXITED(*status) || WEXITSTATUS(*status) != wanted) printf("status %x, not %d\n", *status, wanted);
  CHECK(WIFEXITED(*status) && WEXITSTATUS(*status) == wanted);
  free(status);
}

// Brings what the child will read into memory.
static void touch(char** arguments, char** environment, const char* shell) {
  size_t length = strlen(shell);
  for (char** at = arguments; *at != NULL; ++at) length += strlen(*at);
  for (char** at = environment; *at != NULL; ++at) length += strlen(*at);
  CHECK(length > 80);
}

int main(void) {
  data = malloc(kWords * 4);
  for (unsigned i = 0; i < kWords; ++i) data[i] = i * 7;
  char** arguments = calloc(8, sizeof(char*));
  arguments[0] = text("sh");
  arguments[1] = text("-c");
  arguments[2] = text("echo \"$0 $1 $SPILLED\"; exit $2");
  arguments[3] = text("zero");
  arguments[4] = text("one two");
  arguments[5] = text("5");
  char** environment = calloc(3, sizeof(char*));
  environment[0] = text("SPILLED=in the environment");
  environment[1] = text("PATH=/usr/bin:/bin");
  char* shell = text("/bin/sh");
  fflush(stdout);

  for (int round = 0; round < 3; ++round) {
    push_out(3 << 20);
    touch(arguments, environment, shell);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      execve(shell, arguments, environment);
      _exit(99);
    }
    reap(child, 5);
    check_data();
  }

  // What the children of fork say comes through a pipe.
  int ends[2];
  CHECK(pipe(ends) == 0);
  touch(arguments, environment, shell);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    execvp("sh", arguments);
    _exit(99);
  }
  close(ends[1]);
  char* answer = malloc(9000);
  CHECK(read(ends[0], answer, 9000) == 14);
  answer[14] = 0;
  printf("child: %s", answer);
  fflush(stdout);
  close(ends[0]);
  reap(child, 5);

  check_data();
  return 0;
}
