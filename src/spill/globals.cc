#include "spill/globals.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/statistics.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/discard.h"
#include "spill/holders.h"
#include "spill/mapped_pages.h"
#include "spill/native.h"
#include "spill/runtime.h"
#include "spill/standing_pins.h"
#include "sys/memory.h"

namespace spill {
namespace {

// How much content is moved at a time.
constexpr uint64_t kMoveBytes = uint64_t{2} << 20;

void forget_entries(uint64_t begin, uint64_t end) {
  for (uint64_t at = begin; at < end; at += base::kOsPageBytes)
    entry_of(at).store(kEntryUnknown, std::memory_order_release);
}

bool is_zero(const char* os_page) {
  const auto* words = reinterpret_cast<const uint64_t*>(os_page);
  return std::all_of(words, words + base::kOsPageBytes / sizeof *words,
                     [](uint64_t word) { return word == 0; });
}

void mark(uint64_t begin, uint64_t bytes, bool spilled) {
  const InRuntime inside;
  mark_globals(begin, bytes, spilled);
}

// Step 3.
void spill_piece(uint64_t begin, uint64_t bytes, char* aside) {
  spillway_plain_memcpy(aside, reinterpret_cast<const char*>(begin), bytes);
  if (const long result = sys::make_inaccessible(reinterpret_cast<void*>(begin), bytes); result != 0) {
    const int number = static_cast<int>(-result);
    end_process(base::Error::of(number, "cannot spill a global: ", base::error_name(number)), kFatalStatus);
  }
  mark(begin, bytes, true);
  spillway_has_globals.store(true, std::memory_order_relaxed);
  forget_entries(begin, begin + bytes);
  for (uint64_t at = 0; at < bytes; at += base::kOsPageBytes)
    if (!is_zero(aside + at)) copy(reinterpret_cast<char*>(begin) + at, aside + at, base::kOsPageBytes);
}

// An entry is a positive distance from page to frame.
bool lies_below_frames(uint64_t end) {
  for (uint32_t i = 0; i < runtime.cache->partition_count(); ++i)
    if (reinterpret_cast<uint64_t>(runtime.cache->pool(i).begin) < end) return false;
  return true;
}

void spill_range(uint64_t begin, uint64_t end) {
  if (is_global(begin)) return;  // with ThinLTO each object has the constructor
  if (!lies_below_frames(end)) {
    base::statistics.spill_globals_left_bytes.add(end - begin);
    return;
  }
  auto aside = sys::map_anonymous(kMoveBytes, "moving globals");
  if (!aside) end_process(aside.error(), kFatalStatus);
  for (uint64_t at = begin; at < end; at += kMoveBytes)
    spill_piece(at, std::min(kMoveBytes, end - at), *aside);
  sys::unmap(*aside, kMoveBytes);
  base::statistics.spill_globals_bytes.add(end - begin);
}

// Step 4.
void give_back_range(uint64_t begin, uint64_t end) {
  if (!is_global(begin)) return;
  unmap_range(begin, end - begin);
  clear_slots();
  clear_slots_of_all(begin, end);
  end_pins_of(begin, end - begin);
  discard_memory(begin, end - begin);
  mark(begin, end - begin, false);
  for (uint64_t at = begin; at < end; at += base::kOsPageBytes)
    CHECK_EQ(entry_of(at).load(std::memory_order_acquire), kEntryUnknown);
  base::statistics.spill_globals_bytes.subtract(end - begin);
}

// Step 2. The same records yield the same pages when they are registered and when they are unregistered.
template <class F>
void for_each_range(std::span<GlobalRecord> records, F&& f) {
  std::ranges::sort(records, {}, &GlobalRecord::address);
  const uint64_t page = runtime.cache->page_bytes();
  for (size_t i = 0; i < records.size();) {
    uint64_t end = records[i].address;
    const uint64_t first = base::round_up(end, page);
    for (; i < records.size() && records[i].address <= end; ++i)
      end = std::max(end, records[i].address + records[i].bytes);
    const uint64_t last = base::round_down(end, page);
    if (first < last) f(first, last);
  }
}

}  // namespace

ClosingLibraries::ClosingLibraries() { ++this_thread().closing_depth; }
ClosingLibraries::~ClosingLibraries() { --this_thread().closing_depth; }

}  // namespace spill

SPILL_EXPORT void __spillway_register_globals(spill::GlobalRecord* begin, spill::GlobalRecord* end);
SPILL_EXPORT void __spillway_register_globals(spill::GlobalRecord* begin, spill::GlobalRecord* end) {
  // Native bodies would reach each of their pages by a fault.
  spill::end_native(cache::RegionsEnd::kGlobals);
  spill::for_each_range({begin, end}, spill::spill_range);
}

SPILL_EXPORT void __spillway_unregister_globals(spill::GlobalRecord* begin, spill::GlobalRecord* end);
SPILL_EXPORT void __spillway_unregister_globals(spill::GlobalRecord* begin, spill::GlobalRecord* end) {
  if (spill::this_thread().closing_depth == 0) return;
  spill::for_each_range({begin, end}, spill::give_back_range);
}
