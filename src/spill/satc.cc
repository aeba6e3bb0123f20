#include "spill/satc.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/log.h"
#include "base/mix.h"
#include "base/statistics.h"
#include "cache/pages/layout.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/file_maps.h"
#include "spill/mapped_pages.h"
#include "spill/protection.h"
#include "spill/runtime.h"
#include "spill/satc_levels.h"
#include "spill/standing_pins.h"
#include "sys/barrier.h"
#include "sys/memory.h"
#include "sys/threads.h"

extern "C" {
// thunk.S says what a new thread has.
extern __thread SatcThread __spillway_satc __attribute__((tls_model("initial-exec"), visibility("default")));
extern uint64_t spillway_satc_epoch;  // satc_quick.c
int64_t spillway_satc_blocking(uint64_t address);
}

namespace spill {

static_assert(kSatcLineShiftInC == kSatcLineShift);
static_assert(sizeof(SatcThread) == kSatcThreadWords * sizeof(uint64_t));
static_assert(sizeof(SatcLine) == base::kOsPageBytes >> kSatcLineShift);
static_assert(sizeof(SatcSet) == 192);

namespace {

// Besides what else is pinned, a quarter of a partition's frames is left unpinned; where that is few,
// kFewLeft of them, but at most half.
constexpr uint64_t kLeftOf = 4, kFewLeft = 1024;
constexpr uint64_t kDirectShare = 4;  // of Private

constinit std::atomic<bool> used{false};
constinit std::atomic<uint64_t> pinned[cache::kMaxPartitions] = {};

enum class Levels { kBoth, kPrivate, kDirect, kNone };

// REQUIRES: base::check_options.
Levels levels() {
  const std::string_view text = runtime.options.satc_levels.view();
  if (text == "private") return Levels::kPrivate;
  if (text == "direct") return Levels::kDirect;
  return text == "none" ? Levels::kNone : Levels::kBoth;
}

bool has_direct() {
  const Levels chosen = levels();
  return chosen == Levels::kBoth || chosen == Levels::kDirect;
}
bool has_private() {
  const Levels chosen = levels();
  return chosen == Levels::kBoth || chosen == Levels::kPrivate;
}

SatcPolicy policy() {
  const std::string_view text = runtime.options.satc_policy.view();
  if (text == "lru") return kSatcLru;
  return text == "random" ? kSatcRandom : kSatcClock;
}

uint64_t power_of_two_within(uint64_t value) { return value == 0 ? 1 : std::bit_floor(value); }

// How many pages may be pinned here in each partition.
uint64_t most_pinned() {
  const uint64_t frames = runtime.cache->frames_within_budget() / runtime.cache->partition_count();
  const uint64_t left = std::max(frames / kLeftOf, std::min(kFewLeft, frames / 2)) + standing_pin_count() +
                        kept_page_count() + most_mapped_pages();
  return frames > left ? frames - left : 0;
}

std::atomic<uint64_t>& pinned_beside(base::PageId page) {
  return pinned[runtime.cache->partition_number(page)];
}

void clear_way(Satc& satc, SatcSet& set, int way) {
  const base::PageId page = runtime.cache->page_of(set.begins[way]);
  satc_clear_way(&satc, &set, way);
  runtime.cache->unpin(page);
  pinned_beside(page).fetch_sub(1, std::memory_order_relaxed);
}

void give_up_all(Satc& satc) {
  for (uint64_t i = 0; i <= satc.set_mask; ++i)
    for (uint32_t way = 0; way < satc.ways; ++way)
      if (satc.sets[i].begins[way] != 0) clear_way(satc, satc.sets[i], static_cast<int>(way));
}

// The cost of reading the clock, which is subtracted from what was timed.
uint64_t overhead_cycles() {
  constexpr int kTries = 64;
  uint64_t least = ~uint64_t{0};
  for (int i = 0; i < kTries; ++i) {
    const uint64_t begin = __builtin_ia32_rdtsc();
    least = std::min<uint64_t>(least, __builtin_ia32_rdtsc() - begin);
  }
  return least;
}

void set_sizes(Satc& satc) {
  const uint64_t all = most_pinned() * runtime.cache->partition_count();
  const base::Options& options = runtime.options;
  // Enough for a thread on each processor, and the one that started them.
  const uint64_t private_pages = power_of_two_within(std::max<uint64_t>(
      options.satc_private != 0 ? options.satc_private : all / (sys::cpu_count() + 1), kSatcWays));
  const uint64_t direct_pages = std::min(
      private_pages,
      power_of_two_within(options.satc_direct != 0 ? options.satc_direct : private_pages / kDirectShare));
  satc.page_bytes = runtime.cache->page_bytes();
  satc.page_shift = static_cast<uint32_t>(std::countr_zero(satc.page_bytes));
  satc.has_private = has_private();
  // Without Private the sets hold the pins of Direct's lines, or of the one page that was translated last.
  satc.ways = satc.has_private ? kSatcWays : 1;
  satc.set_mask = (satc.has_private ? private_pages / kSatcWays : has_direct() ? direct_pages : 1) - 1;
  satc.line_mask = has_direct() ? (direct_pages - 1) << satc.page_shift >> kSatcLineShift : 0;
}

// Memory for the thread's caches, which its record keeps. Null: the system has none.
Satc* create(Thread& thread) {
  Satc sizes = {};
  set_sizes(sizes);
  const uint64_t sets_bytes = (sizes.set_mask + 1) * sizeof(SatcSet);
  const uint64_t lines_bytes = has_direct() ? sizes.line_mask + sizeof(SatcLine) : 0;
  const uint64_t bytes = base::round_up(sizeof(Satc), base::kLineBytes) + sets_bytes + lines_bytes;
  auto memory = sys::map_anonymous(base::round_up(bytes, base::kOsPageBytes), "translation caches");
  if (!memory) return nullptr;
  runtime.cache->charge(bytes);
  Satc* satc = new (*memory) Satc(sizes);
  satc->sets = reinterpret_cast<SatcSet*>(*memory + base::round_up(sizeof(Satc), base::kLineBytes));
  if (lines_bytes != 0)
    satc->lines = reinterpret_cast<SatcLine*>(reinterpret_cast<char*>(satc->sets) + sets_bytes);
  satc->policy = policy();
  satc->random = base::kMixStep ^ thread.thread_id.load(std::memory_order_relaxed);
  satc->counts = runtime.options.satc_cycles != 0;
  satc->overhead_cycles = satc->counts ? overhead_cycles() : 0;
  satc->slots = thread.levels[0].slots;
  return satc;
}

// The thread's caches, which it looks into by itself from here on. Null: it has none.
Satc* satc_of(Thread& thread) {
  Satc* satc = thread.satc.load(std::memory_order_relaxed);
  if (satc != nullptr && __spillway_satc.satc == satc) return satc;
  if (thread.has_left_satc) return nullptr;
  if (satc == nullptr) {
    satc = create(thread);
    if (satc == nullptr) return nullptr;
    satc->epoch = __atomic_load_n(&spillway_satc_epoch, __ATOMIC_ACQUIRE);
    used.store(true, std::memory_order_release);
    // Release: whoever invalidates finds it initialised.
    thread.satc.store(satc, std::memory_order_release);
  }
  __spillway_satc.satc = satc;
  if (satc->lines != nullptr && !satc->counts) {
    __spillway_satc.lines = satc->lines;
    __spillway_satc.mask = satc->line_mask;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    __spillway_satc.page_bytes = satc->page_bytes;
  }
  return satc;
}

// Pins the page and keeps it. 0: it is to be bypassed.
int64_t keep(Thread& thread, Satc& satc, uint64_t address) {
  const uint64_t start = satc_cycles_now(&satc);
  const uint64_t begin = satc_page_begin(&satc, address), end = begin + satc.page_bytes;
  // One entry stands for all of the page.
  if (!is_allocated(address) || !is_open(begin) || same_protection_end(begin, end) != end ||
      is_file_map(address))
    return 0;
  SatcSet& set = *satc_set(&satc, begin);
  // Where the quick step does not search the sets, the page may still be there from last time.
  int way = satc_find(&satc, &set, begin);
  if (way == kSatcNoWay) way = satc_choose(&satc, &set, begin);
  if (set.begins[way] != 0) clear_way(satc, set, way);
  const base::PageId page = runtime.cache->page_of(begin);
  std::atomic<uint64_t>& beside = pinned_beside(page);
  const uint64_t most = most_pinned(), before = beside.fetch_add(1, std::memory_order_relaxed);
  if (before >= most) {
    beside.fetch_sub(1, std::memory_order_relaxed);
    // The budget has shrunk since they were pinned.
    if (before > most) give_up_all(satc);
    return 0;
  }
  auto bytes = runtime.cache->pin(page, workspace_of(thread));
  if (!bytes) end_process(bytes.error(), kFatalStatus);
  const int64_t entry = static_cast<int64_t>(reinterpret_cast<uint64_t>(*bytes) - begin + 1);
  satc_fill_way(&satc, &set, way, begin, entry);
  satc_promote(&satc, begin, entry);
  if (satc.counts) satc.shared_cycles += satc_cycles_since(&satc, start);
  return entry;
}

// Translates by the table, in a slot.
int64_t bypass(uint64_t address) {
  const char* const raw = hold(reinterpret_cast<const void*>(address), kHoldSatc);
  return static_cast<int64_t>(reinterpret_cast<uint64_t>(raw) - address + 1);
}

int64_t translate(uint64_t address) {
  InRuntime inside;
  Thread& thread = inside.thread();
  if (thread.top_level.load(std::memory_order_relaxed) != 0) return 0;
  Satc* const satc = satc_of(thread);
  if (satc == nullptr) return 0;
  for (;;) {
    const uint64_t epoch = __atomic_load_n(&spillway_satc_epoch, __ATOMIC_ACQUIRE);
    if (epoch != satc->epoch) give_up_all(*satc);
    satc->epoch = epoch;
    const int64_t entry = keep(thread, *satc, address);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (__atomic_load_n(&spillway_satc_epoch, __ATOMIC_RELAXED) != epoch) continue;
    if (satc->lines != nullptr) ++satc->direct_misses;
    if (satc->has_private) ++satc->private_misses;
    ++(entry != 0 ? satc->shared_accesses : satc->bypasses);
    return entry;
  }
}

// Step 3 of an invalidation.
void empty_lines(Satc& satc, uint64_t begin, uint64_t end) {
  if (satc.lines == nullptr) return;
  const uint64_t line_count = (satc.line_mask >> (satc.page_shift - kSatcLineShift)) + 1;
  for (uint64_t i = 0; i < line_count; ++i) {
    SatcLine* const line = satc_line(&satc, i << satc.page_shift);
    const uint64_t page = __atomic_load_n(&line->begin, __ATOMIC_RELAXED);
    if (page < end && page + satc.page_bytes > begin) satc_empty_line(line);
  }
}

}  // namespace

extern "C" int64_t spillway_satc_blocking(uint64_t address) {
  const int64_t entry = translate(address);
  return entry != 0 ? entry : bypass(address);
}

bool satc_is_used() { return used.load(std::memory_order_acquire); }

void satc_give_up() {
  if (!satc_is_used()) return;
  InRuntime inside;
  Satc* const satc = inside.thread().satc.load(std::memory_order_relaxed);
  if (satc != nullptr && inside.thread().top_level.load(std::memory_order_relaxed) == 0) give_up_all(*satc);
}

void satc_invalidate(uint64_t address, uint64_t bytes) {
  if (!satc_is_used()) return;
  __atomic_fetch_add(&spillway_satc_epoch, 1, __ATOMIC_ACQ_REL);
  sys::process_barrier();
  for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next)
    if (Satc* const satc = thread->satc.load(std::memory_order_acquire); satc != nullptr)
      empty_lines(*satc, address, address + bytes);
  satc_give_up();
}

