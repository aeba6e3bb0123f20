// loader LIBRARY: what a library held is gone with it, and other memory may lie where it lay.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static volatile int stop;
static int* shared;
// A thread whose hazard slots still name the library's memory when that goes.
static void* hold(void* argument) {
  (void)argument;
  volatile int sum = 0;
  for (int i = 0; i < 200000; i += 7) sum += shared[i];
  __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&stop, __ATOMIC_SEQ_CST) != 2) {
  }
  return NULL;
}

int main(int count, char** arguments) {
  (void)count;
  for (int round = 0; round < 4; ++round) {
    void* library = dlopen(arguments[1], RTLD_NOW);
    if (library == NULL) return puts(dlerror()), 1;
    int (*step)(int) = (int (*)(int))dlsym(library, "step");
    shared = (int*)dlsym(library, "values");
    printf("%d %d %d\n", step(1), step(round), shared[199999]);
    pthread_t thread;
    stop = 0;
    pthread_create(&thread, NULL, hold, NULL);
    while (__atomic_load_n(&stop, __ATOMIC_SEQ_CST) != 1) {
    }
    if (round == 2) {  // twice open: stays
      dlopen(arguments[1], RTLD_NOW);
      dlclose(library);
      printf("%d\n", shared[1]);
    }
    dlclose(library);
    // Plain memory takes the place.
    char* place = (char*)((unsigned long)shared & ~4095ul);
    char* mapped = mmap(place, 1 << 18, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_STACK, -1, 0);
    if (mapped != place) return puts("not mapped"), 1;
    int zeros = 0;
    for (int i = 0; i < 1 << 18; ++i) zeros += mapped[i] == 0;
    memset(mapped, 5, 1 << 18);
    printf("%d %d\n", zeros, mapped[100000]);
    munmap(mapped, 1 << 18);
    stop = 2;
    pthread_join(thread, NULL);
  }
  puts("done");
  fflush(stdout);
  return 0;
}
