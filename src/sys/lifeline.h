// Lifeline: tells a process when a child of fork, and all that descend from the child by fork, no longer have this process's memory, because each of them
// has ended, in whatever way, or called exec.
//
// It is a mapping that only they have, of a memory file that can be sealed against writing once nobody maps it. So the kernel keeps count, whatever is done
// with signals, exec and descriptors.
//
//   before fork  open     makes the mapping, which the child will inherit
//   parent       let_go   unmaps its own; from now on it may ask is_over
//   child        forget   keeps only the mapping, for good; its own children inherit it
#pragma once
#include "base/error.h"

namespace sys {

class Lifeline {
 public:
  // Errors: EFBIG (RLIMIT_FSIZE), EMFILE, ENOMEM, ENOSYS.
  base::Expected<void> open();
  // Maps a lifeline that was let go again, so that one more child inherits it: it is over when both children are. Errors: ENOMEM; EPERM, it is over.
  base::Expected<void> open_again();
  void let_go();
  // REQUIRES: let_go. Cost: a system call. Always false where the kernel does not tell.
  bool is_over() const;
  void forget();
  void close() { forget(); }

 private:
  int descriptor_ = -1;
  void* mapping_ = nullptr;
};

}  // namespace sys
