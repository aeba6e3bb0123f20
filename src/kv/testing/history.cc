#include "kv/testing/history.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/bits.h"
#include "base/check.h"
#include "base/mix.h"

namespace kv {
namespace {

using Outcome = Changed::Outcome;
using Versions = std::unordered_set<uint64_t>;

struct State {
  uint64_t value = 0;    // 0: the key has none
  uint64_t version = 0;  // of the value; 0: no call has returned it yet
  uint64_t highest = 0;  // the highest version so far
  bool operator==(const State&) const = default;
};

// Can the value's version be this one? If nobody knew the value's version, it has this one from now on.
bool has_version(State& state, uint64_t version, const Versions& of_known_puts) {
  if (state.version != 0) return state.version == version;
  if (version <= state.highest || of_known_puts.contains(version)) return false;
  state.version = state.highest = version;
  return true;
}

bool is_to_be_done(const Call& call, State& state, const Versions& of_known_puts) {
  if (call.kind == Call::Kind::kRemove && state.value == 0) return false;
  switch (call.when) {
    case When::kAlways: return true;
    case When::kIfAbsent: return state.value == 0;
    case When::kIfPresent: return state.value != 0;
    case When::kIfVersion: return state.value != 0 && has_version(state, call.if_version, of_known_puts);
  }
  return false;
}

// Can the call be the next one, and return what it did? If so, `state` is the state after it.
bool apply(const Call& call, State& state, const Versions& of_known_puts) {
  const bool is_there = state.value != 0;
  if (call.kind == Call::Kind::kGet) {
    if (call.outcome == Outcome::kAbsent) return !is_there;
    return is_there && state.value == call.value && has_version(state, call.version, of_known_puts);
  }
  const Outcome outcome = call.is_known ? call.outcome : Outcome::kDone;
  switch (outcome) {
    case Outcome::kAbsent:
      return !is_there && call.version == 0 &&
             (call.kind == Call::Kind::kRemove || call.when == When::kIfPresent ||
              call.when == When::kIfVersion);
    case Outcome::kPresent:
      return is_there && call.when == When::kIfAbsent && has_version(state, call.version, of_known_puts);
    case Outcome::kVersion:
      return is_there && call.when == When::kIfVersion && call.version != call.if_version &&
             has_version(state, call.version, of_known_puts);
    case Outcome::kDone: break;
  }
  if (!is_to_be_done(call, state, of_known_puts)) return false;
  if (call.kind == Call::Kind::kRemove) {
    state.value = state.version = 0;
    return true;
  }
  if (call.is_known && call.version <= state.highest) return false;
  state.value = call.value;
  state.version = call.is_known ? call.version : 0;
  state.highest = std::max(state.highest, state.version);
  return true;
}

void say(std::string& text, const Call& call) {
  const char* const kinds[] = {"get", "put", "remove"};
  const char* const whens[] = {"", " if absent", " if present", " if version"};
  const char* const outcomes[] = {"done", "absent", "present", "another version"};
  text += "  [" + std::to_string(call.began) + ", " +
          (call.ended == Call::kNever ? "-" : std::to_string(call.ended)) + "] " +
          kinds[static_cast<int>(call.kind)] + whens[static_cast<int>(call.when)];
  if (call.when == When::kIfVersion) text += " " + std::to_string(call.if_version);
  if (call.kind == Call::Kind::kPut) text += " value " + std::to_string(call.value);
  text += call.is_known ? std::string(": ") + outcomes[static_cast<int>(call.outcome)] : ": error";
  if (call.kind == Call::Kind::kGet && call.value != 0) text += ", value " + std::to_string(call.value);
  if (call.is_known && call.version != 0) text += ", version " + std::to_string(call.version);
  text += "\n";
}

// Looks for an order of the calls of one key. A list has the beginnings and ends of those calls by time. A call that was given its place in
// the order is taken out of the list, so that each call that begins before the first end in the list may be the next one.
class Search {
 public:
  // text() describes the first time when `told_count` calls had an order and none could be next.
  explicit Search(std::vector<Call> calls, size_t told_count = ~size_t{0})
      : calls_(std::move(calls)), told_count_(told_count) {
    std::ranges::sort(calls_, {}, &Call::began);
    rank_puts();
    link();
    done_.resize(calls_.size() / 64 + 1);
  }

  enum class Ended { kOrdered, kNoOrder, kGaveUp };
  Ended run() {
    uint32_t at = next_[kHead];
    for (uint64_t steps = 0; next_[kHead] != kHead; ++steps) {
      if (steps == kMaxSteps) return Ended::kGaveUp;
      const bool is_end = at % 2 == 0;
      const uint32_t call = at / 2 - 1;
      State state = state_;
      // The end of a call that ended with an error: it was never done.
      const bool fits =
          is_end ? !calls_[call].is_known : may_be_next(call) && apply(calls_[call], state, of_known_puts_);
      if (fits && enter(call, state)) {
        taken_.push_back({call, state_, is_end || state == state_});
        state_ = state;
        take_out(call);
        at = next_[kHead];
      } else if (!is_end) {
        at = next_[at];
      } else {
        note(call);
        do {
          if (taken_.empty()) return Ended::kNoOrder;
          call_back();
        } while (is_settled_);
        at = next_[begin_of(back_to_)];
      }
    }
    return Ended::kOrdered;
  }
  // The most calls that had an order when none could be next.
  size_t best_count() const { return best_count_; }
  const std::string& text() const { return text_; }

 private:
  static constexpr uint64_t kMaxSteps = 20'000'000;
  static constexpr uint32_t kHead = 0;  // of the list; beginnings of calls are odd, ends are even
  static uint32_t begin_of(uint32_t call) { return 2 * call + 3; }
  static uint32_t end_of(uint32_t call) { return 2 * call + 2; }

