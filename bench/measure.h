// Time and memory of a process, and the CPUs of its threads, for the programs of benchmarks.
#pragma once
#include <sched.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace cases {

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

inline uint64_t clock_ns(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// CPU time of all threads and time on the wall, since the last start().
class Stopwatch {
 public:
  void start() {
    cpu_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    wall_ns_ = clock_ns(CLOCK_MONOTONIC);
  }
  void stop() {
    wall_ns_ = clock_ns(CLOCK_MONOTONIC) - wall_ns_;
    cpu_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns_;
  }
  uint64_t cpu_ns() const { return cpu_ns_; }
  uint64_t wall_ns() const { return wall_ns_; }

 private:
  uint64_t cpu_ns_ = 0;
  uint64_t wall_ns_ = 0;
};

// Of a file like /proc/self/status: the kibibytes behind a word, in bytes.
inline uint64_t bytes_of(const char* path, const char* word) {
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) fail(path);
  char line[256];
  uint64_t bytes = 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::strncmp(line, word, std::strlen(word)) == 0)
      bytes = std::strtoull(line + std::strlen(word), nullptr, 10) << 10;
  std::fclose(file);
  return bytes;
}

struct Memory {
  uint64_t resident_bytes = bytes_of("/proc/self/status", "VmRSS:");
  uint64_t page_table_bytes = bytes_of("/proc/self/status", "VmPTE:");
};

// That the process may use.
inline int cpu_count() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) fail("sched_getaffinity");
  return CPU_COUNT(&allowed);
}
// The index-th CPU of those that the process may use, for the calling thread and those that it starts.
inline void stay_on_cpu(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) fail("sched_getaffinity");
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) fail("sched_setaffinity");
    return;
  }
  std::fputs("this case needs two CPUs\n", stderr);
  std::exit(1);
}

}  // namespace cases
