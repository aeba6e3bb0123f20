// Lifeline: tells a process when a child of fork no longer has its memory, nor has any process that the child made
// by fork: they ended, however, or execed.
//
// It is a mapping that only they have, of a memory file that can be sealed against writing once nobody maps it. So
// the kernel keeps it: no signal, exec or closing of descriptors gets past it.
//
//   before fork  open     the mapping is there, to be inherited
//   parent       let_go   its own mapping is gone; is_over from now on
//   child        forget   its mapping stays for good, and is inherited by its own children
#pragma once
#include "base/error.h"

namespace sys {

class Lifeline {
 public:
  // Errors: EMFILE, ENOMEM, ENOSYS.
  base::Expected<void> open();
  // One that was let go is there again, to be inherited by one more child: it is over when both are. Errors: ENOMEM.
  base::Expected<void> open_again();
  void let_go();
  // REQUIRES: let_go. Cost: a system call. False for good where the kernel does not say.
  bool is_over() const;
  void forget();
  void close() { forget(); }

 private:
  int descriptor_ = -1;
  void* mapping_ = nullptr;
};

}  // namespace sys
