// Reads and writes at random places through one storage queue, DEPTH at a time, for SECONDS, as fio's jobs do.
//   device-load DEVICE SPAN BLOCK DEPTH read|write|mixed SECONDS
//
// Uses [0, SPAN) of a device string's device, and overwrites it with random data unless it only reads; 70 % of a mixed
// load are reads. Prints one object of JSON. Wrong words, and what cannot be opened: one line and exit status 2; an I/O
// that fails: one line and exit status 1.
//
// 1 one thread. A depth of 1 is Queue::run; else what one wait() completed is submitted anew in one batch
// 2 the clock is read once for each batch: an Io's time is from before the submit() that took it to after the wait()
//   that completed it
// 3 with 0 seconds each of the DEPTH Ios is done once
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

#include "base/histogram.h"
#include "base/mix.h"
#include "base/options.h"
#include "storage/opening/open.h"

namespace {

enum class Mix { kRead, kWrite, kMixed };
constexpr uint64_t kMixedReadPercent = 70;
constexpr int kMaxSeconds = 3600;

struct Plan {
  const char* device;
  uint64_t span_bytes;
  uint64_t block_bytes;
  size_t depth;
  Mix mix;
  double seconds;
};

template <class... Parts>
[[noreturn]] void fail(int status, const Parts&... parts) {
  base::Text<400> line;
  line << "device-load: ";
  (line << ... << parts);
  std::fprintf(stderr, "%s\n", line.c_str());
  std::exit(status);
}

uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Of all threads of this process, the kernel's workers for it included.
uint64_t cpu_us() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return static_cast<uint64_t>((used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000 +
                               used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    const uint64_t drawn = base::mix(state_);
    state_ += base::kMixStep;
    return drawn;
  }
  // The high half of a product spreads a random number over [0, n) without a division.
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }

 private:
  uint64_t state_;
};

// The Ios that are in flight, each again and again.
class Load {
 public:
  Load(const Plan& plan, storage::Queue& queue) : plan_(plan), queue_(queue), slots_(plan.depth) {
    const size_t bytes = plan.depth * plan.block_bytes;
    void* buffers = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffers == MAP_FAILED) fail(2, "no memory for ", plan.depth, " blocks");
    auto* words = static_cast<uint64_t*>(buffers);
    for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) words[i] = random_.next();
    for (size_t i = 0; i < plan.depth; ++i) {
      Slot& slot = slots_[i];
      slot.segment = {static_cast<char*>(buffers) + i * plan.block_bytes, plan.block_bytes};
      slot.io.segments = &slot.segment;
      slot.io.segment_count = 1;
      slot.io.length_bytes = plan.block_bytes;
      slot.io.done = [](storage::Io& io) { static_cast<Slot*>(io.owner)->load->finished_.push_back(&io); };
      slot.io.owner = &slot;
      slot.load = this;
      idle_.push_back(&slot.io);
    }
    finished_.reserve(plan.depth);
    queue.fix_memory(buffers, bytes);
  }

  void run() {
    const uint64_t cpu_before_us = cpu_us();
    const uint64_t began_ns = now_ns();
    const uint64_t until_ns = began_ns + static_cast<uint64_t>(plan_.seconds * 1e9);
    uint64_t now = began_ns;
    do {
      start(now);
      now = finish();
    } while (now < until_ns);
    while (queue_.in_flight_count() > 0) now = finish();
    took_ns_ = now - began_ns;
    took_cpu_us_ = cpu_us() - cpu_before_us;
  }

  void print() const {
    const double seconds = static_cast<double>(took_ns_) * 1e-9;
    const uint64_t ios = times_ns_.count();
    std::printf(
        R"({"depth": %zu, "block_bytes": %llu, "seconds": %.6f, "cpu_us": %llu, "ios": %llu, "reads": %llu, )"
        R"("writes": %llu, "bytes": %llu, "iops": %.1f, )"
        R"("latency_ns": {"mean": %.0f, "p50": %llu, "p99": %llu, "max": %llu}})"
        "\n",
        plan_.depth, word(plan_.block_bytes), seconds, word(took_cpu_us_), word(ios), word(ios - writes_),
        word(writes_), word(bytes_), static_cast<double>(ios) / seconds, times_ns_.mean(),
        word(times_ns_.at(0.5)), word(times_ns_.at(0.99)), word(times_ns_.most()));
  }

 private:
  struct Slot {
    storage::Io io;
    iovec segment = {};
    uint64_t started_ns = 0;
    Load* load = nullptr;
  };

  static unsigned long long word(uint64_t value) { return value; }

  bool next_reads() {
    if (plan_.mix == Mix::kMixed) return random_.below(100) < kMixedReadPercent;
    return plan_.mix == Mix::kRead;
  }

  // Starts what is idle, elsewhere.
  void start(uint64_t now) {
    for (storage::Io* io : idle_) {
      io->operation = next_reads() ? storage::Operation::kRead : storage::Operation::kWrite;
      io->offset_bytes = random_.below(plan_.span_bytes / plan_.block_bytes) * plan_.block_bytes;
      static_cast<Slot*>(io->owner)->started_ns = now;
    }
    if (plan_.depth == 1) {
      queue_.run(*idle_[0]);
    } else if (queue_.submit(idle_) != idle_.size()) {
      fail(1, "the queue is full");
    }
    idle_.clear();
  }

  // Waits until some have finished; returns when that was.
  uint64_t finish() {
    if (finished_.empty()) queue_.wait();
    const uint64_t now = now_ns();
    for (storage::Io* io : finished_) {
      if (!io->whole()) {
        fail(1, "at ", io->offset_bytes, ": ", io->transferred_bytes, " bytes of ", io->length_bytes, ", ",
             base::error_name(io->error));
      }
      times_ns_.add(now - static_cast<Slot*>(io->owner)->started_ns);
      bytes_ += io->transferred_bytes;
      writes_ += io->operation == storage::Operation::kWrite;
    }
    idle_.insert(idle_.end(), finished_.begin(), finished_.end());
    finished_.clear();
    return now;
  }

  const Plan& plan_;
  storage::Queue& queue_;
  std::vector<Slot> slots_;
  std::vector<storage::Io*> idle_;
  std::vector<storage::Io*> finished_;  // counted by nobody yet
  Random random_{now_ns()};
  base::Histogram times_ns_;
  uint64_t bytes_ = 0;
  uint64_t writes_ = 0;
  uint64_t took_ns_ = 0;
  uint64_t took_cpu_us_ = 0;
};

