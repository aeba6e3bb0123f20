// Graphs in compressed rows, and the kernels over them.
//
// 1 A graph is undirected: each edge stands in the rows of both of its ends. Rows are sorted, without loops and doubles.
// 2 A kernel's result does not depend on the number of threads or on their order, to the last bit.
// 3 Nothing here knows where the arrays lie: the same source is compiled natively and by spillc++.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace graph {

// A file: a header of a page, then each array from a page's edge on.
struct Header {
  uint64_t vertices;
  uint64_t entries;  // two for an edge
};

struct Graph {
  uint64_t vertices;
  uint64_t entries;
  const uint64_t* offsets;  // vertices + 1
  const uint32_t* ends;     // entries
  const uint32_t* weights;  // entries, 1 to 255; nullptr where the kernel looks at none

  uint64_t degree(uint64_t vertex) const { return offsets[vertex + 1] - offsets[vertex]; }
};

inline constexpr uint64_t kPageBytes = 4096;
inline uint64_t whole_pages(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// Where the arrays begin in a file.
struct Layout {
  explicit Layout(const Header& header)
      : offsets(kPageBytes),
        ends(offsets + whole_pages((header.vertices + 1) * sizeof(uint64_t))),
        weights(ends + whole_pages(header.entries * sizeof(uint32_t))),
        end(weights + whole_pages(header.entries * sizeof(uint32_t))) {}
  uint64_t offsets, ends, weights, end;
};

// Arrays of the vertices, made before the clock runs, which are the same in each run.
inline constexpr int kArrays = 5;
struct Workspace {
  void* arrays[kArrays];
};

enum class Values { kNone, kUnsigned, kFloat, kDouble };

struct Kernel {
  const char* name;
  bool weighted;
  bool by_degree;               // wants vertices numbered by falling degree
  size_t array_bytes[kArrays];  // for each vertex
  Values values;                // what the first array holds afterwards
  // A number that sums up the work.
  uint64_t (*run)(const Graph& graph, Workspace& workspace);
};

extern const Kernel kKernels[];
extern const size_t kKernelCount;

// Writes a graph of 2^scale vertices with 16 edges for each, before doubles and loops go, to a file.
// kind: "kron", R-MAT's with Graph500's quadrants, or "uniform". REQUIRES: scale < 30
void make_file(const std::string& kind, bool by_degree, int scale, const char* path);

// Ends the program in one line.
[[noreturn]] void fail(const std::string& what);

}  // namespace graph
