// Visits of random pages by many threads or by as many tasks, at the pace of the driver (TriCache, "Threads or Fibers").
//   fibers BYTES                               data on the heap, filled
// then on standard input, answered on standard output:
//       run tasks|threads COUNT ACCESSES SECONDS    "VISITS SECONDS CPU_SECONDS WRONG"
//
// 1 a visit is ACCESSES reads at random places of one page
// 2 each word says where it lies, and one is checked in each visit: so a page that is another shows
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "spillway/task.h"

namespace {

constexpr uint64_t kWordsPerPage = 512;
constexpr uint64_t kMaxWorkers = 4096;

uint64_t* words;
uint64_t page_count;
std::atomic<bool> running;

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
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

// The high half of a product spreads a random number over [0, n) without a division.
uint64_t below(uint64_t random, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(random) * n) >> 64);
}

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Of the whole process, so far.
double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

struct alignas(64) Work {
  pthread_t thread;
  uint64_t seed;
  uint64_t accesses;
  uint64_t visits;
  uint64_t wrong;
  uint64_t sum;
};

// Returns the sum of what it read.
__attribute__((noinline)) uint64_t visit(uint64_t page, uint64_t accesses, uint64_t& state, uint64_t& wrong) {
  const uint64_t* const own = words + page * kWordsPerPage;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < accesses; ++i) sum += own[next_random(state) % kWordsPerPage];
  const uint64_t at = page * kWordsPerPage + state % kWordsPerPage;
  wrong += words[at] != mixed(at);
  return sum;
}

void work(Work& own) {
  uint64_t state = own.seed, wrong = 0, visits = 0, sum = 0;
  while (running.load(std::memory_order_relaxed)) {
    sum += visit(below(next_random(state), page_count), own.accesses, state, wrong);
    ++visits;
  }
  own.visits = visits;
  own.wrong = wrong;
  own.sum = sum;
}

void* run_thread(void* own) {
  work(*static_cast<Work*>(own));
  return nullptr;
}

void* end_later(void* seconds) {
  usleep(static_cast<useconds_t>(*static_cast<double*>(seconds) * 1e6));
  running = false;
  return nullptr;
}

bool run(bool tasks, uint64_t count, uint64_t accesses, double seconds) {
  static uint64_t runs;
  ++runs;
  auto* const all = static_cast<Work*>(std::calloc(count, sizeof(Work)));
  if (all == nullptr) return false;
  for (uint64_t i = 0; i < count; ++i) {
    all[i].seed = mixed(runs * kMaxWorkers + i) | 1;
    all[i].accesses = accesses;
  }
  running = true;
  const double began = now(), cpu_before = cpu_seconds();
  pthread_t timer;
  if (pthread_create(&timer, nullptr, end_later, &seconds) != 0) return false;
  if (tasks) {
    spillway::LoopOptions options;
    options.tasks = static_cast<uint32_t>(count);
    options.grain = 1;
    spillway::parallel_for(uint64_t{0}, count, options, [all](uint64_t i) { work(all[i]); });
  } else {
    for (uint64_t i = 0; i < count; ++i)
      if (pthread_create(&all[i].thread, nullptr, run_thread, &all[i]) != 0) return false;
    for (uint64_t i = 0; i < count; ++i) pthread_join(all[i].thread, nullptr);
  }
  pthread_join(timer, nullptr);
  uint64_t visits = 0, wrong = 0;
  for (uint64_t i = 0; i < count; ++i) {
    visits += all[i].visits;
    wrong += all[i].wrong;
  }
  std::printf("%llu %.6f %.6f %llu\n", static_cast<unsigned long long>(visits), now() - began,
              cpu_seconds() - cpu_before, static_cast<unsigned long long>(wrong));
  std::free(all);
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: fibers BYTES\n", stderr);
    return 2;
  }
  // Of all threads to come: a modelled device wakes those that wait at its time, not up to 50 us later.
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  page_count = std::strtoull(arguments[1], nullptr, 10) / (kWordsPerPage * sizeof(uint64_t));
  words = static_cast<uint64_t*>(std::aligned_alloc(4096, page_count * kWordsPerPage * sizeof(uint64_t)));
  if (words == nullptr) return 1;
  for (uint64_t i = 0; i < page_count * kWordsPerPage; ++i) words[i] = mixed(i);
  std::puts("ready");
  std::fflush(stdout);
  char line[80], kind[8];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    unsigned long long workers, accesses;
    double seconds;
    if (std::sscanf(line, "run %7s %llu %llu %lf", kind, &workers, &accesses, &seconds) != 4 ||
        workers == 0 || workers > kMaxWorkers)
      return 2;
    if (!run(std::strcmp(kind, "tasks") == 0, workers, accesses, seconds)) {
      std::perror("fibers");
      return 1;
    }
    std::fflush(stdout);
  }
  return 0;
}