  struct Taken {
    uint32_t call;
    State before;
    // No other call need be tried in its place: it was never done, or changed nothing, and so fits here as well as at any later place.
    bool is_settled;
  };
  struct Known {
    std::vector<uint64_t> words;
    bool operator==(const Known&) const = default;
  };
  struct Hash {
    size_t operator()(const Known& known) const {
      uint64_t hash = known.words.size();
      for (const uint64_t word : known.words) hash = base::mix(hash ^ word);
      return hash;
    }
  };

  static bool is_known_put(const Call& call) {
    return call.kind == Call::Kind::kPut && call.is_known && call.outcome == Outcome::kDone;
  }
  // Puts take their places in the order of their versions; no other order need be tried.
  void rank_puts() {
    std::vector<std::pair<uint64_t, uint32_t>> puts;
    for (uint32_t i = 0; i < calls_.size(); ++i)
      if (is_known_put(calls_[i])) puts.push_back({calls_[i].version, i});
    std::ranges::sort(puts);
    rank_of_put_.resize(calls_.size());
    for (uint32_t i = 0; i < puts.size(); ++i) {
      of_known_puts_.insert(puts[i].first);
      rank_of_put_[puts[i].second] = i;
    }
  }
  bool may_be_next(uint32_t call) const {
    return !is_known_put(calls_[call]) || rank_of_put_[call] == put_count_;
  }

  void link() {
    std::vector<std::pair<uint64_t, uint32_t>> events;
    for (uint32_t i = 0; i < calls_.size(); ++i) {
      CHECK_LT(calls_[i].began, calls_[i].ended);
      events.push_back({calls_[i].began, begin_of(i)});
      events.push_back({calls_[i].ended, end_of(i)});
    }
    std::ranges::sort(events);
    next_.resize(2 * calls_.size() + 2);
    previous_.resize(next_.size());
    uint32_t last = kHead;
    for (const auto& [time, event] : events) {
      next_[last] = event;
      previous_[event] = last;
      last = event;
    }
    next_[last] = kHead;
    previous_[kHead] = last;
  }

  void unlink(uint32_t event) {
    next_[previous_[event]] = next_[event];
    previous_[next_[event]] = previous_[event];
  }
  void relink(uint32_t event) { next_[previous_[event]] = previous_[next_[event]] = event; }
  void take_out(uint32_t call) {
    if (is_known_put(calls_[call])) ++put_count_;
    unlink(begin_of(call));
    unlink(end_of(call));
  }
  void call_back() {
    const Taken& last = taken_.back();
    back_to_ = last.call;
    is_settled_ = last.is_settled;
    if (is_known_put(calls_[back_to_])) --put_count_;
    state_ = last.before;
    base::clear_bit(done_.data(), back_to_);
    relink(end_of(back_to_));
    relink(begin_of(back_to_));
    taken_.pop_back();
  }

  // Marks the call as done. False, and not marked: the search has been at this set of calls and this state before.
  bool enter(uint32_t call, const State& state) {
    base::set_bit(done_.data(), call);
    // Sorted by their beginnings, the first calls are all done and the last are not: only the words between are kept.
    size_t first = 0, end = done_.size();
    while (first < end && done_[first] == ~uint64_t{0}) ++first;
    while (end > first && done_[end - 1] == 0) --end;
    Known known = {{state.value, state.version, state.highest, first}};
    for (size_t i = first; i < end; ++i) known.words.push_back(done_[i]);
    if (known_.insert(std::move(known)).second) return true;
    base::clear_bit(done_.data(), call);
    return false;
  }

  // No call can be the next one before the end of `blocked`.
  void note(uint32_t blocked) {
    best_count_ = std::max(best_count_, taken_.size());
    if (taken_.size() != told_count_ || !text_.empty()) return;
    text_ = "after " + std::to_string(told_count_) + " of " + std::to_string(calls_.size()) + " calls ";
    text_ += state_.value == 0 ? "there is no value"
                               : "there is value " + std::to_string(state_.value) + ", version " +
                                     std::to_string(state_.version);
    text_ += ", and none of these can be next:\n";
    for (uint32_t at = next_[kHead]; at != end_of(blocked); at = next_[at])
      if (at % 2 == 1) say(text_, calls_[at / 2 - 1]);
    text_ += "the last in the order were:\n";
    for (size_t i = taken_.size() - std::min<size_t>(taken_.size(), 8); i < taken_.size(); ++i)
      say(text_, calls_[taken_[i].call]);
  }

  std::vector<Call> calls_;
  Versions of_known_puts_;
  std::vector<uint32_t> rank_of_put_;
  uint32_t put_count_ = 0;  // puts that have their places
  std::vector<uint32_t> next_, previous_;
  State state_;
  std::vector<uint64_t> done_;
  std::vector<Taken> taken_;
  std::unordered_set<Known, Hash> known_;
  uint32_t back_to_ = 0;
  bool is_settled_ = false;
  size_t best_count_ = 0;
  const size_t told_count_;
  std::string text_;
};

}  // namespace

std::string violation_of(std::span<const Call> calls) {
  std::map<uint32_t, std::vector<Call>> by_key;
  for (const Call& call : calls) by_key[call.key].push_back(call);
  for (const auto& [key, own] : by_key) {
    Search search(own);
    const Search::Ended ended = search.run();
    if (ended == Search::Ended::kOrdered) continue;
    Search again(own, search.best_count());
    static_cast<void>(again.run());
    return "key " + std::to_string(key) +
           (ended == Search::Ended::kNoOrder ? ": no order; " : ": gave up looking for an order; ") +
           again.text();
  }
  return {};
}

}  // namespace kv
