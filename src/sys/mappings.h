// What is mapped where in this process, as the kernel tells in /proc/self/maps.
#pragma once
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace sys {

struct Mapping {
  uintptr_t begin = 0, end = 0;
  uint64_t offset_bytes = 0;  // in the file
  std::string_view path;      // or "[stack]", or empty
  bool is_executable = false;
  bool is_shared = false;  // and of a file: what is stored there is the file's
};

// Reads one line: "7f00-7f10 rw-s 00001000 fd:00 123   /path". The path that it finds is a part of the line. Returns whether it is such a line.
bool parse_mapping(std::string_view line, Mapping& mapping);

// Calls visit(mapping, context) for each mapping, by address, until it returns false; the mapping's path is good during the call. A line longer than 4
// KiB is left out. Cost: some 50 us.
void read_mappings(bool (*visit)(const Mapping& mapping, void* context), void* context);
// The same for a function object.
template <class Visit>
void visit_mappings(Visit&& visit) {
  using Plain = std::remove_reference_t<Visit>;
  read_mappings(
      [](const Mapping& mapping, void* context) { return (*static_cast<Plain*>(context))(mapping); }, &visit);
}

struct FoundMapping {
  uintptr_t begin = 0, end = 0;
  uint64_t offset_bytes = 0;
  bool is_shared = false;
  char path[512] = {};
};
// The mapping that the address is in; begin == end: there is none, or the kernel does not tell.
FoundMapping find_mapping(uintptr_t address);
// How many mappings a process may have (vm.max_map_count); the kernel's default, if it does not tell. Cost: some system calls.
uint64_t most_mappings();
// Is there something at all OS pages of [begin, end), accessible or not? Cost: a system call.
bool is_mapped(uintptr_t begin, uintptr_t end);
// Where what can be read of [begin, end), which is part of a mapping, ends: of a file's behind the last page that has any of the file. REQUIRES:
// `begin` is an OS page's. Cost: a system call; some more if that is not `end`.
uintptr_t readable_end(uintptr_t begin, uintptr_t end);

}  // namespace sys
