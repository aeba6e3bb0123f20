// SiteTable: the addresses of code at which something happened most often, in a fixed amount of memory.
//
// The space-saving algorithm (Metwally, Agrawal, El Abbadi: Efficient computation of frequent and top-k elements in
// data streams, 2005): a new site that finds the table full replaces the one with the lowest count, and inherits the count.
//
// Invariants
//  1 the counts of all sites add up to the number of calls of add()
//  2 a site's count is never too low, and too high by `over` at most
//  3 a site with more than 1/kSites of all calls is in the table
//
// Thread contract: one thread at a time adds (the caller's lock); async-signal-safe. Any thread or other process may read
// meanwhile: each field is whole, but a site that is just being replaced may show the count of its predecessor.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>

namespace base {

class SiteTable {
 public:
  static constexpr uint32_t kSites = 64;

  struct Site {
    uint64_t address;
    uint64_t count;
    uint64_t over;  // at most this part of `count` came from other sites
  };

  // Cost: a scan of the table.
  void add(uint64_t address);

  // Copies the most frequent sites to `to`, the most frequent first; returns how many it copied.
  uint32_t hottest(std::span<Site> to) const;

 private:
  struct Slot {
    std::atomic<uint64_t> address;
    std::atomic<uint64_t> count;  // 0: unused, as are all slots after it
    std::atomic<uint64_t> over;
  };
  Slot slots_[kSites] = {};
};

}  // namespace base
