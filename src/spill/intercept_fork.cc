// fork, for instrumented code and libraries. What the child sees: fork.h.
#include <unistd.h>

#include "spill/intercept.h"
#include "spill/next.h"
#include "spill/runtime.h"

namespace spill {

SPILL_EXPORT pid_t __spill_fork() {
  static constinit pid_t (*next)() = nullptr;
  clear_slots();
  InRuntime inside;  // no handler runs in the child before its frames are its own
  return next_function(next, "fork", "GLIBC_2.2.5")();
}

}  // namespace spill