void satc_leave(Thread& thread) {
  Satc* const satc = thread.satc.load(std::memory_order_relaxed);
  thread.has_left_satc = true;
  if (satc == nullptr) return;
  if (__spillway_satc.satc == satc) {
    __spillway_satc.page_bytes = 0;
    __spillway_satc.satc = nullptr;
  }
  give_up_all(*satc);
}

void satc_reuse(Thread& thread) {
  satc_leave(thread);
  thread.has_left_satc = false;
}

uint64_t satc_pinned_count() {
  uint64_t count = 0;
  for (const auto& of_partition : pinned) count += of_partition.load(std::memory_order_relaxed);
  return count;
}

uint64_t satc_most_pinned_in_partition() {
  uint64_t most = 0;
  for (const auto& of_partition : pinned)
    most = std::max<uint64_t>(most, of_partition.load(std::memory_order_relaxed));
  return most;
}

void count_satc() {
  if (!satc_is_used()) return;
  Satc sum = {};
  uint64_t thread_count = 0;
  for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next) {
    const Satc* const satc = thread->satc.load(std::memory_order_acquire);
    if (satc == nullptr) continue;
    ++thread_count;
    sum.direct_hits += satc->direct_hits;
    sum.direct_misses += satc->direct_misses;
    sum.direct_cycles += satc->direct_cycles;
    sum.private_hits += satc->private_hits;
    sum.private_misses += satc->private_misses;
    sum.private_cycles += satc->private_cycles;
    sum.shared_accesses += satc->shared_accesses;
    sum.shared_cycles += satc->shared_cycles;
    sum.bypasses += satc->bypasses;
  }
  base::Statistics& statistics = base::statistics;
  statistics.satc_threads.set(thread_count);
  statistics.satc_direct_hits.set(sum.direct_hits);
  statistics.satc_direct_misses.set(sum.direct_misses);
  statistics.satc_direct_cycles.set(sum.direct_cycles);
  statistics.satc_private_hits.set(sum.private_hits);
  statistics.satc_private_misses.set(sum.private_misses);
  statistics.satc_private_cycles.set(sum.private_cycles);
  statistics.satc_shared_accesses.set(sum.shared_accesses);
  statistics.satc_shared_cycles.set(sum.shared_cycles);
  statistics.satc_bypasses.set(sum.bypasses);
}

}  // namespace spill
