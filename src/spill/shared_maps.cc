#include "spill/shared_maps.h"

#include <sys/mman.h>

#include "spill/fork.h"
#include "spill/leases.h"
#include "spill/runtime.h"
#include "spill/shared_ranges.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/nap.h"
#include "sys/resident.h"
#include "sys/threads.h"

namespace spill {
namespace {

// How much is looked at, and taken out, at a time under the lock.
constexpr uint64_t kWindowBytes = uint64_t{1} << 30;
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
constexpr uint64_t kSliceNs = 4'000'000;
constexpr uint64_t kStuckNs = 1'000'000'000;
constexpr uint64_t kOldNs = 64'000'000;
// Measuring all ranges takes at most 1/kMeasureShare of the time.
constexpr uint64_t kMeasureShare = 16;

constinit sys::Mutex ranges_mutex;
constinit SharedRanges ranges;
constinit std::atomic<uint32_t> range_count{0};
constinit bool has_taker = false;  // used by the background thread, and by fork
constinit sys::ResidentFiles resident_files;
constinit bool is_slow = false;  // keep_slow

uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// What the taker knows. The limits depend on the budget.
struct Residency {
  uint64_t limit_bytes() const { return base::statistics.memory_budget_bytes.get() / 2; }
  uint64_t begin_bytes() const { return limit_bytes() / 4 * 3; }
  uint64_t end_bytes() const { return limit_bytes() / 8 * 5; }
  uint64_t grain_bytes() const { return limit_bytes() / 16; }

  bool is_taking_out = false;
  uint64_t hand = 0;             // address up to which pieces were taken out
  uint64_t lap_bytes = 0;        // that the hand has yet to pass in this lap
  uint64_t lap_out_bytes = 0;    // that left during the lap
  uint64_t lap_stuck_bytes = 0;  // that stayed
  uint64_t stuck_bytes = 0;
  uint64_t stuck_until_ns = 0;
  uint64_t measured_bytes = 0;      // of the ranges, when last measured
  uint64_t measured_all_bytes = 0;  // of all files, then
  uint64_t measured_ns = 0;         // when that was
  uint64_t measuring_ns = 0;        // how long it took
  uint64_t charged_bytes = 0;

