// Random 8-byte reads and read-modify-writes for a while, by several threads, at the pace of the driver.
//   random fill PATH BYTES           writes the data to a file or device
//   random heap BYTES                data on the heap
//   random map PATH BYTES            data mapped from there, without read-ahead
// then on standard input, answered on standard output:
//       (start)                      "started"   nothing is allocated yet
//       fill                         "ready"
//       run THREADS read|rmw SECONDS "ACCESSES SECONDS"
//       run TASKS tasks SECONDS      the same: reads, by the tasks of a loop, on a thread for each CPU
//       run THREADS pages SECONDS    "PAGES SECONDS": an access reads all words of a page
//       within BYTES                 "ready"   reads go to the first BYTES from now on, which have been read once
//       check                        "right" or "wrong"   all of the data, after all changes
//
// 1 the data is random, so that devices which compress gain nothing
// 2 a thread changes only words of its own number modulo kMaxThreads: no word is raced for, all pages are
// 3 each change adds one, so the sum of all words says whether any was lost
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "spillway/task.h"

namespace {

constexpr uint64_t kMaxThreads = 16;
constexpr uint64_t kMaxTasks = 256;
constexpr uint64_t kWordsPerPage = 512, kPageBytes = 4096;
// Between two looks at the clock's flag.
constexpr int kBatch = 16;

enum class Mode { kRead, kRmw, kTasks, kPages };

struct Work {
  pthread_t thread;
  uint64_t number;
  uint64_t seed;
  uint64_t accesses;
  uint64_t sum;
  Mode mode;
};

uint64_t* words;
uint64_t word_count;
uint64_t read_count;  // words that are read
uint64_t expected_sum;
std::atomic<bool> running;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

uint64_t content(uint64_t index) {
  uint64_t x = index + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

uint64_t next_random(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The high half of a product spreads a random number over [0, n) without a division.
uint64_t below(uint64_t random, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(random) * n) >> 64);
}

__attribute__((noinline)) uint64_t read_batch(uint64_t& state) {
  uint64_t sum = 0;
  for (int i = 0; i < kBatch; ++i) sum += words[below(next_random(state), read_count)];
  return sum;
}

__attribute__((noinline)) uint64_t page_batch(uint64_t& state) {
  uint64_t sum = 0;
  for (int i = 0; i < kBatch; ++i) {
    const uint64_t* page = words + below(next_random(state), read_count / kWordsPerPage) * kWordsPerPage;
    for (uint64_t word = 0; word < kWordsPerPage; ++word) sum += page[word];
  }
  return sum;
}

__attribute__((noinline)) void rmw_batch(uint64_t& state, uint64_t thread) {
  for (int i = 0; i < kBatch; ++i)
    words[below(next_random(state), word_count / kMaxThreads) * kMaxThreads + thread] += 1;
}

void* work(void* argument) {
  auto& own = *static_cast<Work*>(argument);
  uint64_t state = own.seed, accesses = 0, sum = 0;
  while (running.load(std::memory_order_relaxed)) {
    if (own.mode == Mode::kRmw)
      rmw_batch(state, own.number);
    else if (own.mode == Mode::kPages)
      sum += page_batch(state);
    else
      sum += read_batch(state);
    accesses += kBatch;
  }
  own.accesses = accesses;
  own.sum = sum;
  return nullptr;
}

void* stop_later(void* seconds) {
  usleep(static_cast<useconds_t>(*static_cast<double*>(seconds) * 1e6));
  running = false;
  return nullptr;
}

void run(uint64_t threads, Mode mode, double seconds) {
  static Work all[kMaxTasks];
  static uint64_t runs;
  ++runs;
  running = true;
  double began = now();
  for (uint64_t i = 0; i < threads; ++i)
    all[i] = {.thread = {},
              .number = i,
              .seed = content(runs * kMaxTasks + i) | 1,
              .accesses = 0,
              .sum = 0,
              .mode = mode};
  if (mode == Mode::kTasks) {
    pthread_t timer;
    if (pthread_create(&timer, nullptr, stop_later, &seconds) != 0) fail("random: pthread_create");
    spillway::LoopOptions options;
    options.tasks = static_cast<uint32_t>(threads);
    options.grain = 1;
    spillway::parallel_for(uint64_t{0}, threads, options, [](uint64_t i) { work(&all[i]); });
    pthread_join(timer, nullptr);
  } else {
    for (uint64_t i = 0; i < threads; ++i)
      if (pthread_create(&all[i].thread, nullptr, work, &all[i]) != 0) fail("random: pthread_create");
    stop_later(&seconds);
    for (uint64_t i = 0; i < threads; ++i) pthread_join(all[i].thread, nullptr);
  }
  uint64_t accesses = 0;
  for (uint64_t i = 0; i < threads; ++i) accesses += all[i].accesses;
  // Until the last access was done.
  std::printf("%llu %.6f\n", static_cast<unsigned long long>(accesses), now() - began);
  if (mode == Mode::kRmw) expected_sum += accesses;
}

void expect_contents() {
  expected_sum = 0;
  for (uint64_t i = 0; i < word_count; ++i) expected_sum += content(i);
}

void fill_heap() {
  words = static_cast<uint64_t*>(std::aligned_alloc(4096, word_count * sizeof(uint64_t)));
  if (words == nullptr) fail("random: no memory");
  for (uint64_t i = 0; i < word_count; ++i) words[i] = content(i);
}

void map_file(const char* path) {
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) fail(path);
  void* data = mmap(nullptr, word_count * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED || madvise(data, word_count * sizeof(uint64_t), MADV_RANDOM) != 0) fail(path);
  close(file);
  words = static_cast<uint64_t*>(data);
}

