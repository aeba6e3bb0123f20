// A handler interrupts the beginning of another one, after each of its instructions. A jump inside the interrupted one leaves it on its level of
// slots, or it would go on with those of the code that it has interrupted itself. The process is traced by its parent, which sends the signals.
// levels: O2
// pages: 4K
// chaos: 1
// evictions: none, there is hardly any data
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "e2e.h"

// More than there are instructions of the runtime before those of a handler.
enum { kSteps = 400, kSkipped = 77 };

static volatile int interrupted;
static void** slots;  // the thread's present level; null natively

static void interrupt(int number) {
  (void)number;
  ++interrupted;
}

static void jump_inside(int number) {
  (void)number;
  void* const level = slots != NULL ? *slots : NULL;
  jmp_buf here;
  if (setjmp(here) == 0) longjmp(here, 1);
  CHECK(slots == NULL || *slots == level);
}

static void set_handler(int number, void (*handler)(int)) {
  struct sigaction action = {0};
  action.sa_handler = handler;
  CHECK(sigaction(number, &action, NULL) == 0);
}

// Each breakpoint tells the parent that it may begin.
static void be_traced(void) {
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(kSkipped);
  slots = (void**)dlsym(RTLD_DEFAULT, "__spillway_slots");
  set_handler(SIGUSR1, jump_inside);
  set_handler(SIGUSR2, interrupt);
  for (int steps = 0; steps < kSteps; ++steps) __asm__ volatile("int3");
  CHECK(interrupted > kSteps / 4);  // natively the steps reach later breakpoints, too
  _exit(0);
}

// At each breakpoint sends a signal, lets the child make so many steps, one more each time, and sends the other one. Returns the child's status.
static int trace(pid_t child) {
  int steps = 0, left = -1;  // -1: until the next breakpoint
  for (;;) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFSTOPPED(status)) return status;
    int sent = WSTOPSIG(status);  // its own signals, such as those of page faults, are passed on
    if (sent == SIGTRAP) {
      sent = left == -1 ? SIGUSR1 : left == 0 ? SIGUSR2 : 0;
      left = left == -1 ? steps++ : left - 1;
    }
    CHECK(ptrace(left == -1 ? PTRACE_CONT : PTRACE_SINGLESTEP, child, NULL, sent) == 0);
  }
}

int main(void) {
  char* const data = spilled_zeros(1 << 20);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) be_traced();
  const int status = trace(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped) {
    puts("processes may not trace their children here");
    return kSkipped;
  }
  CHECK(status == 0);
  for (int at = 0; at < 1 << 20; at += 512) CHECK(data[at] == 0);
  puts("all on their levels");
  return 0;
}
