// Cache-buckets and the buckets of their table in OS pages of different colours, beside the same in pages as they come: an experiment of one thread, without
// locks. (cache-aware batch update, section 4.5)
//
//   PROGRAM record=16 bucket=512 buckets=200000 [cache=KIB] [cell=1024] [colours=512] [taken=256] [near=32] [seconds=0.3] [turns=5] [seed=1] [updates=N placement=NAME]
//
//   {"records": N, "placements": {"plain": [ns, ...], "coloured": [...], "huge": [...]}, "lines": {"mixed": ns, "near": ns, "same": ns}}
//
// Nanoseconds of an update, as CPU time, a number for each turn. `plain`: in small OS pages as they come; `coloured`: cache-buckets, `cache` KiB with their counts, in pages
// of the first `taken` of all colours, the table in pages of the others; `huge`: all in large OS pages. Colours are by physical addresses. `lines`: of a chain of
// random lines in 64 pages: of all colours, of one in a cache of `near` colours, of one in the cache of all: what colours mean on this machine.
// Where the system does not tell physical addresses: {"unavailable": 1}.
//
// With updates=N: so many, with that placement, `plain` or `coloured`, by virtual addresses, for who counts what they miss: {"records": N}.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "../measure.h"
#include "../random.h"
#include "../words.h"
#include "batch/huge_memory.h"
#include "batch/key.h"
#include "batch/shape.h"
#include "batch/spread.h"
#include "coloured_pages.h"

namespace {

constexpr uint64_t kGroup = 256;
constexpr uint64_t kProbePages = 64;

struct Settings {
  std::map<std::string, uint64_t> numbers = {{"record", 16},      {"bucket", 512}, {"buckets", 200'000},
                                             {"cache", 16 << 10}, {"cell", 1024},  {"colours", 512},
                                             {"taken", 256},      {"near", 32},    {"turns", 5},
                                             {"seed", 1},         {"updates", 0}};
  double seconds = 0.3;
  std::string placement = "plain";

  uint64_t operator[](const char* name) const { return numbers.at(name); }
};

Settings settings_of(int count, char** words) {
  load::program_name = "colouring-load";
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const auto [word, name, text] = load::Word(words[i]);
    if (name == "seconds")
      settings.seconds = load::share_of(name, text, 1000);
    else if (name == "placement")
      settings.placement = load::word_of(name, text, {"plain", "coloured"});
    else if (settings.numbers.contains(name))
      settings.numbers[name] = load::count_of(name, text, uint64_t{1} << 40);
    else
      load::fail(2, "no such word: " + word);
  }
  const auto check = [&](const char* name, uint64_t least, uint64_t most) {
    load::check_range(name, settings[name], least, most);
  };
  check("record", 2 * sizeof(uint64_t), batch::kMaxRecordBytes);
  check("bucket", settings["record"], load::kPageBytes);
  check("cell", settings["record"], load::kPageBytes);
  for (const char* const name : {"bucket", "cell"})
    if (load::kPageBytes % settings[name] != 0)
      load::fail(2, std::string(name) + " divides a page of 4096 bytes");
  check("buckets", 1, uint64_t{1} << 32);
  check("cache", (settings["cell"] >> 10) + 1, 1 << 30);
  check("turns", 1, 1000);
  check("colours", 2, 1 << 20);
  check("taken", 1, settings["colours"] - 1);
  if (settings["updates"] == 0) check("near", 1, settings["colours"]);
  return settings;
}

// How large the parts are.
struct Plan {
  explicit Plan(const Settings& settings)
      : record_bytes(settings["record"]),
        bucket_bytes(settings["bucket"]),
        cell_bytes(settings["cell"]),
        bucket_count(settings["buckets"]),
        cell_count((settings["cache"] << 10) / (cell_bytes + sizeof(uint32_t))) {}

  uint64_t slots() const { return bucket_bytes / record_bytes; }
  uint64_t capacity() const { return cell_bytes / record_bytes; }
  uint64_t records() const { return bucket_count * slots(); }
  uint64_t table_pages() const { return pages(bucket_count * bucket_bytes); }
  uint64_t counts_at() const { return pages(cell_count * cell_bytes) * load::kPageBytes; }
  uint64_t cells_pages() const { return pages(counts_at() + cell_count * sizeof(uint32_t)); }
  static uint64_t pages(uint64_t bytes) { return (bytes - 1) / load::kPageBytes + 1; }

