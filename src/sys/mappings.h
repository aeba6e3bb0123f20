// What is mapped where in this process, according to /proc/self/maps.
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
  bool is_shared = false;  // and of a file: stores go to the file
};

// Reads one line: "7f00-7f10 rw-s 00001000 fd:00 123   /path". The path that it finds is a part of the line. Returns whether the line has that form.
bool parse_mapping(std::string_view line, Mapping& mapping);

// Calls visit(mapping, context) for each mapping, by address, until it returns false; the mapping's path is valid during that call only. A line longer
// than 4 KiB is left out. Cost: some 50 us.
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
// The mapping that the address is in; begin == end: there is none, or the kernel does not tell. A path that is too long is cut off.
FoundMapping find_mapping(uintptr_t address);
// How many mappings a process may have (vm.max_map_count); the kernel's default, if it does not tell. Cost: some system calls.
uint64_t most_mappings();
// Are all OS pages of [begin, end) mapped, accessible or not? Cost: a system call.
bool is_mapped(uintptr_t begin, uintptr_t end);
// How far [begin, end), a part of one mapping, can be read from `begin` on: in a mapping of a file up to the end of the last OS page that has any of the
// file. REQUIRES: an OS page begins at `begin`. Cost: a system call; some more if the result is not `end`.
uintptr_t readable_end(uintptr_t begin, uintptr_t end);

}  // namespace sys
