// The handler of a process in which nobody else handles SIGSEGV. (In one that runs instrumented code the runtime does.)
#include <signal.h>

#include "task/overflow.h"

namespace task {
namespace {

constinit struct sigaction before = {};

void handle_fault(int number, siginfo_t* info, void* context) {
  if (explain_overflow(reinterpret_cast<uint64_t>(info->si_addr))) {
    signal(SIGSEGV, SIG_DFL);
    return;  // the access is repeated, and ends the process
  }
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(number, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(number);
  else
    signal(SIGSEGV, SIG_DFL);
}

}  // namespace

void report_overflows() {
  struct sigaction action = {};
  action.sa_sigaction = handle_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
}

}  // namespace task
