#include "cache/pages/table.h"

#include "base/check.h"
#include "sys/memory.h"

namespace cache {
namespace {

constexpr uint32_t kPresent = uint32_t{1} << 31;  // the table page holds memory
constexpr uint64_t kNoRegion = ~uint64_t{0};

// A lost entry may have been hot until then.
bool may_be_hot(int64_t entry) { return entry > 1 || entry == Table::kUnknown; }

}  // namespace

base::Expected<void> Table::open(Entry* entries, uint64_t range_begin, uint64_t range_bytes,
                                 size_t page_bytes, Budget& budget, Closed* closed) {
  budget_ = &budget;
  closed_ = closed;
  entries_ = entries;
  range_begin_ = range_begin;
  pieces_ = page_bytes / base::kOsPageBytes;
  CHECK_EQ(reinterpret_cast<uint64_t>(entries) % base::kOsPageBytes, 0u);
  const uint64_t regions = range_bytes / base::kOsPageBytes / kRegionOsPages + 1;
  region_bytes_ = base::round_up(regions * sizeof(uint32_t), base::kOsPageBytes);
  auto memory = sys::map_anonymous(region_bytes_, "the table's region counts");
  if (!memory) return std::unexpected(memory.error());
  region_residents_ = reinterpret_cast<std::atomic<uint32_t>*>(*memory);
  for (uint64_t& region : empty_) region = kNoRegion;
  return {};
}

void Table::close() { sys::unmap(region_residents_, region_bytes_); }

void Table::publish(PageId page, const char* bytes, Heat heat) {
  const uint64_t first = index(page) * pieces_;
  auto& residents = region_residents_[first / kRegionOsPages];
  // Sequentially consistent, so that it comes before closed_ is asked: pairs with may_have_residents.
  if ((residents.fetch_add(1, std::memory_order_seq_cst) & kPresent) == 0) {
    residents.fetch_or(kPresent, std::memory_order_relaxed);
    budget_->add(base::kOsPageBytes);
  }
  const int64_t d = delta(page, bytes);
  CHECK_GT(d, 1);
  open_entries(page, heat == Heat::kHot ? d : -d);
}

void Table::reopen(PageId page, const char* bytes) { open_entries(page, delta(page, bytes)); }

// The release stores pair with the acquire load of a translation: whoever sees the entry sees the page's content.
void Table::open_entries(PageId page, int64_t value) {
  Entry* const entries = &entries_[index(page) * pieces_];
  const bool some_closed = closed_ != nullptr && closed_->has_any(page);
  for (uint64_t i = 0; i < pieces_; ++i)
    entries[i].store(some_closed && closed_->has(page, i) ? kDirect : value, std::memory_order_release);
}

// Entries that are not closed any more become hot; the others stay as they are.
void Table::close_again(PageId page, const char* bytes) {
  const int64_t d = delta(page, bytes);
  Entry* const entries = &entries_[index(page) * pieces_];
  const bool some_closed = closed_->has_any(page);
  for (uint64_t i = 0; i < pieces_; ++i) {
    if (some_closed && closed_->has(page, i))
      entries[i].store(kDirect, std::memory_order_release);
    else if (entries[i].load(std::memory_order_relaxed) == kDirect)
      entries[i].store(d, std::memory_order_release);
  }
}

bool Table::may_have_residents(PageId page) const {
  // Pairs with publish, which counts the page first, and then asks closed_: either publish sees what is closed now, or its count is seen here.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t residents =
      region_residents_[index(page) * pieces_ / kRegionOsPages].load(std::memory_order_seq_cst);
  return (residents & ~kPresent) != 0;
}

bool Table::cool(PageId page) {
  bool hot = false;
  for (uint64_t i = 0; i < pieces_; ++i) {
    Entry& entry = entries_[index(page) * pieces_ + i];
    int64_t d = entry.load(std::memory_order_relaxed);
    if (d <= 1) continue;
    hot = true;
    // Only the lock's holder changes a hot entry, so this cannot fail.
    entry.store(-d, std::memory_order_relaxed);
  }
  return hot;
}

bool Table::is_hot(PageId page) const {
  for (uint64_t i = 0; i < pieces_; ++i)
    if (const int64_t entry = entries_[index(page) * pieces_ + i].load(std::memory_order_acquire);
        may_be_hot(entry) || entry == kDirect)
      return true;
  return false;
}

bool Table::lock(PageId page) {
  bool hot = false;
  for (uint64_t i = 0; i < pieces_; ++i) {
    int64_t old = entries_[index(page) * pieces_ + i].exchange(kLocked, std::memory_order_acq_rel);
    CHECK_NE(old, kLocked);
    hot |= may_be_hot(old);
  }
  return hot;
}

void Table::clear(PageId page) {
  const uint64_t first = index(page) * pieces_;
  for (uint64_t i = 0; i < pieces_; ++i) entries_[first + i].store(kUnknown, std::memory_order_release);
  const uint64_t region = first / kRegionOsPages;
  uint32_t before = region_residents_[region].fetch_sub(1, std::memory_order_relaxed);
  CHECK_GT(before & ~kPresent, 0u);
  if ((before & ~kPresent) == 1) became_empty(region);
}

void Table::became_empty(uint64_t region) {
  uint64_t oldest;
  {
    sys::LockGuard guard(empty_mutex_);
    uint64_t& element = empty_[empty_end_++ % kEmptyRegionLimit];
    oldest = element;
    element = region;
  }
  if (oldest == kNoRegion || oldest == region) return;
  // The region may belong to another partition than the caller's, so the exchange first makes sure that it is still empty. A later publish counts the
  // region as present again; entries that it stores before the release are lost, which does no harm.
  uint32_t expected = kPresent;
  if (!region_residents_[oldest].compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) return;
  sys::release(&entries_[oldest * kRegionOsPages], base::kOsPageBytes);
  budget_->subtract(base::kOsPageBytes);
}

}  // namespace cache
