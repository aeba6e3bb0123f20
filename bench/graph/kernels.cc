// The kernels, in the style of the GAP benchmark suite (Beamer, Asanović, Patterson, arXiv:1508.03619): pulling PageRank,
// breadth-first search that turns around, components by Afforest, ordered triangle counting, delta-stepping, and Brandes' betweenness.
//
// To add a kernel: 1) a function of a graph and a workspace, 2) a row in kKernels, 3) a reference in tests/bench/graph_test.py.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>

#include "../random.h"
#include "graph.h"

namespace graph {
namespace {

constexpr int kChunk = 1024;  // vertices that a thread takes at a time; a multiple of a bitmap's word
constexpr uint64_t kSeed = 5;

template <class T>
T* array(Workspace& workspace, int index) {
  return static_cast<T*>(workspace.arrays[index]);
}

template <class T>
std::atomic_ref<T> shared(T& place) {
  return std::atomic_ref<T>(place);
}

template <class T>
T look(T& place) {
  return shared(place).load(std::memory_order_relaxed);
}

// Any vertices that have edges, always the same.
uint32_t source(const Graph& graph, uint64_t index) {
  load::Random random(kSeed + index);
  for (;;) {
    const uint64_t vertex = random.below(graph.vertices);
    if (graph.degree(vertex) > 0) return static_cast<uint32_t>(vertex);
  }
}

// Vertices found by threads, in any order.
class Found {
 public:
  Found(uint32_t* vertices, uint64_t& count) : vertices_(vertices), count_(count) {}
  ~Found() { flush(); }
  void add(uint32_t vertex) {
    own_[used_++] = vertex;
    if (used_ == std::size(own_)) flush();
  }

