// What a flush of a line costs, by the CPU's instruction where it stands and by the runtime's ways, in turns on the same lines.
//
//   PROGRAM [instruction=clwb] [threads=1] [state=dirty] [fence=4] [turns=9] [seconds=0.005] [way=NAME]... [seed=1]
//   PROGRAM [instruction=clwb] [threads=1] hot=LINES again=TIMES [order=round] ...
//
//   {"ways": {"native": [ns, ...], "inline": [...], ...}}
//
// Nanoseconds of a line's flush for the thread that asks for it, its part of the fences included, a number for each turn; the ways' order changes from turn to turn. Each
// thread has kLines lines of its own in a mapping of /dev/shm, which is a domain of kind memory.
//
//   state=dirty    each line is stored to before its flush, which is in the time
//   state=clean    it has been flushed and read before, which is not
//   state=absent   it has been thrown out of the caches before, which is not
//   fence=N        a fence after so many flushes; 0: none
//   hot, again     so many lines are flushed so many times each before a fence, with a store before each flush; order=random: not one after another, but in a random order
//
// `native` is the instructions as they stand in lines_work.cc, without any runtime; the others are the same source compiled by spillcc -fspill-persist. What is measured is the mean of short batches but their
// slowest tenth, which something else has interrupted. Before a way's turn it has been in use for a while: `auto` has chosen, by a trial that is a 64th of the time in the long run.
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "../measure.h"
#include "../random.h"
#include "../words.h"
#include "lines_work.h"
#include "spillway/persist.h"

namespace {

constexpr uint64_t kMinBatches = 3;
// A trial of two ways has some 1200 fences, of one line some 5000 (persist/policy.h).
constexpr uint64_t kTrialFences = 6000;
const std::vector<std::string> kInstructions = {"clwb", "clflushopt", "clflush"},
                               kStates = {"dirty", "clean",
                                          "absent"};  // in the order of lines::Instruction and State
const std::vector<std::string> kWays = {"native", "inline", "epoch", "auto", "decoupled"};

struct Settings {
  std::map<std::string, uint64_t> numbers = {{"threads", 1}, {"fence", 4}, {"turns", 9},
                                             {"hot", 0},     {"again", 1}, {"seed", 1}};
  std::string instruction = "clwb", state = "dirty", order = "round";
  double seconds = 0.005;
  std::vector<std::string> ways;

  uint64_t operator[](const char* name) const { return numbers.at(name); }
};

Settings settings_of(int count, char** words) {
  load::program_name = "persist-lines-load";
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const auto [word, name, text] = load::Word(words[i]);
    if (name == "instruction")
      settings.instruction = load::word_of(name, text, kInstructions);
    else if (name == "state")
      settings.state = load::word_of(name, text, kStates);
    else if (name == "order")
      settings.order = load::word_of(name, text, {"round", "random"});
    else if (name == "way")
      settings.ways.push_back(load::word_of(name, text, kWays));
    else if (name == "seconds")
      settings.seconds = load::share_of(name, text, 1000);
    else if (settings.numbers.contains(name))
      settings.numbers[name] = load::count_of(name, text, lines::kLines);
    else
      load::fail(2, "no such word: " + word);
  }
  for (const char* name : {"threads", "turns", "again"})
    if (settings[name] == 0) load::fail(2, std::string(name) + " is a number from 1 on");
  if (settings["fence"] > lines::kBatchFlushes) load::fail(2, "fence is a number up to 1024");
  if (settings.ways.empty()) settings.ways = kWays;
  return settings;
}

void expect(int status) {
  if (status != SPILLWAY_PERSIST_OK) load::fail(1, spillway_persist_error_text());
}

size_t place_of(const std::vector<std::string>& words, const std::string& word) {
  return static_cast<size_t>(std::ranges::find(words, word) - words.begin());
}

lines::Work work_of(const Settings& settings, char* memory, uint64_t number) {
  lines::Work work = {
      .memory = memory,
      .instruction = static_cast<lines::Instruction>(place_of(kInstructions, settings.instruction)),
      .state = static_cast<lines::State>(place_of(kStates, settings.state)),
      .fence = settings["fence"],
      .order = {}};
  load::Random random(settings["seed"] + number);
  for (uint64_t again = 0; again < settings["again"]; ++again)
    for (uint64_t line = 0; line < settings["hot"]; ++line)
      work.order.push_back(static_cast<uint32_t>(line * lines::kLineBytes));
  if (settings.order == "random")
    for (size_t i = work.order.size(); i > 1; --i) std::swap(work.order[i - 1], work.order[random.below(i)]);
  return work;
}

