// Threads that keep data on a modelled device, through the runtime. Nothing of it is a measurement of a device.
//
//   PROGRAM structure=NAME [threads=4] [way=inline] [least=1] [most=32] [period=0.1] [sample=64] [dilation=2000] [crowd=0.06] [seed=1]
//
//   run SECONDS      {"operations": N, "device_seconds": S, "lines": N, "clean_lines": N, "media_writes": N, "fences": N, "flushers": N, "ways": {"inline": N, ...},
//                     "dirtiness": X}
//   shift NAME       {"structure": NAME}: all threads go on with another structure
//
// Threads work from the begin on. The answer is of the time that it was asked for, of the wall; `device_seconds` is the device's, which passes `dilation` times as slowly.
// `least` and `most`: flushers, `period`: seconds of the wall between the Governor's samples, 0: no Governor, `most` flushers. `flushers`: as many as run at the end. `ways`: how many threads
// have this way then. `crowd`: the part by which each writer beyond some makes media writes longer, the model's crowd_factor. `dirtiness`: bytes that were stored over bytes of lines that were flushed, since the program began.
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include "../measure.h"
#include "../words.h"
#include "base/single_writer.h"
#include "persist/runtime.h"
#include "structures.h"

namespace {

// Operations that a structure has behind it when its threads begin.
constexpr uint64_t kFillSteps = 5000;

struct Settings {
  std::map<std::string, uint64_t> numbers = {{"threads", 4}, {"least", 1},       {"most", 32},
                                             {"sample", 64}, {"dilation", 2000}, {"seed", 1}};
  std::string structure, way = "inline";
  double period_seconds = 0.1, crowd_factor = persist::DeviceParameters{}.crowd_factor;

