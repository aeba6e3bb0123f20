// One kernel over one graph, at the pace of the driver.
//   graph list                                          "NAME WEIGHTED BY_DEGREE" for each kernel
//   graph make kron|uniform any|degree SCALE PATH       a graph in a file
//   graph heap PATH KERNEL THREADS                      its arrays on the heap, read from there
//   graph map GRAPH KERNEL THREADS                      mapped from there, file or device; what is of vertices on the heap
// then on standard input, answered on standard output:
//       (start)                     "started"   nothing is allocated yet
//       load                        "ready BYTES"   of all arrays
//       advise sequential|random    "ready"   how all that is mapped is read
//       run                         "SECONDS CPU_SECONDS CHECKSUM"
//       values                      COUNT, and as many lines: what the kernel has found
#include <fcntl.h>
#include <omp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../measure.h"
#include "../random.h"
#include "graph.h"

namespace graph {

void fail(const std::string& what) {
  std::fprintf(stderr, "graph: %s\n", what.c_str());
  std::exit(1);
}

namespace {

constexpr uint64_t kReadBytes = 1 << 20;

class Program {
 public:
  Program(bool mapped, const char* path, const Kernel& kernel)
      : mapped_(mapped), path_(path), kernel_(kernel) {}

  uint64_t load() {
    file_ = open(path_, O_RDONLY | O_CLOEXEC);
    Header header;
    if (file_ < 0 || pread(file_, &header, sizeof header, 0) != sizeof header)
      fail(std::string(path_) + " cannot be read");
    const Layout layout(header);
    graph_ = {header.vertices, header.entries, nullptr, nullptr, nullptr};
    const uint64_t end_bytes = header.entries * sizeof(uint32_t);
    graph_.offsets = static_cast<uint64_t*>(
        array(layout.offsets, (header.vertices + 1) * sizeof(uint64_t), MADV_SEQUENTIAL));
    graph_.ends = static_cast<uint32_t*>(array(layout.ends, end_bytes, MADV_SEQUENTIAL));
    if (kernel_.weighted)
      graph_.weights = static_cast<uint32_t*>(array(layout.weights, end_bytes, MADV_SEQUENTIAL));
    for (int i = 0; i < kArrays; ++i)
      if (kernel_.array_bytes[i] != 0)
        workspace_.arrays[i] = allocate(kernel_.array_bytes[i] * header.vertices);
    return bytes_;
  }

  void advise(int advice) {
    if (!mapped_) fail("only what is mapped is advised");
    // Where rows are asked for at random, so is where they begin.
    madvise(const_cast<uint64_t*>(graph_.offsets), (graph_.vertices + 1) * sizeof(uint64_t), advice);
    madvise(const_cast<uint32_t*>(graph_.ends), graph_.entries * sizeof(uint32_t), advice);
    if (kernel_.weighted)
      madvise(const_cast<uint32_t*>(graph_.weights), graph_.entries * sizeof(uint32_t), advice);
  }

  void run() {
    cases::Stopwatch watch;
    watch.start();
    result_ = kernel_.run(graph_, workspace_);
    watch.stop();
    std::printf("%.6f %.6f %016llx\n", static_cast<double>(watch.wall_ns()) * 1e-9,
                static_cast<double>(watch.cpu_ns()) * 1e-9, static_cast<unsigned long long>(checksum()));
  }

  void print_values() const {
    if (kernel_.values == Values::kNone) {
      std::printf("1\n%llu\n", static_cast<unsigned long long>(result_));
      return;
    }
    std::printf("%llu\n", static_cast<unsigned long long>(graph_.vertices));
    for (uint64_t v = 0; v < graph_.vertices; ++v) {
      if (kernel_.values == Values::kUnsigned)
        std::printf("%u\n", static_cast<const uint32_t*>(workspace_.arrays[0])[v]);
      else
        std::printf("%.9g\n", kernel_.values == Values::kFloat
                                  ? static_cast<double>(static_cast<const float*>(workspace_.arrays[0])[v])
                                  : static_cast<const double*>(workspace_.arrays[0])[v]);
    }
  }

 private:
  void* allocate(uint64_t bytes) {
    bytes_ += bytes;
    void* const data = std::aligned_alloc(kPageBytes, whole_pages(bytes));
    if (data == nullptr) fail("no memory");
    std::memset(data, 0, bytes);
    return data;
  }

