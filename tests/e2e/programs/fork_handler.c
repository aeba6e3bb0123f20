// A handler that forks while a system call on spilled memory is under way, which has pinned its pages: the child, too, goes
// on with the call, and finds what was read; also where the memory is a file's, and where somebody wants to write to that file meanwhile.
// And one that forks in the middle of mmap and munmap, which natively are system calls.
// levels: O2
// pages: 4K 16K
// expect: cache.evictions>=100
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "e2e.h"

enum { kBytes = 200000, kWords = 300000, kMapBytes = 1 << 16, kChildren = 40, kWriters = 8 };

static unsigned* data;
static volatile sig_atomic_t forks, is_child;
static char mapped_path[64];

static void make_child(int number) {
  (void)number;
  if (is_child || forks == kChildren) return;
  const pid_t child = fork();
  if (child == 0)
    is_child = 1;
  else if (child > 0)
    ++forks;
}

// The same, once; and somebody wants to write to the file that is mapped, so that the mapping is becoming the kernel's.
static void make_child_beside_writer(int number) {
  if (is_child || forks > 0) return;
  const int writer = open(mapped_path, O_WRONLY | O_NONBLOCK);
  if (writer >= 0) close(writer);
  usleep(5000);
  make_child(number);
}

// In a child: the call that was under way is over. What it read is looked at by the caller.
static void go_on(void) {
  for (unsigned i = 0; i < kWords; i += 100) data[i] += 1;
  for (unsigned i = 0; i < kWords; ++i)
    if (data[i] != i + (i % 100 == 0)) _exit(3);
  _exit(0);
}

static void wait_for_children(void) {
  setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
  for (int n = 0; n < kChildren; ++n) {
    int status;
    CHECK(wait(&status) > 0);
    if (status != 0) printf("status %x\n", status);
    CHECK(status == 0);
  }
}

// A file of these bytes, mapped to be read.
static unsigned char* map_file_of(const unsigned char* bytes) {
  snprintf(mapped_path, sizeof mapped_path, "fork_handler.%d", (int)getpid());
  const int writer = open(mapped_path, O_CREAT | O_EXCL | O_WRONLY, 0600);
  CHECK(writer >= 0 && write(writer, bytes, kBytes) == kBytes && close(writer) == 0);
  const int reader = open(mapped_path, O_RDONLY);
  CHECK(reader >= 0);
  unsigned char* map = mmap(NULL, kBytes, PROT_READ, MAP_SHARED, reader, 0);
  CHECK(map != MAP_FAILED && close(reader) == 0);
  CHECK_SPILLED(map);
  return map;
}

// In a child: the call on such a mapping is over.
static void look_at_file(const unsigned char* map) {
  for (int i = 0; i < kBytes; ++i)
    if (map[i] != (unsigned char)(i * 7 >> 3)) _exit(5);
  _exit(0);
}

int main(void) {
  data = malloc(kWords * sizeof *data);
  CHECK_SPILLED(data);
  for (unsigned i = 0; i < kWords; ++i) data[i] = i;
  unsigned char* block = malloc(kBytes);
  CHECK_SPILLED(block);
  FILE* file = tmpfile();
  CHECK(file != NULL);
  const int descriptor = fileno(file);
  for (int i = 0; i < kBytes; ++i) block[i] = (unsigned char)(i * 7 >> 3);
  CHECK(pwrite(descriptor, block, kBytes, 0) == kBytes);
  struct sigaction action = {0};
  action.sa_handler = make_child;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 3000}, {0, 3000}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  while (forks < kChildren) {
    memset(block, 0, kBytes);
    CHECK(pread(descriptor, block, kBytes, 0) == kBytes);
    if (is_child) setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    for (int i = 0; i < kBytes; ++i)
      if (block[i] != (unsigned char)(i * 7 >> 3)) _exit(4);
    if (is_child) go_on();
  }
  wait_for_children();
  forks = 0;
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  while (forks < kChildren) {
    void* zeros = mmap(NULL, kMapBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(zeros != MAP_FAILED && munmap(zeros, kMapBytes) == 0);
    if (is_child) _exit(0);
  }
  wait_for_children();
  unsigned char* map = map_file_of(block);
  forks = 0;
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  while (forks < kChildren) {
    CHECK(pwrite(descriptor, map, kBytes, 0) == kBytes);
    if (is_child) look_at_file(map);
  }
  wait_for_children();
  CHECK(unlink(mapped_path) == 0);
  action.sa_handler = make_child_beside_writer;
  sigaction(SIGALRM, &action, NULL);
  for (int round = 0; round < kWriters; ++round) {
    map = map_file_of(block);
    forks = 0;
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (forks == 0) {
      CHECK(pwrite(descriptor, map, kBytes, 0) == kBytes);
      if (is_child) look_at_file(map);
    }
    CHECK(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL) == 0);
    int status;
    CHECK(wait(&status) > 0 && status == 0);
    CHECK(munmap(map, kBytes) == 0 && unlink(mapped_path) == 0);
  }
  printf("ok\n");
  return 0;
}
