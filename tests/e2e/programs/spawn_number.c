// posix_spawn() stores the child's number before it lets handlers run that may look for it, in spilled memory too. The child does not begin
// with what is blocked meanwhile.
// flags: -pthread
// levels: O2
// pages: 4K
// chaos: 1
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <unistd.h>

#include "e2e.h"

enum { kCalls = 20 };

static pid_t* number;
static volatile sig_atomic_t is_late;
static atomic_int is_over;
static pthread_t first_thread;

static void look(int signal_number) {
  (void)signal_number;
  const int error = errno;
  siginfo_t facts;
  if (*number == 0 && waitid(P_ALL, 0, &facts, WEXITED | WNOHANG | WNOWAIT) == 0) is_late = 1;
  errno = error;
}

static void* send_signals(void* unused) {
  while (!is_over) {
    CHECK(pthread_kill(first_thread, SIGUSR1) == 0);
    sched_yield();
  }
  return unused;
}

static int started(char* first, char* second, char* third) {
  char* arguments[] = {first, second, third, NULL};
  *number = 0;
  CHECK(posix_spawn(number, first, NULL, NULL, arguments, environ) == 0 && *number > 0);
  return *number;
}

int main(void) {
  number = calloc(1, sizeof *number);
  CHECK_SPILLED(number);
  const struct sigaction action = {.sa_handler = look, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  first_thread = pthread_self();
  pthread_t sender;
  CHECK(pthread_create(&sender, NULL, send_signals, NULL) == 0);
  int status;
  for (int i = 0; i < kCalls; ++i) {
    const pid_t child = started("/bin/sleep", "100", NULL);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
    push_out(200000);
  }
  is_over = 1;
  CHECK(pthread_join(sender, NULL) == 0);
  CHECK(!is_late);
  const pid_t child = started("/bin/sh", "-c", "kill -USR2 $$; exit 3");
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2);
  puts("in time");
  return 0;
}
