// One long loop, in the middle of which memory gets short: what it does before and afterwards, and how long it stands still.
//   switch DATA_BYTES MORE_BYTES SECONDS
// A thread reads words of DATA_BYTES at random, in one call of one function. After SECONDS another one takes MORE_BYTES and fills them; it goes on for
// as long. Prints {"before": reads a second of CPU time, "after": the same once all is filled, "pause_seconds": the longest time without progress, 0 if each look
// finds some, "fill_seconds": …}.
// The sum of all that was read must be right.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "../measure.h"
#include "../random.h"

namespace {

constexpr uint64_t kStep = 1024;  // reads between two signs of progress
constexpr useconds_t kLookMicroseconds = 500;

uint64_t* words;
uint64_t word_count;
std::atomic<uint64_t> progress;
std::atomic<bool> stop;
uint64_t reads, sum;
uint64_t pause_ns;

uint64_t next(uint64_t state) { return state * 6364136223846793005 + 1442695040888963407; }

__attribute__((noinline)) void read_words() {
  const uint64_t* const data = words;
  const uint64_t mask = word_count - 1;
  uint64_t state = 1, total = 0, i = 0;
  for (; i % kStep != 0 || !stop.load(std::memory_order_relaxed); ++i) {
    state = next(state);
    total += data[(state >> 24) & mask];
    if (i % kStep == 0) progress.store(i, std::memory_order_relaxed);
  }
  reads = i;
  sum = total;
}

void* read_all(void*) {
  read_words();
  return nullptr;
}

void* look_for_pauses(void*) {
  uint64_t seen = 0, since = cases::clock_ns(CLOCK_MONOTONIC);
  while (!stop) {
    usleep(kLookMicroseconds);
    const uint64_t now = cases::clock_ns(CLOCK_MONOTONIC), reached = progress.load(std::memory_order_relaxed);
    if (reached != seen) seen = reached, since = now;
    if (now - since > pause_ns) pause_ns = now - since;
  }
  return nullptr;
}

// Of the reader, by its CPU time: others want the processors, too.
double rate_for(double seconds, clockid_t clock) {
  const uint64_t began = cases::clock_ns(clock), first = progress;
  usleep(static_cast<useconds_t>(seconds * 1e6));
  return static_cast<double>(progress - first) / (static_cast<double>(cases::clock_ns(clock) - began) * 1e-9);
}

__attribute__((noinline)) uint64_t* filled(uint64_t count, uint64_t seed) {
  auto* const made = static_cast<uint64_t*>(std::aligned_alloc(4096, count * sizeof(uint64_t)));
  if (made == nullptr) cases::fail("switch");
  for (uint64_t i = 0; i < count; ++i) made[i] = load::mix(seed + i);
  return made;
}

// Of a page's first words each: filled once more with what they should be.
bool is_right(const uint64_t* made, uint64_t count, uint64_t seed) {
  for (uint64_t i = 0; i < count; i += 512)
    if (made[i] != load::mix(seed + i)) return false;
  return true;
}

uint64_t sum_as_it_should_be() {
  uint64_t state = 1, total = 0;
  for (uint64_t i = 0; i < reads; ++i) {
    state = next(state);
    total += load::mix((state >> 24) & (word_count - 1));
  }
  return total;
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = count == 4 ? std::strtoull(arguments[1], nullptr, 10) : 0;
  const uint64_t more = count == 4 ? std::strtoull(arguments[2], nullptr, 10) / 4096 * 512 : 0;
  const double seconds = count == 4 ? std::strtod(arguments[3], nullptr) : 0;
  word_count = bytes / sizeof(uint64_t);
  if (bytes < 4096 || (bytes & (bytes - 1)) != 0 || more == 0 || !(seconds > 0)) {
    std::fputs("usage: switch DATA_BYTES MORE_BYTES SECONDS; DATA_BYTES is a power of two\n", stderr);
    return 2;
  }
  words = filled(word_count, 0);
  pthread_t reader, looker;
  if (pthread_create(&reader, nullptr, read_all, nullptr) != 0 ||
      pthread_create(&looker, nullptr, look_for_pauses, nullptr) != 0)
    cases::fail("switch");
  clockid_t clock;
  if (pthread_getcpuclockid(reader, &clock) != 0) cases::fail("switch");
  const double before = rate_for(seconds, clock);
  cases::Stopwatch watch;
  watch.start();
  const uint64_t* const made = filled(more, 1);
  watch.stop();
  const double after = rate_for(seconds, clock);
  stop = true;
  pthread_join(reader, nullptr);
  pthread_join(looker, nullptr);
  if (sum != sum_as_it_should_be() || !is_right(made, more, 1)) {
    std::fputs("switch: what was read is wrong\n", stderr);
    return 1;
  }
  std::printf("{\"before\": %.0f, \"after\": %.0f, \"pause_seconds\": %.6f, \"fill_seconds\": %.6f}\n",
              before, after, static_cast<double>(pause_ns) * 1e-9,
              static_cast<double>(watch.wall_ns()) * 1e-9);
  return 0;
}