  uint64_t operator[](const char* name) const { return numbers.at(name); }
};

persist::Way way_of(const std::string& name) {
  for (const persist::Way way : persist::kWays)
    if (name == persist::name_of(way)) return way;
  return persist::Way::kInline;
}

Settings settings_of(int count, char** words) {
  load::program_name = "persist-model-load";
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const auto [word, name, text] = load::Word(words[i]);
    std::vector<std::string> ways;
    for (const persist::Way way : persist::kWays) ways.emplace_back(persist::name_of(way));
    if (name == "structure")
      settings.structure = load::word_of(name, text, load::kStructures);
    else if (name == "way")
      settings.way = load::word_of(name, text, ways);
    else if (name == "period")
      settings.period_seconds = load::share_of(name, text, 10);
    else if (name == "crowd")
      settings.crowd_factor = load::share_of(name, text, 10);
    else if (settings.numbers.contains(name))
      settings.numbers[name] = load::count_of(name, text, 100'000);
    else
      load::fail(2, "no such word: " + word);
  }
  if (settings.structure.empty()) load::fail(2, "structure= says what the threads do");
  const auto check = [&](const char* name, uint64_t most) {
    load::check_range(name, settings[name], 1, most);
  };
  check("threads", 64);
  check("most", persist::Flushers::kMaxFlushers);
  check("least", settings["most"]);
  check("dilation", 100'000);
  check("sample", 100'000);
  return settings;
}

// One of the program's threads.
struct alignas(64) Worker {
  std::atomic<uint64_t> operations{0}, flushed_lines{0}, dirty_bytes{0};
  std::atomic<persist::Way> way{persist::Way::kInline};
  std::atomic<bool> is_right{true};
  std::thread thread;
};

class Load {
 public:
  explicit Load(const Settings& settings) : settings_(settings), structure_(settings.structure) {
    const size_t bytes = settings["threads"] * load::kStructureBytes;
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) cases::fail("mmap");
    memory_ = static_cast<char*>(memory);
    const auto made = persist::ModelLines::make({.crowd_factor = settings.crowd_factor},
                                                static_cast<double>(settings["dilation"]));
    if (!made) load::fail(1, made.error().message);
    lines_ = *made;
    runtime_->configure({.way = way_of(settings.way),
                         .instruction = sys::LineFlush::kClflush,
                         .flushers = {.least = static_cast<uint32_t>(settings["least"]),
                                      .most = static_cast<uint32_t>(settings["most"]),
                                      .period_ns = static_cast<uint64_t>(settings.period_seconds * 1e9)},
                         .sample_stores = static_cast<uint32_t>(settings["sample"]),
                         .find_domain = nullptr});
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    const auto added = runtime_->add_domain(
        {.begin = begin, .end = begin + bytes, .kind = persist::DomainKind::kDevice, .device = lines_});
    if (!added) load::fail(1, added.error().message);
    workers_ = std::vector<Worker>(settings["threads"]);
    for (size_t i = 0; i < workers_.size(); ++i) workers_[i].thread = std::thread([this, i] { work(i); });
  }
  // All threads end in order. Every structure is what its operations have made it, or the program ends with an error.
  ~Load() {
    is_over_.store(true);
    for (Worker& worker : workers_) worker.thread.join();
    runtime_->flushers().stop();
    lines_->close();
    for (const Worker& worker : workers_)
      if (!worker.is_right.load()) load::fail(1, "a structure is not what its operations have made it");
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void shift(const std::string& structure) {
    const std::scoped_lock scope(lock_);
    structure_ = structure;
    shifts_.fetch_add(1);
  }

  void run(double seconds) {
    const uint64_t operations = sum(&Worker::operations);
    const persist::DeviceStatistics before = lines_->device().statistics();
    const double begin_ns = lines_->device().clock().now_ns();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const uint64_t done = sum(&Worker::operations) - operations;
    const persist::DeviceStatistics after = lines_->device().statistics();
    const double device_ns = lines_->device().clock().now_ns() - begin_ns;
    std::map<persist::Way, int> ways;
    for (const Worker& worker : workers_) {
      ++ways[worker.way.load()];
    }
    std::printf(
        "{\"operations\": %lu, \"device_seconds\": %.9f, \"lines\": %lu, \"clean_lines\": %lu, "
        "\"media_writes\": %lu, "
        "\"fences\": %lu, \"flushers\": %u, \"dirtiness\": %.4f, \"ways\": {",
        done, device_ns * 1e-9, after.lines - before.lines, after.clean_lines - before.clean_lines,
        after.media_writes - before.media_writes, after.fences - before.fences,
        runtime_->flushers().are_running() ? runtime_->flushers().count() : 0,
        static_cast<double>(sum(&Worker::dirty_bytes)) /
            (64 * static_cast<double>(std::max<uint64_t>(1, sum(&Worker::flushed_lines)))));
    const char* separator = "";
    for (const auto& [way, count] : ways) {
      std::printf("%s\"%s\": %d", separator, persist::name_of(way), count);
      separator = ", ";
    }
    std::puts("}}");
    std::fflush(stdout);
  }

 private:
  uint64_t sum(std::atomic<uint64_t> Worker::* count) const {
    uint64_t all = 0;
    for (const Worker& worker : workers_) all += (worker.*count).load(std::memory_order_relaxed);
    return all;
  }
  std::string structure() {
    const std::scoped_lock scope(lock_);
    return structure_;
  }

  void work(size_t number) {
    Worker& own = workers_[number];
    persist::Thread* const thread = runtime_->enter();
    if (thread == nullptr) load::fail(1, "no memory for a thread's flushes");
    load::Pm pm(*thread, *lines_, static_cast<uint32_t>(settings_["sample"]));
    pm.begin();
    load::Random random(settings_["seed"] + number);
    char* const memory = memory_ + number * load::kStructureBytes;
    while (!is_over_.load(std::memory_order_relaxed)) {
      std::memset(memory, 0, load::kStructureBytes);
      const uint32_t shift = shifts_.load();
      const auto structure = load::make_structure(this->structure(), memory);
      load::Pm filling(*thread, *lines_, static_cast<uint32_t>(settings_["sample"]));
      for (uint64_t i = 0; i < kFillSteps; ++i) structure->step(filling, random);
      while (!is_over_.load(std::memory_order_relaxed) && shift == shifts_.load(std::memory_order_relaxed)) {
        structure->step(pm, random);
        base::increase<uint64_t>(own.operations, 1);
        own.flushed_lines.store(pm.flushed_lines(), std::memory_order_relaxed);
        own.dirty_bytes.store(pm.dirty_bytes(), std::memory_order_relaxed);
        own.way.store(thread->way(), std::memory_order_relaxed);
      }
      if (!structure->is_right()) own.is_right.store(false);
    }
    if (!runtime_->leave(thread)) load::fail(1, "a thread's last fence failed");
  }

  const Settings& settings_;
  char* memory_ = nullptr;
  persist::ModelLines* lines_ = nullptr;
  std::unique_ptr<persist::Runtime> runtime_ = std::make_unique<persist::Runtime>();
  std::vector<Worker> workers_;
  std::mutex lock_;
  std::string structure_;
  std::atomic<uint32_t> shifts_{0};
  std::atomic<bool> is_over_{false};
};

}  // namespace

int main(int count, char** words) {
  const Settings settings = settings_of(count, words);
  Load load(settings);
  for (std::string line; std::getline(std::cin, line);) {
    const size_t at = line.find(' ');
    const std::string verb = line.substr(0, at), rest = at == line.npos ? "" : line.substr(at + 1);
    if (verb == "run") {
      load.run(load::share_of("run", rest.c_str(), 1000));
    } else if (verb == "shift") {
      load.shift(load::word_of("shift", rest.c_str(), load::kStructures));
      std::printf("{\"structure\": \"%s\"}\n", rest.c_str());
      std::fflush(stdout);
    } else {
      load::fail(2, "no such request: " + line);
    }
  }
  return 0;
}
