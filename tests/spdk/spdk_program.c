// Fills four times its budget, from two threads, and looks at it; "fork": a child looks too; "forever": looks again and again.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kWords = 4 << 20, kThreads = 2 };
static uint64_t* words;

static uint64_t value(uint64_t i) { return i * 0x9e3779b97f4a7c15 ^ (i >> 7); }

static void* fill(void* thread) {
  for (uint64_t i = (uintptr_t)thread; i < kWords; i += kThreads) words[i] = value(i);
  return NULL;
}

static int wrong(void) {
  int count = 0;
  for (uint64_t i = 0; i < kWords; ++i) count += words[i] != value(i);
  return count;
}

int main(int argc, char** argv) {
  words = malloc(kWords * sizeof *words);
  pthread_t threads[kThreads];
  for (uintptr_t t = 0; t < kThreads; ++t) pthread_create(&threads[t], NULL, fill, (void*)t);
  for (int t = 0; t < kThreads; ++t) pthread_join(threads[t], NULL);
  if (argc > 1 && strcmp(argv[1], "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(wrong() ? 1 : 0);
    int status;
    waitpid(child, &status, 0);
    printf("child: %d\n", WEXITSTATUS(status));
  }
  if (argc > 1 && strcmp(argv[1], "forever") == 0) {
    while (wrong() == 0) {
      puts("looked");
      fflush(stdout);
    }
  }
  printf("system: %d\n", system("true"));
  printf("wrong: %d\n", wrong());
}
