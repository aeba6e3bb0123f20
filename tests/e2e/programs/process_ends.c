// How a process ends while other threads miss: by exit with handlers that touch spilled memory, _exit, quick_exit, abort,
// a fault, a signal, the last thread's end; and how threads end: destructors, pthread_exit from a handler.
// flags: -pthread
// levels: O2
// pages: 4K 16K
// case: exit => 3
// case: _exit => 4
// case: quick => 5
// case: abort => 134
// case: fault => 139
// case: term => 143
// case: thread-exit => 6
// case: last => 0
// case: handler => 0
// case: jumps => 0
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 400000 };

static unsigned* data;
static pthread_key_t key;
static volatile int destroyed;
static sigjmp_buf outer, inner;
static volatile int ticks;
static volatile int leavable;

static void touch_all(void) {
  unsigned sum = 0;
  for (int i = 0; i < kWords; i += 500) sum += data[i] != 0xffffffff;
  CHECK(sum == kWords / 500);
}

static void* thrash(void* seed) {
  uint64_t random = (uint64_t)seed;
  for (;;) data[next_random(&random) % kWords] |= 1;
}

static void at_end(void) {
  touch_all();
  printf("end\n");
}
static void at_quick_end(void) {
  touch_all();
  printf("quick end\n");
  fflush(stdout);
}

static void destroy(void* value) {
  unsigned* own = value;
  CHECK(own[0] == 77);
  touch_all();
  // The heap has taken the thread's caches apart by now; what is allocated here is a block all the same.
  unsigned* zeros = calloc(kWords / 4, 4);
  HIDE(zeros);
  CHECK(zeros != NULL);
  for (int i = 0; i < kWords / 4; i += 100) CHECK(zeros[i] == 0);
  own = realloc(own, 50000);
  CHECK(own != NULL && own[0] == 77);
  own[12499] = 78;
  HIDE(own);
  free(zeros);
  free(own);
  ++destroyed;
}

static void* with_destructor(void* unused) {
  unsigned* own = malloc(5000);
  own[0] = 77;
  pthread_setspecific(key, own);
  return unused;
}

static void* end_process(void* unused) {
  exit(6);
  return unused;
}

static void* live_on(void* unused) {
  pthread_detach(pthread_self());
  usleep(100000);
  touch_all();
  printf("last\n");
  return unused;
}

static void leave_thread(int number) {
  (void)number;
  touch_all();
  pthread_exit((void*)7L);
}

static void* wait_for_leave(void* unused) {
  with_destructor(NULL);
  // Not before: pthread_exit from a handler may interrupt neither malloc nor pthread_setspecific.
  leavable = 1;
  for (;;) touch_all();
  return unused;
}

static void jump_inner(int number) {
  (void)number;
  touch_all();
  siglongjmp(inner, 1);
}

static void jump_outer(int number) {
  (void)number;
  if (sigsetjmp(inner, 1) == 0) raise(SIGUSR2);
  touch_all();
  siglongjmp(outer, 1);
}

static void tick(int number) {
  (void)number;
  data[++ticks % kWords] |= 1;
  siglongjmp(outer, 1);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  setvbuf(stdout, NULL, _IOLBF, 0);
  data = calloc(kWords, 4);
  CHECK_SPILLED(data);
  pthread_key_create(&key, destroy);
  pthread_t threads[3], thread;
  const char* what = argv[1];
  if (strcmp(what, "last") != 0)
    for (long i = 0; i < 3; ++i) CHECK(pthread_create(&threads[i], NULL, thrash, (void*)i) == 0);
  atexit(at_end);
  at_quick_exit(at_quick_end);
  for (int i = 0; i < 5; ++i) {
    CHECK(pthread_create(&thread, NULL, with_destructor, NULL) == 0);
    pthread_join(thread, NULL);
  }
  CHECK(destroyed == 5);
  usleep(20000);
  if (strcmp(what, "exit") == 0) exit(3);
  if (strcmp(what, "_exit") == 0) _exit(4);
  if (strcmp(what, "quick") == 0) quick_exit(5);
  if (strcmp(what, "abort") == 0) abort();
  if (strcmp(what, "fault") == 0) *(volatile int*)8 = 1;
  if (strcmp(what, "term") == 0) kill(getpid(), SIGTERM), pause();
  if (strcmp(what, "thread-exit") == 0) {
    pthread_create(&thread, NULL, end_process, NULL);
    pause();
  }
  if (strcmp(what, "last") == 0) {
    pthread_create(&thread, NULL, live_on, NULL);
    pthread_exit(NULL);
  }
  if (strcmp(what, "handler") == 0) {
    signal(SIGUSR1, leave_thread);
    for (int i = 0; i < 20; ++i) {
      void* result;
      leavable = 0;
      CHECK(pthread_create(&thread, NULL, wait_for_leave, NULL) == 0);
      while (!leavable) usleep(1000);
      usleep(5000);
      pthread_kill(thread, SIGUSR1);
      CHECK(pthread_join(thread, &result) == 0 && result == (void*)7L);
    }
    CHECK(destroyed == 25);
  }
  if (strcmp(what, "jumps") == 0) {
    signal(SIGUSR1, jump_outer);
    signal(SIGUSR2, jump_inner);
    for (int i = 0; i < 30; ++i)
      if (sigsetjmp(outer, 1) == 0) raise(SIGUSR1);
    struct sigaction action = {.sa_handler = tick};
    sigaction(SIGALRM, &action, NULL);
    // One at a time: the next could come before the jump has left the stack.
    struct itimerval soon = {{0, 0}, {0, 500}};
    sigsetjmp(outer, 1);
    if (ticks < 30) setitimer(ITIMER_REAL, &soon, NULL);
    while (ticks < 30) touch_all();
  }
  return 0;
}
