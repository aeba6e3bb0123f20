// fork: the child sees its parent's memory as it was, and may exec, which is what nearly every child
// does. A child that goes on has its parent's frames read-only, and ends with one line when it stores to
// spilled memory or needs a page that is not in memory (docs/spill.md, "What does not work yet").
#include <sys/mman.h>
#include <unistd.h>

#include "spill/fault.h"
#include "spill/intercept.h"
#include "spill/last_thread.h"
#include "spill/next.h"
#include "spill/parking.h"
#include "spill/runtime.h"
#include "sys/kernel.h"

namespace spill {
namespace {

// The child's view of every frame: private, so that nothing it does reaches the parent, and read-only.
void leave_parent() {
  runtime.is_fork_child.store(true, std::memory_order_relaxed);
  keep_only_this_thread();
  forget_waiters();
  count_only_this_thread();
  for (uint32_t i = 0; i < runtime.cache->partition_count(); ++i) {
    const auto pool = runtime.cache->pool(i);
    sys::syscall(SYS_mmap, pool.begin, pool.bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, pool.descriptor, 0);
  }
  forget_mappings();
}

}  // namespace

SPILL_EXPORT pid_t __spill_fork() {
  static constinit pid_t (*next)() = nullptr;
  clear_slots();
  InRuntime inside;  // no handler runs in the child before its frames are its own
  const pid_t child = next_function(next, "fork", "GLIBC_2.2.5")();
  if (child == 0 && runtime.started.load(std::memory_order_relaxed)) leave_parent();
  return child;
}

}  // namespace spill
