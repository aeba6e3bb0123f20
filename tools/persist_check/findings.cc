#include "findings.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "medium.h"

namespace persist_check {
namespace {

class Walk {
 public:
  explicit Walk(const History& history) : history_(history), medium_(history) {}

  std::vector<Finding> run() {
    for (size_t i = 0; i < history_.events.size(); ++i) {
      const Event& event = history_.events[i];
      if (event.kind == RecordKind::kStore) take_store(event);
      if (event.kind == RecordKind::kFlush) take_flush(event, i);
      if (event.kind == RecordKind::kFence && !has_flushed_.erase(event.thread))
        add(FindingKind::kRedundantFence, event.site, i, {});
      if (event.kind == RecordKind::kMap) mappings_.push_back(event);
      if (event.kind == RecordKind::kUnmap) take_unmap(event);
      medium_.advance();
    }
    std::vector<Finding> all;
    for (const auto& [key, finding] : findings_) all.push_back(finding);
    std::ranges::sort(all, {}, &Finding::event);
    return all;
  }

 private:
  void add(FindingKind kind, uint64_t site, size_t event, LineId line, bool is_found = false) {
    Finding& finding = findings_[{kind, site, is_found}];
    if (finding.count++ == 0)
      finding = {.kind = kind, .site = site, .is_found = is_found, .count = 1, .event = event, .line = line};
  }

  void take_store(const Event& event) {
    const bool is_past_caches = (event.flags & persist::kPastCaches) != 0;
    for (const Piece& piece : history_.pieces_of(event))
      uses_[piece.line] = {.is_dirty = !is_past_caches, .flusher = event.thread};
    if (is_past_caches) has_flushed_.insert(event.thread);
  }

  void take_flush(const Event& event, size_t number) {
    has_flushed_.insert(event.thread);
    bool is_needed = false, has_stored = false;
    for (uint64_t i = 0; i < event.line_count; ++i) {
      const LineId line = line_id(event.file, event.first_line + i);
      const auto found = uses_.find(line);
      if (found == uses_.end()) continue;
      const LineUse& use = found->second;
      has_stored = true;
      // A flush by another thread is not enough until that thread has fenced.
      is_needed |= use.is_dirty || (use.flusher != event.thread && medium_.open_lines().contains(line));
      found->second = {.is_dirty = false, .flusher = event.thread};
    }
    if (is_needed) return;
    add(has_stored ? FindingKind::kRedundantFlush : FindingKind::kFlushOfNothing, event.site, number,
        line_id(event.file, event.first_line));
  }

  static LineId begin_of(const Event& mapping) { return line_id(mapping.file, mapping.first_line); }
  static LineId end_of(const Event& mapping) {
    return line_id(mapping.file, mapping.first_line + mapping.line_count);
  }
  bool is_mapped(LineId line) const {
    return std::ranges::any_of(mappings_, [line](const Event& mapping) {
      return begin_of(mapping) <= line && line < end_of(mapping);
    });
  }

  // Adds findings for what is not sure when the last mapping of its line ends. Each is added once, even if the file is mapped again.
  void take_unmap(const Event& event) {
    const LineId begin = begin_of(event), end = end_of(event);
    mappings_.erase(std::ranges::find_if(mappings_, [&](const Event& mapping) {
      return begin_of(mapping) == begin && end_of(mapping) == end;
    }));
    const auto& open = medium_.open_lines();
    for (auto at = open.lower_bound(begin); at != open.end() && *at < end; ++at) {
      if (is_mapped(*at)) continue;
      const Medium::Line& line = medium_.line(*at);
      uint64_t& told = told_[*at];
      std::set<std::pair<uint64_t, bool>> sites;  // of this line: each counts once
      for (uint64_t position = std::max({line.flushed, line.sure, told}); position < line.end(); ++position) {
        const size_t store = line.pending[position - line.sure].event;
        const Event& stored = history_.events[store];
        const bool is_found = (stored.flags & persist::kFound) != 0;
        if (sites.emplace(stored.site, is_found).second)
          add(FindingKind::kMissingFlush, stored.site, store, *at, is_found);
      }
      told = line.end();
    }
    for (const Medium::Unfenced& flushed : medium_.unfenced())
      if (flushed.line >= begin && flushed.line < end && !is_mapped(flushed.line) &&
          told_fences_.emplace(flushed.line, flushed.event).second)
        add(FindingKind::kMissingFence, history_.events[flushed.event].site, flushed.event, flushed.line);
  }

  // The state of a line that was ever stored to.
  struct LineUse {
    bool is_dirty = false;  // stored to since its last flush
    uint32_t flusher = 0;   // the thread of that flush
  };

  const History& history_;
  Medium medium_;
  std::vector<Event> mappings_;  // the current ones: the events that began them
  std::map<std::tuple<FindingKind, uint64_t, bool>, Finding> findings_;
  std::unordered_map<LineId, LineUse> uses_;
  std::set<uint32_t> has_flushed_;             // threads that have, since their last fence
  std::unordered_map<LineId, uint64_t> told_;  // by line: findings were added for stores before this position
  std::set<std::pair<LineId, size_t>> told_fences_;
};

}  // namespace

std::vector<Finding> find_static(const History& history) { return Walk(history).run(); }

}  // namespace persist_check