  // What is resident now, if all that came or left since it was measured belongs to the ranges.
  uint64_t estimate(uint64_t all_bytes) const {
    const uint64_t sum = measured_bytes + all_bytes;
    return sum > measured_all_bytes ? sum - measured_all_bytes : 0;
  }
  bool is_too_much(uint64_t bytes) const { return bytes > begin_bytes() + stuck_bytes; }
};
constinit Residency residency;

// Release: whoever sees a range sees resident_files open. REQUIRES: ranges_mutex.
void publish_count() {
  const auto now = static_cast<uint32_t>(ranges.count());
  if (range_count.exchange(now, std::memory_order_release) == 0 && now > 0) sys::futex_wake(range_count, 1);
}

bool is_empty() { return range_count.load(std::memory_order_acquire) == 0; }

// Makes a fault bring in no more than the page that is touched: otherwise the program fills memory faster than anybody
// could empty it. Begins when all ranges together are too much, and then applies to all of them: so adjacent ones stay
// one mapping to the kernel. REQUIRES: ranges_mutex.
void keep_slow(const SharedRange& range) {
  if (is_slow) return resident_files.bring_single_pages(range.begin, range.end);
  is_slow = ranges.bytes() > residency.begin_bytes();
  for (size_t i = 0; is_slow && i < ranges.count(); ++i)
    resident_files.bring_single_pages(ranges[i].begin, ranges[i].end);
}

// Returns false if there is no room for the range or no means to measure it: it is then left to the kernel. REQUIRES: ranges_mutex.
bool add(const void* begin, uint64_t bytes) {
  if (!resident_files.is_open() && (is_sharing_child() || !resident_files.open())) return false;
  const SharedRange range = {address_of(begin),
                             address_of(begin) + base::round_up(bytes, base::kOsPageBytes)};
  ranges.remove(range.begin, range.end);
  const bool added = ranges.add(range);
  if (added) keep_slow(range);
  publish_count();
  return added;
}

void charge(uint64_t bytes) {
  base::statistics.spill_shared_maps_peak_bytes.raise(bytes);
  if (bytes > residency.charged_bytes) runtime.cache->charge(bytes - residency.charged_bytes);
  if (bytes < residency.charged_bytes) runtime.cache->uncharge(residency.charged_bytes - bytes);
  residency.charged_bytes = bytes;
}

// The range at or above `address`; false: there is none.
bool range_above(uint64_t address, SharedRange& range) {
  sys::LockGuard guard(ranges_mutex);
  const SharedRange* found = ranges.at_or_above(address);
  if (found != nullptr) range = *found;
  return found != nullptr;
}

uint64_t ranges_bytes() {
  sys::LockGuard guard(ranges_mutex);
  return ranges.bytes();
}

void measure(uint64_t all_bytes) {
  const uint64_t begin_ns = sys::monotonic_ns();
  uint64_t sum = 0;
  SharedRange range;
  for (uint64_t at = 0; range_above(at, range); at = range.end)
    sum += resident_files.count_bytes(range.begin, range.end, range.end - range.begin);
  residency.measured_bytes = sum < all_bytes ? sum : all_bytes;
  residency.measured_all_bytes = all_bytes;
  residency.measured_ns = sys::monotonic_ns();
  residency.measuring_ns = residency.measured_ns - begin_ns;
}

// Measured again when it may have changed by a grain, or after a while.
uint64_t resident_bytes(uint64_t all_bytes) {
  const uint64_t last = residency.measured_all_bytes;
  const uint64_t change = all_bytes > last ? all_bytes - last : last - all_bytes;
  if (change > 0) {
    const uint64_t ago_ns = sys::monotonic_ns() - residency.measured_ns;
    const bool is_old = change >= residency.grain_bytes() || ago_ns >= kOldNs;
    if (is_old && ago_ns >= residency.measuring_ns * kMeasureShare) measure(all_bytes);
  }
  return residency.estimate(all_bytes);
}

// Takes out the next piece in which something is resident. Returns false when the lap is complete.
bool take_piece_out() {
  sys::LockGuard guard(ranges_mutex);
  const SharedRange* range = ranges.at_or_above(residency.hand);
  if (range == nullptr) range = ranges.at_or_above(0);
  if (range == nullptr) return false;
  const uint64_t from =
      range->begin <= residency.hand && residency.hand < range->end ? residency.hand : range->begin;
  const uint64_t window_end = smaller(range->end, from + kWindowBytes);
  const uint64_t begin = resident_files.find(from, window_end);
  const uint64_t end = smaller(window_end, begin + kPieceBytes);
  const uint64_t before = resident_files.count_bytes(begin, end, 0);
  if (resident_files.knows_shared())
    resident_files.take_out(begin, end);
  else
    sys::ResidentFiles::advise_out(begin, end);
  const uint64_t out = before - smaller(before, resident_files.count_bytes(begin, end, 0));
  base::statistics.spill_shared_maps_out_bytes.add(out);
  residency.lap_out_bytes += out;
  residency.lap_stuck_bytes += before - out;
  residency.hand = end;
  residency.lap_bytes -= smaller(residency.lap_bytes, end - from);
  return residency.lap_bytes > 0;
}

void begin_lap() {
  residency.lap_bytes = ranges_bytes();
  residency.lap_out_bytes = residency.lap_stuck_bytes = 0;
}

// One slice of the work. Returns whether there is more.
bool take_out_slice() {
  const uint64_t begin_ns = sys::monotonic_ns();
  do {
    const bool is_round = !take_piece_out();
    const uint64_t left = residency.estimate(resident_files.all_bytes());
    if (is_round) {
      // Where the kernel does not tell what is resident, nothing was seen to leave.
      residency.stuck_bytes = residency.lap_stuck_bytes;
      if (residency.lap_out_bytes == 0 && left > residency.end_bytes())
        residency.stuck_bytes = left - residency.end_bytes();
      residency.stuck_until_ns = sys::monotonic_ns() + kStuckNs;
      begin_lap();
    }
    if (left <= residency.end_bytes() + residency.stuck_bytes) {
      residency.is_taking_out = false;
      return false;
    }
  } while (sys::monotonic_ns() - begin_ns < kSliceNs);
  return true;
}

// Returns whether there is more to do at once.
bool step() {
  if (is_empty()) {
    if (residency.charged_bytes > 0) charge(0);
    return false;
  }
  const uint64_t all_bytes = resident_files.all_bytes();
  if (!residency.is_taking_out) {
    const uint64_t resident = resident_bytes(all_bytes);
    charge(resident);
    if (residency.stuck_bytes > 0 && sys::monotonic_ns() >= residency.stuck_until_ns)
      residency.stuck_bytes = 0;
    if (!residency.is_too_much(resident)) return false;
    residency.is_taking_out = true;
    begin_lap();
  }
  const bool is_more = take_out_slice();
  charge(residency.estimate(resident_files.all_bytes()));
  return is_more;
}

void take_out_as_needed(void*) {
  InRuntime inside;
  constexpr uint64_t kIdleNs = 1'000'000;
  for (;;) {
    if (step()) continue;
    if (is_empty())
      sys::futex_wait(range_count, 0);
    else
      sys::nap(kIdleNs);
  }
}

}  // namespace

void note_shared_map(const void* begin, uint64_t bytes, int flags, int descriptor) {
  const int type = flags & MAP_TYPE;
  if ((type != MAP_SHARED && type != MAP_SHARED_VALIDATE) || (flags & (MAP_ANONYMOUS | MAP_LOCKED)) != 0)
    return;
  if (begin == MAP_FAILED || !runtime.started.load(std::memory_order_acquire)) return;
  InRuntime inside;
  if (!is_disk_file(descriptor)) return;
  sys::LockGuard guard(ranges_mutex);
  if (add(begin, bytes)) base::statistics.spill_shared_maps.add();
}

void forget_shared_maps(const void* begin, uint64_t bytes) {
  if (is_empty()) return;
  const uint64_t from = address_of(begin), length = base::round_up(bytes, base::kOsPageBytes);
  if (from % base::kOsPageBytes != 0 || from + length < from || length < bytes) return;  // the kernel refuses
  InRuntime inside;
  sys::LockGuard guard(ranges_mutex);
  ranges.remove(from, from + length);
  publish_count();
}

MovedSharedMap::MovedSharedMap(const void* begin, uint64_t bytes) : begin_(begin), bytes_(bytes) {
  if (is_empty()) return;
  {
    InRuntime inside;
    sys::LockGuard guard(ranges_mutex);
    const uint64_t from = address_of(begin), to = from + bytes;
    const SharedRange* range = ranges.at_or_above(from);
    is_recorded_ = range != nullptr && range->begin <= from;
    for (; is_recorded_ && is_slow && range != nullptr && range->begin < to;
         range = ranges.at_or_above(range->end))
      resident_files.let_move(range->begin, range->end);
  }
  if (is_recorded_) forget_shared_maps(begin, bytes);
}

void MovedSharedMap::moved_to(const void* moved, uint64_t bytes, bool stays) const {
  if (!is_recorded_) return;
  InRuntime inside;
  sys::LockGuard guard(ranges_mutex);
  if ((stays || moved == MAP_FAILED) && bytes_ > 0) add(begin_, bytes_);
  if (moved != MAP_FAILED && bytes > 0) add(moved, bytes);
}

void serve_shared_maps() {
  if (has_taker || is_empty()) return;
  has_taker = sys::start_thread(take_out_as_needed, nullptr, "spillway maps").has_value();
}

void freeze_shared_maps() { ranges_mutex.lock(); }

void thaw_shared_maps() { ranges_mutex.unlock(); }

// What the kernel tells through the parent's descriptors is about the parent. The child's page tables begin without pages of shared mappings, and
// it may never have anybody who measures them.
void own_shared_maps() {
  has_taker = false;
  charge(0);
  if (resident_files.is_open()) {
    resident_files.close();
    if (!resident_files.open()) ranges.remove(0, ~uint64_t{0});
    for (size_t i = 0; i < ranges.count(); ++i) keep_slow(ranges[i]);
    publish_count();
  }
  ranges_mutex.unlock();
}

}  // namespace spill
