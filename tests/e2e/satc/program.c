// program ACCESSES PAGES [fork|daemon|threads|budget MIB...]: adds to a word of one page after the other, and says how often it did. fork,
// daemon: then makes a child, and says what came of it. threads: in so many threads, one after the other. budget: then asks for these
// budgets, and says what came of it.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../include/spillway/spill.h"

static unsigned long accesses, pages;
static unsigned long* words;

static void* work(void* unused) {
  (void)unused;
  for (unsigned long i = 0; i < accesses; ++i) {
    words[i % pages * 512] += 1;
    __asm__ volatile("" : : : "memory");
  }
  return NULL;
}

int main(int count, char** arguments) {
  accesses = strtoul(arguments[1], NULL, 10);
  pages = strtoul(arguments[2], NULL, 10);
  words = malloc(pages * 4096);
  const char* more = count > 3 ? arguments[3] : "";
  if (strcmp(more, "threads") == 0) {
    for (int i = 0; i < 50; ++i) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0) return 1;
    }
  } else {
    memset(words, 0, pages * 4096);
    work(NULL);
  }
  unsigned long sum = 0;
  for (unsigned long i = 0; i < pages; ++i) sum += words[i * 512];
  printf("%lu\n", sum);
  fflush(stdout);
  if (strcmp(more, "fork") == 0) printf("%s\n", fork() < 0 ? strerror(errno) : "forked");
  if (strcmp(more, "daemon") == 0) printf("%d\n", daemon(1, 1));
  for (int i = 4; i < count && strcmp(more, "budget") == 0; ++i)
    printf("%s\n", strerror(spill_set_memory(strtoul(arguments[i], NULL, 10) << 20)));
  return 0;
}
