// Blocks read and written at random through a page cache, or through what it is compared with, at the pace of the driver.
//   pagecache-load fill PATH BYTES [value=N]     writes the data to a file or device
//   pagecache-load SIDE PLACE BYTES [NAME=VALUE]...
// says "ready"; then on standard input, answered by one line on standard output:
//   touch tasks DEPTH                                 a block of each page is read; by `threads` by each of them, or by `queue`
//   count REQUESTS                                    so many reads, by one thread
//   run read|mixed|update tasks|threads DEPTH WARM SECONDS
//   run read queue DEPTH WARM SECONDS                 one queue of requests, of `cache` with nodes
//
// | SIDE           | PLACE           | is                                                                                  |
// |----------------|-----------------|-------------------------------------------------------------------------------------|
// | `cache`        | a device string | ours                                                                                |
// | `direct`       | a device string | I/O past all caches, into a ring of buffers                                          |
// | `pread`        | a path          | the kernel's page cache; `pread_random` with POSIX_FADV_RANDOM                       |
// | `mmap`         | a path          | the same, mapped with MADV_RANDOM                                                    |
// | `locked`       | a path          | a map of pages, a list in the order of use, and one lock                             |
// | `array`        | nothing         | the data as an array                                                                 |
//
// | name   | is                                                              | default  |
// |--------|-----------------------------------------------------------------|----------|
// | memory | bytes, of `cache`, `direct` and `locked`                        | BYTES    |
// | theta  | 0: all pages alike; else Zipf's law with this exponent, below 1 | 0        |
// | nodes  | memory nodes of `cache`, with a server each                     | none     |
// | value  | bytes, 8 to 4,080: the data is a tree with such values (tree.h) | no tree  |
//
// `mixed` and `update` write in 30 % of the requests, a page or a block (side.h). The answer is an object of JSON: requests, seconds; of a
// request cpu_us (of all threads of the process) and the pages that the device has read and written, `reads` and `writes`; `sent`, whether
// it went to a server, and of one that did `messages`, there and back.
// Of a tree, which `cache` and `pread` have, keys are drawn: each is looked up, and with `update` 5 % of the values are written.
// SECONDS begin when WARM seconds have passed. Wrong words: one line and status 2. What fails: one line and status 1.
#include <fcntl.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "../measure.h"
#include "side.h"
#include "sys/nodes.h"

namespace {

using load::fail;

constexpr uint64_t kMaxBytes = uint64_t{1} << 40, kMaxDepth = 1024, kMaxValue = 4080;
constexpr double kMaxSeconds = 3600;

std::optional<load::Tree> tree_of(const load::Plan& plan) {
  if (plan.value_bytes == 0) return {};
  return load::Tree(plan.pages(), plan.value_bytes);
}

struct Used {
  uint64_t requests, wall_ns, cpu_ns;
  load::DevicePages pages;
  load::Messages messages;
};

class Bench {
 public:
  Bench(load::Side& side, const load::Plan& plan)
      : side_(side),
        tree_(tree_of(plan)),
        pages_(tree_ ? tree_->key_count() : plan.pages(), plan.theta),
        has_queues_(plan.side == "cache" && plan.nodes != 0) {}

  // An answer to the line, unless it is none that can be answered.
  bool answer(const char* line) {
    char kind[8], by[8];
    unsigned long long count;
    double warm_seconds = 0, seconds = 0;
    if (std::sscanf(line, "count %llu", &count) == 1 && count > 0)
      run({.kind = load::Kind::kRead, .most = count, .pages = pages_, .seed = seed_}, 0, 0);
    else if (std::sscanf(line, "touch %7s %llu", by, &count) == 2 && is_depth(count) && may_ask(by, "read"))
      run({.kind = load::Kind::kTouch,
           .by_tasks = is_by(by, "tasks"),
           .by_queue = is_by(by, "queue"),
           .depth = count,
           .most = pages_.count(),
           .pages = pages_,
           .seed = seed_},
          0, 0);
    else if (std::sscanf(line, "run %7s %7s %llu %lf %lf", kind, by, &count, &warm_seconds, &seconds) == 5 &&
             is_depth(count) && are_seconds(warm_seconds, seconds) && may_ask(by, kind))
      run({.kind = kind_of(kind),
           .by_tasks = is_by(by, "tasks"),
           .by_queue = is_by(by, "queue"),
           .depth = count,
           .pages = pages_,
           .seed = seed_},
          warm_seconds, seconds);
    else
      return false;
    std::fflush(stdout);
    return true;
  }

