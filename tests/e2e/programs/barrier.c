// No page leaves memory before every CPU has been made to show its hazard slots (membarrier): where that call
// kills, a program that exceeds its budget is killed. Natively it makes the call itself.
// case: => 159
// chaos: 0
// levels: O2
// evictions: none, it is killed before that
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "e2e.h"

int main(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof code / sizeof *code, code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0);
  printf("within the budget\n");
  fflush(stdout);
  if (getenv("SPILLWAY_MEMORY") == NULL) syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  push_out(8 << 20);
  printf("beyond it\n");
  return 0;
}
