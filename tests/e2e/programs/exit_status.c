// However the program ends, its status is its own.
// case: return => 7
// case: exit => 3
// case: exit_thread => 4
// case: _exit => 5
// case: quick_exit => 6
// case: atexit => 8
// case: abort => 134
// case: term => 143
// case: kill => 137
// case: last_thread => 0
// case: large => 1
// pages: 4K 16K
// flags: -pthread
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include "e2e.h"

static char* kept;
static void at_end(void) { printf("at exit: %s\n", kept); }
static void at_end_8(void) { _exit(strcmp(kept, "kept") == 0 ? 8 : 1); }
static void* exit_in_thread(void* status) { exit((int)(long)status); }
static void* finish_later(void* unused) {
  usleep(20000);
  printf("last thread: %s\n", kept);
  return unused;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  kept = strdup("kept");
  push_out(3 << 20);
  atexit(at_end);
  const char* how = argv[1];
  pthread_t thread;
  if (strcmp(how, "return") == 0) return 7;
  if (strcmp(how, "exit") == 0) exit(3);
  if (strcmp(how, "exit_thread") == 0) {
    pthread_create(&thread, NULL, exit_in_thread, (void*)4L);
    pthread_join(thread, NULL);
  }
  if (strcmp(how, "_exit") == 0) _exit(5);
  if (strcmp(how, "quick_exit") == 0) quick_exit(6);
  if (strcmp(how, "atexit") == 0) {
    atexit(at_end_8);
    exit(1);
  }
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "term") == 0) raise(SIGTERM);
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "last_thread") == 0) {
    pthread_create(&thread, NULL, finish_later, NULL);
    pthread_exit(NULL);
  }
  if (strcmp(how, "large") == 0) exit(257);
  return 99;
}