 private:
  static load::Kind kind_of(const char* word) {
    const std::string kind = load::word_of("what is done", word, {"read", "mixed", "update"});
    return kind == "read" ? load::Kind::kRead : kind == "mixed" ? load::Kind::kMixed : load::Kind::kUpdate;
  }

  static bool is_by(const char* word, const char* who) {
    return load::word_of("who asks", word, {"tasks", "threads", "queue"}) == who;
  }
  bool may_ask(const char* by, const char* kind) const {
    return !is_by(by, "queue") || (has_queues_ && kind_of(kind) == load::Kind::kRead);
  }
  static bool is_depth(uint64_t depth) { return depth > 0 && depth <= kMaxDepth; }
  static bool are_seconds(double warm, double measured) {
    return warm >= 0 && warm <= kMaxSeconds && measured > 0 && measured <= kMaxSeconds;
  }

  // Without seconds: until all requests are done.
  void run(load::Turn&& turn, double warm_seconds, double seconds) {
    seed_ += kMaxDepth;
    if (tree_) turn.tree = &*tree_;
    if (tree_ && turn.kind != load::Kind::kRead && turn.kind != load::Kind::kUpdate)
      fail(2, "of a tree values are read, or changed");
    Used before = used(turn);
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < turn.thread_count(); ++i)
      threads.emplace_back([&, i] {
        // Groups of processes share CPUs alike: beside another one two threads may be left on one CPU.
        if (turn.thread_count() > 1) cases::stay_on_cpu(static_cast<int>(i) % cpus_);
        side_.work(turn, i);
      });
    if (seconds > 0) {
      sleep(warm_seconds);
      before = used(turn);
      Used after;
      do {  // on a busy machine nothing may have been done in that time
        sleep(seconds);
        after = used(turn);
      } while (after.requests == before.requests);
      print(before, after);
      turn.has_ended = true;
    }
    for (std::thread& thread : threads) thread.join();
    if (seconds == 0) print(before, used(turn));
  }
  static void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

  Used used(const load::Turn& turn) const {
    uint64_t requests = 0;
    for (const load::Turn::Count& count : turn.done) requests += count.value.load(std::memory_order_relaxed);
    return {.requests = requests,
            .wall_ns = cases::clock_ns(CLOCK_MONOTONIC),
            .cpu_ns = cases::clock_ns(CLOCK_PROCESS_CPUTIME_ID),
            .pages = side_.device_pages(),
            .messages = side_.messages()};
  }
  static void print(const Used& before, const Used& after) {
    const uint64_t requests = after.requests - before.requests;
    const auto each = [&](uint64_t from, uint64_t to) {
      return static_cast<double>(to - from) / static_cast<double>(requests);
    };
    const uint64_t sent = after.messages.requests - before.messages.requests;
    const uint64_t messages = after.messages.messages - before.messages.messages;
    std::printf(
        "{\"requests\": %lu, \"seconds\": %.6f, \"cpu_us\": %.4f, \"reads\": %.6f, \"writes\": %.6f, "
        "\"sent\": %.6f, "
        "\"messages\": %.6f}\n",
        requests, static_cast<double>(after.wall_ns - before.wall_ns) * 1e-9,
        each(before.cpu_ns, after.cpu_ns) * 1e-3, each(before.pages.reads, after.pages.reads),
        each(before.pages.writes, after.pages.writes),
        each(before.messages.requests, after.messages.requests),
        sent == 0 ? 0.0 : static_cast<double>(messages) / static_cast<double>(sent));
  }

