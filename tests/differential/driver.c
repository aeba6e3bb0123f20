// A random program with little data of its own, run ROUNDS times from the same start while a thread takes the memory away.
//
// PROGRAM is a source file with a main. Before each round all variables of static storage become what they were at first. The
// thread walks through more memory than the budget has: what the program has in memory is evicted in the midst of its functions, and lies
// in frames in no order.
#define main program_main
#include PROGRAM
#undef main

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { kRounds = 5, kTakenBytes = 2 << 20, kOsPageBytes = 4096 };
extern char __data_start[], end[];  // of all initialised and zeroed variables of this program

static void* take_memory(void* argument) {
  atomic_bool* stop = argument;
  volatile char* taken = malloc(kTakenBytes);
  for (size_t at = 0; !atomic_load(stop); at = (at + kOsPageBytes) % kTakenBytes) ++taken[at];
  free((void*)taken);
  return NULL;
}

// Not inlined, and called through a pointer that nobody knows: the optimiser is not told that variables change between the rounds.
int main(int count, char** arguments) {
  int (*volatile run)() = program_main;
  char* volatile begin = __data_start;
  const size_t bytes = (size_t)(end - __data_start);
  char* kept = malloc(bytes);
  memcpy(kept, begin, bytes);
  for (int round = 0; round < kRounds; ++round) {
    atomic_bool stop = 0;
    pthread_t taker;
    if (pthread_create(&taker, NULL, take_memory, &stop) != 0) return 99;
    const int status = run(count, arguments);
    atomic_store(&stop, 1);
    pthread_join(taker, NULL);
    if (status != 0) return status;
    memcpy(begin, kept, bytes);
  }
  return 0;
}
