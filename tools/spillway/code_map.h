// From a running process's addresses of code to what a user knows them by: the file, the place in it, the function.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tools {

struct CodePlace {
  std::string module;   // path; empty: made at run time, or unloaded since
  uint64_t offset = 0;  // as addr2line, objdump and nm count; the address itself without a module
  std::string symbol;   // as the linker calls it; empty: not known
};

class CodeMap {
 public:
  explicit CodeMap(pid_t pid) : pid_(pid) {}

  // Files that cannot be read have no symbols. Cost: a read of the process's mappings and of a file's symbols, the first
  // time; a look-up after that.
  const CodePlace& find(uint64_t address);

 private:
  CodePlace look_up(uint64_t address) const;

  pid_t pid_;
  std::map<uint64_t, CodePlace> known_;
};

}  // namespace tools
