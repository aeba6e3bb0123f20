// A signal mask for the duration of a call.
#pragma once
#include <signal.h>

#include "spill/intercept/intercept.h"
#include "spill/signals.h"

namespace spill {

// Without the signals that are never blocked, since handlers run under it. Null stays null.
class PlainMask {
 public:
  explicit PlainMask(const sigset_t* mask) : given_(mask != nullptr) {
    if (!given_) return;
    mask_ = load(mask);
    *reinterpret_cast<uint64_t*>(&mask_) &= ~kFaultSignals;
  }
  operator const sigset_t*() const { return given_ ? &mask_ : nullptr; }

 private:
  bool given_;
  sigset_t mask_;
};

}  // namespace spill
