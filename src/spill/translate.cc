// The slow path of a translation, in two steps: what needs no vector registers (thunk.S calls it with
// only the integer registers saved), and the rest, which may block and do I/O.
#include "base/log.h"
#include "base/statistics.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/ahead/patterns.h"
#include "spill/ahead/prefetch.h"
#include "spill/file_maps.h"
#include "spill/loop.h"
#include "spill/mapped_pages.h"
#include "spill/protection.h"
#include "spill/runtime.h"

extern "C" int64_t spillway_translate_quick(uint64_t address);  // translate_quick.c

namespace spill {
namespace {

// Slots of compiled code that are not in `live` hold nothing that is used again: clears them before blocking,
// so that their pages may be evicted.
void release_other_slots(uint64_t live) {
  Slot* slots = __spillway_slots;
  for (unsigned i = 0; i < kAllSlotCount; ++i)
    if ((live >> i & 1) == 0) slots[i].store(0, std::memory_order_release);
}

// Not inlined: programs miss on small stacks, where the error's text would take room.
[[noreturn]] __attribute__((noinline)) void end_loading(const base::Error& error) {
  end_process(error, kFatalStatus);
}

// `suspends`: the miss is compiled code's, and a task that makes it may be suspended.
int64_t load_page(uint64_t address, uint64_t live, bool suspends) {
  if (!is_allocated(address)) {
    // In the range the access will fault, as natively; elsewhere it is plain memory, which the quick step
    // cannot tell from globals.
    if (!in_reserved_range(address)) entry_of(address).store(kEntryIdentity, std::memory_order_relaxed);
    return kEntryIdentity;
  }
  if (const Protection protection = protection_at(address); protection != Protection::kOpen) {
    // Such an entry does no harm when the mapping is gone: the access faults, and whatever loads its page opens the entry.
    if (protection == Protection::kKernel) note_plain(address);
    return kEntryIdentity;
  }
  release_other_slots(live);
  InRuntime inside;
  base::statistics.spill_translations_slow.add();
  if (file_map_kind(address) == FileMapKind::kPlain) {
    note_plain(address);
    return kEntryIdentity;
  }
  Entry& entry = entry_of(address);
  const bool runs_task = inside.thread().task != nullptr;
  const bool is_noticed = !runs_task && note_use(inside.thread(), address);
  // A marked page is in memory, as a rule.
  if (const int64_t value = entry.load(std::memory_order_acquire); value > 0) return value;
  if (suspends && runs_task && miss_in_task(inside.thread(), runtime.cache->page_of(address), live)) {
    if (const int64_t value = entry.load(std::memory_order_acquire); value > 0) return value;
  }
  if (!runs_task && !is_noticed) note_miss(inside.thread(), address);
  // The program knows its pattern better than its misses tell.
  if (pattern_at(address) == Pattern::kRandom) workspace_of(inside.thread()).stream = {};
  for (;;) {
    auto loaded = runtime.cache->load(runtime.cache->page_of(address), workspace_of(inside.thread()));
    if (!loaded && is_file_map_error(address, loaded.error())) return kEntryIdentity;
    if (!loaded) end_loading(loaded.error());
    // The slot was stored before this load: from here on the page stays, or the entry says otherwise.
    int64_t value = entry.load(std::memory_order_acquire);
    if (value > 0) return value;
  }
}

int64_t translate_blocking(uint64_t address, uint64_t live, bool suspends) {
  for (;;) {
    const int64_t value = load_page(address, live, suspends);
    if (value > 0) return value;
  }
}

// hold() on behalf of compiled code: its slots in `live` are kept too.
char* hold_keeping(uint64_t address, HoldSlot slot, uint64_t live) {
  __spillway_slots[slot].store(address, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  int64_t entry = entry_of(address).load(std::memory_order_acquire);
  if (entry <= 0) entry = spillway_translate_quick(address);
  if (entry <= 0) entry = translate_blocking(address, live | uint64_t{1} << slot, true);
  return reinterpret_cast<char*>(address + static_cast<uint64_t>(entry) - 1);
}

void cross_load(uint64_t address, uint64_t size, char* buffer, uint64_t live) {
  for (uint64_t done = 0; done < size;) {
    uint64_t length = bytes_to_page_end(reinterpret_cast<char*>(address + done));
    if (length > size - done) length = size - done;
    const char* raw = hold_keeping(address + done, kHoldCross, live);
    spillway_plain_memcpy(buffer + done, raw, length);
    done += length;
  }
  release(kHoldCross);
}

void cross_store(uint64_t address, uint64_t size, const char* buffer, uint64_t live) {
  for (uint64_t done = 0; done < size;) {
    uint64_t length = bytes_to_page_end(reinterpret_cast<char*>(address + done));
    if (length > size - done) length = size - done;
    char* raw = hold_keeping(address + done, kHoldCross, live);
    spillway_plain_memcpy(raw, buffer + done, length);
    done += length;
  }
  release(kHoldCross);
}

}  // namespace

extern "C" {

int64_t spillway_translate_blocking(uint64_t address, uint64_t live) {
  return translate_blocking(address, live, true);
}

// For the runtime's own code, which may be in the middle of anything.
int64_t spillway_translate(uint64_t address, uint64_t live) {
  int64_t value = spillway_translate_quick(address);
  return value > 0 ? value : translate_blocking(address, live, false);
}

static_assert(kHoldA == kSlotCount && kHoldD == kSlotCount + 3);  // cross_quick.c

void spillway_cross_load_blocking(uint64_t address, uint64_t size, char* buffer, uint64_t live) {
  base::statistics.spill_crossings.add();
  cross_load(address, size, buffer, live);
}

void spillway_cross_store_blocking(uint64_t address, uint64_t size, const char* buffer, uint64_t live) {
  base::statistics.spill_crossings.add();
  cross_store(address, size, buffer, live);
}

void spillway_cross_copy_blocking(uint64_t to, uint64_t from, uint64_t size, uint64_t live) {
  base::statistics.spill_crossings.add();
  char buffer[256];
  for (uint64_t done = 0; done < size; done += sizeof buffer) {
    const uint64_t length = std::min(sizeof buffer, size - done);
    cross_load(from + done, length, buffer, live);
    cross_store(to + done, length, buffer, live);
  }
}

int64_t spillway_cross_map_blocking(uint64_t address, uint64_t size, uint64_t live, uint64_t caller) {
  base::statistics.spill_crossings.add();
  release_other_slots(live);
  for (uint64_t at = base::round_down(address, base::kOsPageBytes); at < address + size;
       at += base::kOsPageBytes)
    if (in_range(at) && is_allocated(at) && allows(protection_at(at), Need::kRead))
      map_at_own_address(at, caller);
  return kEntryIdentity;
}

}  // extern "C"

}  // namespace spill
