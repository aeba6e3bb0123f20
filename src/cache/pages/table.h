// Table: the flat translation table that compiled code reads, one 8-byte entry for each OS page of the cache's address range. It is a cache of
// PageMap: an entry that becomes unknown does no harm, since the slow path finds the page again.
//
//   0 not known   d > 1 resident at address + d - 1   -d cooling   -1 locked   1 resident, but closed (closed.h)
//
// Writers of an entry:
//   the holder of the page's partition lock   publish, lock, reopen, close_again, cool, clear
//   any thread, by compare-and-swap           -d -> d (rearm): the page was touched while it was cooling
// So whoever locks an entry does so by an exchange, and looks at the old value.
//
// A page of the table has 512 entries, for 2 MiB of addresses, called a region, which belongs to one partition. Regions without resident pages
// (region_residents_) are given back to the OS, the longest empty one first.
#pragma once
#include <atomic>

#include "base/error.h"
#include "base/ids.h"
#include "cache/pages/budget.h"
#include "cache/pages/closed.h"
#include "sys/lock.h"

namespace cache {

using base::PageId;

class Table {
 public:
  using Entry = std::atomic<int64_t>;
  static constexpr int64_t kUnknown = 0;
  static constexpr int64_t kLocked = -1;
  static constexpr int64_t kDirect = 1;
  static constexpr uint64_t kRegionOsPages = 512;
  static constexpr uint32_t kEmptyRegionLimit = 16;  // how many empty regions keep their memory

  // `entries`: the entry of the first OS page of [range_begin, range_begin + range_bytes), in the caller's memory. `closed` may be null: nothing is
  // closed. Errors: ENOMEM.
  base::Expected<void> open(Entry* entries, uint64_t range_begin, uint64_t range_bytes, size_t page_bytes,
                            Budget& budget, Closed* closed);
  void close();

  enum class Heat { kHot, kCooling };

  // The page has become resident in the frame whose memory is `bytes`. REQUIRES: its entries are unknown or locked.
  void publish(PageId page, const char* bytes, Heat heat);
  // Opens entries that lock() locked, or that were lost. REQUIRES: the page is still in the same frame.
  void reopen(PageId page, const char* bytes);
  // Updates the entries after a change of what is closed. REQUIRES: the page is resident, and its entries are not locked.
  void close_again(PageId page, const char* bytes);
  // May pages of the page's region be in memory? If not, whoever loads one from now on sees what is closed now. Any thread, without the lock.
  bool may_have_residents(PageId page) const;
  // Makes hot entries cooling. Returns true if one was hot: touched since the last call.
  bool cool(PageId page);
  // May the page have been touched since it was cooled? A lost entry counts as touched, and so does a closed one, which never cools.
  bool is_hot(PageId page) const;
  // Locks all entries, unknown ones too. Returns is_hot() as it was, but regardless of closed entries. Threads that translated before may hold the
  // page: the caller continues with a barrier and a scan of the slots.
  bool lock(PageId page);
  // To be called when the page has left memory: its entries become unknown. May give memory of the table back.
  void clear(PageId page);

  void prefetch(PageId page) const { __builtin_prefetch(&entries_[index(page) * pieces_], 1); }

  // The page's own address.
  int64_t address(PageId page) const {
    return static_cast<int64_t>(range_begin_ + index(page) * pieces_ * base::kOsPageBytes);
  }
  // The entry of the page's i-th OS page.
  int64_t entry(PageId page, uint64_t i) const {
    return entries_[index(page) * pieces_ + i].load(std::memory_order_acquire);
  }

 private:
  int64_t delta(PageId page, const char* bytes) const {
    return reinterpret_cast<int64_t>(bytes) - address(page) + 1;
  }
  void open_entries(PageId page, int64_t value);
  void became_empty(uint64_t region);

  Entry* entries_ = nullptr;
  uint64_t range_begin_ = 0;
  uint64_t pieces_ = 0;                                // OS pages a page
  std::atomic<uint32_t>* region_residents_ = nullptr;  // resident pages | kPresent if it has memory
  uint64_t region_bytes_ = 0;
  Budget* budget_ = nullptr;
  Closed* closed_ = nullptr;

  sys::Mutex empty_mutex_;
  uint64_t empty_[kEmptyRegionLimit];  // a ring of regions that became empty
  uint32_t empty_end_ = 0;
};

}  // namespace cache
