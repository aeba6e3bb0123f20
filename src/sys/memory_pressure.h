// MemoryPressure: hears from the kernel when memory is short in this process's memory group, or in the whole machine.
//
//   version 1   memory.pressure_level of the group, level medium: the kernel has trouble finding pages that it can reclaim
//   version 2   memory.pressure of the group (PSI): some task waited for memory for 150 ms of two seconds
//   neither     /proc/pressure/memory, the same for the whole machine
//
// A child of fork has to close and open again: it shares what it has inherited with its parent.
// Thread contract: one thread at a time.
#pragma once
#include <string_view>

#include "base/error.h"

namespace sys {

class MemoryPressure {
 public:
  // `root`: a prefix of /proc and /sys, for tests. Errors: ENOENT, where the kernel reports to nobody, or not to this process.
  base::Expected<void> open(const char* root = "");
  void close();
  bool is_open() const { return descriptor_ >= 0; }
  // The path of what is listened to, for messages.
  const char* source() const { return source_; }

  // Has the kernel reported pressure since the last call? Cost: a system call.
  bool take();

 private:
  bool open_group(std::string_view group, const char* root);
  bool open_stall(std::string_view path);

  int descriptor_ = -1;
  bool is_event_ = false;  // an eventfd; else a trigger of PSI
  char source_[512] = {};
};

}  // namespace sys
