// A program that stays: fills spilled memory with words that depend on their place, says where it is, and does what
// standard input asks for.  live MEGABYTES
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t* words;
static size_t count;
static atomic_int stop;

void foreign_cold(volatile char* at);

static uint64_t word(uint64_t i) { return i * 0x9e3779b97f4a7c15 + 1; }

// Loads every word, in an order that the cache does not expect, and stores it again.
static void* work(void* seed) {
  uint64_t state = (uintptr_t)seed;
  while (!atomic_load(&stop)) {
    state = state * 6364136223846793005 + 1442695040888963407;
    volatile uint64_t* at = &words[(state >> 20) % count];
    // Another value for a moment only in the page's last word, which nobody asks about.
    words[((size_t)(at - words) | 511)] ^= state;
    *at = *at;
  }
  return NULL;
}

int main(int argument_count, char** arguments) {
  (void)argument_count;
  const size_t bytes = strtoul(arguments[1], NULL, 10) << 20;
  count = bytes / sizeof *words;
  words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (words == MAP_FAILED) return 1;
  for (size_t i = 0; i < count; ++i) words[i] = word(i);
  printf("%p %zu\n", (void*)words, bytes);
  fflush(stdout);
  pthread_t threads[2];
  char line[100];
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strcmp(line, "work\n") == 0) {
      for (uintptr_t i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, (void*)(i + 1));
    } else if (strcmp(line, "rest\n") == 0) {
      atomic_store(&stop, 1);
      for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    } else if (strcmp(line, "foreign\n") == 0) {
      // Twice changes nothing.
      for (size_t i = 0; i < 2 * (bytes / 4096); ++i) foreign_cold((char*)words + i / 2 * 4096);
    } else if (strcmp(line, "free\n") == 0) {
      munmap(words, bytes);
    } else if (strcmp(line, "fork\n") == 0) {
      // The child answers: until it runs it is its parent's image, and is taken for it.
      const pid_t child = fork();
      if (child < 0) return 1;
      if (child == 0) {
        printf("%d\n", getpid());
        fflush(stdout);
        pause();
        _exit(0);
      }
      continue;
    }
    puts("done");
    fflush(stdout);
  }
  return 0;
}
