// Programs whose pages are loaded by servers: threads that come and go, more of them than there were before, system calls into
// many pages, a mapped file, handlers that touch memory, children of fork that go on without servers, and pages that several threads
// want at once.
// flags: -pthread
// memory: 2M
// pages: 4K 8K
// servers: yes
// expect: cache.evictions>=1000
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#include "e2e.h"

constexpr size_t kWords = 1 << 20;  // 8 MiB
static std::vector<uint64_t> shared_words;

static uint64_t word_of(size_t i) { return i * 0x9e3779b97f4a7c15 ^ 12345; }

// Every thread reads all of it, from a place of its own, so that most misses are of pages that another may be loading.
static uint64_t sum_from(size_t from, size_t step) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kWords; i += step) sum += shared_words[(from + i) % kWords];
  return sum;
}

static void in_threads(int count, size_t step, std::vector<uint64_t>& sums) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&sums, t, step] { sums[t] = sum_from(t / 2 * (kWords / 8), step); });
  for (std::thread& thread : threads) thread.join();
}

static volatile sig_atomic_t handled = 0;
static uint64_t seen_by_handler = 0;
static void handler(int) {
  seen_by_handler += shared_words[(handled * 4099) % kWords];
  handled = handled + 1;
}

// All of `words` through a file, by system calls of 100,000 bytes.
static void through_a_file(std::vector<uint64_t>& words) {
  char name[] = "servers-XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  const auto* bytes = reinterpret_cast<const char*>(words.data());
  const size_t size = words.size() * sizeof words[0];
  constexpr size_t kPiece = 100000;
  for (size_t at = 0; at < size;) {
    const ssize_t n = pwrite(file, bytes + at, std::min(kPiece, size - at), at);
    if (n <= 0) abort();
    at += n;
  }
  std::vector<uint64_t> back(words.size());
  for (size_t at = 0; at < size;) {
    const ssize_t n = pread(file, reinterpret_cast<char*>(back.data()) + at, std::min(kPiece, size - at), at);
    if (n <= 0) abort();
    at += n;
  }
  if (back != words) abort();
  const auto* mapped = static_cast<const uint64_t*>(mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0));
  if (mapped == MAP_FAILED) abort();
  uint64_t differing = 0;
  for (size_t i = 0; i < words.size(); i += 64) differing += mapped[i] != words[i];
  printf("mapped: %d differ\n", (int)differing);
  munmap(const_cast<uint64_t*>(mapped), size);
  close(file);
}

// Threads of this process that are called so.
static int threads_called(const char* name) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) abort();
  while (const dirent* entry = readdir(tasks)) {
    char path[300], found[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    FILE* file = fopen(path, "r");
    if (file == nullptr) continue;
    if (fgets(found, sizeof found, file) == nullptr) abort();
    fclose(file);
    count += strncmp(found, name, strlen(name)) == 0;
  }
  closedir(tasks);
  return count;
}

static int child(int depth) {
  if (threads_called("spillway server") != 0) return 98;
  std::vector<uint64_t> sums(3);
  for (size_t i = depth; i < kWords; i += 512) shared_words[i] += depth + 1;
  in_threads(3, 64, sums);
  if (depth == 1) return static_cast<int>((sums[0] ^ sums[1] ^ sums[2]) >> 20 & 63);
  const pid_t process = fork();
  if (process == 0) _exit(child(depth + 1));
  int status;
  if (waitpid(process, &status, 0) != process || !WIFEXITED(status)) return 99;
  return static_cast<int>((WEXITSTATUS(status) + (sums[0] >> 20)) & 63);
}

int main() {
  if (getenv("SPILLWAY_SERVERS") != nullptr &&
      threads_called("spillway server") != atoi(getenv("SPILLWAY_SERVERS")))
    return 97;
  shared_words.resize(kWords);
  for (size_t i = 0; i < kWords; ++i) shared_words[i] = word_of(i);
  uint64_t expected = 0;
  for (size_t i = 0; i < kWords; i += 8) expected += word_of(i);

  for (int round = 0; round < 3; ++round) {
    std::vector<uint64_t> sums(6);
    in_threads(6, 8, sums);
    for (uint64_t sum : sums) printf("%d", sum == expected);
    printf("\n");
  }

  signal(SIGUSR1, handler);
  std::atomic<bool> stop{false};
  const pthread_t self = pthread_self();
  std::thread sender([&] {
    while (!stop) {
      pthread_kill(self, SIGUSR1);
      usleep(500);
    }
  });
  uint64_t sum = 0;
  // At least one signal, however busy the machine is.
  for (int round = 0; handled == 0 || (round < 40 && (handled < 20 || round < 2)); ++round)
    sum = sum_from(0, 8);
  stop = true;
  sender.join();
  uint64_t seen = 0;
  for (int i = 0; i < handled; ++i) seen += word_of((i * 4099) % kWords);
  printf("handled %d %d %d\n", handled > 0, sum == expected, seen == seen_by_handler);

  std::vector<uint64_t> some(shared_words.begin(), shared_words.begin() + (1 << 17));
  through_a_file(some);

  // Children go on while the parent's threads do.
  std::vector<uint64_t> sums(4);
  std::thread beside([&] { in_threads(4, 8, sums); });
  fflush(stdout);
  pid_t children[3];
  for (pid_t& process : children) {
    process = fork();
    if (process == 0) _exit(child(0));
  }
  for (pid_t process : children) {
    int status;
    if (waitpid(process, &status, 0) != process) abort();
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  beside.join();
  for (uint64_t each : sums) printf("%d", each == expected);
  printf("\n");
  for (size_t i = 0; i < kWords; i += 100)
    if (shared_words[i] != word_of(i)) return 1;
  return 0;
}
