// For tests: a system call that signal handlers interrupt again and again.
#pragma once
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace sys {

// Answers a call of fallocate() in place of the kernel.
inline void answer_allocation(int, siginfo_t*, void* interrupted) {
  static int in_vain = 0;
  ucontext_t& context = *static_cast<ucontext_t*>(interrupted);
  greg_t* const registers = context.uc_mcontext.gregs;
  if (sigismember(&context.uc_sigmask, SIGALRM) == 1) {
    const auto end = static_cast<off_t>(registers[REG_RDX] + registers[REG_R10]);
    registers[REG_RAX] = ftruncate(static_cast<int>(registers[REG_RDI]), end) == 0 ? 0 : -errno;
    return;
  }
  if (++in_vain == 1000) _exit(100);
  registers[REG_RAX] = -EINTR;
}

// From now on fallocate() fails with EINTR unless the calling thread blocks SIGALRM, as it may on tmpfs with a timer before Linux 6.10; if it does, the
// file's end becomes that of the part to be allocated. After 1000 failures the process ends with the status 100. False: this cannot be set up.
inline bool interrupt_allocations() {
  struct sigaction action = {};
  action.sa_sigaction = answer_allocation;
  action.sa_flags = SA_SIGINFO;
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {4, code};
  return sigaction(SIGSYS, &action, nullptr) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace sys
