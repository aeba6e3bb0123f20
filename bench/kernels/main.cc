// Times one kernel, at the pace of the driver, so that several builds can take turns.
//   kernels list
//   kernels NAME heap|memfd full|quick      then on standard input, answered on standard output:
//       (start)    "ready BYTES"
//       run        "SECONDS CHECKSUM"   CPU seconds of the thread
//       check      "CHECKSUM"           of all memory
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "pages.h"
#include "workspace.h"

namespace {

double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

const kernels::Kernel* find(const char* name) {
  for (size_t i = 0; i < kernels::kKernelCount; ++i)
    if (std::strcmp(kernels::kKernels[i].name, name) == 0) return &kernels::kKernels[i];
  return nullptr;
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::strcmp(words[1], "list") == 0) {
    for (size_t i = 0; i < kernels::kKernelCount; ++i) std::puts(kernels::kKernels[i].name);
    return 0;
  }
  const kernels::Kernel* kernel = count == 4 ? find(words[1]) : nullptr;
  if (kernel == nullptr) {
    std::fputs("usage: kernels NAME heap|memfd full|quick\n", stderr);
    return 2;
  }
  // Spilled memory has pages of 4 KiB; so has everybody's.
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  kernels::use_memfd = std::strcmp(words[2], "memfd") == 0;
  static kernels::Workspace workspace;
  workspace.quick = std::strcmp(words[3], "quick") == 0;
  workspace.repeats = workspace.quick ? (kernel->repeats + 3) / 4 : kernel->repeats;
  kernel->prepare(workspace);
  kernel->run(workspace);

  size_t bytes = 0;
  for (int i = 0; i < workspace.array_count; ++i) bytes += workspace.arrays[i].bytes;
  std::printf("ready %zu\n", bytes);
  std::fflush(stdout);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (std::strcmp(line, "run\n") == 0) {
      double began = thread_seconds();
      uint64_t result = kernel->run(workspace);
      double seconds = thread_seconds() - began;
      std::printf("%.9f %016llx\n", seconds, static_cast<unsigned long long>(result));
    } else if (std::strcmp(line, "check\n") == 0) {
      std::printf("%016llx\n", static_cast<unsigned long long>(kernels::checksum(workspace)));
    } else {
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}
