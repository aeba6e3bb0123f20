// A daemon that lets go of its standard error: who reads the other end, as $(daemon 2>&1) does, sees the end at once.
// case: redirects
// case: closes
// case: closes_all
// case: freopen
// case: library
// case: copies
// case: no_fork
// case: no_fork_range
// case: no_fork_freopen
// case: no_fork_vfork
// levels: O2
// chaos: 0
// evictions: none, it has no data
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "e2e.h"

enum { kSeconds = 60, kSoon = 40 };

static char* data;

static void redirect(void) {
  const int null = open("/dev/null", O_RDWR);
  CHECK(null >= 0);
  for (int i = 0; i < 3; ++i) CHECK(dup2(null, i) == i);
  close(null);
}

static int is(const char* how, const char* name) { return strcmp(how, name) == 0; }

// Its standard output and error are the pipe.
static int be_daemon(const char* how) {
  data = malloc(3 << 20);
  CHECK_SPILLED(data);
  memset(data, 7, 3 << 20);
  if (is(how, "library")) {
    dprintf(1, "%d\n", getpid());
    CHECK(daemon(0, 0) == 0);
  } else if (is(how, "copies")) {
    if (syscall(SYS_fork) != 0) _exit(0);
    setsid();
  } else if (strncmp(how, "no_fork", 7) != 0) {
    if (fork() != 0) _exit(0);
    setsid();
    if (fork() != 0) _exit(0);
  }
  if (!is(how, "library")) dprintf(1, "%d\n", getpid());
  if (is(how, "no_fork_vfork")) {
    // The child's standard error is not its parent's.
    const int null = open("/dev/null", O_RDWR);
    const pid_t child = vfork();
    if (child == 0) {
      dup2(null, 2);
      execlp("true", "true", (char*)NULL);
      _exit(99);
    }
    CHECK(waitpid(child, NULL, 0) == child);
  }
  if (is(how, "redirects") || is(how, "copies") || is(how, "no_fork") || is(how, "no_fork_vfork")) {
    redirect();
  } else if (is(how, "closes")) {
    for (int i = 0; i < 3; ++i) close(i);
  } else if (is(how, "closes_all")) {
    closefrom(0);
  } else if (is(how, "no_fork_range")) {
    CHECK(close_range(0, ~0u, 0) == 0);
  } else if (is(how, "freopen") || is(how, "no_fork_freopen")) {
    CHECK(freopen("/dev/null", "r", stdin) && freopen("/dev/null", "w", stdout));
    CHECK(freopen("/dev/null", "w", stderr));
  }
  for (int i = 0; i < 3 << 20; i += 4096)
    if (data[i] != 7) _exit(3);
  struct timespec time = {kSeconds, 0};
  nanosleep(&time, NULL);
  return 0;
}

int main(int argc, char** argv) {
  CHECK(argc == 2 || argc == 3);
  if (argc == 3) return be_daemon(argv[1]);
  int ends[2];
  CHECK(pipe(ends) == 0);
  fflush(stdout);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    execl("/proc/self/exe", argv[0], argv[1], "daemon", (char*)NULL);
    _exit(99);
  }
  close(ends[1]);
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  char text[100] = "";
  size_t length = 0;
  for (ssize_t n;
       length < sizeof text - 1 && (n = read(ends[0], text + length, sizeof text - 1 - length)) > 0;)
    length += (size_t)n;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const pid_t process = atoi(text);
  CHECK(process > 1);
  // One that has crashed has let go of everything, too. The number of the one that daemon(3) makes is not known.
  if (!is(argv[1], "library")) CHECK(kill(process, SIGKILL) == 0);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  if (process == child && !is(argv[1], "library"))
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  else
    CHECK(status == 0);
  const long seconds = now.tv_sec - begin.tv_sec;
  printf("%s: the end came %s\n", argv[1], seconds >= kSoon ? "late" : "soon");
  return 0;
}
