// For tests: which values the keys of a store may have after the process was killed, or the power cut.
//
//   the end of the process loses no acknowledged change, whatever the durability
//   a power cut loses no acknowledged change at kSync. At other durabilities it loses none that was acknowledged before the last completed
//   flush began
//   a change that had begun but was not acknowledged may have been made or not
// Only one thread changes a key, so that the changes of a key have an order.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kv/store.h"

namespace kv {

inline uint64_t steady_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// What a test is called that is made for each durability.
inline std::string durability_name(const testing::TestParamInfo<Durability>& test) {
  return test.param == Durability::kSync ? "Sync" : test.param == Durability::kBatch ? "Batch" : "None";
}

class CrashModel {
 public:
  // A change of the key begins. `value` is "" if the key is removed.
  void begin(const std::string& key, const std::string& value, bool expires) {
    keys_[key].push_back({.value = value, .expires = expires, .acknowledged_ns = 0});
  }
  void acknowledge(const std::string& key) { keys_[key].back().acknowledged_ns = steady_ns(); }
  // A power cut; the device began its last completed flush at `flushed_ns` of steady_ns().
  void has_lost_power(uint64_t flushed_ns) {
    if (!flushed_ns_) flushed_ns_ = flushed_ns;
  }
  // After a start the key was found with this value ("": not found), which it has from now on, also after a power cut. False: it must not
  // have that value.
  bool found(const std::string& key, const std::string& value, Durability durability, bool is_cache = false) {
    std::vector<Change>& changes = keys_[key];
    const size_t floor = floor_of(changes, durability);
    if (is_cache && value.empty()) {
      forget_before(changes, floor);
      return true;
    }
    bool may_be = value.empty() && (changes.empty() || floor == kNone);
    std::optional<Change> is;
    for (size_t i = floor == kNone ? 0 : floor; i < changes.size() && !may_be; ++i) {
      may_be = changes[i].value == value || (changes[i].expires && value.empty());
      if (may_be) is = changes[i];
    }
    // A value that had not expired yet may expire later.
    const bool expires = is && is->expires && !value.empty();
    changes = {{.value = value, .expires = expires, .acknowledged_ns = 1}};
    return may_be;
  }
  // To be called when found() was told of all keys.
  void start_again() { flushed_ns_.reset(); }
  std::string text(const std::string& key) const {
    const auto at = keys_.find(key);
    std::string text;
    if (at == keys_.end()) return text;
    for (const Change& change : at->second)
      text += "\n  " + std::to_string(change.acknowledged_ns) + " \"" + change.value.substr(0, 30) +
              "\" of " + std::to_string(change.value.size()) + (change.expires ? ", expires" : "");
    return text + (flushed_ns_ ? "\n  flushed " + std::to_string(*flushed_ns_) : "");
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, changes] : keys_) keys.push_back(key);
    return keys;
  }
  // A model of the keys that the predicate chooses, for the thread that changes them; take() brings it back.
  template <class Predicate>
  CrashModel part(const Predicate& is_in) const {
    CrashModel part;
    for (const auto& [key, changes] : keys_)
      if (is_in(key)) part.keys_[key] = changes;
    return part;
  }
  void take(const CrashModel& part) {
    for (const auto& [key, changes] : part.keys_) keys_[key] = changes;
  }

 private:
  static constexpr size_t kNone = ~size_t{0};
  struct Change {
    std::string value;
    bool expires = false;
    uint64_t acknowledged_ns = 0;  // 0: it was not acknowledged; 1: it was found after the last start
  };
  // The last change that must not be lost: the key has its value, or that of a later change. kNone: there is none.
  size_t floor_of(const std::vector<Change>& changes, Durability durability) const {
    for (size_t i = changes.size(); i-- > 0;) {
      const uint64_t at_ns = changes[i].acknowledged_ns;
      if (at_ns != 0 && (!flushed_ns_ || durability == Durability::kSync || at_ns < *flushed_ns_)) return i;
    }
    return kNone;
  }
  // A cache has dropped the key, and a later start may find it again: with the value of the floor, or with one of the later changes,
  // of which each may be lost.
  static void forget_before(std::vector<Change>& changes, size_t floor) {
    if (floor != kNone) changes.erase(changes.begin(), changes.begin() + static_cast<ptrdiff_t>(floor));
    for (size_t i = 0; i < changes.size(); ++i) changes[i].acknowledged_ns = i == 0 && floor != kNone ? 1 : 0;
  }

  std::map<std::string, std::vector<Change>> keys_;
  // When the last completed flush before the first power cut since start_again() began.
  std::optional<uint64_t> flushed_ns_;
};

}  // namespace kv