  uint64_t record_bytes, bucket_bytes, cell_bytes, bucket_count, cell_count;
};

// Cache-buckets before a table of records whose keys are numbers.
class Staged {
 public:
  Staged(const Plan& plan, load::PagedMemory table, load::PagedMemory cells, uint64_t seed)
      : plan_(plan),
        table_(std::move(table)),
        cells_(std::move(cells)),
        homes_(batch::Spread::by_number(plan.records(), plan.bucket_count)),
        regions_(batch::Spread::by_number(plan.records(), plan.cell_count)),
        random_(seed) {
    std::vector<uint64_t> order(plan.slots());
    for (uint64_t bucket = 0; bucket < plan.bucket_count; ++bucket) {
      for (uint64_t slot = 0; slot < order.size(); ++slot) order[slot] = bucket * order.size() + slot;
      for (uint64_t slot = order.size() - 1; slot > 0; --slot)
        std::swap(order[slot], order[random_.below(slot + 1)]);
      for (uint64_t slot = 0; slot < order.size(); ++slot)
        memcpy(table_.at(bucket * plan.bucket_bytes) + slot * plan.record_bytes, &order[slot],
               sizeof order[slot]);
    }
  }

  void update(uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) {
      const uint64_t number = random_.below(plan_.records());
      const uint64_t region = regions_.home({.low = number});
      std::byte* const cell = cells_.at(region * plan_.cell_bytes);
      auto& count = *reinterpret_cast<uint32_t*>(cells_.at(plan_.counts_at() + region * sizeof(uint32_t)));
      std::byte* const change = cell + count * plan_.record_bytes;
      memcpy(change, &number, sizeof number);
      memset(change + sizeof number, static_cast<int>(i), plan_.record_bytes - sizeof number);
      if (++count < plan_.capacity()) continue;
      for (; count > 0; --count) apply(cell + (plan_.capacity() - count) * plan_.record_bytes);
    }
  }

 private:
  void apply(const std::byte* change) const {
    const auto key = batch::load_word<uint64_t>(change);
    std::byte* const bucket = table_.at(homes_.home({.low = key}) * plan_.bucket_bytes);
    for (uint64_t at = 0; at < plan_.bucket_bytes; at += plan_.record_bytes) {
      if (batch::load_word<uint64_t>(bucket + at) != key) continue;
      memcpy(bucket + at + sizeof key, change + sizeof key, plan_.record_bytes - sizeof key);
      return;
    }
    load::fail(1, "a record is not there");
  }

  const Plan plan_;
  const load::PagedMemory table_, cells_;
  const batch::Spread homes_, regions_;
  load::Random random_;
};

[[noreturn]] void fail_for_memory() { load::fail(1, "no memory"); }

// Of pages as they come.
Staged plain(const Plan& plan, const Settings& settings) {
  auto pool = load::PagePool::open(plan.table_pages() + plan.cells_pages(), load::Address::kVirtual, 1);
  if (!pool) fail_for_memory();
  return {plan, *pool->take(plan.table_pages(), 0, 1), *pool->take(plan.cells_pages(), 0, 1),
          settings["seed"]};
}

// As many pages as have enough of each kind, if colours are even, and some more.
uint64_t pages_for_colours(const Plan& plan, const Settings& settings) {
  const uint64_t colours = settings["colours"], taken = settings["taken"];
  const uint64_t enough =
      std::max(plan.cells_pages() * colours / taken, plan.table_pages() * colours / (colours - taken));
  return enough + enough / 8 + 2 * colours;
}
std::optional<Staged> coloured(const Plan& plan, const Settings& settings, load::PagePool& pool) {
  auto cells = pool.take(plan.cells_pages(), 0, settings["taken"]);
  auto table = pool.take(plan.table_pages(), settings["taken"], settings["colours"]);
  if (!cells || !table) return {};
  return Staged(plan, *table, *cells, settings["seed"]);
}

load::PagedMemory pages_of(batch::HugeMemory& memory, uint64_t count) {
  if (!memory.open(count * load::kPageBytes, "a table")) fail_for_memory();
  std::vector<std::byte*> pages;
  for (uint64_t i = 0; i < count; ++i) pages.push_back(memory.at<std::byte>(i * load::kPageBytes));
  return load::PagedMemory(std::move(pages));
}

double nanoseconds(Staged& staged, double seconds) {
  cases::Stopwatch watch;
  watch.start();
  const uint64_t end_ns = cases::clock_ns(CLOCK_MONOTONIC) + static_cast<uint64_t>(seconds * 1e9);
  uint64_t updates = 0;
  do {
    staged.update(kGroup);
    updates += kGroup;
  } while (cases::clock_ns(CLOCK_MONOTONIC) < end_ns);
  watch.stop();
  return static_cast<double>(watch.cpu_ns()) / static_cast<double>(updates);
}

