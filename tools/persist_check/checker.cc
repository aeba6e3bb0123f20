#include "checker.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/checksum.h"
#include "base/mix.h"

namespace persist_check {
namespace {

constexpr size_t kMaxStates = 64;     // of a line
constexpr size_t kMaxFailures = 300;  // images
constexpr size_t kMaxLinesToNarrow = 64;

// The crash points to try, ascending: after how many events each crash comes. `is_all` becomes false if other crash points could leave other images.
std::vector<size_t> choose_crash_points(const History& history, size_t count_max, Random& random,
                                        bool& is_all) {
  std::vector<size_t> first, others;
  const size_t end = history.events.size();
  std::set<size_t> preferred = {end};
  Medium medium(history);
  for (size_t i = 0; i < end; ++i) {
    const RecordKind kind = history.events[i].kind;
    // Just before more becomes sure, all images of earlier events are still possible; just after it, some are not.
    if (medium.advance()) preferred.insert({i, i + 1});
    if (kind == RecordKind::kMarker) preferred.insert({i, i + 1});
    if (kind != RecordKind::kMap && kind != RecordKind::kUnmap) others.push_back(i + 1);
  }
  preferred.erase(0);
  is_all &= preferred.size() <= count_max;
  first.assign(preferred.begin(), preferred.end());
  std::erase_if(others, [&](size_t point) { return preferred.contains(point); });
  for (auto* const points : {&first, &others})
    for (size_t i = points->size(); i > 1; --i) std::swap((*points)[i - 1], (*points)[random.below(i)]);
  first.insert(first.end(), others.begin(), others.end());
  first.resize(std::min(first.size(), count_max));
  std::ranges::sort(first);
  return first;
}

// What identifies a bug: the sites of stores that must be missing for the recovery to fail, and of stores that must be there. If there are neither,
// what is sure is wrong by itself; all such failures count as the same bug, since it usually stays wrong for a while.
struct Signature {
  std::set<uint64_t> behind, ahead;

  bool is_sure() const { return behind.empty() && ahead.empty(); }
  bool is_of(const Signature& image) const {
    if (is_sure()) return false;
    return std::ranges::includes(image.behind, behind) && std::ranges::includes(image.ahead, ahead);
  }
};

class Checker {
 public:
  Checker(const History& history, const CheckOptions& options, const Recover& recover, const Keep& keep,
          bool has_marker)
      : history_(history),
        options_(options),
        recover_(recover),
        keep_(keep),
        has_marker_(has_marker),
        medium_(history) {}

  CheckResult run() {
    Random random(options_.seed);
    const auto points = choose_crash_points(history_, options_.crash_points_max, random, result_.is_all);
    for (const size_t point : points) {
      if (options_.on_progress) options_.on_progress(result_, points.size());
      while (medium_.event_count() < point) take_event();
      ++result_.crash_points;
      const Choices choices(medium_, kMaxStates);
      for (const Image& image : choose_images(choices, options_.images_max, random, result_.is_all)) {
        if (result_.bugs.size() == options_.bugs_max || failures_ == kMaxFailures) {
          result_.is_stopped = true;
          result_.is_all = false;
          return std::move(result_);
        }
        if (const auto failed = try_new(choices, image); failed) take_failure(choices, image, *failed);
      }
    }
    return std::move(result_);
  }

 private:
  void take_event() {
    const Event& event = history_.events[medium_.event_count()];
    medium_.advance();
    if (event.kind == RecordKind::kMarker) marker_ = history_.markers[event.marker];
  }

  uint64_t hash(const Choices& choices, const Image& image) const {
    uint64_t hash = medium_.sure_hash();
    for (size_t i = 0; i < image.size(); ++i) {
      hash ^= hash_of(choices.lines[i], choices.states[i].front().content);
      hash ^= hash_of(choices.lines[i], choices.states[i][image[i]].content);
    }
    if (has_marker_) hash = base::mix(hash ^ base::checksum(marker_.data(), marker_.size()));
    return hash;
  }

  Outcome try_image(const Choices& choices, const Image& image) {
    for (size_t i = 0; i < image.size(); ++i)
      medium_.show(choices.lines[i], choices.states[i][image[i]].content);
    const Outcome outcome = recover_(medium_.sure(), marker_);
    for (size_t i = 0; i < image.size(); ++i)
      medium_.show(choices.lines[i], choices.states[i].front().content);
    ++result_.images;
    result_.failures += !outcome.is_good;
    return outcome;
  }

  // Tries an image unless it was tried before. Returns the outcome if that is not good.
  std::optional<Outcome> try_new(const Choices& choices, const Image& image) {
    const auto [entry, is_new] = tried_.emplace(hash(choices, image), true);
    if (!is_new) return std::nullopt;
    Outcome outcome = try_image(choices, image);
    entry->second = outcome.is_good;
    if (outcome.is_good) return std::nullopt;
    return outcome;
  }

