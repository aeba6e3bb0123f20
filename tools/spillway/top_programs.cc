// spillway top: what it shows of programs that run with Spillway.
#include <cxxabi.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "code_map.h"
#include "command.h"
#include "process.h"
#include "server/clients/metrics_page.h"
#include "spill/report.h"
#include "top_view.h"

namespace tools {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

// What was read of a process at one time.
struct Sample {
  Clock::time_point time;
  std::vector<uint64_t> counters;  // in the order of kStatisticInfo
  std::vector<base::SiteTable::Site> sites[base::kSitesCount];
  std::vector<base::MissCurve::Point> curves[base::kCurveCount];
  std::string words[base::kWordCount];
};

// A process that is watched, or why it cannot be.
struct Watched {
  explicit Watched(pid_t id) : pid(id), code(id) {
    try {
      process = std::make_unique<Process>(id);
    } catch (const std::runtime_error& error) {  // wrong input, or it ended meanwhile
      problem = error.what();
    }
  }

  // False: it has ended, or become another program.
  bool look() {
    if (process == nullptr) return kill(pid, 0) == 0 || errno != ESRCH;
    try {
      Sample sample{Clock::now(), process->counters(), {}, {}, {}};
      for (size_t list = 0; list < base::kSitesCount; ++list) sample.sites[list] = process->sites(list);
      for (size_t curve = 0; curve < base::kCurveCount; ++curve)
        sample.curves[curve] = process->curve_points(curve, sample.counters);
      for (size_t word = 0; word < base::kWordCount; ++word)
        sample.words[word] = printable(process->word(word).view());
      problem = process->is_fork_child() ? "is a child of fork that has not called exec" : "";
      before = std::exchange(now, std::move(sample));
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }

  bool is_seen() const { return process != nullptr && problem.empty(); }

  pid_t pid;
  std::unique_ptr<Process> process;
  std::string problem;
  Sample before, now;
  CodeMap code;
};

// A sum of what threads count separately, such as spill.live_bytes, may be below 0 for a while.
uint64_t counter(const Sample& sample, size_t number) {
  const uint64_t value = sample.counters[number];
  return static_cast<int64_t>(value) < 0 ? 0 : value;
}

// The rate of a counter that only grows; nothing before there were two samples.
std::optional<double> per_second(const Watched& watched, size_t number) {
  if (watched.before.counters.empty()) return std::nullopt;
  const double seconds = std::chrono::duration<double>(watched.now.time - watched.before.time).count();
  return static_cast<double>(counter(watched.now, number) - counter(watched.before, number)) / seconds;
}

bool is_told(const Watched& watched, const base::StatisticInfo& info) {
  return spill::is_told(info, counter(watched.now, number_of("satc", "threads")));
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 ? text : symbol;
  std::free(text);
  return result;
}

std::string site_text(const CodePlace& place) {
  std::string text =
      place.module.empty() ? "code of no file" : place.module.substr(place.module.rfind('/') + 1);
  text += concat('+', std::hex, std::showbase, place.offset);
  if (!place.symbol.empty()) text += concat(" (", demangled(place.symbol), ')');
  return printable(text);
}

Json json_of(Watched& watched) {
  Json json;
  json["pid"] = watched.pid;
  if (!watched.is_seen()) {
    json["problem"] = watched.problem;
    return json;
  }
  const spill::Published& published = watched.process->published();
  json["program"] = watched.process->name();
  json["budget_bytes"] = counter(watched.now, number_of("memory", "budget_bytes"));
  json["page_bytes"] = published.cache.page_bytes;
  json["device"] = printable(published.device);
  for (size_t i = 0; i < base::kStatisticCount; ++i) {
    const base::StatisticInfo& info = base::kStatisticInfo[i];
    if (is_told(watched, info)) json[info.folder][info.name] = counter(watched.now, i);
  }
  for (size_t list = 0; list < base::kSitesCount; ++list) {
    Json sites = Json::array();
    for (const auto& site : watched.now.sites[list]) {
      const CodePlace& place = watched.code.find(site.address);
      sites.push_back({{"count", site.count},
                       {"over", site.over},
                       {"module", place.module},
                       {"offset", concat(std::hex, std::showbase, place.offset)},
                       {"symbol", place.symbol}});
    }
    json[base::kSitesInfo[list].folder][base::kSitesInfo[list].name] = sites;
  }
  for (size_t curve = 0; curve < base::kCurveCount; ++curve) {
    Json points = Json::array();
    for (const auto& point : watched.now.curves[curve])
      points.push_back({{"memory_bytes", point.memory_bytes}, {"misses", point.misses}});
    json[base::kCurveInfo[curve].folder][base::kCurveInfo[curve].name] = points;
  }
  for (size_t word = 0; word < base::kWordCount; ++word)
    json[base::kWordInfo[word].folder][base::kWordInfo[word].name] = watched.now.words[word];
  return json;
}

// cache.misses -> program_cache_misses_total, since by convention names of counters end so.
std::string metric_name(const base::StatisticInfo& info) {
  return concat("program_", info.folder, '_', info.name, info.is_counter ? "_total" : "");
}

// A metric for each number and word; of sites and curves, which are lists, none.
std::string metrics_of(const std::map<pid_t, Watched>& programs) {
  struct Seen {
    const Watched& watched;
    std::string pid, name;
    server::MetricsPage::Labels labels() const { return {{"pid", pid}, {"program", name}}; }
  };
  std::vector<Seen> all;
  server::MetricsPage page;
  page.begin("program_problem", "gauge",
             "1, with the reason why nothing is told of this process of Spillway's");
  for (const auto& [number, watched] : programs) {
    const std::string pid = concat(number);
    if (watched.is_seen())
      all.push_back({watched, pid, watched.process->name()});
    else
      page.add({{"pid", pid}, {"problem", watched.problem}}, 1);
  }
  page.begin("program_info", "gauge", "1, with what stays as it is: the storage, and bytes of a page");
  for (const Seen& seen : all) {
    const spill::Published& published = seen.watched.process->published();
    const std::string device = printable(published.device), page_bytes = concat(published.cache.page_bytes);
    auto labels = seen.labels();
    labels.emplace_back("device", device);
    labels.emplace_back("page_bytes", page_bytes);
    page.add(labels, 1);
  }
  for (size_t i = 0; i < base::kStatisticCount; ++i) {
    const base::StatisticInfo& info = base::kStatisticInfo[i];
    page.begin(metric_name(info), info.is_counter ? "counter" : "gauge", info.doc);
    for (const Seen& seen : all)
      if (is_told(seen.watched, info)) page.add(seen.labels(), counter(seen.watched.now, i));
  }
  for (size_t word = 0; word < base::kWordCount; ++word) {
    const base::StatisticInfo& info = base::kWordInfo[word];
    page.begin(metric_name(info), "gauge", concat("1, with a word that says ", info.doc));
    for (const Seen& seen : all) {
      auto labels = seen.labels();
      labels.emplace_back("word", seen.watched.now.words[word]);
      page.add(labels, 1);
    }
  }
  return page.take();
}

// One line a program.
std::string overview(std::map<pid_t, Watched>& programs) {
  std::string text =
      concat(padded("pid", 8), "  ", padded("program", 16, false), padded("budget", 12), padded("in use", 12),
             padded("spilled", 12), padded("misses/s", 10), padded("resident", 10), padded("read/s", 12),
             padded("written/s", 12), padded("faults/s", 10), "  hottest fault site\n");
  for (auto& [pid, watched] : programs) {
    text += padded(concat(pid), 8) + "  ";
    if (!watched.is_seen()) {
      text += watched.problem + '\n';
      continue;
    }
    // How often a page was there when the runtime was asked for it. Compiled code does not ask for pages that were used
    // lately: the true rate is higher.
    const auto hits = per_second(watched, number_of("cache", "hits"));
    const auto rearms = per_second(watched, number_of("spill", "rearms"));
    const auto misses = per_second(watched, number_of("cache", "misses"));
    std::string rate;
    if (hits && *hits + *rearms + *misses > 0)
      rate = concat(static_cast<int>(100 * (*hits + *rearms) / (*hits + *rearms + *misses)), '%');
    text += padded(watched.process->name(), 16, false);
    text += padded(readable_bytes(counter(watched.now, number_of("memory", "budget_bytes"))), 12);
    text += padded(readable_bytes(counter(watched.now, number_of("memory", "frames_bytes")) +
                                  counter(watched.now, number_of("memory", "metadata_bytes"))),
                   12);
    text += padded(readable_bytes(counter(watched.now, number_of("spill", "live_bytes"))), 12);
    text += padded(count_text(misses), 10) + padded(rate, 10);
    text += padded(bytes_text(per_second(watched, number_of("storage", "read_bytes"))), 12);
    text += padded(bytes_text(per_second(watched, number_of("storage", "write_bytes"))), 12);
    text += padded(count_text(per_second(watched, number_of("spill", "faults"))), 10) + "  ";
    if (!watched.now.sites[0].empty()) text += site_text(watched.code.find(watched.now.sites[0][0].address));
    text += '\n';
  }
  if (programs.empty()) text += "no program that this user may look at runs Spillway\n";
  return text;
}

// All that is known of one program.
std::string details(Watched& watched) {
  const spill::Published& published = watched.process->published();
  std::string text =
      concat("process ", watched.pid, " (", watched.process->name(), "): budget ",
             readable_bytes(counter(watched.now, number_of("memory", "budget_bytes"))), ", pages of ",
             readable_bytes(published.cache.page_bytes), ", storage ", printable(published.device), "\n\n",
             padded("", 26), padded("total", 16), padded("per second", 16), '\n');
  for (size_t i = 0; i < base::kStatisticCount; ++i) {
    const base::StatisticInfo& info = base::kStatisticInfo[i];
    if (!is_told(watched, info)) continue;
    const bool bytes = std::string_view(info.name).ends_with("_bytes");
    const auto total = static_cast<double>(counter(watched.now, i));
    const auto rate = info.is_counter ? per_second(watched, i) : std::nullopt;
    text += padded(concat(info.folder, '.', info.name), 26, false);
    text += padded(bytes ? bytes_text(total) : count_text(total), 16);
    text += padded(bytes ? bytes_text(rate) : count_text(rate), 16) + '\n';
  }
  for (size_t word = 0; word < base::kWordCount; ++word) {
    const base::StatisticInfo& info = base::kWordInfo[word];
    text +=
        padded(concat(info.folder, '.', info.name), 26, false) + padded(watched.now.words[word], 16) + '\n';
  }
  for (size_t list = 0; list < base::kSitesCount; ++list) {
    if (watched.now.sites[list].empty()) continue;
    text += concat('\n', base::kSitesInfo[list].folder, '.', base::kSitesInfo[list].name, '\n');
    for (const auto& site : watched.now.sites[list])
      text += concat(padded(concat(site.count), 12), "  ", site_text(watched.code.find(site.address)), '\n');
  }
  return text;
}

class Programs final : public TopView {
 public:
  // 0: all of them.
  explicit Programs(pid_t pid) : pid_(pid) {
    if (pid == 0) return;
    Watched& watched = programs_.try_emplace(pid, pid).first->second;
    if (watched.process == nullptr) throw WrongInput(watched.problem);
    if (watched.process->is_fork_child())
      throw WrongInput(
          concat("process ", pid, " is a child of fork that has not called exec: its parent counts"));
  }

  void look() override {
    if (pid_ == 0)
      for (const pid_t pid : find_spillway_processes()) programs_.try_emplace(pid, pid);
    for (auto at = programs_.begin(); at != programs_.end();)
      at = at->second.look() ? std::next(at) : programs_.erase(at);
  }
  std::string problem() const override {
    return pid_ != 0 && programs_.empty() ? concat("process ", pid_, " has ended") : "";
  }
  bool may_come_back() const override { return false; }
  std::string table() override { return pid_ != 0 ? details(programs_.at(pid_)) : overview(programs_); }
  Json json() override {
    Json all;
    all["programs"] = Json::array();
    for (auto& [pid, watched] : programs_) all["programs"].push_back(json_of(watched));
    return all;
  }
  std::string metrics() const { return metrics_of(programs_); }

 private:
  const pid_t pid_;
  std::map<pid_t, Watched> programs_;
};

}  // namespace

std::unique_ptr<TopView> watch_programs(pid_t pid) { return std::make_unique<Programs>(pid); }

std::string metrics_of_programs(pid_t pid) {
  Programs programs(pid);
  programs.look();
  if (const std::string problem = programs.problem(); !problem.empty()) throw std::runtime_error(problem);
  return programs.metrics();
}

}  // namespace tools
