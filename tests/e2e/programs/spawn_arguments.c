// fork and exec, vfork and exec, posix_spawn, system and popen, with program names, arguments and environments in spilled
// memory; what the children say comes back through spilled buffers, and the parent goes on.
// expect: cache.evictions>=500
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
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

  push_out(3 << 20);
  pid_t child = vfork();
  if (child == 0) {
    execve(shell, arguments, environment);
    _exit(98);
  }
  CHECK(child > 0);
  reap(child, 5);
  child = vfork();
  if (child == 0) {
    execl("/no/such/program", "program", (char*)NULL);
    _exit(errno == ENOENT ? 42 : 43);
  }
  reap(child, 42);
  check_data();

  for (int round = 0; round < 3; ++round) {
    push_out(3 << 20);
    child = fork();
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
  push_out(3 << 20);
  child = fork();
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

  pid_t* spawned = malloc(sizeof(pid_t));
  push_out(3 << 20);
  CHECK(posix_spawn(spawned, shell, NULL, NULL, arguments, environment) == 0);
  reap(*spawned, 5);
  CHECK(posix_spawnp(spawned, text("sh"), NULL, NULL, arguments, environment) == 0);
  reap(*spawned, 5);
  CHECK(posix_spawn(spawned, text("/no/such/program"), NULL, NULL, arguments, environment) == ENOENT);

  int status = system(text("echo from system; exit 6"));
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 6);
  FILE* stream = popen(text("echo from popen; exit 7"), text("r"));
  CHECK(stream != NULL);
  CHECK(fgets(answer, 9000, stream) == answer);
  printf("%s", answer);
  status = pclose(stream);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  stream = popen("cat", "w");
  fputs(answer, stream);
  pclose(stream);
  // An environment of the program's own making.
  char** const before = environ;
  environ = environment;
  CHECK(system("test \"$SPILLED\" = 'in the environment'") == 0);
  stream = popen("echo \"$SPILLED\"", "r");
  CHECK(stream != NULL && fgets(answer, 9000, stream) == answer);
  CHECK(strcmp(answer, "in the environment\n") == 0 && pclose(stream) == 0);
  CHECK(posix_spawnp(spawned, text("sh"), NULL, NULL, arguments, environment) == 0);
  reap(*spawned, 5);
  CHECK(environ == environment);
  environ = before;
  CHECK(setenv(text("NAME"), text("value of NAME"), 1) == 0);
  CHECK(strcmp(getenv(text("NAME")), "value of NAME") == 0);
  fflush(stdout);
  CHECK(system("echo $NAME") == 0);
  check_data();
  return 0;
}
