// Times one kernel, at the pace of the driver, so that several builds can take turns.
//   kernels list
//   kernels NAME heap|memfd full|quick|tiny THREADS     then on standard input, answered on standard output:
//       (start)    "ready BYTES ACCESSES"   of all threads' data; of one thread's run
//       run        "SECONDS CHECKSUM"       CPU seconds of a thread
//       check      "CHECKSUM"               of all memory
#include <pthread.h>
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

struct Turn {
  pthread_t thread;
  const kernels::Kernel* kernel;
  kernels::Workspace* workspace;
  double seconds;
  uint64_t result;
};

constexpr int kMaxThreads = 8;
kernels::Workspace workspaces[kMaxThreads];
Turn turns[kMaxThreads];
int thread_count;

void* take_turn(void* argument) {
  auto& turn = *static_cast<Turn*>(argument);
  double began = thread_seconds();
  turn.result = turn.kernel->run(*turn.workspace);
  turn.seconds = thread_seconds() - began;
  return nullptr;
}

void run() {
  for (int i = 1; i < thread_count; ++i)
    if (pthread_create(&turns[i].thread, nullptr, take_turn, &turns[i]) != 0) {
      std::fputs("kernels: no thread\n", stderr);
      std::exit(1);
    }
  take_turn(&turns[0]);
  for (int i = 1; i < thread_count; ++i) pthread_join(turns[i].thread, nullptr);
  double seconds = 0;
  uint64_t result = 0;
  for (int i = 0; i < thread_count; ++i) {
    seconds += turns[i].seconds / thread_count;
    result = result * 31 + turns[i].result;
  }
  std::printf("%.9f %016llx\n", seconds, static_cast<unsigned long long>(result));
}

void prepare(const kernels::Kernel& kernel, kernels::Size size) {
  for (int i = 0; i < thread_count; ++i) {
    bool own = i == 0 || !kernel.only_reads;
    turns[i].kernel = &kernel;
    turns[i].workspace = &workspaces[own ? i : 0];
    if (!own) continue;
    kernels::Workspace& workspace = workspaces[i];
    workspace.size = size;
    workspace.repeats = size == kernels::Size::kTiny    ? kernel.tiny_repeats
                        : size == kernels::Size::kQuick ? (kernel.repeats + 3) / 4
                                                        : kernel.repeats;
    kernel.prepare(workspace);
    kernel.run(workspace);
  }
}

// Of all workspaces; one that several threads read has been prepared once.
size_t all_bytes() {
  size_t bytes = 0;
  for (const kernels::Workspace& workspace : workspaces)
    for (int i = 0; i < workspace.array_count; ++i) bytes += workspace.arrays[i].bytes;
  return bytes;
}

uint64_t check() {
  uint64_t total = 0;
  for (const kernels::Workspace& workspace : workspaces) total = total * 31 + kernels::checksum(workspace);
  return total;
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::strcmp(words[1], "list") == 0) {
    for (size_t i = 0; i < kernels::kKernelCount; ++i) std::puts(kernels::kKernels[i].name);
    return 0;
  }
  const kernels::Kernel* kernel = count == 5 ? find(words[1]) : nullptr;
  thread_count = kernel != nullptr ? std::atoi(words[4]) : 0;
  if (thread_count < 1 || thread_count > kMaxThreads) {
    std::fputs("usage: kernels NAME heap|memfd full|quick|tiny THREADS\n", stderr);
    return 2;
  }
  // Spilled memory has pages of 4 KiB; so has everybody's.
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  kernels::use_memfd = std::strcmp(words[2], "memfd") == 0;
  prepare(*kernel, std::strcmp(words[3], "tiny") == 0    ? kernels::Size::kTiny
                   : std::strcmp(words[3], "quick") == 0 ? kernels::Size::kQuick
                                                         : kernels::Size::kFull);
  std::printf("ready %zu %llu\n", all_bytes(),
              static_cast<unsigned long long>(kernel->accesses(workspaces[0])));
  std::fflush(stdout);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (std::strcmp(line, "run\n") == 0) {
      run();
    } else if (std::strcmp(line, "check\n") == 0) {
      std::printf("%016llx\n", static_cast<unsigned long long>(check()));
    } else {
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}
