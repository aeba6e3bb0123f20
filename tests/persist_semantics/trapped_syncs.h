// msync and fdatasync of this process, answered by the test: it sees what the kernel is asked to write, and nothing is written.
//
// A filter of system calls makes the kernel raise SIGSYS in the calling thread; the handler asks the Syncs, in the middle of the call, which then returns what they return.
// The filter stays until the process ends, and holds for threads that are started later.
#pragma once
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace persist_semantics {

// What the calls do. Each returns 0 or an errno value. Any thread.
class Syncs {
 public:
  virtual int write_range(uintptr_t begin, uintptr_t end) = 0;
  virtual int write_file(int descriptor) = 0;

 protected:
  ~Syncs() = default;
};

// Who answers; null: nobody should call.
inline std::atomic<Syncs*> answering{nullptr};

inline void answer_call(int, siginfo_t* info, void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto first = static_cast<uintptr_t>(registers[REG_RDI]);
  Syncs* const syncs = answering.load();
  int error = ENOSYS;
  if (syncs != nullptr && info->si_syscall == SYS_msync)
    error = syncs->write_range(first, first + static_cast<uintptr_t>(registers[REG_RSI]));
  if (syncs != nullptr && info->si_syscall == SYS_fdatasync)
    error = syncs->write_file(static_cast<int>(first));
  registers[REG_RAX] = -error;
}

// REQUIRES: there are no other threads yet. Returns whether the kernel can do it.
inline bool trap_syncs() {
  static const bool is_trapped = [] {
    struct sigaction action = {};
    action.sa_sigaction = answer_call;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, nullptr);
    sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_msync, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {.len = sizeof steps / sizeof *steps, .filter = steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }();
  return is_trapped;
}

}  // namespace persist_semantics
