// A program's own SIGSEGV handler gets the faults that are its own (its protected pages, null pointers) with
// their natural address, while spilled memory faults in library code all the time; and every way of
// setting a handler has its natural effect.
// case: protected
// case: null
// case: info
// case: reset => 139
// case: nodefer
// case: signal
// case: sysv => 139
// case: ignored => 139
// case: default => 139
// case: raise => 139
// case: kill => 139
// case: raise_handled
// case: blocked_raise
// case: blocked_wait
// case: bus
// case: old_action
// case: in_handler
// chaos: 2
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

static sigjmp_buf back;
static char* protected_page;
static volatile int faults;
static volatile uintptr_t fault_address;
static volatile int fault_code;
static char* spilled;

static void unprotect(int number, siginfo_t* info, void* context) {
  (void)context;
  CHECK(number == SIGSEGV);
  CHECK((char*)info->si_addr >= protected_page && (char*)info->si_addr < protected_page + 4096);
  CHECK(info->si_code == SEGV_ACCERR);
  ++faults;
  CHECK(mprotect(protected_page, 4096, PROT_READ | PROT_WRITE) == 0);
  spilled[(faults * 4099) % (2 << 20)] = 'h';
}
static void jump(int number, siginfo_t* info, void* context) {
  (void)context;
  fault_address = (uintptr_t)info->si_addr;
  fault_code = info->si_code;
  ++faults;
  siglongjmp(back, number);
}
static void jump_plainly(int number) {
  ++faults;
  siglongjmp(back, number);
}
static void count(int number) {
  (void)number;
  ++faults;
}
static void set(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action = {0};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  CHECK(sigaction(number, &action, NULL) == 0);
}

