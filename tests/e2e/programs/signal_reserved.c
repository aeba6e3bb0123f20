// The two signals that the C library keeps for itself, which cancel threads and let setuid() reach all of them, and numbers
// that are no signals: refused by every way to set an action.
// flags: -pthread
// case: loop
// case: ways
// levels: O2
// chaos: 0
// evictions: none, it has no data
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include "e2e.h"

#pragma clang diagnostic ignored "-Wdeprecated-declarations"
void (*bsd_signal(int number, void (*handler)(int)))(int);

static volatile int handled;
static void handle(int number) {
  (void)number;
  ++handled;
}

static void* wait_for_ever(void* unused) {
  for (;;) pause();
  return unused;
}

// What these signals are for works whatever the program tried to set.
static void check_library(void) {
  CHECK(setuid(getuid()) == 0 && setgid(getgid()) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0);
  CHECK(setuid(getuid()) == 0);
  CHECK(pthread_cancel(thread) == 0);
  void* result;
  CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

static void say(const char* call, int number, long result) {
  printf("%s(%d): %ld %s\n", call, number, result, result == -1 ? strerror(errno) : "");
}
#define SAY(call, number, result) (errno = 0, say(call, number, (long)(result)))

int main(int argc, char** argv) {
  CHECK(argc == 2);
  alarm(200);
  if (strcmp(argv[1], "loop") == 0) {
    for (int number = -1; number <= 66; ++number)
      if (number != SIGALRM) SAY("signal", number, signal(number, SIG_DFL));
    check_library();
    return 0;
  }
  const int numbers[] = {-1, 0, 32, 33, SIGRTMIN, 64, 65, SIGKILL, SIGSTOP};
  for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    const int n = numbers[i];
    struct sigaction action = {.sa_handler = handle}, old;
    SAY("sigaction", n, sigaction(n, &action, &old));
    SAY("sigaction, asking", n, sigaction(n, NULL, &old));
    action.sa_handler = SIG_DFL;
    SAY("sigaction, default", n, sigaction(n, &action, NULL));
    SAY("bsd_signal", n, bsd_signal(n, SIG_DFL));
    SAY("ssignal", n, ssignal(n, SIG_DFL));
    SAY("sysv_signal", n, sysv_signal(n, SIG_DFL));
    SAY("signal, error", n, signal(n, SIG_ERR));
    SAY("sysv_signal, error", n, sysv_signal(n, SIG_ERR));
    SAY("sigset", n, sigset(n, SIG_DFL));
    SAY("sigset, hold", n, sigset(n, SIG_HOLD));
    SAY("sigignore", n, sigignore(n));
    SAY("siginterrupt", n, siginterrupt(n, 1));
    SAY("sighold", n, sighold(n));
    SAY("sigrelse", n, sigrelse(n));
  }
  // What siginterrupt said holds for signal() too, and sigset takes no SA_RESTART.
  struct sigaction now;
  signal(SIGRTMIN, handle);
  CHECK(sigaction(SIGRTMIN, NULL, &now) == 0 && (now.sa_flags & SA_RESTART) == 0);
  CHECK(siginterrupt(SIGRTMIN, 0) == 0);
  signal(SIGRTMIN, handle);
  CHECK(sigaction(SIGRTMIN, NULL, &now) == 0 && (now.sa_flags & SA_RESTART) != 0);
  raise(SIGRTMIN);
  CHECK(handled == 1);
  check_library();
  return 0;
}
