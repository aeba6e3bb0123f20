// What a child of fork changes is its own, and it finds all that its parent had, on storage too, as long as it is
// prompt: it stores, reallocates, frees and passes spilled memory to the kernel and to code that spillcc did not
// compile. So do copies of the process made by other ways than fork.
// case: exec
// case: memory
// case: foreign
// case: kernel
// case: ways
// levels: O2
// chaos: 6
// expect: cache.evictions>=100
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>
#include "e2e.h"

enum { kWords = 400000 };

static unsigned* data;

static int ended(pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void run_exec(char* self) {
  char** arguments = malloc(6 * sizeof *arguments);
  arguments[0] = strdup(self);
  arguments[1] = strdup("again");
  arguments[2] = strdup("xyzzy");
  for (int round = 0; round < 10; ++round) {
    const unsigned place = round * 1000 + 17;
    push_out(2 << 20);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      char* text = malloc(100);
      unsigned before = data[place];
      data[place] = 5;
      snprintf(text, 100, "%u", before + data[place]);
      arguments[3] = text;
      arguments[4] = NULL;
      arguments[2][0] = 'X';
      execv(arguments[0], arguments);
      _exit(99);
    }
    CHECK(ended(child) == 7);
    CHECK(arguments[2][0] == 'x' && data[place] == place * 3);
  }
}

static void run_memory(void) {
  char* small = malloc(3000);
  char* middle = malloc(300000);
  char* large = malloc(3000000);
  char* map = mmap(NULL, 100000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK_SPILLED(map);
  strcpy(small, "hello");
  memset(middle, 7, 300000);
  memset(large, 7, 3000000);
  memset(map, 1, 100000);
  pid_t child = fork();
  if (child == 0) {
    free(large);
    small = realloc(small, 5000);
    small[4999] = 1;
    if (strcmp(small, "hello") != 0) _exit(3);
    middle = realloc(middle, 100);
    middle[5] = 8;
    if (middle[6] != 7) _exit(4);
    if (madvise(map, 8192, MADV_DONTNEED) != 0 || map[0] != 0 || map[8191] != 0 || map[8192] != 1) _exit(5);
    if (munmap(map, 100000) != 0) _exit(6);
    char* zeros = calloc(1000, 100);
    for (int i = 0; i < 100000; ++i)
      if (zeros[i] != 0) _exit(7);
    _exit(0);
  }
  CHECK(ended(child) == 0);
  CHECK(strcmp(small, "hello") == 0 && middle[5] == 7 && middle[299999] == 7);
  CHECK(large[0] == 7 && large[2999999] == 7 && map[0] == 1 && map[8191] == 1);
}

static void run_foreign(void) {
  wchar_t* text = malloc(5000 * sizeof *text);
  CHECK_SPILLED(text);
  wmemset(text, L'a', 4999);
  text[4999] = 0;
  for (int round = 0; round < 4; ++round) {
    if (round % 2 == 0) push_out(3 << 20);
    pid_t child = fork();
    if (child == 0) {
      if (wcslen(text) != 4999) _exit(3);
      text[100] = 0;  // compiled code and the library see the same
      if (wcslen(text) != 100) _exit(4);
      wmemset(text, L'b', 10);
      if (text[9] != L'b' || text[10] != L'a') _exit(5);
      _exit(0);
    }
    CHECK(ended(child) == 0);
    CHECK(wcslen(text) == 4999 && text[9] == L'a');
  }
}

static void run_kernel(void) {
  int file = open(".", O_TMPFILE | O_RDWR, 0600);
  CHECK(file >= 0);
  push_out(3 << 20);
  pid_t child = fork();
  if (child == 0) {
    if (pwrite(file, data, 200000, 0) != 200000) _exit(3);
    if (pread(file, data + 100000, 200000, 0) != 200000) _exit(4);
    if (data[100001] != 3) _exit(5);
    _exit(0);
  }
  CHECK(ended(child) == 0);
  unsigned copy[50];
  CHECK(pread(file, copy, sizeof copy, 190000) == sizeof copy && copy[49] == (190000 / 4 + 49) * 3);
}

static int change(void* unused) {
  (void)unused;
  data[kWords - 1] = 77;
  data[5] = 78;
  free(data);
  _exit(data == NULL);
}

static void run_ways(void) {
  static char stack[1 << 16];
  for (int way = 0; way < 4; ++way) {
    pid_t child = way == 0   ? _Fork()
                  : way == 1 ? syscall(SYS_fork)
                  : way == 2 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
                             : clone(change, stack + sizeof stack, SIGCHLD, NULL);
    if (child == 0) change(NULL);
    CHECK(ended(child) == 0);
    for (unsigned i = 0; i < kWords; ++i) CHECK(data[i] == i * 3);
  }
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "again") == 0) {
    printf("child %s %s\n", argv[2], argv[3]);
    return 7;
  }
  CHECK(argc == 2);
  data = malloc(kWords * 4);
  CHECK_SPILLED(data);
  for (unsigned i = 0; i < kWords; ++i) data[i] = i * 3;
  switch (argv[1][0]) {
    case 'e': run_exec(argv[0]); break;
    case 'm': run_memory(); break;
    case 'f': run_foreign(); break;
    case 'k': run_kernel(); break;
    case 'w': run_ways(); break;
  }
  for (int round = 0; round < 2; ++round)
    for (unsigned i = 0; i < kWords; ++i) CHECK(data[i] == i * 3);
  printf("%s\n", argv[1]);
  return 0;
}
