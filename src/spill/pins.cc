#include "spill/pins.h"

#include <algorithm>
#include <atomic>

#include "spill/address_space.h"
#include "spill/file_maps.h"
#include "spill/mapped_pages.h"
#include "spill/runtime.h"
#include "spill/satc.h"
#include "spill/standing_pins.h"

namespace spill {
namespace {

// OS pages that system calls of all threads have pinned, or are about to.
constinit std::atomic<size_t> call_pins{0};

// Calls f(page) for each pin of one system call.
template <class F>
void for_each_pin(const Thread::Wired& wired, F&& f) {
  for (uint64_t at = wired.begin; at < wired.begin + wired.bytes;
       at = base::round_down(at, base::kOsPageBytes) + base::kOsPageBytes)
    f(runtime.cache->page_of(at));
}

// The same for all of the thread's.
template <class F>
void for_each_wired(const Thread& thread, F&& f) {
  for (uint32_t level = 0; level <= thread.top_level.load(std::memory_order_relaxed); ++level)
    for_each_pin(thread.wired[level], f);
}

}  // namespace

char* pin_page_piece(uint64_t address, Need need) {
  // The plain end of a global has no page, and what is not mapped is the kernel's to refuse.
  if (!is_allocated(address)) return reinterpret_cast<char*>(address);
  if (!allows(protection_at(address), need)) return reinterpret_cast<char*>(address);
  InRuntime inside;
  const base::PageId page = runtime.cache->page_of(address);
  auto pinned = runtime.cache->pin(page, workspace_of(inside.thread()));
  if (!pinned && is_file_map_error(address, pinned.error())) return reinterpret_cast<char*>(address);
  if (!pinned) end_process(pinned.error(), kFatalStatus);
  return *pinned + (address - runtime.cache->address_of(page));
}

void will_pin(uint64_t address, uint64_t bytes, Need need) {
  if (!is_allocated(address) || !allows(protection_at(address), need)) return;
  InRuntime inside;
  const uint64_t end = same_allocation_end(address, same_protection_end(address, address + bytes));
  const base::PageId first = runtime.cache->page_of(address), last = runtime.cache->page_of(end - 1);
  runtime.cache->load_together(first, index(last) - index(first) + 1, workspace_of(inside.thread()));
}

void unpin_page_piece(uint64_t address) {
  InRuntime inside;
  runtime.cache->unpin(runtime.cache->page_of(address));
}

uint32_t pins_of_this_thread(base::PageId page) {
  uint32_t count = 0;
  for_each_wired(this_thread(), [&](base::PageId wired) { count += wired == page; });
  return count;
}

void pin_again_after_fork() {
  size_t pins = 0;
  for_each_wired(this_thread(), [&pins](base::PageId wired) {
    runtime.cache->pin_again(wired);
    ++pins;
  });
  call_pins.store(pins, std::memory_order_relaxed);
  pin_standing_again();
}

void end_left_pins(uint32_t level) {
  InRuntime inside;
  Thread& thread = inside.thread();
  for (; level <= thread.top_level.load(std::memory_order_relaxed); ++level) {
    size_t pins = 0;
    for_each_pin(thread.wired[level], [&pins](base::PageId wired) {
      runtime.cache->unpin(wired);
      ++pins;
    });
    if (pins > 0) give_pins_back(pins);
    thread.wired[level] = {};
  }
}

bool count_as_staying(std::atomic<uint64_t>& counted, uint64_t count) {
  const uint64_t frames = runtime.cache->frame_count();
  if (counted + count > frames / 2) return false;
  counted += count;
  const uint64_t staying = standing_pin_count() + kept_page_count() + satc_pinned_count();
  if (staying <= frames - frames / 4 && staying + most_mapped_pages() <= frames - frames / 8) return true;
  counted -= count;
  return false;
}

size_t take_pins(size_t wanted) {
  const size_t frames = runtime.cache->frame_count() / 16;
  const size_t share = std::max<size_t>(frames * (runtime.cache->page_bytes() / base::kOsPageBytes), 1);
  // Relaxed: a mere count, which orders no other data.
  size_t taken = call_pins.load(std::memory_order_relaxed);
  for (;;) {
    const size_t count = taken < share ? std::min(wanted, share - taken) : 1;
    if (call_pins.compare_exchange_weak(taken, taken + count, std::memory_order_relaxed)) return count;
  }
}

void give_pins_back(size_t count) { call_pins.fetch_sub(count, std::memory_order_relaxed); }

}  // namespace spill