// Code that spillcc did not compile faults on spilled pages: they are not the program's.
static void foreign_touch(char* address) {
  for (size_t i = 0; i < 64; ++i) foreign_increment(address + i * 20000);
}
static int* null(void) {
  int* pointer = NULL;
  HIDE(pointer);
  return pointer;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  const char* what = argv[1];
  spilled = calloc(2 << 20, 1);
  CHECK_SPILLED(spilled);
  protected_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  foreign_touch(spilled);
  if (strcmp(what, "protected") == 0) {
    set(SIGSEGV, unprotect, 0);
    for (int round = 1; round <= 50; ++round) {
      CHECK(mprotect(protected_page, 4096, PROT_NONE) == 0);
      foreign_touch(spilled + round);
      *(volatile char*)protected_page = (char)round;
      CHECK(faults == round);
      push_out(100000);
    }
    for (size_t i = 0; i < 50; ++i) CHECK(spilled[((i + 1) * 4099) % (2 << 20)] == 'h');
    printf("%d faults\n", faults);
  } else if (strcmp(what, "null") == 0) {
    set(SIGSEGV, jump, 0);
    for (volatile int round = 0; round < 100; ++round) {
      if (sigsetjmp(back, 1) == 0) {
        null()[round] = 1;
        CHECK(0);
      }
      CHECK(fault_address == (uintptr_t)round * 4 && fault_code == SEGV_MAPERR);
      foreign_touch(spilled + round);
      push_out(50000);
    }
    char sum = 0;
    for (size_t i = 0; i < 64; ++i) sum += spilled[i * 20000 + 5];
    printf("%d faults %d\n", faults, sum);
  } else if (strcmp(what, "info") == 0) {
    set(SIGSEGV, jump, 0);
    char* unmapped = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sigsetjmp(back, 1) == 0) unmapped[4100] = 1;
    CHECK(fault_address == (uintptr_t)unmapped + 4100 && fault_code == SEGV_ACCERR);
    munmap(unmapped, 8192);
    if (sigsetjmp(back, 1) == 0) printf("%d", *(volatile char*)(unmapped + 77));
    CHECK(fault_address == (uintptr_t)unmapped + 77 && fault_code == SEGV_MAPERR);
    if (sigsetjmp(back, 1) == 0) raise(SIGSEGV);
    CHECK(fault_code == SI_TKILL);
    printf("%d faults\n", faults);
  } else if (strcmp(what, "reset") == 0) {
    set(SIGSEGV, jump, SA_RESETHAND);
    if (sigsetjmp(back, 1) == 0) *null() = 1;
    CHECK(faults == 1);
    foreign_touch(spilled);
    *null() = 2;
  } else if (strcmp(what, "nodefer") == 0) {
    set(SIGSEGV, jump, SA_NODEFER);
    for (volatile int round = 0; round < 5; ++round)
      if (sigsetjmp(back, 0) == 0) *null() = 1;  // the mask is not restored, and need not be
    printf("%d faults\n", faults);
  } else if (strcmp(what, "signal") == 0) {
    CHECK(signal(SIGSEGV, jump_plainly) == SIG_DFL);
    for (volatile int round = 0; round < 5; ++round)
      if (sigsetjmp(back, 1) == 0) *null() = 1;
    CHECK(signal(SIGSEGV, SIG_DFL) == jump_plainly);
    printf("%d faults\n", faults);
  } else if (strcmp(what, "sysv") == 0) {
    CHECK(sysv_signal(SIGSEGV, jump_plainly) == SIG_DFL);
    if (sigsetjmp(back, 1) == 0) *null() = 1;
    CHECK(faults == 1);
    *null() = 1;
  } else if (strcmp(what, "ignored") == 0) {
    signal(SIGSEGV, SIG_IGN);
    raise(SIGSEGV);
    foreign_touch(spilled);
    printf("ignored\n");
    fflush(stdout);
    *null() = 1;
  } else if (strcmp(what, "default") == 0) {
    signal(SIGSEGV, jump_plainly);
    signal(SIGSEGV, SIG_DFL);
    foreign_touch(spilled);
    *null() = 1;
  } else if (strcmp(what, "raise") == 0) {
    raise(SIGSEGV);
  } else if (strcmp(what, "kill") == 0) {
    kill(getpid(), SIGSEGV);
  } else if (strcmp(what, "raise_handled") == 0) {
    signal(SIGSEGV, count);
    raise(SIGSEGV);
    raise(SIGSEGV);
    CHECK(faults == 2);
    foreign_touch(spilled);
    printf("%d\n", faults);
  } else if (strcmp(what, "blocked_raise") == 0) {
    signal(SIGSEGV, count);
    sigset_t set_of, pending;
    sigemptyset(&set_of);
    sigaddset(&set_of, SIGSEGV);
    sigprocmask(SIG_BLOCK, &set_of, NULL);
    raise(SIGSEGV);
    CHECK(faults == 0);
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGSEGV) == 1);
    // A child has not been sent it.
    const pid_t child = fork();
    if (child == 0) {
      sigpending(&pending);
      CHECK(sigismember(&pending, SIGSEGV) == 0);
      sigprocmask(SIG_UNBLOCK, &set_of, NULL);
      _exit(faults);
    }
    expect_end(child);
    CHECK(faults == 0);
    sigprocmask(SIG_UNBLOCK, &set_of, NULL);
    CHECK(faults == 1);
    printf("%d\n", faults);
  } else if (strcmp(what, "blocked_wait") == 0) {
    sigset_t* set_of = malloc(sizeof *set_of);
    siginfo_t* info = malloc(sizeof *info);
    int* number = malloc(sizeof *number);
    sigemptyset(set_of);
    sigaddset(set_of, SIGSEGV);
    sigprocmask(SIG_BLOCK, set_of, NULL);
    raise(SIGSEGV);
    CHECK(sigwait(set_of, number) == 0 && *number == SIGSEGV);
    raise(SIGSEGV);
    CHECK(sigwaitinfo(set_of, info) == SIGSEGV && info->si_signo == SIGSEGV && info->si_pid == getpid());
    const struct timespec at_once = {0, 0};
    CHECK(sigtimedwait(set_of, info, &at_once) == -1 && errno == EAGAIN);
    raise(SIGSEGV);
    CHECK(sigtimedwait(set_of, NULL, &at_once) == SIGSEGV);
    sigprocmask(SIG_UNBLOCK, set_of, NULL);
    foreign_touch(spilled);
    printf("waited\n");
  } else if (strcmp(what, "bus") == 0) {
    set(SIGBUS, jump, 0);
    char name[] = "bus-file-XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    char* map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(map != MAP_FAILED);
    if (sigsetjmp(back, 1) == 0) map[4097] = 1;
    CHECK(faults == 1 && fault_address == (uintptr_t)map + 4097 && fault_code == BUS_ADRERR);
    printf("%d\n", faults);
  } else if (strcmp(what, "old_action") == 0) {
    struct sigaction old;
    CHECK(sigaction(SIGSEGV, NULL, &old) == 0);
    CHECK(old.sa_handler == SIG_DFL);
    set(SIGSEGV, jump, SA_ONSTACK | SA_RESTART);
    struct sigaction* on_heap = malloc(sizeof *on_heap);
    CHECK(sigaction(SIGSEGV, NULL, on_heap) == 0);
    CHECK(on_heap->sa_sigaction == jump);
    CHECK((on_heap->sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_RESTART)) ==
          (SA_SIGINFO | SA_ONSTACK | SA_RESTART));
    CHECK(sigaction(SIGSEGV, &old, on_heap) == 0);
    CHECK(on_heap->sa_sigaction == jump);
    CHECK(sigaction(SIGKILL, &old, NULL) == -1 && errno == EINVAL);
    printf("old\n");
  } else if (strcmp(what, "in_handler") == 0) {
    // The handler itself misses, in its own code and in library code.
    signal(SIGUSR1, count);
    set(SIGSEGV, unprotect, 0);
    for (int round = 1; round <= 20; ++round) {
      push_out(1200000);
      CHECK(mprotect(protected_page, 4096, PROT_NONE) == 0);
      raise(SIGUSR1);
      *(volatile char*)protected_page = 1;
    }
    CHECK(faults == 40);
    printf("%d\n", faults);
  }
  return 0;
}
