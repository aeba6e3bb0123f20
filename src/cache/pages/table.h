// Table: the flat translation table that compiled code reads, one 8-byte entry per OS page of the
// cache's address range. It caches PageMap and can lose any entry that is not locked without harm.
//
//   0 not known   d > 1 resident at address + d - 1   -d cooling   -1 locked   1 resident, but closed (closed.h)
//
// Who writes an entry:
//   the holder of the page's partition lock   publish, lock, reopen, clear
//   any thread, by compare-and-swap           -d -> d (rearm): the page was touched while cooling
// so the owner changes an entry by exchange or compare-and-swap and looks at what it replaced.
//
// A page of the table (512 entries, 2 MiB of addresses) without resident pages is given back to the
// OS; region_residents_ counts. A region belongs to one partition.
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
  static constexpr uint32_t kEmptyRegionLimit = 16;  // given back oldest first beyond this

  // `entries` is the entry of the first OS page of the range [range_begin, range_begin + range_bytes);
  // memory is the caller's. `closed` null: nothing is. Errors: ENOMEM.
  base::Expected<void> open(Entry* entries, uint64_t range_begin, uint64_t range_bytes, size_t page_bytes,
                            Budget& budget, Closed* closed);
  void close();

  enum class Heat { kHot, kCooling };

  // The page became resident in the frame whose memory is `bytes`. REQUIRES: its entries are 0 or locked.
  void publish(PageId page, const char* bytes, Heat heat);
  // Opens what lock() locked, or entries that were lost: the page is still in the same frame.
  void reopen(PageId page, const char* bytes);
  // What is closed of the page is other than it was. REQUIRES: resident, its entries not locked.
  void close_again(PageId page, const char* bytes);
  // False: no page of the OS page's region of the table is in memory, and who brings one in from now on sees what is closed
  // now. Any thread, without the lock.
  bool may_have_residents(PageId page) const;
  // Makes hot entries cooling. Returns true if one was hot: touched since the last call.
  bool cool(PageId page);
  // May it have been touched since it was cooled? An entry that was lost counts, and what is closed, which never cools.
  bool is_hot(PageId page) const;
  // Locks all entries, the unknown ones too. Returns is_hot() as it was, but for what is closed. The page may be held by
  // threads that translated before: the caller goes on with barrier and scan.
  bool lock(PageId page);
  // The page left memory: locked entries become unknown. May give the table's memory back.
  void clear(PageId page);

  void prefetch(PageId page) const { __builtin_prefetch(&entries_[index(page) * pieces_], 1); }

  // First address of the page, in the range.
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
  std::atomic<uint32_t>* region_residents_ = nullptr;  // pages resident | kPresent once touched
  uint64_t region_bytes_ = 0;
  Budget* budget_ = nullptr;
  Closed* closed_ = nullptr;

  sys::Mutex empty_mutex_;
  uint64_t empty_[kEmptyRegionLimit];  // ring of regions that became empty
  uint32_t empty_end_ = 0;
};

}  // namespace cache