// Nanoseconds of a line, of a chain through all lines of these pages in random order.
double line_ns(const load::PagedMemory& memory, uint64_t seed) {
  struct alignas(base::kLineBytes) Line {
    Line* next;
  };
  std::vector<Line*> lines;
  for (std::byte* const page : memory.pages())
    for (uint64_t at = 0; at < load::kPageBytes; at += sizeof(Line))
      lines.push_back(reinterpret_cast<Line*>(page + at));
  load::Random random(seed);
  for (uint64_t i = lines.size() - 1; i > 0; --i) std::swap(lines[i], lines[random.below(i + 1)]);
  for (uint64_t i = 0; i < lines.size(); ++i) lines[i]->next = lines[(i + 1) % lines.size()];
  const Line* at = lines[0];
  uint64_t least_ns = UINT64_MAX;
  for (int round = 0; round < 20; ++round) {
    const uint64_t begin_ns = cases::clock_ns(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < lines.size(); ++i) at = at->next;
    asm volatile("" : : "r"(at));
    least_ns = std::min(least_ns, cases::clock_ns(CLOCK_MONOTONIC) - begin_ns);
  }
  return static_cast<double>(least_ns) / static_cast<double>(lines.size());
}

// Of pages of a pool of their own, for which colours need memory.
void print_lines(const Settings& settings) {
  const std::pair<const char*, uint64_t> all[] = {
      {"mixed", 1}, {"near", settings["near"]}, {"same", settings["colours"]}};
  std::printf(", \"lines\": {");
  const char* separator = "";
  for (const auto& [name, colours] : all) {
    auto pool = load::PagePool::open(2 * kProbePages * colours, load::Address::kPhysical, colours);
    auto pages = pool ? pool->take(kProbePages, 0, 1) : std::nullopt;
    if (!pages) continue;
    std::printf("%s\"%s\": %.2f", separator, name, line_ns(*pages, settings["seed"]));
    separator = ", ";
    pool->drop_rest();
  }
  std::printf("}");
}

void print_times(const Plan& plan, const Settings& settings) {
  auto pool =
      load::PagePool::open(pages_for_colours(plan, settings), load::Address::kPhysical, settings["colours"]);
  auto by_colours = pool ? coloured(plan, settings, *pool) : std::nullopt;
  if (!by_colours) return void(std::puts("{\"unavailable\": 1}"));
  pool->drop_rest();
  batch::HugeMemory table, cells;
  Staged by_large_pages(plan, pages_of(table, plan.table_pages()), pages_of(cells, plan.cells_pages()),
                        settings["seed"]);
  Staged as_they_come = plain(plan, settings);
  std::pair<const char*, Staged*> all[] = {
      {"plain", &as_they_come}, {"coloured", &*by_colours}, {"huge", &by_large_pages}};
  std::map<std::string, std::vector<double>> times;
  // All cache-buckets have been full, and are not so at the same time.
  for (const auto& [name, staged] : all) staged->update(4 * plan.cell_count * plan.capacity());
  for (uint64_t turn = 0; turn < settings["turns"]; ++turn)
    for (size_t i = 0; i < std::size(all); ++i) {
      const auto& [name, staged] = all[(i + turn) % std::size(all)];
      staged->update(plan.cell_count);  // the cache is its own again
      times[name].push_back(nanoseconds(*staged, settings.seconds));
    }
  std::printf("{\"records\": %lu, \"placements\": {", plan.records());
  const char* separator = "";
  for (const auto& [name, each] : times) {
    std::printf("%s\"%s\": [", separator, name.c_str());
    for (size_t i = 0; i < each.size(); ++i) std::printf("%s%.2f", i == 0 ? "" : ", ", each[i]);
    std::printf("]");
    separator = ", ";
  }
  std::printf("}");
  print_lines(settings);
  std::puts("}");
}

// Updates by the caller, whose colours are by virtual addresses.
void update(const Plan& plan, const Settings& settings) {
  if (settings.placement == "plain") return plain(plan, settings).update(settings["updates"]);
  auto pool =
      load::PagePool::open(pages_for_colours(plan, settings), load::Address::kVirtual, settings["colours"]);
  auto staged = pool ? coloured(plan, settings, *pool) : std::nullopt;
  if (!staged) fail_for_memory();
  staged->update(settings["updates"]);
}

}  // namespace

int main(int count, char** words) {
  const Settings settings = settings_of(count, words);
  const Plan plan(settings);
  if (settings["updates"] == 0) return print_times(plan, settings), 0;
  update(plan, settings);
  std::printf("{\"records\": %lu}\n", plan.records());
  return 0;
}
