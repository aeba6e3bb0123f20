// A timer that calls the program in a thread goes on when all of the program's own threads have ended.
// flags: -pthread
// levels: O2
// pages: 4K
// chaos: 1
// case: => 9
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "e2e.h"

static char* kept;

static void end(union sigval status) {
  printf("in time: %s\n", kept);
  exit(status.sival_int);
}

int main(void) {
  kept = strdup("kept");
  push_out(3 << 20);
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 9};
  event.sigev_notify_function = end;
  const struct itimerspec soon = {.it_value.tv_nsec = 50000000};
  timer_t timer;
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &soon, NULL) == 0);
  pthread_exit(NULL);
}
