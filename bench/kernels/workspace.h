// What the kernels share with the program that times them.
//
// 1 kernels.cc is compiled three ways (natively, by spillcc, the way TriCache translates); everything that
//   touches the arrays is in it, filling and checking included. main.cc never does.
// 2 All builds see the same sizes, the same contents and the same offsets of arrays in their pages.
// 3 `run` does the same work on every call, and returns a checksum that does not depend on addresses.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kernels {

inline constexpr int kMaxArrays = 4;

struct Array {
  void* data;
  size_t bytes;
  bool holds_addresses;  // left out of the checksum
};

struct Workspace {
  Array arrays[kMaxArrays];
  int array_count;
  uint64_t repeats;  // how much work one run does
  uint64_t length;   // a number that the optimiser must not know
  bool quick;        // smaller arrays
};

struct Kernel {
  const char* name;
  uint64_t repeats;  // about 50 ms natively
  void (*prepare)(Workspace& workspace);
  uint64_t (*run)(Workspace& workspace);
};

extern const Kernel kKernels[];
extern const size_t kKernelCount;

// A checksum of the contents of all arrays. Touches every byte.
uint64_t checksum(const Workspace& workspace);

// Adds an array of untouched, zeroed 4-KiB pages to the workspace. One file for each way to get them.
void* allocate_array(Workspace& workspace, size_t bytes, bool holds_addresses = false);

// Zeroed pages that begin at a page's edge; ends the program where there are none. Never given back.
void* allocate_pages(size_t bytes);

}  // namespace kernels
