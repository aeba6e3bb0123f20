// The kernels: each one loop, over heap memory, as programs have them. workspace.h has the rules.
//
// To add a kernel: 1) prepare_ and run_ functions below, and how many accesses a run makes, 2) a row in kKernels.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "workspace.h"

#define NOINLINE __attribute__((noinline))

namespace kernels {
namespace {

constexpr size_t kMiB = 1 << 20;
// Fits in a 1-MiB second-level cache beside its tables, and not in the first level.
constexpr size_t kSecondLevelBytes = 256 << 10;
constexpr size_t kSequentialBytes = 16 * kMiB;
constexpr size_t kTinyBytes = 64 << 10;

// The optimiser must assume that memory changes between two passes.
void new_pass() { asm volatile("" ::: "memory"); }

uint64_t next_random(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

template <class T>
T* data(const Workspace& workspace, int array) {
  return static_cast<T*>(workspace.arrays[array].data);
}

template <class T>
size_t count(const Workspace& workspace, int array) {
  return workspace.arrays[array].bytes / sizeof(T);
}

size_t large(const Workspace& workspace) { return workspace.size == Size::kFull ? 1024 * kMiB : 256 * kMiB; }

size_t sized(const Workspace& workspace, size_t bytes) {
  return workspace.size == Size::kTiny ? std::min(bytes, kTinyBytes) : bytes;
}

// Of the first array, in each of the run's passes.
template <class T, uint64_t kPerElement>
uint64_t accesses_in_passes(const Workspace& workspace) {
  return workspace.repeats * count<T>(workspace, 0) * kPerElement;
}

uint64_t one_each(const Workspace& workspace) { return workspace.repeats; }

// Random reads and read-modify-writes.

NOINLINE void fill_random(uint64_t* words, size_t n) {
  uint64_t state = 88172645463325252ull;
  for (size_t i = 0; i < n; ++i) words[i] = next_random(state);
}

void add_random_words(Workspace& workspace, size_t bytes) {
  bytes = sized(workspace, bytes);
  auto* words = static_cast<uint64_t*>(allocate_array(workspace, bytes));
  fill_random(words, bytes / sizeof(uint64_t));
}

void prepare_random_64m(Workspace& workspace) { add_random_words(workspace, 64 * kMiB); }
void prepare_random_1g(Workspace& workspace) { add_random_words(workspace, large(workspace)); }

NOINLINE uint64_t random_read(const uint64_t* words, uint64_t mask, uint64_t n) {
  uint64_t state = 12345, sum = 0;
  for (uint64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    sum += words[(state >> 24) & mask];
  }
  return sum;
}

NOINLINE void random_rmw(uint64_t* words, uint64_t mask, uint64_t n) {
  uint64_t state = 12345;
  for (uint64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    words[(state >> 24) & mask] += state;
  }
}

uint64_t run_random_read(Workspace& workspace) {
  return random_read(data<uint64_t>(workspace, 0), count<uint64_t>(workspace, 0) - 1, workspace.repeats);
}

uint64_t run_random_rmw(Workspace& workspace) {
  random_rmw(data<uint64_t>(workspace, 0), count<uint64_t>(workspace, 0) - 1, workspace.repeats);
  return 0;
}

// Sequential reads: a sum, which is vectorised, and a chain of multiplications, which cannot be.

void prepare_sequential_l2(Workspace& workspace) { add_random_words(workspace, kSecondLevelBytes); }
void prepare_sequential_16m(Workspace& workspace) { add_random_words(workspace, kSequentialBytes); }

NOINLINE uint64_t sum(const uint64_t* words, size_t n) {
  uint64_t total = 0;
  for (size_t i = 0; i < n; ++i) total += words[i];
  return total;
}

NOINLINE uint64_t multiply_chain(const uint64_t* words, size_t n) {
  uint64_t hash = 0;
  for (size_t i = 0; i < n; ++i) hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull;
  return hash;
}

uint64_t run_sequential(Workspace& workspace) {
  uint64_t total = 0;
  for (uint64_t i = 0; i < workspace.repeats; ++i, new_pass())
    total += sum(data<uint64_t>(workspace, 0), count<uint64_t>(workspace, 0));
  return total;
}

uint64_t run_multiply_chain(Workspace& workspace) {
  uint64_t total = 0;
  for (uint64_t i = 0; i < workspace.repeats; ++i, new_pass())
    total += multiply_chain(data<uint64_t>(workspace, 0), count<uint64_t>(workspace, 0));
  return total;
}

// Floats: triad (STREAM's) and a dot product, whose sum is a chain without -ffast-math.

NOINLINE void fill_floats(float* floats, size_t n, float step) {
  for (size_t i = 0; i < n; ++i) floats[i] = static_cast<float>(i % 1024) * step;
}

void add_floats(Workspace& workspace, int arrays, size_t bytes) {
  bytes = sized(workspace, bytes);
  for (int i = 0; i < arrays; ++i)
    fill_floats(static_cast<float*>(allocate_array(workspace, bytes)), bytes / sizeof(float),
                0.25f * static_cast<float>(i + 1));
}

void prepare_triad_l2(Workspace& workspace) { add_floats(workspace, 3, kSecondLevelBytes); }
void prepare_triad_16m(Workspace& workspace) { add_floats(workspace, 3, kSequentialBytes); }
void prepare_dot_product(Workspace& workspace) { add_floats(workspace, 2, kSequentialBytes); }

NOINLINE void triad(float* a, const float* b, const float* c, size_t n) {
  for (size_t i = 0; i < n; ++i) a[i] = b[i] + 3.0f * c[i];
}

NOINLINE float dot_product(const float* a, const float* b, size_t n) {
  float total = 0;
  for (size_t i = 0; i < n; ++i) total += a[i] * b[i];
  return total;
}

uint64_t run_triad(Workspace& workspace) {
  size_t n = count<float>(workspace, 0);
  for (uint64_t i = 0; i < workspace.repeats; ++i, new_pass())
    triad(data<float>(workspace, 0), data<float>(workspace, 1), data<float>(workspace, 2), n);
  return 0;
}

uint64_t run_dot_product(Workspace& workspace) {
  float total = 0;
  for (uint64_t i = 0; i < workspace.repeats; ++i, new_pass())
    total = dot_product(data<float>(workspace, 0), data<float>(workspace, 1), count<float>(workspace, 0));
  uint32_t bits;
  std::memcpy(&bits, &total, sizeof bits);
  return bits;
}

// memcpy from one array to another in pieces whose length only the program's user knows.

void prepare_memcpy(Workspace& workspace, uint64_t piece_bytes) {
  add_random_words(workspace, kSequentialBytes);
  add_random_words(workspace, kSequentialBytes);
  workspace.length = piece_bytes;
}

void prepare_memcpy_64(Workspace& workspace) { prepare_memcpy(workspace, 64); }
void prepare_memcpy_1k(Workspace& workspace) { prepare_memcpy(workspace, 1 << 10); }
void prepare_memcpy_64k(Workspace& workspace) { prepare_memcpy(workspace, 64 << 10); }

NOINLINE void copy_pieces(char* to, const char* from, size_t bytes, size_t piece_bytes) {
  for (size_t at = 0; at + piece_bytes <= bytes; at += piece_bytes)
    std::memcpy(to + at, from + at, piece_bytes);
}

// Of each piece its source and its target.
uint64_t accesses_of_memcpy(const Workspace& workspace) {
  return workspace.repeats * (workspace.arrays[0].bytes / workspace.length) * 2;
}

uint64_t run_memcpy(Workspace& workspace) {
  for (uint64_t i = 0; i < workspace.repeats; ++i, new_pass())
    copy_pieces(data<char>(workspace, 0), data<char>(workspace, 1), workspace.arrays[0].bytes,
                workspace.length);
  return 0;
}

// Nodes of a CPU line: followed in random order, and read as an array of structs.

struct Node {
  Node* next;
  uint64_t a, b, c;
  uint64_t rest[4];
};
static_assert(sizeof(Node) == 64);

// One ring through all nodes, in random order (Sattolo's shuffle).
NOINLINE void link_ring(Node* nodes, uint32_t* order, size_t n) {
  uint64_t state = 88172645463325252ull;
  for (size_t i = 0; i < n; ++i) order[i] = static_cast<uint32_t>(i);
  for (size_t i = n - 1; i > 0; --i) std::swap(order[i], order[next_random(state) % i]);
  for (size_t i = 0; i < n; ++i) {
    Node& node = nodes[i];
    node.next = &nodes[order[i]];
    node.a = i;
    node.b = 3 * i;
    node.c = i ^ 5;
    node.rest[0] = i;
  }
}

void prepare_nodes(Workspace& workspace, size_t bytes) {
  size_t n = sized(workspace, bytes) / sizeof(Node);
  auto* nodes = static_cast<Node*>(allocate_array(workspace, n * sizeof(Node), /*holds_addresses=*/true));
  auto* order = static_cast<uint32_t*>(allocate_array(workspace, n * sizeof(uint32_t)));
  // Memory is handed out in the order of its first use: the array's, as where a program fills it.
  for (size_t i = 0; i < n; ++i) nodes[i].a = 0;
  link_ring(nodes, order, n);
}

void prepare_nodes_l2(Workspace& workspace) { prepare_nodes(workspace, kSecondLevelBytes); }
void prepare_nodes_64m(Workspace& workspace) { prepare_nodes(workspace, 64 * kMiB); }

NOINLINE uint64_t chase(const Node* node, uint64_t n) {
  uint64_t total = 0;
  for (uint64_t i = 0; i < n; ++i) {
    total += node->a;
    node = node->next;
  }
  return total;
}

NOINLINE uint64_t sum_structs(const Node* nodes, size_t n) {
  uint64_t total = 0;
  for (size_t i = 0; i < n; ++i) total += nodes[i].a * 3 + nodes[i].b * 5 + (nodes[i].c ^ nodes[i].rest[0]);
  return total;
}

uint64_t run_chase(Workspace& workspace) { return chase(data<Node>(workspace, 0), workspace.repeats); }

uint64_t run_structs(Workspace& workspace) {
  uint64_t total = 0;
  for (uint64_t i = 0; i < workspace.repeats; ++i, new_pass())
    total += sum_structs(data<Node>(workspace, 0), count<Node>(workspace, 0));
  return total;
}

// PageRank by pulling, over an R-MAT graph of 16 edges a vertex in compressed rows.

enum GraphArray { kOffsets, kSources, kContributions, kScores };

constexpr uint64_t kEdgesPerVertex = 16;

uint64_t graph_scale(const Workspace& workspace) {
  return workspace.size == Size::kFull ? 19 : workspace.size == Size::kQuick ? 17 : 10;
}

// R-MAT's quadrants: 0.57, 0.19, 0.19, 0.05.
void next_edge(uint64_t& state, uint64_t scale, uint32_t& from, uint32_t& to) {
  from = to = 0;
  for (uint64_t level = 0, bits = 0; level < scale; ++level, bits >>= 16) {
    if (level % 4 == 0) bits = next_random(state);
    uint64_t place = bits & 0xffff;
    from = from << 1 | (place >= 49807);
    to = to << 1 | (place >= 62259 || (place >= 37355 && place < 49807));
  }
}

NOINLINE void make_graph(uint32_t* offsets, uint32_t* sources, uint64_t scale) {
  uint64_t vertices = 1ull << scale, edges = vertices * kEdgesPerVertex;
  uint32_t from, to;
  uint64_t state = 88172645463325252ull;
  for (uint64_t e = 0; e < edges; ++e) {
    next_edge(state, scale, from, to);
    ++offsets[to + 2];
  }
  for (uint64_t v = 2; v < vertices + 2; ++v) offsets[v] += offsets[v - 1];
  state = 88172645463325252ull;
  for (uint64_t e = 0; e < edges; ++e) {
    next_edge(state, scale, from, to);
    sources[offsets[to + 1]++] = from;
  }
}

void prepare_pagerank(Workspace& workspace) {
  uint64_t vertices = 1ull << graph_scale(workspace);
  auto* offsets = static_cast<uint32_t*>(allocate_array(workspace, (vertices + 2) * sizeof(uint32_t)));
  auto* sources =
      static_cast<uint32_t*>(allocate_array(workspace, vertices * kEdgesPerVertex * sizeof(uint32_t)));
  add_floats(workspace, 2, vertices * sizeof(float));
  make_graph(offsets, sources, graph_scale(workspace));
}

NOINLINE void pull(const uint32_t* offsets, const uint32_t* sources, const float* contributions,
                   float* scores, size_t vertices) {
  for (size_t v = 0; v < vertices; ++v) {
    float total = 0;
    for (uint32_t e = offsets[v]; e < offsets[v + 1]; ++e) total += contributions[sources[e]];
    scores[v] = 0.15f + 0.85f * total;
  }
}

// By the degree towards a vertex: the graph keeps no other.
NOINLINE void contribute(const uint32_t* offsets, const float* scores, float* contributions,
                         size_t vertices) {
  for (size_t v = 0; v < vertices; ++v)
    contributions[v] = scores[v] / static_cast<float>(offsets[v + 1] - offsets[v] + 1);
}

// Pulling: two for an edge, and three for a vertex; contributing: four.
uint64_t accesses_of_pagerank(const Workspace& workspace) {
  return workspace.repeats *
         (2 * count<uint32_t>(workspace, kSources) + 7 * count<float>(workspace, kScores));
}

uint64_t run_pagerank(Workspace& workspace) {
  auto* offsets = data<uint32_t>(workspace, kOffsets);
  auto* contributions = data<float>(workspace, kContributions);
  auto* scores = data<float>(workspace, kScores);
  size_t vertices = count<float>(workspace, kScores);
  fill_floats(contributions, vertices, 1.0f / 1024);
  for (uint64_t i = 0; i < workspace.repeats; ++i) {
    pull(offsets, data<uint32_t>(workspace, kSources), contributions, scores, vertices);
    contribute(offsets, scores, contributions, vertices);
  }
  return 0;
}

// std::sort of random words, and a histogram of their upper halves.

void prepare_sort(Workspace& workspace) {
  add_random_words(workspace, workspace.size == Size::kFull ? 4 * kMiB : 2 * kMiB);
  add_random_words(workspace, workspace.size == Size::kFull ? 4 * kMiB : 2 * kMiB);
}

uint64_t accesses_of_sort(const Workspace& workspace) {
  size_t n = count<uint64_t>(workspace, 0), levels = 0;
  while (size_t{1} << levels < n) ++levels;
  return workspace.repeats * n * levels * 2;
}

NOINLINE void sort_words(uint64_t* words, size_t n) { std::sort(words, words + n); }

uint64_t run_sort(Workspace& workspace) {
  auto* words = data<uint64_t>(workspace, 0);
  size_t n = count<uint64_t>(workspace, 0);
  for (uint64_t i = 0; i < workspace.repeats; ++i, new_pass()) {
    std::memcpy(words, data<uint64_t>(workspace, 1), workspace.arrays[0].bytes);
    sort_words(words, n);
  }
  return words[n / 2];
}

constexpr int kHistogramShift = 48;

void prepare_histogram(Workspace& workspace) {
  add_random_words(workspace, kSequentialBytes);
  allocate_array(workspace, sizeof(uint32_t) << (64 - kHistogramShift));
}

NOINLINE void histogram(const uint64_t* words, size_t n, uint32_t* bins) {
  for (size_t i = 0; i < n; ++i) ++bins[words[i] >> kHistogramShift];
}

uint64_t run_histogram(Workspace& workspace) {
  for (uint64_t i = 0; i < workspace.repeats; ++i, new_pass())
    histogram(data<uint64_t>(workspace, 0), count<uint64_t>(workspace, 0), data<uint32_t>(workspace, 1));
  return 0;
}

NOINLINE uint64_t checksum_words(const uint64_t* words, size_t n) {
  uint64_t total = 0;
  for (size_t i = 0; i < n; ++i) total += words[i] ^ (i << 20);
  return total;
}

}  // namespace

const Kernel kKernels[] = {
    {"random_read_64m", 4'000'000, 20'000, true, prepare_random_64m, run_random_read, one_each},
    {"random_rmw_64m", 4'000'000, 20'000, false, prepare_random_64m, run_random_rmw, one_each},
    {"random_read_1g", 3'000'000, 20'000, true, prepare_random_1g, run_random_read, one_each},
    {"random_rmw_1g", 3'000'000, 20'000, false, prepare_random_1g, run_random_rmw, one_each},
    {"sequential_l2", 8'000, 4, true, prepare_sequential_l2, run_sequential, accesses_in_passes<uint64_t, 1>},
    {"sequential_16m", 50, 4, true, prepare_sequential_16m, run_sequential, accesses_in_passes<uint64_t, 1>},
    {"multiply_chain", 16, 4, true, prepare_sequential_16m, run_multiply_chain,
     accesses_in_passes<uint64_t, 1>},
    {"triad_l2", 6'000, 1, false, prepare_triad_l2, run_triad, accesses_in_passes<float, 3>},
    {"triad_16m", 20, 1, false, prepare_triad_16m, run_triad, accesses_in_passes<float, 3>},
    {"dot_product", 12, 1, true, prepare_dot_product, run_dot_product, accesses_in_passes<float, 2>},
    {"memcpy_64", 30, 8, false, prepare_memcpy_64, run_memcpy, accesses_of_memcpy},
    {"memcpy_1k", 30, 64, false, prepare_memcpy_1k, run_memcpy, accesses_of_memcpy},
    {"memcpy_64k", 30, 64, false, prepare_memcpy_64k, run_memcpy, accesses_of_memcpy},
    {"chase_l2", 12'000'000, 20'000, true, prepare_nodes_l2, run_chase, one_each},
    {"chase_64m", 1'000'000, 20'000, true, prepare_nodes_64m, run_chase, one_each},
    {"structs", 16, 16, true, prepare_nodes_64m, run_structs, accesses_in_passes<Node, 1>},
    {"pagerank", 2, 1, false, prepare_pagerank, run_pagerank, accesses_of_pagerank},
    {"sort", 2, 1, false, prepare_sort, run_sort, accesses_of_sort},
    {"histogram", 20, 2, false, prepare_histogram, run_histogram, accesses_in_passes<uint64_t, 2>},
};
const size_t kKernelCount = std::size(kKernels);

uint64_t checksum(const Workspace& workspace) {
  uint64_t total = 0;
  for (int i = 0; i < workspace.array_count; ++i)
    if (!workspace.arrays[i].holds_addresses)
      total = total * 31 + checksum_words(data<uint64_t>(workspace, i), count<uint64_t>(workspace, i));
  return total;
}

void* allocate_array(Workspace& workspace, size_t bytes, bool holds_addresses) {
  // Arrays begin at different CPU lines of their pages, as allocators make them: equal offsets would let
  // loads wait for stores that they only seem to depend on.
  size_t offset = static_cast<size_t>(workspace.array_count) * 1088;
  char* pages = static_cast<char*>(allocate_pages(bytes + offset));
  workspace.arrays[workspace.array_count++] = {pages + offset, bytes, holds_addresses};
  return pages + offset;
}

}  // namespace kernels
