// Sites: names of the code addresses in a history that a user knows: source lines, from the debug information of the files with the code.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "history.h"

namespace persist_check {

class Sites {
 public:
  // Asks addr2line, or else llvm-symbolizer, once for each module of these sites. Without either, and for code without debug
  // information, names are offsets in the file.
  Sites(const History& history, std::span<const uint64_t> sites);

  // "table.c:120 (insert)"; "libx.so+0x1234"; "unknown code" for 0.
  const std::string& name(uint64_t site) const;
  // "/path/table.c:120", or "" if that is not known.
  const std::string& place(uint64_t site) const;
  // "libx.so", the file with the code; "" if that is not known.
  const std::string& library(uint64_t site) const;

 private:
  struct Named {
    std::string name, place, library;
  };
  const Named& find(uint64_t site) const;
  void ask(const Module& module, const std::vector<uint64_t>& sites);
  void take_answer(const std::string& answer, std::span<const uint64_t> sites);

  std::map<uint64_t, Named> names_;
};

}  // namespace persist_check
