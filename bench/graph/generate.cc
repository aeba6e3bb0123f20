// Graphs to measure with. The same on every machine.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "../random.h"
#include "graph.h"

namespace graph {
namespace {

constexpr uint64_t kEdgesPerVertex = 16;
constexpr uint64_t kSeed = 27;

struct Edge {
  uint32_t from, to;
};

// R-MAT's quadrants: 0.57, 0.19, 0.19, 0.05.
Edge kron_edge(load::Random& random, int scale) {
  Edge edge = {};
  uint64_t bits = 0;
  for (int level = 0; level < scale; ++level, bits >>= 16) {
    if (level % 4 == 0) bits = random.next();
    const uint64_t place = bits & 0xffff;
    edge.from = edge.from << 1 | (place >= 49807);
    edge.to = edge.to << 1 | (place >= 62259 || (place >= 37355 && place < 49807));
  }
  return edge;
}

std::vector<Edge> random_edges(bool kron, int scale) {
  const uint64_t vertices = uint64_t{1} << scale;
  std::vector<Edge> edges(vertices * kEdgesPerVertex);
  load::Random random(kSeed);
  for (Edge& edge : edges)
    edge = kron ? kron_edge(random, scale)
                : Edge{static_cast<uint32_t>(random.below(vertices)),
                       static_cast<uint32_t>(random.below(vertices))};
  return edges;
}

// New numbers of the vertices: any, or by falling degree.
std::vector<uint32_t> numbering(const std::vector<Edge>& edges, uint64_t vertices, bool by_degree) {
  std::vector<uint32_t> order(vertices), number(vertices);
  std::iota(order.begin(), order.end(), 0);
  if (by_degree) {
    std::vector<uint32_t> degree(vertices);
    for (const Edge& edge : edges) ++degree[edge.from], ++degree[edge.to];
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return degree[a] != degree[b] ? degree[a] > degree[b] : a < b; });
  } else {
    load::Random random(kSeed + 1);
    for (uint64_t i = vertices - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  }
  for (uint64_t i = 0; i < vertices; ++i) number[order[i]] = static_cast<uint32_t>(i);
  return number;
}

uint32_t weight_of(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(load::mix(uint64_t{std::min(a, b)} << 32 | std::max(a, b)) % 255 + 1);
}

class File {
 public:
  explicit File(const char* path) : path_(path), file_(std::fopen(path, "wb")) { check(file_ != nullptr); }
  ~File() { check(std::fclose(file_) == 0); }
  void write(const void* data, uint64_t bytes) {
    check(std::fwrite(data, 1, bytes, file_) == bytes);
    static const char zeros[kPageBytes] = {};
    const uint64_t rest = whole_pages(bytes) - bytes;
    check(std::fwrite(zeros, 1, rest, file_) == rest);
  }

 private:
  void check(bool right) {
    if (!right) fail(std::string(path_) + " cannot be written");
  }
  const char* path_;
  std::FILE* file_;
};

}  // namespace

void make_file(const std::string& kind, bool by_degree, int scale, const char* path) {
  const uint64_t vertices = uint64_t{1} << scale;
  std::vector<Edge> edges = random_edges(kind == "kron", scale);
  const std::vector<uint32_t> number = numbering(edges, vertices, by_degree);
  std::vector<uint64_t> places(vertices + 2);
  for (Edge& edge : edges) {
    edge = {number[edge.from], number[edge.to]};
    ++places[edge.from + 2], ++places[edge.to + 2];
  }
  std::partial_sum(places.begin(), places.end(), places.begin());
  std::vector<uint32_t> ends(edges.size() * 2);
  for (const Edge& edge : edges) {
    ends[places[edge.from + 1]++] = edge.to;
    ends[places[edge.to + 1]++] = edge.from;
  }
  edges = {};

  // Rows are sorted and moved together.
  std::vector<uint64_t> offsets(vertices + 1);
  uint64_t used = 0;
  for (uint64_t v = 0; v < vertices; ++v) {
    auto* const row = ends.data() + places[v];
    auto* const row_end = ends.data() + places[v + 1];
    std::sort(row, row_end);
    uint64_t begin = used;
    for (auto* end = row; end < row_end; ++end)
      if (*end != v && (used == begin || ends[used - 1] != *end)) ends[used++] = *end;
    offsets[v + 1] = used;
  }
  std::vector<uint32_t> weights(used);
  for (uint64_t v = 0; v < vertices; ++v)
    for (uint64_t e = offsets[v]; e < offsets[v + 1]; ++e)
      weights[e] = weight_of(static_cast<uint32_t>(v), ends[e]);

  const Header header = {vertices, used};
  File file(path);
  file.write(&header, sizeof header);
  file.write(offsets.data(), offsets.size() * sizeof offsets[0]);
  file.write(ends.data(), used * sizeof ends[0]);
  file.write(weights.data(), used * sizeof weights[0]);
}

}  // namespace graph
