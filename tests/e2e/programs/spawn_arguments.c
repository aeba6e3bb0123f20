// vfork and exec, posix_spawn, system and popen, with program names, arguments and environments in spilled
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

  pid_t* spawned = malloc(sizeof(pid_t));
  push_out(3 << 20);
  CHECK(posix_spawn(spawned, shell, NULL, NULL, arguments, environment) == 0);
  reap(*spawned, 5);
  CHECK(posix_spawnp(spawned, text("sh"), NULL, NULL, arguments, environment) == 0);
  reap(*spawned, 5);
  CHECK(posix_spawn(spawned, text("/no/such/program"), NULL, NULL, arguments, environment) == ENOENT);

  char* answer = malloc(9000);
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
  CHECK(setenv(text("NAME"), text("value of NAME"), 1) == 0);
  CHECK(strcmp(getenv(text("NAME")), "value of NAME") == 0);
  fflush(stdout);
  CHECK(system("echo $NAME") == 0);
  check_data();
  return 0;
}
