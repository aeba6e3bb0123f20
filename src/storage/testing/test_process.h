// For tests: children, system calls that fail there, and a queue in use.
#pragma once
#include <errno.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/testing/test_io.h"

namespace storage {

// The exit status of a child that ran `body`.
inline int in_child(const std::function<bool()>& body) {
  pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// A child that does nothing, with all descriptors that its parent has when it is made.
class IdleChild {
 public:
  IdleChild() : pid_(fork()) {
    EXPECT_GE(pid_, 0) << "no child";
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  ~IdleChild() {
    if (pid_ < 0) return;  // which would be all processes
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;

 private:
  const pid_t pid_;
};

// Makes a system call fail in this process from now on, as sandboxes do.
inline bool fail_call(unsigned number, unsigned error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {4, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Writes and reads back a batch of 8.
inline testing::AssertionResult use(Queue& queue, uint64_t first_offset) {
  std::vector<std::unique_ptr<TestIo>> ios;
  for (Operation operation : {Operation::kWrite, Operation::kRead}) {
    std::vector<Io*> batch;
    for (uint64_t i = 0; i < 8; ++i) {
      ios.push_back(std::make_unique<TestIo>(operation, first_offset + i * kBlock, std::vector{kBlock}));
      if (operation == Operation::kWrite) ios.back()->fill(1);
      batch.push_back(&ios.back()->io);
    }
    queue.run(batch);
  }
  for (auto& io : ios) {
    const bool reads = io->io.operation == Operation::kRead;
    if (!io->io.whole() || io->done_count != 1 || io->first_difference(1) != kBlock)
      return testing::AssertionFailure()
             << (reads ? "read at " : "write at ") << io->io.offset_bytes << ": " << io->io.transferred_bytes
             << " bytes, error " << io->io.error << ", done " << io->done_count << " times, the first "
             << io->first_difference(1) << " bytes as written";
  }
  return testing::AssertionSuccess();
}

}  // namespace storage
