// Mappings that nobody has made a domain: found by an address in them.
#pragma once
#include <cstdint>

#include <string_view>

namespace persist {

struct FoundMapping {
  uintptr_t begin = 0, end = 0;
  uint64_t offset_bytes = 0;  // in the file
  char path[512] = {};
  bool is_shared = false;  // and of a file: what is stored there is the file's
};

// The mapping that the address is in; begin == end: there is none, or the kernel does not tell. Cost: reads /proc/self/maps, some 50 us.
FoundMapping find_mapping(uintptr_t address);
// One line of that file: "7f00-7f10 rw-s 00001000 fd:00 123   /path". Returns whether it is one.
bool parse_mapping(std::string_view line, FoundMapping& mapping);

}  // namespace persist
