// A child of fork does again what another thread of its parent was just doing once (pthread_once), as with the C library.
// flags: -pthread
// levels: O2
// pages: 4K
#include <pthread.h>
#include <unistd.h>
#include "e2e.h"

static pthread_once_t* once;
static volatile int runs, has_begun, may_end;

static void routine(void) {
  if (++runs > 1) return;
  has_begun = 1;
  while (!may_end) usleep(1000);
}
static void* do_once(void* unused) {
  (void)unused;
  CHECK(pthread_once(once, routine) == 0);
  return NULL;
}

int main(void) {
  once = spilled_zeros(sizeof *once);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, do_once, NULL) == 0);
  while (!has_begun) usleep(1000);
  push_out(3 << 20);
  const pid_t child = fork();
  if (child == 0) {
    alarm(200);
    for (int i = 0; i < 2; ++i)
      if (pthread_once(once, routine) != 0 || runs != 2) _exit(3);
    _exit(0);
  }
  expect_end(child);
  may_end = 1;
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(pthread_once(once, routine) == 0 && runs == 1);
  puts("ok");
  return 0;
}
