// The memory of a process that has ended, as a core file keeps it.
#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "elf_file.h"

namespace tools {

class CoreFile {
 public:
  // Throws WrongInput in one line: there is no such file, or it is not a core file of this machine.
  explicit CoreFile(const std::string& path);

  // False where the file does not have all of it.
  bool read(uint64_t address, void* to, size_t bytes);

 private:
  std::ifstream file_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace tools