// Batches for so long, and so many at least. Returns nanoseconds of a flush.
double measure(lines::Work& work, uint64_t run(lines::Work&), double seconds, uint64_t batches_least) {
  std::vector<double> batches;
  const uint64_t begin_ns = cases::clock_ns(CLOCK_MONOTONIC), begin = __builtin_ia32_rdtsc();
  uint64_t now_ns = begin_ns;
  do {
    batches.push_back(static_cast<double>(run(work)));
    now_ns = cases::clock_ns(CLOCK_MONOTONIC);
  } while (static_cast<double>(now_ns - begin_ns) < seconds * 1e9 || batches.size() < batches_least);
  const double ns_per_tick =
      static_cast<double>(now_ns - begin_ns) / static_cast<double>(__builtin_ia32_rdtsc() - begin);
  std::ranges::sort(batches);
  batches.resize(std::max<size_t>(1, batches.size() * 9 / 10));
  const double sum = std::accumulate(batches.begin(), batches.end(), 0.0);
  return sum * ns_per_tick / static_cast<double>(batches.size() * work.flushes());
}

std::map<std::string, std::vector<double>> measure_all(const Settings& settings, char* memory) {
  const uint64_t threads = settings["threads"], turns = settings["turns"];
  std::map<std::string, std::vector<double>> ways;
  for (const std::string& way : settings.ways) ways[way].assign(turns, 0);
  std::barrier barrier(static_cast<std::ptrdiff_t>(threads));
  std::vector<std::vector<double>> costs(threads);
  const auto run = [&](uint64_t number) {
    lines::Work work = work_of(settings, memory + number * lines::kLines * lines::kLineBytes, number);
    for (uint64_t turn = 0; turn < turns; ++turn)
      for (size_t i = 0; i < settings.ways.size(); ++i) {
        const std::string& way = settings.ways[(i + turn) % settings.ways.size()];
        if (way != "native") expect(spillway_persist_set_policy(way.c_str()));
        const auto run_batch = way == "native" ? lines::run_native : lines::run_compiled;
        barrier.arrive_and_wait();
        measure(work, run_batch, settings.seconds / 2,
                way == "auto" ? kTrialFences / work.fences() + 1 : kMinBatches);
        barrier.arrive_and_wait();
        costs[number].push_back(measure(work, run_batch, settings.seconds, kMinBatches));
      }
  };
  std::vector<std::thread> all;
  for (uint64_t number = 0; number < threads; ++number) all.emplace_back(run, number);
  for (std::thread& thread : all) thread.join();
  for (uint64_t turn = 0, at = 0; turn < turns; ++turn)
    for (size_t i = 0; i < settings.ways.size(); ++i, ++at)
      for (uint64_t number = 0; number < threads; ++number)
        ways[settings.ways[(i + turn) % settings.ways.size()]][turn] +=
            costs[number][at] / static_cast<double>(threads);
  return ways;
}

}  // namespace

int main(int count, char** words) {
  const Settings settings = settings_of(count, words);
  spillway_persist_options options = {};
  options.struct_bytes = sizeof options;
  options.policy = "inline";
  options.instruction = settings.instruction.c_str();
  expect(spillway_persist_configure(&options));

  const size_t bytes = settings["threads"] * lines::kLines * lines::kLineBytes;
  const int file = memfd_create("spillway-bench", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) cases::fail("memory that is shared");
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (memory == MAP_FAILED) cases::fail("mmap");
  expect(spillway_persist_add(memory, bytes, "dram", -1));

  std::printf("{\"ways\": {");
  const auto ways = measure_all(settings, static_cast<char*>(memory));
  const char* before = "";
  for (const auto& [way, turns] : ways) {
    std::printf("%s\"%s\": [", before, way.c_str());
    for (size_t i = 0; i < turns.size(); ++i) std::printf("%s%.4f", i == 0 ? "" : ", ", turns[i]);
    std::printf("]");
    before = ", ";
  }
  std::puts("}}");
  return 0;
}