 private:
  void flush() {
    const uint64_t at = shared(count_).fetch_add(used_, std::memory_order_relaxed);
    std::copy_n(own_, used_, vertices_ + at);
    used_ = 0;
  }
  uint32_t* vertices_;
  uint64_t& count_;
  uint32_t own_[1024];
  size_t used_ = 0;
};

// Arrays: scores, what each vertex gives to its neighbours.
uint64_t pagerank(const Graph& graph, Workspace& workspace) {
  constexpr int kIterations = 5;
  constexpr float kDamping = 0.85f;
  auto* const scores = array<float>(workspace, 0);
  auto* const given = array<float>(workspace, 1);
  const uint64_t n = graph.vertices;
  std::fill_n(scores, n, 1 / static_cast<float>(n));
  for (int i = 0; i < kIterations; ++i) {
#pragma omp parallel for schedule(static)
    for (uint64_t v = 0; v < n; ++v)
      given[v] = scores[v] / static_cast<float>(std::max<uint64_t>(graph.degree(v), 1));
#pragma omp parallel for schedule(dynamic, kChunk)
    for (uint64_t v = 0; v < n; ++v) {
      float sum = 0;
      for (uint64_t e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e) sum += given[graph.ends[e]];
      scores[v] = (1 - kDamping) / static_cast<float>(n) + kDamping * sum;
    }
  }
  return kIterations;
}

constexpr uint32_t kUnseen = ~0u;

// From the vertices in `front` to their neighbours, which are `level` edges away. Returns the edges of the new ones.
uint64_t step_down(const Graph& graph, uint32_t* depths, uint32_t level, const uint32_t* front,
                   uint64_t front_count, uint32_t* next, uint64_t& next_count) {
  uint64_t edges = 0;
#pragma omp parallel reduction(+ : edges)
  {
    Found found(next, next_count);
#pragma omp for schedule(dynamic, 64) nowait
    for (uint64_t i = 0; i < front_count; ++i) {
      const uint32_t u = front[i];
      for (uint64_t e = graph.offsets[u]; e < graph.offsets[u + 1]; ++e) {
        const uint32_t v = graph.ends[e];
        uint32_t expected = kUnseen;
        if (look(depths[v]) != kUnseen ||
            !shared(depths[v]).compare_exchange_strong(expected, level, std::memory_order_relaxed))
          continue;
        found.add(v);
        edges += graph.degree(v);
      }
    }
  }
  return edges;
}

// From vertices that are not seen yet to any neighbour in the bitmap `front`.
uint64_t step_up(const Graph& graph, uint32_t* depths, uint32_t level, const uint64_t* front,
                 uint64_t* next) {
  uint64_t count = 0;
#pragma omp parallel for schedule(dynamic, kChunk) reduction(+ : count)
  for (uint64_t v = 0; v < graph.vertices; ++v) {
    if (v % 64 == 0) next[v / 64] = 0;
    if (depths[v] != kUnseen) continue;
    for (uint64_t e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e) {
      const uint32_t u = graph.ends[e];
      if ((front[u / 64] >> u % 64 & 1) == 0) continue;
      depths[v] = level;
      next[v / 64] |= uint64_t{1} << v % 64;
      ++count;
      break;
    }
  }
  return count;
}

// Arrays: depths, two queues, two bitmaps (a byte for each vertex of room).
uint64_t breadth_first(const Graph& graph, Workspace& workspace) {
  constexpr int kSources = 4;
  constexpr uint64_t kAlpha = 15, kBeta = 18;
  auto* const depths = array<uint32_t>(workspace, 0);
  const uint64_t n = graph.vertices, words = (n + 63) / 64;
  uint64_t reached = 0;
  for (int i = 0; i < kSources; ++i) {
    auto* front = array<uint32_t>(workspace, 1);
    auto* next = array<uint32_t>(workspace, 2);
    auto* front_bits = array<uint64_t>(workspace, 3);
    auto* next_bits = array<uint64_t>(workspace, 4);
    std::fill_n(depths, n, kUnseen);
    front[0] = source(graph, i);
    depths[front[0]] = 0;
    uint64_t count = 1, edges = graph.degree(front[0]), left = graph.entries;
    uint32_t level = 1;
    reached += count;
    while (count > 0) {
      if (edges <= left / kAlpha) {
        left -= edges;
        uint64_t found = 0;
        edges = step_down(graph, depths, level++, front, count, next, found);
        std::swap(front, next);
        reached += count = found;
        continue;
      }
      std::fill_n(front_bits, words, 0);
      for (uint64_t at = 0; at < count; ++at) front_bits[front[at] / 64] |= uint64_t{1} << front[at] % 64;
      for (uint64_t before = 0; count > before || count > n / kBeta;) {
        before = count;
        reached += count = step_up(graph, depths, level++, front_bits, next_bits);
        std::swap(front_bits, next_bits);
      }
      count = 0;
      for (uint64_t word = 0; word < words; ++word)
        for (uint64_t bits = front_bits[word]; bits != 0; bits &= bits - 1)
          front[count++] = static_cast<uint32_t>(word * 64 + static_cast<uint64_t>(__builtin_ctzll(bits)));
      edges = 1;
    }
  }
  return reached;
}

// Joins the trees of two vertices: the higher root below the lower one.
void link(uint32_t u, uint32_t v, uint32_t* parents) {
  uint32_t p = look(parents[u]), q = look(parents[v]);
  while (p != q) {
    const uint32_t high = std::max(p, q), low = std::min(p, q);
    uint32_t above = look(parents[high]);
    if (above == low) return;
    if (above == high && shared(parents[high]).compare_exchange_strong(above, low, std::memory_order_relaxed))
      return;
    p = look(parents[look(parents[high])]);
    q = look(parents[low]);
  }
}

void compress(const Graph& graph, uint32_t* parents) {
#pragma omp parallel for schedule(dynamic, kChunk)
  for (uint64_t v = 0; v < graph.vertices; ++v)
    while (look(parents[v]) != look(parents[look(parents[v])]))
      shared(parents[v]).store(look(parents[look(parents[v])]), std::memory_order_relaxed);
}

// The root that most of some vertices have.
uint32_t frequent_root(const Graph& graph, uint32_t* parents) {
  uint32_t roots[1024];
  load::Random random(kSeed);
  for (uint32_t& root : roots) root = look(parents[random.below(graph.vertices)]);
  std::sort(std::begin(roots), std::end(roots));
  uint32_t best = roots[0], most = 0, same = 0;
  for (size_t i = 0; i < std::size(roots); ++i) {
    same = i > 0 && roots[i] == roots[i - 1] ? same + 1 : 1;
    if (same > most) most = same, best = roots[i];
  }
  return best;
}

// Arrays: parents; in the end the lowest vertex of each one's component.
uint64_t components(const Graph& graph, Workspace& workspace) {
  constexpr uint64_t kRounds =
      2;  // neighbours of each vertex that are looked at before the largest component is left out
  auto* const parents = array<uint32_t>(workspace, 0);
  for (uint64_t v = 0; v < graph.vertices; ++v) parents[v] = static_cast<uint32_t>(v);
  for (uint64_t round = 0; round < kRounds; ++round) {
#pragma omp parallel for schedule(dynamic, kChunk)
    for (uint64_t v = 0; v < graph.vertices; ++v)
      if (round < graph.degree(v))
        link(static_cast<uint32_t>(v), graph.ends[graph.offsets[v] + round], parents);
    compress(graph, parents);
  }
  const uint32_t largest = frequent_root(graph, parents);
#pragma omp parallel for schedule(dynamic, kChunk)
  for (uint64_t v = 0; v < graph.vertices; ++v) {
    if (look(parents[v]) == largest) continue;
    for (uint64_t e = graph.offsets[v] + kRounds; e < graph.offsets[v + 1]; ++e)
      link(static_cast<uint32_t>(v), graph.ends[e], parents);
  }
  compress(graph, parents);
  return 0;
}

// Those of which u is the largest vertex.
inline uint64_t triangles_at(const Graph& graph, uint64_t u) {
  uint64_t total = 0;
  const uint32_t* const row = graph.ends + graph.offsets[u];
  const uint32_t* const row_end = graph.ends + graph.offsets[u + 1];
  for (const uint32_t* v = row; v < row_end && *v < u; ++v) {
    const uint32_t* first = row;
    // Ends before the row does: `u` is in it.
    for (const uint32_t* second = graph.ends + graph.offsets[*v]; *second < *v; ++second) {
      while (*first < *second) ++first;
      total += *first == *second;
    }
  }
  return total;
}

uint64_t triangles(const Graph& graph, Workspace&) {
  uint64_t total = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : total)
  for (uint64_t u = 0; u < graph.vertices; ++u) total += triangles_at(graph, u);
  return total;
}

// Of one run of vertices in 32: memory is used as for all of them, for a thirty-second of the time.
uint64_t some_triangles(const Graph& graph, Workspace&) {
  constexpr uint64_t kRun = 64, kRunsForOne = 32;
  uint64_t total = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : total)
  for (uint64_t run = 0; run < graph.vertices; run += kRun * kRunsForOne)
    for (uint64_t u = run; u < std::min(run + kRun, graph.vertices); ++u) total += triangles_at(graph, u);
  return total;
}

