#include "report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sites.h"

namespace persist_check {
namespace {

const char* name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::kMissingFlush: return "missing flush";
    case FindingKind::kMissingFence: return "missing fence";
    case FindingKind::kRedundantFlush: return "redundant flush";
    case FindingKind::kFlushOfNothing: return "flush of nothing";
    case FindingKind::kRedundantFence: return "redundant fence";
  }
  return "";
}

const char* meaning_of(const Finding& finding) {
  switch (finding.kind) {
    case FindingKind::kMissingFlush:
      return finding.is_found ? "what was found stored there was never flushed"
                              : "what it stores was never flushed";
    case FindingKind::kMissingFence: return "what it flushes was never fenced by its thread";
    case FindingKind::kRedundantFlush: return "nothing was stored there since the last flush";
    case FindingKind::kFlushOfNothing: return "nothing was ever stored there";
    case FindingKind::kRedundantFence: return "its thread flushed nothing since its last fence";
  }
  return "";
}

const char* name_of(RecordKind kind) {
  switch (kind) {
    case RecordKind::kStore: return "store";
    case RecordKind::kFlush: return "flush";
    case RecordKind::kFence: return "fence";
    case RecordKind::kMarker: return "marker";
    default: return "mapping";
  }
}

std::vector<uint64_t> sites_of(const Report& report) {
  std::vector<uint64_t> sites;
  for (const Finding& finding : report.findings) sites.push_back(finding.site);
  for (const Bug& bug : report.checked.bugs) {
    if (bug.event_count > 0) sites.push_back(report.history->events[bug.event_count - 1].site);
    for (const auto* const lines : {&bug.behind, &bug.ahead})
      for (const LineNote& line : *lines)
        for (const std::optional<uint64_t>& site : {line.held_site, line.missing_site})
          if (site) sites.push_back(*site);
  }
  std::ranges::sort(sites);
  sites.erase(std::ranges::unique(sites).begin(), sites.end());
  return sites;
}

std::string file_name(const History& history, LineId line) {
  const File& file = history.files[file_of(line)];
  return file.path.empty() ? "memory " + std::to_string(file_of(line) + 1) : file.path;
}

std::string line_name(const History& history, LineId line) {
  std::ostringstream text;
  text << file_name(history, line) << "+0x" << std::hex << line_of(line) * base::kLineBytes;
  return text.str();
}

void print_line(std::ostream& text, const Report& report, const Sites& sites, const LineNote& line) {
  text << "  line " << line_name(*report.history, line.line) << ": ";
  if (line.held_site) text << "holds the store at " << sites.name(*line.held_site);
  if (line.missing_site)
    text << (line.held_site ? ", " : "") << (line.is_torn ? "a part of" : "lacks") << " the store at "
         << sites.name(*line.missing_site)
         << (line.was_flushed ? ", flushed but not fenced" : ", not flushed");
  text << '\n';
}

void print_bug(std::ostream& text, const Report& report, const Sites& sites, const Bug& bug) {
  text << "BUG no recovery (" << bug.outcome.text << ")";
  if (bug.event_count > 0) {
    const Event& last = report.history->events[bug.event_count - 1];
    text << " after the " << name_of(last.kind);
    if (last.site != 0) text << " at " << sites.name(last.site);
  }
  if (!bug.marker.empty()) text << ", marker '" << bug.marker << "'";
  text << "; " << bug.times << (bug.times == 1 ? " image\n" : " images\n");
  for (const LineNote& line : bug.behind) print_line(text, report, sites, line);
  for (const LineNote& line : bug.ahead) print_line(text, report, sites, line);
  if (bug.behind.empty() && bug.ahead.empty())
    text << "  with all that was stored, as well as with what is sure alone\n";
  text << "  again: " << bug.command << "   (seed " << report.options.seed << ", event " << bug.event_count
       << ", image " << bug.image << ")\n";
}

nlohmann::json site_json(const Sites& sites, uint64_t site) {
  return {{"name", sites.name(site)}, {"place", sites.place(site)}, {"address", site}};
}

nlohmann::json line_json(const Report& report, const Sites& sites, const LineNote& line) {
  nlohmann::json json = {{"file", file_name(*report.history, line.line)},
                         {"offset", line_of(line.line) * base::kLineBytes},
                         {"is_torn", line.is_torn},
                         {"was_flushed", line.was_flushed}};
  if (line.held_site) json["holds"] = site_json(sites, *line.held_site);
  if (line.missing_site) json["lacks"] = site_json(sites, *line.missing_site);
  return json;
}