  // A part of the file: mapped with this advice, or read.
  void* array(uint64_t at, uint64_t bytes, int advice) {
    if (mapped_) {
      bytes_ += bytes;
      void* const data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_, static_cast<off_t>(at));
      if (data == MAP_FAILED || madvise(data, bytes, advice) != 0)
        fail(std::string(path_) + " cannot be mapped");
      return data;
    }
    bytes_ += bytes;
    auto* const data = static_cast<char*>(std::aligned_alloc(kPageBytes, whole_pages(bytes)));
    if (data == nullptr) fail("no memory");
    // No more than is asked for, and no longer than it takes: a memory limit may leave a few MiB.
    posix_fadvise(file_, static_cast<off_t>(at), static_cast<off_t>(bytes), POSIX_FADV_RANDOM);
    for (uint64_t done = 0; done < bytes;) {
      const ssize_t part =
          pread(file_, data + done, std::min(kReadBytes, bytes - done), static_cast<off_t>(at + done));
      if (part <= 0) fail(std::string(path_) + " ends too soon");
      posix_fadvise(file_, static_cast<off_t>(at + done), part, POSIX_FADV_DONTNEED);
      done += static_cast<uint64_t>(part);
    }
    return data;
  }

  uint64_t checksum() const {
    uint64_t sum = result_;
    const auto* const words = static_cast<const uint32_t*>(workspace_.arrays[0]);
    if (kernel_.values == Values::kNone) return sum;
    const uint64_t count = kernel_.array_bytes[0] * graph_.vertices / sizeof(uint32_t);
    for (uint64_t i = 0; i < count; ++i) sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15;
    return sum;
  }

  const bool mapped_;
  const char* const path_;
  const Kernel& kernel_;
  Graph graph_ = {};
  Workspace workspace_ = {};
  uint64_t bytes_ = 0;
  uint64_t result_ = 0;
  int file_ = -1;
};

const Kernel* find(const char* name) {
  const Kernel* const end = kKernels + kKernelCount;
  const Kernel* const found =
      std::find_if(kKernels, end, [&](const Kernel& kernel) { return std::strcmp(kernel.name, name) == 0; });
  return found == end ? nullptr : found;
}

int usage() {
  std::fputs("usage: graph list | make kron|uniform any|degree SCALE PATH | heap|map PATH KERNEL THREADS\n",
             stderr);
  return 2;
}

int answer(Program& program) {
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (std::strcmp(line, "load\n") == 0) {
      std::printf("ready %llu\n", static_cast<unsigned long long>(program.load()));
    } else if (std::strcmp(line, "advise sequential\n") == 0 || std::strcmp(line, "advise random\n") == 0) {
      program.advise(line[7] == 's' ? MADV_SEQUENTIAL : MADV_RANDOM);
      std::puts("ready");
    } else if (std::strcmp(line, "run\n") == 0) {
      program.run();
    } else if (std::strcmp(line, "values\n") == 0) {
      program.print_values();
    } else {
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace graph

int main(int count, char** words) {
  using namespace graph;
  const std::string what = count > 1 ? words[1] : "";
  if (what == "list" && count == 2) {
    for (size_t i = 0; i < kKernelCount; ++i)
      std::printf("%s %d %d\n", kKernels[i].name, kKernels[i].weighted, kKernels[i].by_degree);
    return 0;
  }
  if (what == "make" && count == 6) {
    const int scale = std::atoi(words[4]);
    const std::string kind = words[2], order = words[3];
    if ((kind != "kron" && kind != "uniform") || (order != "any" && order != "degree") || scale < 1 ||
        scale >= 30)
      return usage();
    make_file(kind, order == "degree", scale, words[5]);
    return 0;
  }
  const Kernel* const kernel = count == 5 ? find(words[3]) : nullptr;
  const int threads = kernel != nullptr ? std::atoi(words[4]) : 0;
  if ((what != "heap" && what != "map") || threads < 1 || threads > 64) return usage();
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // spilled memory has pages of 4 KiB; so has everybody's
  omp_set_num_threads(threads);
  std::puts("started");
  std::fflush(stdout);
  Program program(what == "map", words[2], *kernel);
  return answer(program);
}