// Vertices to be looked at again, by the distance that they then had, in steps of kDelta; of one thread.
using Bins = std::vector<std::vector<uint32_t>>;
constexpr uint32_t kDelta = 64;

void relax(const Graph& graph, uint32_t* distances, uint32_t u, Bins& bins) {
  const uint32_t distance = look(distances[u]);
  for (uint64_t e = graph.offsets[u]; e < graph.offsets[u + 1]; ++e) {
    const uint32_t v = graph.ends[e], better = distance + graph.weights[e];
    uint32_t old = look(distances[v]);
    while (better < old)
      if (shared(distances[v]).compare_exchange_weak(old, better, std::memory_order_relaxed)) {
        if (better / kDelta >= bins.size()) bins.resize(better / kDelta + 1);
        bins[better / kDelta].push_back(v);
        break;
      }
  }
}

// Arrays: distances.
uint64_t shortest_paths(const Graph& graph, Workspace& workspace) {
  auto* const distances = array<uint32_t>(workspace, 0);
  std::fill_n(distances, graph.vertices, std::numeric_limits<uint32_t>::max());
  std::vector<uint32_t> front = {source(graph, 0)};
  distances[front[0]] = 0;
  std::vector<Bins> bins(static_cast<size_t>(omp_get_max_threads()));
  for (uint32_t bin = 0; !front.empty();) {
#pragma omp parallel
    {
      Bins& own = bins[static_cast<size_t>(omp_get_thread_num())];
#pragma omp for schedule(dynamic, 64)
      for (uint64_t i = 0; i < front.size(); ++i)
        if (look(distances[front[i]]) >= kDelta * bin) relax(graph, distances, front[i], own);
    }
    size_t last = 0;
    for (const Bins& own : bins) last = std::max(last, own.size());
    front.clear();
    for (; bin < last && front.empty(); bin += front.empty())
      for (Bins& own : bins)
        if (bin < own.size()) {
          front.insert(front.end(), own[bin].begin(), own[bin].end());
          own[bin].clear();
        }
  }
  return 0;
}

