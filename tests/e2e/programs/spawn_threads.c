// system() and popen() in several threads at once, with an environment of the program's own making in spilled memory.
// flags: -pthread
// levels: O2
// pages: 4K
// chaos: 1
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "e2e.h"

enum { kThreads = 3, kCalls = 20 };

static char* text(const char* from) {
  char* copied = strdup(from);
  CHECK_SPILLED(copied);
  return copied;
}

static void* call(void* unused) {
  for (int i = 0; i < kCalls; ++i) {
    CHECK(system("test \"$SPILLED\" = 'in the environment'") == 0);
    char answer[100];
    FILE* const stream = popen("echo \"$SPILLED\"", "r");
    CHECK(stream != NULL && fgets(answer, sizeof answer, stream) == answer);
    CHECK(strcmp(answer, "in the environment\n") == 0 && pclose(stream) == 0);
    const char* const found = getenv("SPILLED");
    CHECK(system(NULL) != 0 && strcmp(found, "in the environment") == 0);
  }
  return unused;
}

int main(void) {
  push_out(3 << 20);
  char** const environment = calloc(3, sizeof(char*));
  environment[0] = text("SPILLED=in the environment");
  environment[1] = text("PATH=/usr/bin:/bin");
  environ = environment;
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, call, NULL) == 0);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(environ == environment);
  puts("threads");
  return 0;
}
