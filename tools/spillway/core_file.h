// The memory of a process that has ended, as a core file keeps it: input from outside, whole or cut short, and perhaps no
// core file at all.
#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "elf_file.h"

namespace tools {

class CoreFile {
 public:
  // Throws WrongInput in one line: there is no such file, it is not a core file of this machine, or its pieces overlap.
  // Never waits, as it would for a pipe.
  explicit CoreFile(const std::string& path);

  // False where the file does not have all of it; problem() says why. Cost: a read of the file for each piece.
  bool read(uint64_t address, void* to, size_t bytes);
  // The reason for the last failed read, as the rest of a line that begins "the core file ".
  const std::string& problem() const { return problem_; }

 private:
  // By address; none overlaps another.
  std::vector<Elf64_Phdr> pieces_;
  std::ifstream file_;
  std::string problem_;
};

}  // namespace tools
