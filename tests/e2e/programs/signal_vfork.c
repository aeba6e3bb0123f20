// Actions that a child of vfork sets are its own: its parent, whose memory it runs in, keeps what it had.
// levels: O0 O2
// chaos: 0
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>
#include "e2e.h"

static volatile int handled, by_child;
static wchar_t* text;
static volatile size_t measured;
extern char** environ;

static void handle(int number) {
  (void)number;
  ++handled;
}
static void handle_in_child(int number) {
  (void)number;
  ++by_child;
}
static void leave(int number) { _exit(number); }

static void set(int number, void (*handler)(int), int flags) {
  struct sigaction action = {0};
  action.sa_handler = handler;
  action.sa_flags = flags;
  CHECK(sigaction(number, &action, NULL) == 0);
}
static void (*current(int number))(int) {
  struct sigaction action;
  return sigaction(number, NULL, &action) == 0 ? action.sa_handler : SIG_ERR;
}
static int end_of(pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
// The parent is as before.
static void check_parent(void) {
  const int before = handled;
  raise(SIGUSR1);
  CHECK(handled == before + 1 && current(SIGUSR1) == handle);
  CHECK(current(SIGUSR2) == SIG_DFL && current(SIGSEGV) == leave && current(SIGWINCH) == SIG_DFL);
}

#define IN_CHILD(...)      \
  ({                       \
    pid_t child = vfork(); \
    if (child == 0) {      \
      __VA_ARGS__;         \
    }                      \
    end_of(child);         \
  })
#define EXEC(command) execl("/bin/sh", "sh", "-c", command, (char*)NULL)

static int cloned(void* unused) {
  (void)unused;
  if (current(SIGUSR1) != handle) return 1;
  signal(SIGUSR1, SIG_DFL);
  signal(SIGUSR2, handle_in_child);
  raise(SIGUSR2);
  return by_child == 2 && current(SIGUSR1) == SIG_DFL ? 0 : 2;
}

int main(void) {
  text = malloc(30000 * sizeof *text);
  CHECK_SPILLED(text);
  for (int i = 0; i < 29999; ++i) text[i] = 'a';
  text[29999] = 0;
  set(SIGUSR1, handle, SA_RESTART);
  set(SIGSEGV, leave, 0);
  check_parent();

  // Back to the default, as shells and libraries do.
  printf("default: %d\n",
         IN_CHILD(signal(SIGUSR1, SIG_DFL), signal(SIGSEGV, SIG_DFL), EXEC("true"), _exit(99)));
  check_parent();
  printf("killed: %d\n", IN_CHILD(signal(SIGUSR1, SIG_DFL), raise(SIGUSR1), _exit(99)));
  check_parent();
  printf("ignored: %d\n", IN_CHILD(signal(SIGUSR1, SIG_IGN), EXEC("kill -USR1 $$; exit 5"), _exit(99)));
  check_parent();
  printf("handler is lost: %d\n",
         IN_CHILD(signal(SIGUSR2, handle_in_child), EXEC("kill -USR2 $$; exit 5"), _exit(99)));
  check_parent();

  // What it asks for is its own, first its parent's.
  printf("asks: %d\n", IN_CHILD({
           if (current(SIGUSR1) != handle || current(SIGUSR2) != SIG_DFL || current(SIGSEGV) != leave)
             _exit(1);
           if (signal(SIGUSR1, SIG_IGN) != handle || current(SIGUSR1) != SIG_IGN) _exit(2);
           raise(SIGUSR1);
           if (signal(SIGUSR1, SIG_DFL) != SIG_IGN || current(SIGUSR1) != SIG_DFL) _exit(3);
           if (signal(SIGSEGV, SIG_DFL) != leave || current(SIGSEGV) != SIG_DFL) _exit(4);
           _exit(0);
         }));
  check_parent();

  // Handlers run in it: its parent's, and its own.
  handled = 0;
  printf("handles: %d\n", IN_CHILD({
           raise(SIGUSR1);
           if (handled != 1) _exit(1);
           set(SIGUSR1, handle_in_child, (int)SA_RESETHAND);
           raise(SIGUSR1);
           if (handled != 1 || by_child != 1 || current(SIGUSR1) != SIG_DFL) _exit(2);
           _exit(0);
         }));
  check_parent();

  // Faults: code that spillcc did not compile reads spilled memory in it, and its own ends it or is handled.
  push_out(3 << 20);
  printf("reads: %d\n",
         IN_CHILD(signal(SIGSEGV, SIG_DFL), measured = wcslen(text), _exit(measured == 29999 ? 0 : 1)));
  check_parent();
  volatile int* wrong = (int*)0x22220;
  HIDE(wrong);
  printf("fault: %d\n", IN_CHILD(signal(SIGSEGV, SIG_DFL), *wrong = 1, _exit(99)));
  check_parent();
  printf("fault, handled: %d\n", IN_CHILD(*wrong = 1, _exit(99)));
  check_parent();
  printf("sent: %d\n", IN_CHILD(signal(SIGSEGV, SIG_IGN), raise(SIGSEGV), _exit(7)));
  check_parent();

  // Other ways to such a child.
  char* stack = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  CHECK(stack != MAP_FAILED);
  printf("clone: %d\n", end_of(clone(cloned, stack + (1 << 18), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL)));
  check_parent();
  posix_spawnattr_t attributes;
  CHECK(posix_spawnattr_init(&attributes) == 0);
  sigset_t all;
  sigfillset(&all);
  CHECK(posix_spawnattr_setsigdefault(&attributes, &all) == 0);
  CHECK(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF) == 0);
  char* arguments[] = {"sh", "-c", "kill -USR1 $$; exit 5", NULL};
  pid_t spawned;
  signal(SIGUSR1, SIG_IGN);
  CHECK(posix_spawn(&spawned, "/bin/sh", NULL, NULL, arguments, environ) == 0);
  printf("spawned, ignored before: %d\n", end_of(spawned) % 1000);
  CHECK(posix_spawn(&spawned, "/bin/sh", NULL, &attributes, arguments, environ) == 0);
  printf("spawned: %d\n", end_of(spawned));
  CHECK(current(SIGUSR1) == SIG_IGN);
  set(SIGUSR1, handle, SA_RESTART);
  CHECK(posix_spawn(&spawned, "/bin/sh", NULL, &attributes, arguments, environ) == 0);
  printf("spawned, handled before: %d\n", end_of(spawned));
  check_parent();
  return 0;
}
