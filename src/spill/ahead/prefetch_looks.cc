// Prefetcher: looks ahead in loops of compiled code.
#include <algorithm>

#include "base/mix.h"
#include "base/statistics.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/ahead/patterns.h"
#include "spill/ahead/prefetcher.h"
#include "spill/runtime.h"
#include "sys/kernel.h"

extern "C" int64_t spillway_translate_quick(uint64_t address);  // translate_quick.c

namespace spill {
namespace {

// How far a look may reach, in iterations.
constexpr int64_t kMaxDistance = 8192;
// The next look is due when one in kLooksPerDistance of the iterations that were looked at has been executed.
constexpr int64_t kLooksPerDistance = 4;
// Of a run with no known end that begins elsewhere than the last one ended, this many iterations pass before the first look.
constexpr int64_t kMinRun = 32;
// For the number of iterations left.
constexpr int64_t kUnknown = int64_t{1} << 62;
// Loops with longer steps, in bytes, do not count as walks: they would skip pages.
constexpr int64_t kMaxWalkStep = 64;
// A loop rests when kMinVain distances in a row were in memory (except for what it reads in order): for as many iterations, but at most
// kMaxRest distances. Misses of its thread in no order end the rest: kMissesPerRest of them, plus one for each kIterationsPerMiss
// iterations of rest, since looking at so many takes as long as a miss.
constexpr int64_t kMinVain = 4;
constexpr int64_t kMaxRest = 256;
constexpr uint32_t kMissesPerRest = 4;
constexpr int64_t kIterationsPerMiss = 4096;

}  // namespace

// Loops that share a place displace each other.
Prefetcher::Loop& Prefetcher::loop_of(const LoopTraits* traits) {
  const uint64_t hash = base::spread(reinterpret_cast<uint64_t>(traits));
  Loop& loop = loops_[hash >> 60];
  if (loop.traits != traits) {
    loop = {};
    loop.traits = traits;
  }
  return loop;
}

// The loop is at this address, and advances by a step in each of the `left` iterations that are certain to come. Called while it rests, too.
void Prefetcher::walk_on(Loop& loop, uint64_t address, uint64_t left) {
  cache::Cache& cache = *runtime.cache;
  const int64_t step = loop.traits->step_bytes;
  if (step < 0 || step > kMaxWalkStep || address >> kAddressBits != 0 || !in_range(address)) return;
  const uint64_t page = index(cache.page_of(address));
  walking_ = &loop;
  if (!loop.walk.at(page, 1 + static_cast<uint64_t>(step * kMaxPause) / cache.page_bytes())) return;
  const uint32_t least = Walk::least_of(static_cast<uint32_t>(runtime.options.read_ahead), most_under_way());
  if (least == 0 || pattern_at(address) == Pattern::kRandom || !is_worth_while(address)) return;
  const Walk::Window window = loop.walk.window(least);
  uint64_t count = window.count;
  // Not limited to this run if the loop goes on in its next row.
  if (!goes_on(loop)) {
    const uint64_t bytes = std::min(left, uint64_t{1} << 40) * static_cast<uint64_t>(step);
    const uint64_t end = page + bytes / cache.page_bytes() + 1;
    count = end > window.first ? std::min(count, end - window.first) : 0;
  }
  find_room();
  const uint64_t done =
      cache.prefetch_run(base::PageId{window.first}, std::min<uint64_t>(count, room_), *queue_);
  loop.walk.begun(static_cast<uint32_t>(done), least);
}

// When the loop is entered again, does it go on where its present run ends?
bool Prefetcher::goes_on(const Loop& loop) {
  return loop.traits->has(kLookAheadIsNested) && loop.runs.go_on();
}

// How many iterations the loop may look ahead now, if its run has `left` of them (or kUnknown). 0: the run may be over at once.
int64_t Prefetcher::reach(const Loop& loop, int64_t left) {
  if (goes_on(loop)) return loop.distance;
  // Most runs are short: assume that one may become twice as long as it is now.
  if (left == kUnknown && loop.traits->has(kLookAheadIsNested))
    return std::min(loop.distance, 2 * loop.runs.length(loop.traits->step_bytes));
  return std::min(loop.distance, left);
}

// After how many iterations the loop is to ask again: `iterations`, from 1 to kMaxPause. If it is entered anew before that, it asks then.
int64_t Prefetcher::pause_for(Loop& loop, int64_t iterations) {
  const int64_t pause = std::clamp(iterations, int64_t{1}, kMaxPause);
  loop.runs.due_after(pause, loop.traits->step_bytes);
  return pause;
}

// Does the loop rest? Counts the rest down by the iterations until it asks again: those that are certain to come, at most kMaxPause.
bool Prefetcher::rests(Loop& loop, uint64_t left) const {
  if (loop.rest <= 0) return false;
  if (misses_ - loop.misses > kMissesPerRest + loop.rested / kIterationsPerMiss) {
    loop.rest = loop.vain = 0;
    return false;
  }
  const auto iterations = static_cast<int64_t>(std::clamp<uint64_t>(left, 1, kMaxPause));
  loop.rest -= iterations;
  loop.rested += iterations;
  return true;
}

// Sets how far the loop looks from the time that a load takes and that an iteration takes: `advanced` of them were executed since the last look.
void Prefetcher::adapt(Loop& loop, int64_t advanced) {
  const uint64_t now = sys::monotonic_ns();
  const uint64_t latency = queue_->latency_ns();
  if (loop.looked_ns != 0 && advanced > 0 && latency != 0) {
    const uint64_t iteration_ns =
        std::max((now - loop.looked_ns) / static_cast<uint64_t>(advanced), uint64_t{1});
    loop.distance = std::clamp(static_cast<int64_t>(2 * latency / iteration_ns), kMinDistance, kMaxDistance);
    base::statistics.chosen_ahead_iterations.set(static_cast<uint64_t>(loop.distance));
    base::statistics.chosen_ahead_iteration_ns.set(iteration_ns);
    base::statistics.chosen_ahead_load_ns.set(latency);
  }
  loop.looked_ns = now;
}

// REQUIRES: the thread is in the runtime: a handler that came in the middle would begin a look too.
bool Prefetcher::begin(Thread& thread, const LoopTraits* traits, uint64_t position, uint64_t left,
                       int64_t& pause) {
  pause = kMaxPause;
  const uint32_t level = thread.top_level.load(std::memory_order_relaxed);
  if (level_ != kIdle && level_ < level) return false;
  // If a look is under way on this level, or on a deeper one, a jump has left it.
  level_ = kIdle;
  if (!is_ready()) return false;
  Loop& loop = loop_of(traits);
  if (traits->has(kLookAheadIsNested)) loop.runs.at(position, traits->step_bytes);
  if (traits->has(kLookAheadIsAddress)) walk_on(loop, position, left);
  if (rests(loop, left)) {
    loop.looked_ns = 0;
    pause = pause_for(loop, kMaxPause);
    return false;
  }
  const int64_t step = traits->step_bytes;
  const auto from_here = [&](uint64_t other) { return iterations_between(position, other, step); };
  int64_t seen = from_here(loop.seen_to), near = from_here(loop.near_to);
  const int64_t advanced = iterations_between(loop.position, position, step);
  if (seen < 0 || seen > 2 * kMaxDistance || advanced < 0) {
    // The loop is somewhere else than where it was left.
    seen = near = 0;
    loop.looked_ns = 0;
  }
  const auto known_left = static_cast<int64_t>(std::min(left, static_cast<uint64_t>(kUnknown)));
  const int64_t most = reach(loop, known_left);
  if (most == 0) {
    pause = pause_for(loop, kMinRun);
    return false;
  }
  if (loop.looked_ns != 0 && seen > most - most / (2 * kLooksPerDistance)) {
    // Has all of this run been looked at, while the next one begins elsewhere?
    const bool is_over = !goes_on(loop) && seen >= known_left;
    pause = pause_for(loop, is_over ? kMaxPause : seen - most + most / kLooksPerDistance);
    return false;
  }
  adapt(loop, advanced);
  goes_on_ = seen > 0;
  loop.position = position;
  level_ = level;
  thread_ = &thread;
  loop_ = &loop;
  position_ = position;
  first_ = at_ = current_ = seen;
  end_ = std::max(reach(loop, known_left), seen);
  near_at_ = near_end_ = std::max(near, int64_t{0});
  if (traits->has(kLookAheadAgain)) near_end_ = std::max(near_at_, std::min(seen, loop.distance / 2));
  left_ = known_left;
  is_full_ = is_stopped_ = false;
  page_count_ = near_count_ = 0;
  find_room();
  // What the iterations after end_ load first should be in memory by the time they are looked at.
  if (traits->has(kLookAheadIsAddress) && (goes_on(loop) || end_ < known_left)) {
    const auto page_bytes = static_cast<int64_t>(runtime.cache->page_bytes());
    note(position + static_cast<uint64_t>(end_ * step + (step > 0 ? page_bytes : -page_bytes)));
  }
  missing_count_ = 0;
  return true;
}

int64_t Prefetcher::next() {
  if (queue_ == nullptr || is_stopped_ || has_enough()) return end();
  if (near_at_ < near_end_) return current_ = near_at_++;
  if (at_ < end_) return current_ = at_++;
  return end();
}

int64_t Prefetcher::end() {
  const bool has_seen_all = at_ >= end_;
  submit();
  Loop& loop = *loop_;
  const auto position_of = [&](int64_t iteration) {
    return position_ + static_cast<uint64_t>(iteration * loop.traits->step_bytes);
  };
  loop.seen_to = position_of(at_);
  loop.near_to = position_of(near_at_);
  level_ = kIdle;
  release(kHoldAhead);
  if (missing_count_ > 0) {
    loop.vain = 0;
  } else {
    loop.vain += at_ - first_;
    if (loop.vain >= kMinVain * loop.distance) {
      loop.rest = std::min(loop.vain, kMaxRest * loop.distance);
      loop.rested = 0;
      loop.misses = misses_;
    }
  }
  const bool is_over = has_seen_all && near_at_ >= near_end_ && at_ >= left_ && !goes_on(loop) &&
                       !loop.traits->has(kLookAheadAgain);
  return -pause_for(loop, is_over ? kMaxPause : at_ / kLooksPerDistance);
}

uint64_t Prefetcher::load(uint64_t address, uint64_t bytes, uint64_t bits) {
  if (queue_ == nullptr || address >> kAddressBits != 0) return 0;
  if (!in_range(address)) {
    const bool may_load =
        (bits & kLookAheadAnyTime) != 0 || ((bits & kLookAheadSure) != 0 && current_ < left_);
    return may_load ? address : 0;
  }
  if ((address & (base::kOsPageBytes - 1)) + bytes > base::kOsPageBytes) return 0;
  // Like hold(), but loads nothing.
  __spillway_slots[kHoldAhead].store(address, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  int64_t entry = entry_of(address).load(std::memory_order_acquire);
  if (entry <= 0) entry = use(address);
  // Identity does not mean that the memory may be accessed.
  if (entry > kEntryIdentity) return address + static_cast<uint64_t>(entry) - 1;
  if (entry != kEntryUnknown) return 0;
  // The next iterations need the same page: they are looked at when it is in memory.
  if ((bits & kLookAheadSequential) != 0 && current_ + 1 == at_) {
    add_in_order(address, bytes);
    is_stopped_ = true;
    --at_;
  } else {
    add(address);
  }
  return 0;
}

// Loads what this iteration reads contiguously, together with the following ones that will be looked at: adjacent pages are one Io. Only this
// iteration's pages if the loop did not go on where it was left: it may end soon.
void Prefetcher::add_in_order(uint64_t address, uint64_t bytes) {
  submit();
  if (goes_on_ && loop_->traits->step_bytes > 0) bytes *= static_cast<uint64_t>(end_ - current_);
  cache::Cache& cache = *runtime.cache;
  const base::PageId first = cache.page_of(address);
  const uint64_t count = index(cache.page_of(address + bytes - 1)) - index(first) + 1;
  InRuntime::enter(*thread_);
  if (queue_ != nullptr) cache.prefetch_run(first, std::min<uint64_t>(count, room_), *queue_);
  find_room();
  InRuntime::leave(*thread_);
}

void Prefetcher::note(uint64_t address) {
  if (queue_ == nullptr || address >> kAddressBits != 0 || !in_range(address)) return;
  const int64_t entry = entry_of(address).load(std::memory_order_relaxed);
  if (entry == kEntryUnknown)
    add(address);
  else if (entry < 0)  // counts as a touch: the page should not leave before it is used
    use(address);
}

// Re-arms a cooling entry. Returns the entry, as far as this can be done without waiting.
int64_t Prefetcher::use(uint64_t address) {
  const int64_t entry = spillway_translate_quick(address);
  if (entry != kEntryUnknown) return entry;
  InRuntime::enter(*thread_);
  note_use(address);
  InRuntime::leave(*thread_);
  return entry_of(address).load(std::memory_order_acquire);
}

void Prefetcher::add(uint64_t address) {
  const base::PageId page = runtime.cache->page_of(address);
  for (uint32_t i = page_count_; i > 0 && i + 4 > page_count_; --i)
    if (pages_[i - 1] == page) return;
  if (page_count_ == kMaxPages) submit();
  pages_[page_count_++] = page;
  if (current_ < near_end_) near_count_ = page_count_;
}

void Prefetcher::submit() {
  if (page_count_ == 0) return;
  InRuntime::enter(*thread_);
  if (queue_ != nullptr) {
    const uint32_t scattered_count = load_streams();
    const uint64_t before = queue_->submitted_count();
    const bool has_room = runtime.cache->prefetch({pages_, page_count_}, *queue_) == page_count_;
    missing_count_ += has_room ? queue_->submitted_count() - before : scattered_count;
    is_full_ |= !has_room;
  }
  page_count_ = near_count_ = 0;
  find_room();
  InRuntime::leave(*thread_);
}

// What a loop will use may lie page after page although its addresses are computed: then the pages that follow are loaded as after misses in order,
// many by one read. Returns how many of the pages lie in no order.
uint32_t Prefetcher::load_streams() {
  uint32_t scattered_count = 0;
  for (uint32_t i = near_count_; i < page_count_; ++i) {
    // Advice that memory is read in order says nothing about computed addresses.
    const Pattern advice = pattern_at(runtime.cache->address_of(pages_[i]));
    const auto window =
        ahead_.missed(index(pages_[i]), advice == Pattern::kRandom ? advice : Pattern::kNormal,
                      static_cast<uint32_t>(runtime.options.read_ahead));
    scattered_count += window.stride == 0;
    if (window.count == 0 || window.stride != 1) continue;
    find_room();
    const uint64_t done =
        runtime.cache->prefetch_run(base::PageId{window.first}, std::min(window.count, room_), *queue_);
    ahead_.begun(static_cast<uint32_t>(done));
  }
  return scattered_count;
}

}  // namespace spill