// Past the page cache, so that it holds nothing when the measurement begins.
int fill_file(const char* path) {
  constexpr uint64_t kPart = (1 << 20) / sizeof(uint64_t);
  int file = open(path, O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  auto* part = static_cast<uint64_t*>(std::aligned_alloc(4096, kPart * sizeof(uint64_t)));
  if (file < 0 || part == nullptr) fail(path);
  for (uint64_t at = 0; at < word_count; at += kPart) {
    for (uint64_t i = 0; i < kPart; ++i) part[i] = content(at + i);
    if (write(file, part, kPart * sizeof(uint64_t)) != static_cast<ssize_t>(kPart * sizeof(uint64_t)))
      fail(path);
  }
  if (fsync(file) != 0) fail(path);
  return 0;
}

void read_within(uint64_t bytes) {
  read_count = bytes / kPageBytes * kWordsPerPage;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < read_count; i += kWordsPerPage) sum += words[i];
  asm volatile("" ::"r"(sum));
}

Mode mode_of(const char* word) {
  constexpr const char* kNames[] = {"read", "rmw", "tasks", "pages"};
  for (int i = 0; i < 4; ++i)
    if (std::strcmp(word, kNames[i]) == 0) return static_cast<Mode>(i);
  std::exit(2);
}

bool check(bool mapped) {
  if (mapped) madvise(words, word_count * sizeof(uint64_t), MADV_SEQUENTIAL);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < word_count; ++i) sum += words[i];
  if (mapped) madvise(words, word_count * sizeof(uint64_t), MADV_RANDOM);
  return sum == expected_sum;
}

}  // namespace

int main(int count, char** arguments) {
  const char* kind = count > 2 ? arguments[1] : "";
  bool file = std::strcmp(kind, "fill") == 0, mapped = std::strcmp(kind, "map") == 0;
  if (!file && !mapped && std::strcmp(kind, "heap") != 0) {
    std::fputs("usage: random fill PATH BYTES | heap BYTES | map PATH BYTES\n", stderr);
    return 2;
  }
  word_count = std::strtoull(arguments[count - 1], nullptr, 10) / sizeof(uint64_t);
  word_count -= word_count % (256 * kWordsPerPage);
  read_count = word_count;
  if (file) return fill_file(arguments[2]);
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  std::puts("started");
  std::fflush(stdout);
  char line[80], mode[8];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    unsigned long long threads, bytes;
    double seconds;
    if (std::strcmp(line, "fill\n") == 0) {
      expect_contents();
      mapped ? map_file(arguments[2]) : fill_heap();
      std::puts("ready");
    } else if (std::strcmp(line, "check\n") == 0) {
      std::puts(check(mapped) ? "right" : "wrong");
    } else if (std::sscanf(line, "within %llu", &bytes) == 1 && bytes >= kPageBytes &&
               bytes <= word_count * sizeof(uint64_t)) {
      read_within(bytes);
      std::puts("ready");
    } else if (std::sscanf(line, "run %llu %7s %lf", &threads, mode, &seconds) == 3 &&
               threads <= (mode_of(mode) == Mode::kTasks ? kMaxTasks : kMaxThreads)) {
      run(threads, mode_of(mode), seconds);
    } else {
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}
