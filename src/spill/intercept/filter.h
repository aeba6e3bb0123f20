// A BPF program for the kernel (seccomp, sockets), whose code lies behind another pointer.
#pragma once
#include <linux/filter.h>

#include "spill/intercept/intercept.h"

namespace spill {

class PlainFilter {
 public:
  explicit PlainFilter(const sock_fprog* program)
      : program_(program),
        copy_(program != nullptr ? load(program) : sock_fprog{}),
        code_(copy_.filter, size_t{copy_.len} * sizeof(sock_filter), PlainBytes::kIn) {
    copy_.filter = reinterpret_cast<sock_filter*>(code_.data());
  }
  // Null stays null.
  const sock_fprog* get() const { return program_ != nullptr ? &copy_ : nullptr; }

 private:
  const sock_fprog* program_;
  sock_fprog copy_;
  PlainBytes code_;
};

}  // namespace spill
