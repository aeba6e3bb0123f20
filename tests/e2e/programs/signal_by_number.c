// rt_sigaction by its number, in and from spilled memory: the handlers are the program's, and the runtime's stay.
// levels: O0 O2
// chaos: 0
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>
#include "e2e.h"

// The kernel's, which is not the C library's.
struct action {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)(void);
  uint64_t mask;
};
enum { kRestorer = 0x04000000 };

__asm__(
    "restore_frame:\n"
    "  movq $15, %rax\n"
    "  syscall\n");
extern void restore_frame(void);

static volatile int handled;
static void* volatile fault_address;
static sigset_t during;
static sigjmp_buf back;
static wchar_t* text;

static void handle(int number, siginfo_t* info, void* context) {
  (void)context;
  handled += number;
  CHECK(info->si_signo == number);
  CHECK(sigprocmask(SIG_BLOCK, NULL, &during) == 0);
}
static void on_fault(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  fault_address = info->si_addr;
  siglongjmp(back, 1);
}

static long set(int number, void (*handler)(int, siginfo_t*, void*), unsigned long flags, uint64_t mask) {
  struct action* action = malloc(sizeof *action);
  CHECK_SPILLED(action);
  *action = (struct action){handler, flags | kRestorer, restore_frame, mask};
  const long result = syscall(SYS_rt_sigaction, number, action, NULL, 8);
  free(action);
  return result;
}
static struct action* get(int number) {
  struct action* action = calloc(1, sizeof *action);
  CHECK(syscall(SYS_rt_sigaction, number, NULL, action, 8) == 0);
  return action;
}

// The C library, which spillcc did not compile, reads spilled memory.
static void check_reads(void) {
  push_out(3 << 20);
  CHECK(wcslen(text) == 29999);
}

int main(void) {
  text = malloc(30000 * sizeof *text);
  CHECK_SPILLED(text);
  for (int i = 0; i < 29999; ++i) text[i] = 'a';
  text[29999] = 0;
  check_reads();

  CHECK(set(SIGUSR1, handle, SA_SIGINFO, 1ull << (SIGUSR2 - 1)) == 0);
  raise(SIGUSR1);
  CHECK(handled == SIGUSR1 && sigismember(&during, SIGUSR1) == 1 && sigismember(&during, SIGUSR2) == 1);
  CHECK(sigismember(&during, SIGALRM) == 0);
  struct action* now = get(SIGUSR1);
  CHECK(now->handler == handle && (now->flags & SA_SIGINFO) != 0 && now->mask == 1ull << (SIGUSR2 - 1));
  struct sigaction known;
  CHECK(sigaction(SIGUSR1, NULL, &known) == 0 && known.sa_sigaction == handle);
  CHECK(sigismember(&known.sa_mask, SIGUSR2) == 1);

  // Faults are the runtime's first, whatever the program sets.
  for (int round = 0; round < 3; ++round) {
    CHECK(set(SIGSEGV, round == 1 ? (void (*)(int, siginfo_t*, void*))SIG_DFL : on_fault, SA_SIGINFO, 0) ==
          0);
    CHECK(set(SIGBUS, on_fault, SA_SIGINFO, 0) == 0);
    check_reads();
    now = get(SIGSEGV);
    CHECK(now->handler == (round == 1 ? (void (*)(int, siginfo_t*, void*))SIG_DFL : on_fault));
  }
  volatile int* wrong = (int*)0x12340;
  HIDE(wrong);
  if (sigsetjmp(back, 1) == 0) *wrong = 1;
  CHECK(fault_address == (void*)0x12340);
  check_reads();

  // Old and new in one call, once only, ignored, refused.
  struct action* both = calloc(2, sizeof *both);
  both[0] = (struct action){handle, SA_SIGINFO | SA_RESETHAND | kRestorer, restore_frame, 0};
  CHECK(syscall(SYS_rt_sigaction, SIGUSR1, &both[0], &both[1], 8) == 0 && both[1].handler == handle);
  handled = 0;
  raise(SIGUSR1);
  CHECK(handled == SIGUSR1 && get(SIGUSR1)->handler == NULL);
  CHECK(set(SIGUSR2, (void (*)(int, siginfo_t*, void*))SIG_IGN, 0, 0) == 0);
  raise(SIGUSR2);
  CHECK(sigaction(SIGUSR2, NULL, &known) == 0 && known.sa_handler == SIG_IGN);
  CHECK(set(SIGKILL, handle, 0, 0) == -1 && errno == EINVAL);
  CHECK(set(65, handle, 0, 0) == -1 && errno == EINVAL);
  CHECK(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 4) == -1 && errno == EINVAL);
  CHECK(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 8) == 0);
  printf("set by number\n");
  return 0;
}