nlohmann::json bug_json(const Report& report, const Sites& sites, const Bug& bug) {
  nlohmann::json json = {{"outcome", bug.outcome.text}, {"event", bug.event_count}, {"image", bug.image},
                         {"images", bug.times},         {"marker", bug.marker},     {"command", bug.command}};
  if (bug.event_count > 0) {
    const Event& last = report.history->events[bug.event_count - 1];
    json["after"] = {{"kind", name_of(last.kind)}, {"site", site_json(sites, last.site)}};
  }
  for (const auto& [name, lines] : {std::pair("behind", &bug.behind), std::pair("ahead", &bug.ahead)}) {
    json[name] = nlohmann::json::array();
    for (const LineNote& line : *lines) json[name].push_back(line_json(report, sites, line));
  }
  return json;
}

}  // namespace

bool Report::has_bugs() const {
  return !checked.bugs.empty() ||
         std::ranges::any_of(findings, [](const Finding& finding) { return is_bug(finding.kind); });
}

std::vector<Finding> without(const std::vector<std::string>& ignored, const History& history,
                             std::vector<Finding> findings) {
  std::vector<uint64_t> addresses;
  for (const Finding& finding : findings) addresses.push_back(finding.site);
  const Sites sites(history, addresses);
  std::erase_if(findings, [&](const Finding& finding) {
    return std::ranges::any_of(ignored, [&](const std::string& text) {
      return sites.name(finding.site).contains(text) || sites.library(finding.site).contains(text);
    });
  });
  return findings;
}

std::string as_text(const Report& report) {
  const Sites sites(*report.history, sites_of(report));
  std::ostringstream text;
  for (const Bug& bug : report.checked.bugs) print_bug(text, report, sites, bug);
  for (const Finding& finding : report.findings) {
    text << (is_bug(finding.kind) ? "BUG " : "waste ") << name_of(finding.kind) << " at "
         << sites.name(finding.site) << ": " << meaning_of(finding) << "; " << finding.count
         << (finding.count == 1 ? " time" : " times");
    if (finding.kind != FindingKind::kRedundantFence)
      text << ", first at " << line_name(*report.history, finding.line);
    text << '\n';
  }
  const CheckResult& checked = report.checked;
  if (report.has_recovery && checked.images != 0 && checked.failures == checked.images)
    text << "the recovery failed on every image; does it succeed at all?\n";
  const History& history = *report.history;
  if (!history.damage.empty())
    text << "the log is damaged " << history.damage << "; only what is before was looked at\n";
  if (history.is_full) text << "the log was full before the program's end\n";
  if (!history.is_ended && !history.is_full && history.damage.empty())
    text << "the program did not come to its end; what was not yet flushed then is not a finding\n";
  text << history.events.size() << " events";
  if (report.has_recovery)
    text << ", " << report.checked.crash_points << " crash points, " << report.checked.images << " images"
         << (report.checked.is_stopped ? ", stopped: enough bugs or failures"
             : report.checked.is_all   ? ", all that there are"
                                       : ", a choice (seed " + std::to_string(report.options.seed) + ")");
  text << (report.has_bugs() ? "\n" : ": no bugs\n");
  return text.str();
}

std::string as_json(const Report& report) {
  const Sites sites(*report.history, sites_of(report));
  nlohmann::json json = {{"events", report.history->events.size()},
                         {"is_ended", report.history->is_ended},
                         {"is_log_full", report.history->is_full},
                         {"damage", report.history->damage},
                         {"seed", report.options.seed},
                         {"has_bugs", report.has_bugs()},
                         {"findings", nlohmann::json::array()},
                         {"bugs", nlohmann::json::array()}};
  for (const Finding& finding : report.findings) {
    nlohmann::json one = {{"kind", name_of(finding.kind)}, {"is_bug", is_bug(finding.kind)},
                          {"is_found", finding.is_found},  {"count", finding.count},
                          {"event", finding.event},        {"site", site_json(sites, finding.site)}};
    if (finding.kind != FindingKind::kRedundantFence) {
      one["file"] = file_name(*report.history, finding.line);
      one["offset"] = line_of(finding.line) * base::kLineBytes;
    }
    json["findings"].push_back(one);
  }
  if (report.has_recovery)
    json["recovery"] = {{"crash_points", report.checked.crash_points},
                        {"images", report.checked.images},
                        {"failures", report.checked.failures},
                        {"is_all", report.checked.is_all},
                        {"is_stopped", report.checked.is_stopped}};
  for (const Bug& bug : report.checked.bugs) json["bugs"].push_back(bug_json(report, sites, bug));
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace persist_check