// Arrays: scores, depths, vertices in the order of their depths, numbers of shortest paths, dependencies.
uint64_t betweenness(const Graph& graph, Workspace& workspace) {
  constexpr int kSources = 2;
  auto* const scores = array<double>(workspace, 0);
  auto* const depths = array<uint32_t>(workspace, 1);
  auto* const order = array<uint32_t>(workspace, 2);
  auto* const paths = array<double>(workspace, 3);
  auto* const dependencies = array<double>(workspace, 4);
  uint64_t reached = 0;
  std::fill_n(scores, graph.vertices, 0.0);
  for (int i = 0; i < kSources; ++i) {
    std::fill_n(depths, graph.vertices, kUnseen);
    std::fill_n(dependencies, graph.vertices, 0.0);
    order[0] = source(graph, i);
    depths[order[0]] = 0;
    paths[order[0]] = 1;
    std::vector<uint64_t> starts = {0, 1};  // of each depth in `order`
    for (uint32_t depth = 1; starts.back() > starts[depth - 1]; ++depth) {
      uint64_t found = 0;
      const uint64_t begin = starts[depth];
      step_down(graph, depths, depth, order + starts[depth - 1], begin - starts[depth - 1], order + begin,
                found);
      starts.push_back(begin + found);
#pragma omp parallel for schedule(dynamic, 64)
      for (uint64_t at = begin; at < begin + found; ++at) {
        const uint32_t v = order[at];
        double sum = 0;
        for (uint64_t e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e)
          if (depths[graph.ends[e]] == depth - 1) sum += paths[graph.ends[e]];
        paths[v] = sum;
      }
    }
    reached += starts.back();
    for (size_t depth = starts.size() - 2; depth > 0; --depth)
#pragma omp parallel for schedule(dynamic, 64)
      for (uint64_t at = starts[depth]; at < starts[depth + 1]; ++at) {
        const uint32_t v = order[at];
        double sum = 0;
        for (uint64_t e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e) {
          const uint32_t w = graph.ends[e];
          if (depths[w] == depth + 1) sum += paths[v] / paths[w] * (1 + dependencies[w]);
        }
        dependencies[v] = sum;
        scores[v] += sum;
      }
  }
  return reached;
}

}  // namespace

const Kernel kKernels[] = {
    {"pr", false, false, {4, 4}, Values::kFloat, pagerank},
    {"bfs", false, false, {4, 4, 4, 1, 1}, Values::kUnsigned, breadth_first},
    {"cc", false, false, {4}, Values::kUnsigned, components},
    {"tc", false, true, {}, Values::kNone, triangles},
    {"tc32", false, true, {}, Values::kNone, some_triangles},
    {"sssp", true, false, {4}, Values::kUnsigned, shortest_paths},
    {"bc", false, false, {8, 4, 4, 8, 8}, Values::kDouble, betweenness},
};
const size_t kKernelCount = std::size(kKernels);

}  // namespace graph
