// A thread that runs finds its id where its maker wants it, in plain and in spilled memory: storing it is slow here.
// flags: -pthread
// levels: O2
// chaos: 1
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <threads.h>
#include <unistd.h>

#include "e2e.h"

enum { kPage = 4096, kBytes = 1 << 20 };

static char plain[2 * kPage];
static char* page;

// What stores the id waits here, while others can read what is there.
static void allow(int number) {
  usleep(50000);
  CHECK(number == SIGSEGV && mprotect(page, kPage, PROT_READ | PROT_WRITE) == 0);
}

static void* look(void* id) {
  CHECK(pthread_equal(*(volatile pthread_t*)id, pthread_self()));
  return id;
}
static int look_standard(void* id) {
  CHECK(thrd_equal(*(volatile thrd_t*)id, thrd_current()));
  return 7;
}

static void check(char* memory) {
  page = memory;
  void* result;
  memset(page, 0, kPage);
  CHECK(mprotect(page, kPage, PROT_READ) == 0);
  pthread_t* id = (pthread_t*)(page + 64);
  CHECK(pthread_create(id, NULL, look, id) == 0);
  CHECK(pthread_join(*id, &result) == 0 && result == id);
  memset(page, 0, kPage);
  CHECK(mprotect(page, kPage, PROT_READ) == 0);
  thrd_t* standard = (thrd_t*)(page + 128);
  int status;
  CHECK(thrd_create(standard, look_standard, standard) == thrd_success);
  CHECK(thrd_join(*standard, &status) == thrd_success && status == 7);
}

int main(void) {
  push_out(2 << 20);
  CHECK(signal(SIGSEGV, allow) != SIG_ERR);
  check((char*)(((uintptr_t)plain + kPage - 1) & ~(uintptr_t)(kPage - 1)));
  char* spilled = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(spilled != MAP_FAILED);
  CHECK_SPILLED(spilled);
  check(spilled);
  puts("ids");
  return 0;
}