uint64_t parse_count(const char* text) {
  auto count = base::parse_size(text);
  if (!count) fail(2, count.error().message);
  return *count;
}

Mix parse_mix(std::string_view text) {
  if (text == "read") return Mix::kRead;
  if (text == "write") return Mix::kWrite;
  if (text == "mixed") return Mix::kMixed;
  fail(2, "'", text, "' is none of read, write and mixed");
}

double parse_seconds(const char* text) {
  char* end;
  const double seconds = std::strtod(text, &end);
  if (end == text || *end != 0 || !(seconds >= 0 && seconds <= kMaxSeconds))
    fail(2, "'", text, "' is no number of seconds from 0 to ", kMaxSeconds);
  return seconds;
}

Plan parse(int count, char** words) {
  if (count != 7) fail(2, "usage: device-load DEVICE SPAN BLOCK DEPTH read|write|mixed SECONDS");
  const Plan plan = {.device = words[1],
                     .span_bytes = parse_count(words[2]),
                     .block_bytes = parse_count(words[3]),
                     .depth = parse_count(words[4]),
                     .mix = parse_mix(words[5]),
                     .seconds = parse_seconds(words[6])};
  if (plan.block_bytes == 0 || plan.block_bytes > plan.span_bytes)
    fail(2, "a block of ", plan.block_bytes, " bytes does not fit in ", plan.span_bytes);
  if (plan.depth == 0 || plan.depth > storage::kMaxQueueDepth)
    fail(2, "a depth of ", plan.depth, " is not from 1 to ", storage::kMaxQueueDepth);
  return plan;
}

}  // namespace

int main(int count, char** words) {
  const Plan plan = parse(count, words);
  auto device = storage::open_device(plan.device, {});
  if (!device) fail(2, device.error().message);
  if (plan.block_bytes % (*device)->block_bytes() != 0)
    fail(2, "blocks must be multiples of ", (*device)->block_bytes(), " bytes on ", (*device)->name());
  if (plan.span_bytes > (*device)->capacity_bytes())
    fail(2, (*device)->name(), " has only ", (*device)->capacity_bytes(), " bytes");
  auto queue = (*device)->open_queue(plan.depth, {.by_one_thread = true});
  if (!queue) fail(2, queue.error().message);
  if ((*queue)->depth() < plan.depth)
    fail(2, "queues of ", (*device)->name(), " are at most ", (*queue)->depth(), " deep; see ?qd=");
  Load load(plan, **queue);
  load.run();
  load.print();
  (*device)->close_queue(*queue);
  (*device)->close();
  return 0;
}
