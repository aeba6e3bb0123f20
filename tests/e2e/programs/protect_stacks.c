// Stacks that the program makes, with a page below them that nobody may touch: what overflows is caught there, on a stack
// for signal handlers that has such a page too.
// flags: -pthread
// case: thread
// case: context
// case: reserved
// memory: 2560K
// pages: 16K 4K
// chaos: 2
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "e2e.h"

#define P 4096
#define RW (PROT_READ | PROT_WRITE)
enum { kStackBytes = 128 << 10 };

static char* stack;  // its lowest page is protected
static sigjmp_buf back;
static volatile int overflows;

static void on_fault(int number, siginfo_t* info, void* context) {
  (void)context;
  CHECK(number == SIGSEGV && info->si_code == SEGV_ACCERR);
  CHECK((char*)info->si_addr >= stack && (char*)info->si_addr < stack + P);
  ++overflows;
  siglongjmp(back, 1);
}

static char* make_stack(int reserved) {
  char* memory = mmap(NULL, kStackBytes, reserved ? PROT_NONE : RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK_SPILLED(memory);
  if (reserved)
    CHECK(mprotect(memory + P, kStackBytes - P, RW) == 0);
  else
    CHECK(mprotect(memory, P, PROT_NONE) == 0);
  return memory;
}
static void use_alternate_stack(int reserved) {
  char* memory = make_stack(reserved);
  stack_t alternate = {.ss_sp = memory + P, .ss_size = kStackBytes - P};
  CHECK(sigaltstack(&alternate, NULL) == 0);
}

__attribute__((noinline)) static unsigned deeper(unsigned depth) {
  volatile char local[2000];
  local[0] = (char)depth;
  const unsigned below = depth > 0 ? deeper(depth - 1) : 0;
  return below + (unsigned)local[0] % 2;
}
static void work(void) {
  CHECK(deeper(40) == 20);
  push_out(2 << 20);
  if (sigsetjmp(back, 1) == 0) {
    deeper(100000);
    CHECK(0);
  }
  CHECK(deeper(40) == 20);
}
static void* in_thread(void* reserved) {
  use_alternate_stack(reserved != NULL);
  work();
  stack_t none = {.ss_flags = SS_DISABLE};
  CHECK(sigaltstack(&none, NULL) == 0);
  return NULL;
}
static void run_thread(int reserved) {
  pthread_t thread;
  pthread_attr_t attributes;
  CHECK(pthread_attr_init(&attributes) == 0);
  // All of it, or without the page: the C library does not care.
  CHECK(pthread_attr_setstack(&attributes, stack, kStackBytes) == 0);
  CHECK(pthread_create(&thread, &attributes, in_thread, reserved ? stack : NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

static ucontext_t main_context, other_context;
static void run_context(void) {
  use_alternate_stack(0);
  CHECK(getcontext(&other_context) == 0);
  other_context.uc_stack.ss_sp = stack + P;
  other_context.uc_stack.ss_size = kStackBytes - P;
  other_context.uc_link = &main_context;
  makecontext(&other_context, work, 0);
  CHECK(swapcontext(&main_context, &other_context) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    // The page is protected there too, and may be another one by now.
    CHECK(mprotect(stack, P, RW) == 0 && mprotect(stack, 2 * P, PROT_NONE) == 0 &&
          mprotect(stack + P, P, RW) == 0);
    CHECK(getcontext(&other_context) == 0);
    other_context.uc_stack.ss_sp = stack + P;
    other_context.uc_stack.ss_size = kStackBytes - P;
    other_context.uc_link = &main_context;
    makecontext(&other_context, work, 0);
    CHECK(swapcontext(&main_context, &other_context) == 0);
    _exit(overflows);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 2);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  const int reserved = strcmp(argv[1], "reserved") == 0;
  stack = make_stack(reserved);
  if (strcmp(argv[1], "context") == 0)
    run_context();
  else
    for (int i = 0; i < 3; ++i) run_thread(reserved);
  printf("%d overflows\n", overflows);
  return 0;
}
