// What the kernels share with the program that times them.
//
// 1 kernels.cc is compiled three ways (natively, by spillcc, the way TriCache translates); everything that
//   touches the arrays is in it, filling and checking included. main.cc never does.
// 2 All builds see the same sizes, the same contents and the same offsets of arrays in their pages.
// 3 `run` does the same work on every call, and returns a checksum that does not depend on addresses. Several threads
//   run at the same time, each on a workspace of its own or, where the kernel only reads, all on one.
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

// Of arrays and runs: kQuick for a look, kTiny for counting instructions.
enum class Size { kFull, kQuick, kTiny };

struct Workspace {
  Array arrays[kMaxArrays];
  int array_count;
  uint64_t repeats;  // how much work one run does
  uint64_t length;   // a number that the optimiser must not know
  Size size;
};

struct Kernel {
  const char* name;
  uint64_t repeats;       // about 50 ms natively
  uint64_t tiny_repeats;  // with kTiny: some ten thousand accesses
  bool only_reads;
  void (*prepare)(Workspace& workspace);
  uint64_t (*run)(Workspace& workspace);
  // Places in arrays that one run loads from or stores to, element by element as the source says; what is
  // loaded, changed and stored counts once. A sort's are two for each comparison of n * log2(n).
  uint64_t (*accesses)(const Workspace& workspace);
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
