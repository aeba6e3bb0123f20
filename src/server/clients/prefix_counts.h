// PrefixCounts: how often items are asked for, stored and deleted, by the prefix of their keys up to the first ':', as memcached's `stats detail`
// reports it. Nothing is counted until somebody turns it on.
//
// Thread contract: any thread. Cost while it is on: a lock that all share, as in memcached. Once there are kMax prefixes, further ones are not
// counted.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "sys/lock.h"

namespace server {

class PrefixCounts {
 public:
  static constexpr size_t kMax = 10'000;
  static constexpr char kDelimiter = ':';
  struct Counts {
    uint64_t gets = 0, hits = 0, sets = 0, deletes = 0;
  };

  void turn(bool on) { is_on_.store(on, std::memory_order_relaxed); }
  void got(std::string_view key, bool is_hit) {
    if (is_on()) add(key, {.gets = 1, .hits = is_hit ? 1u : 0u});
  }
  void stored(std::string_view key) {
    if (is_on()) add(key, {.sets = 1});
  }
  void deleted(std::string_view key) {
    if (is_on()) add(key, {.deletes = 1});
  }
  void reset();
  // Calls `use` in the order of the prefixes, under the lock.
  void for_each(const std::function<void(const std::string& prefix, const Counts& counts)>& use);

 private:
  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  void add(std::string_view key, const Counts& more);

  std::atomic<bool> is_on_{false};
  sys::Mutex lock_;  // guards what follows
  std::map<std::string, Counts, std::less<>> counts_;
};

}  // namespace server
