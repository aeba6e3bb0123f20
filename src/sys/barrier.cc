#include "sys/barrier.h"

#include <linux/membarrier.h>

#include "base/check.h"
#include "sys/kernel.h"

namespace sys {

base::Expected<void> register_barrier() {
  long result = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
  if (!failed(result)) return {};
  return base::failure(static_cast<int>(-result),
                       "no private expedited membarrier: ", base::error_name(static_cast<int>(-result)),
                       "; it needs Linux 4.14 or newer, and a sandbox that allows membarrier");
}

void process_barrier() { CHECK_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), 0); }

}  // namespace sys
