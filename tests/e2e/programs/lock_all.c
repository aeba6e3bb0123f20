// mlockall would fill memory with the runtime's tables: it is refused, and the program goes on. (Natively it may be refused too.)
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "e2e.h"

static void is_refused(long result) {
  if (runs_spilled())
    CHECK(result == -1 && errno == ENOMEM);
  else
    CHECK(result == 0 || errno == ENOMEM || errno == EPERM);
  munlockall();
}

int main(void) {
  size_t bytes = 4 << 20;
  char* block = malloc(bytes);
  memset(block, 7, bytes);
  is_refused(mlockall(MCL_CURRENT));
  is_refused(mlockall(MCL_CURRENT | MCL_FUTURE));
  is_refused(syscall(SYS_mlockall, MCL_CURRENT));
  for (size_t i = 0; i < bytes; ++i) CHECK(block[i] == 7);
  free(block);
  printf("end\n");
  return 0;
}