  load::Side& side_;
  const std::optional<load::Tree> tree_;
  const load::Pages pages_;
  const bool has_queues_;
  const int cpus_ = cases::cpu_count();
  uint64_t seed_ = 0;
};

// Past the page cache, so that it holds nothing when the measurement begins.
int fill_place(const load::Plan& plan) {
  constexpr uint64_t kPart = 1 << 20;
  const char* const path = plan.place.c_str();
  const std::optional<load::Tree> tree = tree_of(plan);
  const int file = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
  auto* const part = static_cast<std::byte*>(std::aligned_alloc(load::kPageBytes, kPart));
  if (file < 0 || part == nullptr) cases::fail(path);
  for (uint64_t at = 0; at < plan.bytes; at += kPart) {
    const uint64_t now = std::min(kPart, plan.bytes - at);
    load::fill({part, now}, at);
    for (uint64_t i = 0; i < now; i += load::kPageBytes) {
      const uint64_t page = (at + i) / load::kPageBytes;
      if (!tree)
        load::set_numbers(part + i, page);
      else if (page < tree->page_count())
        tree->make_node(page, part + i,
                        [](uint64_t key, std::span<std::byte> value) { load::set_value(value, key); });
    }
    if (pwrite(file, part, now, static_cast<off_t>(at)) != static_cast<ssize_t>(now)) cases::fail(path);
  }
  if (fsync(file) != 0) cases::fail(path);
  return 0;
}

load::Plan parse(int count, char** words) {
  if (count < 4)
    fail(2,
         "usage: SIDE PLACE BYTES [NAME=VALUE]..., or fill PATH BYTES (bench/pagecache/pagecache_load.cc)");
  load::Plan plan;
  plan.side = load::word_of("the side", words[1],
                            {"fill", "cache", "direct", "pread", "pread_random", "mmap", "locked", "array"});
  plan.place = words[2];
  plan.bytes = load::count_of("BYTES", words[3], kMaxBytes);
  if (plan.bytes == 0 || plan.bytes % load::kPageBytes != 0) fail(2, "BYTES are whole pages");
  plan.memory_bytes = plan.bytes;
  for (int i = 4; i < count; ++i) {
    const auto [word, name, text] = load::Word(words[i]);
    if (name == "memory")
      plan.memory_bytes = load::count_of(name, text, kMaxBytes);
    else if (name == "theta")
      plan.theta = load::share_of(name, text, 0.999);
    else if (name == "nodes")
      plan.nodes = static_cast<uint32_t>(load::count_of(name, text, sys::kMaxNodes));
    else if (name == "value")
      plan.value_bytes = static_cast<uint32_t>(load::count_of(name, text, kMaxValue));
    else
      fail(2, "a setting is memory=N, theta=X, nodes=N or value=N, not '" + word + "'");
  }
  if (plan.value_bytes % 8 != 0) fail(2, "values are whole words of 8 bytes");
  if (plan.value_bytes != 0)
    load::word_of("the side with a tree", words[1], {"fill", "cache", "pread", "pread_random"});
  return plan;
}

std::unique_ptr<load::Side> make(const load::Plan& plan) {
  if (plan.side == "cache") return load::make_cache(plan);
  if (plan.side == "direct") return load::make_direct(plan);
  if (plan.side == "mmap") return load::make_mapped(plan);
  if (plan.side == "locked") return load::make_locked(plan);
  if (plan.side == "array") return load::make_array(plan);
  return load::make_pread(plan);
}

}  // namespace

int main(int count, char** words) {
  load::program_name = "pagecache-load";
  const load::Plan plan = parse(count, words);
  if (plan.side == "fill") return fill_place(plan);
  const std::unique_ptr<load::Side> side = make(plan);
  Bench bench(*side, plan);
  std::puts("ready");
  std::fflush(stdout);
  char line[100];
  while (std::fgets(line, sizeof line, stdin) != nullptr)
    if (!bench.answer(line))
      fail(2, std::string("there is no answer to '") + std::string(line, std::strcspn(line, "\n")) + "'");
  return 0;
}