  bool is_good(const Choices& choices, const Image& image) {
    const uint64_t key = hash(choices, image);
    if (const auto found = tried_.find(key); found != tried_.end()) return found->second;
    const bool good = try_image(choices, image).is_good;
    tried_.emplace(key, good);
    return good;
  }

  LineNote note(const Choices& choices, const Image& image, size_t i) const {
    const LineState& state = choices.states[i][image[i]];
    const auto& pending = medium_.line(choices.lines[i]).pending;
    LineNote note = {.line = choices.lines[i], .is_torn = state.torn != 0};
    if (state.stored_count > 0) note.held_site = history_.events[pending[state.stored_count - 1].event].site;
    if (state.stored_count < pending.size()) {
      const Medium::Line& line = medium_.line(choices.lines[i]);
      note.missing_site = history_.events[pending[state.stored_count].event].site;
      note.was_flushed = line.sure + state.stored_count < line.flushed;
    }
    return note;
  }

  Signature signature(const Choices& choices, const Image& image) const {
    Signature signature;
    for (size_t i = 0; i < image.size(); ++i) {
      const auto& pending = medium_.line(choices.lines[i]).pending;
      const LineState& state = choices.states[i][image[i]];
      for (size_t at = 0; at < pending.size(); ++at) {
        const uint64_t site = history_.events[pending[at].event].site;
        (at < state.stored_count ? signature.ahead : signature.behind).insert(site);
      }
    }
    return signature;
  }

  // Finds the lines that a failure depends on: gives one line after the other everything that was stored to it, then takes each line that has everything
  // back to what is sure, and keeps each change with which the recovery still fails.
  Bug narrow(const Choices& choices, Image& image) {
    Bug bug;
    std::vector<bool> matters(image.size(), true);
    if (image.size() <= kMaxLinesToNarrow)
      for (const bool to_newest : {true, false})
        for (size_t i = 0; i < image.size(); ++i) {
          if (!to_newest && image[i] != choices.newest(i)) continue;
          Image other = image;
          other[i] = to_newest ? choices.newest(i) : 0;
          if (other == image || is_good(choices, other)) continue;
          image = other;
          if (!to_newest) matters[i] = false;
        }
    for (size_t i = 0; i < image.size(); ++i) {
      if (!matters[i]) continue;
      const LineNote line = note(choices, image, i);
      (image[i] == choices.newest(i) ? bug.ahead : bug.behind).push_back(line);
    }
    return bug;
  }

  void take_failure(const Choices& choices, Image image, const Outcome& outcome) {
    ++failures_;
    const Signature found = signature(choices, image);
    for (size_t i = 0; i < known_.size(); ++i)
      if (known_[i].is_of(found)) {
        ++result_.bugs[i].times;
        return;
      }
    const size_t number = result_.images;
    Bug bug = narrow(choices, image);
    Signature key;
    for (const LineNote& line : bug.behind) key.behind.insert(*line.missing_site);
    for (const LineNote& line : bug.ahead) key.ahead.insert(*line.held_site);
    if (key.is_sure()) {
      const auto known = std::ranges::find_if(known_, &Signature::is_sure);
      if (known != known_.end()) {
        ++result_.bugs[static_cast<size_t>(known - known_.begin())].times;
        return;
      }
    }
    bug.event_count = medium_.event_count();
    bug.image = number;
    bug.times = 1;
    bug.marker = marker_;
    const Outcome again = try_image(choices, image);  // `keep_` keeps what the command says now
    bug.outcome = again.is_good ? outcome : again;
    for (size_t i = 0; i < image.size(); ++i)
      medium_.show(choices.lines[i], choices.states[i][image[i]].content);
    bug.command = keep_(medium_.sure(), marker_, result_.bugs.size());
    for (size_t i = 0; i < image.size(); ++i)
      medium_.show(choices.lines[i], choices.states[i].front().content);
    known_.push_back(key);
    result_.bugs.push_back(std::move(bug));
  }

  const History& history_;
  const CheckOptions& options_;
  const Recover& recover_;
  const Keep& keep_;
  const bool has_marker_;
  Medium medium_;
  CheckResult result_;
  std::string marker_;
  size_t failures_ = 0;
  std::unordered_map<uint64_t, bool> tried_;  // by hash: was it good?
  std::vector<Signature> known_;              // of result_.bugs
};

}  // namespace

CheckResult check(const History& history, const CheckOptions& options, const Recover& recover,
                  const Keep& keep, bool has_marker) {
  if (history.files.empty()) return {};  // there is no image to recover from
  return Checker(history, options, recover, keep, has_marker).run();
}

}  // namespace persist_check
