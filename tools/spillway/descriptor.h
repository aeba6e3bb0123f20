// A descriptor that is closed when its owner goes.
#pragma once
#include <unistd.h>

namespace tools {

class Descriptor {
 public:
  // As a system call returned it; there is nothing to close if that failed.
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int operator*() const { return number_; }

 private:
  const int number_;
};

}  // namespace tools
