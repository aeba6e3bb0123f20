#include "cache/servers/bell.h"

#include "sys/kernel.h"

namespace cache {

bool Bell::sleep(base::Quiet quiet) {
  constexpr uint64_t kLookNs = 20'000, kTimerNs = 60'000;
  uint64_t until_ns = quiet.until_ns;
  if (until_ns != base::Quiet::kForever) {
    const uint64_t now_ns = sys::monotonic_ns();
    if (until_ns == 0 && quiet.descriptor < 0) {
      until_ns = now_ns + kLookNs;
    } else if (until_ns < now_ns + kTimerNs) {
      get_up();
      return false;
    }
  }
  rung_.wait_until(until_ns, quiet.descriptor);
  get_up();
  return true;
}

}  // namespace cache
