#include "spill/prefetch.h"

#include <algorithm>
#include <new>

#include "base/mix.h"
#include "base/statistics.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/file_maps.h"
#include "spill/fork.h"
#include "spill/patterns.h"
#include "spill/runs.h"
#include "spill/runtime.h"
#include "spill/sequences.h"
#include "spill/streams.h"
#include "spill/walk.h"
#include "sys/kernel.h"
#include "sys/memory.h"

extern "C" {  // translate_quick.c
int64_t spillway_translate_quick(uint64_t address);
extern __thread spill::Streams::Mark spillway_marks[spill::Streams::kStreams];  // by the numbers of entries
}

static_assert(spill::Streams::kStreams == 4 && sizeof(spill::Streams::Mark) == 2 * sizeof(uint64_t));

// Whether compiled code looks ahead. Relaxed: it means nothing but that.
SPILL_EXPORT std::atomic<uint64_t> __spillway_look_ahead;
constinit std::atomic<uint64_t> __spillway_look_ahead{0};

namespace spill {
namespace {

// How far a look may reach, in iterations.
constexpr int64_t kMinDistance = 64;
constexpr int64_t kMaxDistance = 8192;
// The next look is due when one in kLooksPerDistance of the iterations that were looked at is done, and after kMaxPause at the latest.
constexpr int64_t kLooksPerDistance = 4;
constexpr int64_t kMaxPause = 512;
// Of runs that end nobody knows when, and begin elsewhere than the last one ended, so many iterations are not looked at.
constexpr int64_t kMinRun = 32;
// Iterations that are left.
constexpr int64_t kUnknown = int64_t{1} << 62;
// Loops with longer steps, in bytes, are no walks: they would skip pages.
constexpr int64_t kMaxWalkStep = 64;
// One in kFramesPerPrefetch frames may be under way ahead of use, for all threads together: more would push each other out. Pages of one read
// count once.
constexpr uint32_t kFramesPerPrefetch = 8;
// One in kFramesPerSequences may be ahead for sequences, under way or in memory.
constexpr uint32_t kFramesPerSequences = 2;
// More threads than that keep a device busy without loads ahead; and rings are scarce (sys/io_ring.cc).
constexpr uint32_t kMaxThreads = 32;
// A loop rests when kMinVain distances in a row were in memory (but for what it reads in order): for as many iterations, at most kMaxRest
// distances. Misses of its thread that lie in no order end the rest: kMissesPerRest, and one more for each kIterationsPerMiss iterations of
// it, since looking at so many takes as long as a miss.
constexpr int64_t kMinVain = 4;
constexpr int64_t kMaxRest = 256;
constexpr uint32_t kMissesPerRest = 4;
constexpr int64_t kIterationsPerMiss = 4096;
// After so many rounds of the background thread without a miss nobody looks ahead.
constexpr uint32_t kCalmRounds = 200;

// What a loop of compiled code tells of itself: abi.inc, LookAheadBegin.
struct LoopTraits {
  int64_t step_bytes;
  uint64_t bits;
  bool has(uint64_t bit) const { return (bits & bit) != 0; }
};

// A queue for the next thread that is about to load ahead. The background thread opens it: that takes more stack than a thread that misses
// may have.
constinit std::atomic<cache::LoadQueue*> spare_queue{nullptr};
// Relaxed, both: they mean nothing but what their names say.
constinit std::atomic<bool> wants_queue{false};
// The system refused one once: to try again and again costs more than it brings.
constinit std::atomic<bool> has_no_queues{false};

// Null if the system refuses it; then there are none from now on.
cache::LoadQueue* open_queue() {
  // Undisturbed: the ends of its loads do not interrupt system calls of the program.
  auto queue = runtime.cache->open_loads(/*undisturbed=*/true);
  if (queue) return *queue;
  has_no_queues.store(true, std::memory_order_relaxed);
  return nullptr;
}

// Is it worth while to load ahead of use from storage? Not from a device that has read when submit() returns: the read costs as much ahead of
// use as after a miss, and looking for the page costs besides. (Neighbours come with a miss all the same: Partition::load.) Chaos mode does it on
// any device.
bool is_worth_while_on_storage() { return !runtime.device->ends_at_once() || runtime.options.chaos != 0; }

// And what lies at the address? Files that are mapped are on disks.
bool is_worth_while(uint64_t address) { return is_worth_while_on_storage() || is_file_map(address); }
bool is_worth_while_anywhere() { return is_worth_while_on_storage() || has_file_maps(); }

}  // namespace

class Prefetcher {
 public:
  static constexpr uint32_t kMaxPages = 64;

  bool begin(Thread& thread, const LoopTraits* traits, uint64_t position, uint64_t left, int64_t& pause);
  int64_t next();
  uint64_t load(uint64_t address, uint64_t bytes, uint64_t bits);
  void note(uint64_t address);

  void note_miss(uint64_t address);
  bool note_use(uint64_t address);
  bool load_sequence(base::PageId page);
  uint64_t prefetch_range(uint64_t address, uint64_t bytes);

  // Has it a queue, or can it have one now? If there is none it will soon be there. Of the thread, which is in the runtime: a handler
  // that came in the middle would do the same.
  bool is_ready();
  // The same of one that does not wait for it.
  bool make_ready();
  void leave_queue();
  // Also of a look that a handler interrupted, which forks: it finds nothing more. So a look asks whether there is a queue after it
  // has entered the runtime.
  void forget_queue() {
    queue_ = nullptr;
    page_count_ = 0;
  }

 private:
  struct Loop {
    const LoopTraits* traits = nullptr;
    uint64_t position = 0;   // of the loop at the last look
    uint64_t seen_to = 0;    // the position at which the next look begins
    uint64_t near_to = 0;    // and at which the next second look begins (kLookAheadAgain)
    uint64_t looked_ns = 0;  // time of the last look; 0: it does not tell how long an iteration takes
    int64_t distance = kMinDistance;
    int64_t vain = 0;     // iterations in a row that found everything in memory
    int64_t rest = 0;     // iterations until it looks again
    int64_t rested = 0;   // iterations since the rest began
    uint32_t misses = 0;  // misses_ when the rest began
    Walk walk;            // for loops whose position is an address
    Runs runs;            // for nested loops
  };
  static constexpr uint32_t kLoops = 16;

  Loop& loop_of(const LoopTraits* traits);
  void walk_on(Loop& loop, uint64_t address, uint64_t left);
  static bool goes_on(const Loop& loop);
  static int64_t reach(const Loop& loop, int64_t left);
  static int64_t pause_for(Loop& loop, int64_t iterations);
  bool rests(Loop& loop, uint64_t left) const;
  void adapt(Loop& loop, int64_t advanced);
  static bool may_have_queue();
  void add(uint64_t address);
  void add_in_order(uint64_t address, uint64_t bytes);
  int64_t use(uint64_t address);
  void load_window(const Streams::Window& window);
  void mark_streams();
  void submit();
  uint32_t load_streams();
  bool has_enough() const { return is_full_ || page_count_ >= room_; }
  void find_room();  // of the thread, which is in the runtime
  static uint32_t share_of_frames();
  static uint32_t most_under_way();
  int64_t end();

  cache::LoadQueue* queue_ = nullptr;
  uint32_t level_ = kIdle;  // of signal handlers on which a look is under way
  static constexpr uint32_t kIdle = ~uint32_t{0};
  Thread* thread_ = nullptr;
  Loop* loop_ = nullptr;
  uint64_t position_ = 0;
  // The look under way, in iterations from position_: [near_at_, near_end_) is looked at a second time, then [at_, end_) for the first time.
  int64_t near_at_ = 0, near_end_ = 0, at_ = 0, end_ = 0;
  int64_t first_ = 0;    // at_ when the look began
  int64_t current_ = 0;  // the iteration that next() returned last
  int64_t left_ = 0;     // iterations that surely come
  bool is_full_ = false;
  bool is_stopped_ = false;        // by a page that the next iterations need, too (load)
  bool goes_on_ = false;           // the loop goes on where it was left
  uint64_t missing_count_ = 0;     // loads that this look has begun, but for what lies in order
  uint32_t misses_ = 0;            // of the thread, in no order
  uint32_t room_ = 0;              // pages that may be asked for; a read that is under way counts as one
  const Loop* walking_ = nullptr;  // the loop that reported last where it is in memory that it loads in order
  Streams streams_;                // of pages that were missed
  Streams ahead_;                  // and of those that looks found missing
  Sequences sequences_;
  uint32_t page_count_ = 0;
  // Of them, those of iterations that are looked at a second time, which come first.
  uint32_t near_count_ = 0;
  base::PageId pages_[kMaxPages];
  Loop loops_[kLoops];
};
static_assert(sizeof(Prefetcher) <= 3 * base::kOsPageBytes);

uint32_t Prefetcher::share_of_frames() {
  return runtime.cache->frame_count() / kFramesPerPrefetch / std::max(thread_count(), 1u);
}

uint32_t Prefetcher::most_under_way() {
  return std::min(
      {static_cast<uint32_t>(runtime.options.prefetch), share_of_frames(), cache::LoadQueue::kDepth});
}

// A child of vfork may not: the descriptors that it opens are not its parent's.
bool Prefetcher::may_have_queue() {
  return runtime.options.prefetch != 0 && !has_no_queues.load(std::memory_order_relaxed) &&
         thread_count() <= kMaxThreads && !is_sharing_child();
}

bool Prefetcher::is_ready() {
  // A queue that was opened before the first file was mapped reads no files: it is exchanged, but not under a look that a handler interrupted.
  if (level_ == kIdle && queue_ != nullptr && has_file_maps() && !runtime.cache->knows_origins(*queue_) &&
      may_have_queue()) [[unlikely]] {
    leave_queue();
    queue_ = nullptr;
  }
  if (queue_ == nullptr && may_have_queue()) [[unlikely]] {
    queue_ = spare_queue.exchange(nullptr, std::memory_order_acquire);  // pairs with offer_queue
    if (queue_ == nullptr) wants_queue.store(true, std::memory_order_relaxed);
  }
  return queue_ != nullptr;
}

bool Prefetcher::make_ready() {
  if (!is_ready() && may_have_queue()) queue_ = open_queue();
  return queue_ != nullptr;
}

void Prefetcher::leave_queue() {
  if (queue_ != nullptr) runtime.cache->leave_loads(*queue_);
}

// Loops that share a place forget each other.
Prefetcher::Loop& Prefetcher::loop_of(const LoopTraits* traits) {
  const uint64_t hash = base::spread(reinterpret_cast<uint64_t>(traits));
  Loop& loop = loops_[hash >> 60];
  if (loop.traits != traits) {
    loop = {};
    loop.traits = traits;
  }
  return loop;
}

// The loop is at this address, and goes on by a step with each of the `left` iterations that surely come. Also while it rests.
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
  // A nested loop goes on in its next row.
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

// Does the loop, when it is entered again, go on where its present run ends?
bool Prefetcher::goes_on(const Loop& loop) {
  return loop.traits->has(kLookAheadIsNested) && loop.runs.go_on();
}

// How many iterations the loop may look ahead now, where its run has `left` of them (kUnknown: nobody knows). 0: the run may be over at once.
int64_t Prefetcher::reach(const Loop& loop, int64_t left) {
  if (goes_on(loop)) return loop.distance;
  // Most runs are short: one may be as long again as it is by now.
  if (left == kUnknown && loop.traits->has(kLookAheadIsNested))
    return std::min(loop.distance, 2 * loop.runs.length(loop.traits->step_bytes));
  return std::min(loop.distance, left);
}

// After how many iterations the loop asks again: after so many, from 1 to kMaxPause. If it is entered anew before, it asks then.
int64_t Prefetcher::pause_for(Loop& loop, int64_t iterations) {
  const int64_t pause = std::clamp(iterations, int64_t{1}, kMaxPause);
  loop.runs.due_after(pause, loop.traits->step_bytes);
  return pause;
}

// Does the loop rest? Counts down by the iterations until it asks again: those that surely come, kMaxPause at most.
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

// Sets how far the loop looks, by what a load takes and what an iteration takes: `advanced` of them were done since the last look.
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

// Of a thread that is in the runtime: a handler that came in the middle would look too.
bool Prefetcher::begin(Thread& thread, const LoopTraits* traits, uint64_t position, uint64_t left,
                       int64_t& pause) {
  pause = kMaxPause;
  const uint32_t level = thread.top_level.load(std::memory_order_relaxed);
  if (level_ != kIdle && level_ < level) return false;
  // A look on this level, or on a deeper one, was left by a jump.
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
  const auto from_here = [&](uint64_t other) { return static_cast<int64_t>(other - position) / step; };
  int64_t seen = from_here(loop.seen_to), near = from_here(loop.near_to);
  const int64_t advanced = -from_here(loop.position);
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
    // Was all of this run looked at, and the next one begins elsewhere?
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
  // What the iterations behind end_ load first should be in memory when they are looked at.
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
  // As hold(), but nothing is loaded.
  __spillway_slots[kHoldAhead].store(address, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  int64_t entry = entry_of(address).load(std::memory_order_acquire);
  if (entry <= 0) entry = use(address);
  // An identity says nothing about what may be done there.
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

// Loads what this iteration and those that are looked at after it read side by side: pages that lie together are one Io. Only this iteration's
// pages if the loop did not go on where it was left: it may end soon.
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

void Prefetcher::find_room() {
  const uint32_t most = most_under_way();
  const uint32_t under_way = queue_ != nullptr ? queue_->under_way_count() : most;
  room_ = most > under_way ? most - under_way : 0;
}

void Prefetcher::note(uint64_t address) {
  if (queue_ == nullptr || address >> kAddressBits != 0 || !in_range(address)) return;
  const int64_t entry = entry_of(address).load(std::memory_order_relaxed);
  if (entry == kEntryUnknown)
    add(address);
  else if (entry < 0)  // counts as a touch: the page shall not leave before it is used
    use(address);
}

// Takes back a cooling entry. Returns the entry, as far as that can be done at once.
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

// What a loop will use may lie page after page although its addresses are computed: as behind misses in order, the pages that follow are loaded then,
// many by one read. Returns how many of the pages lie in no order.
uint32_t Prefetcher::load_streams() {
  uint32_t scattered_count = 0;
  for (uint32_t i = near_count_; i < page_count_; ++i) {
    // What lies in order is not for that reason reached in order by computed addresses.
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

// Of the thread, which is in the runtime.
void Prefetcher::note_miss(uint64_t address) {
  if (!is_worth_while(address)) return;
  cache::Cache& cache = *runtime.cache;
  const auto window = streams_.missed(index(cache.page_of(address)), pattern_at(address),
                                      static_cast<uint32_t>(runtime.options.read_ahead));
  if (window.count == 0) {
    if (window.stride == 0 &&
        (pattern_at(address) == Pattern::kRandom || !load_sequence(cache.page_of(address))))
      ++misses_;
    return;
  }
  // Threads that share a loop take turns at parts of it, and each misses the first page of every part. Its walk loads the part anyway, in larger reads.
  if (window.stride != 1 && walking_ != nullptr && walking_->walk.is_near(index(cache.page_of(address))))
    return;
  load_window(window);
}

// Of the thread, which is in the runtime.
bool Prefetcher::note_use(uint64_t address) {
  const bool is_marked = std::any_of(std::begin(spillway_marks), std::end(spillway_marks),
                                     [&](Streams::Mark mark) { return mark.has(address >> kTableShift); });
  if (!is_marked) return false;
  const auto window = streams_.used(index(runtime.cache->page_of(address)), pattern_at(address),
                                    static_cast<uint32_t>(runtime.options.read_ahead), share_of_frames());
  if (window.count > 0) load_window(window);
  mark_streams();
  return true;
}

// Of the thread, which is in the runtime: what streams_ returned.
void Prefetcher::load_window(const Streams::Window& window) {
  if (!is_ready()) return;
  cache::Cache& cache = *runtime.cache;
  base::statistics.chosen_read_ahead_pages.set(window.count);
  const uint32_t most = std::min(window.count, most_under_way());
  size_t done = 0;
  if (window.stride == 1) {
    done = cache.prefetch_run(base::PageId{window.first}, most, *queue_);
  } else {
    constexpr size_t kBatch = 16;  // there may be little stack
    const uint64_t page_end = (uint64_t{1} << kAddressBits) / cache.page_bytes();
    while (done < most) {
      base::PageId pages[kBatch];
      size_t count = 0;
      // Downwards there may be no more, nor upwards from a library's global.
      for (; count < kBatch && done + count < most; ++count) {
        const uint64_t page = window.first + static_cast<uint64_t>(window.stride) * (done + count);
        if (page >= page_end) break;
        pages[count] = base::PageId{page};
      }
      const size_t begun = cache.prefetch({pages, count}, *queue_);
      done += begun;
      if (begun < kBatch) break;
    }
  }
  streams_.begun(static_cast<uint32_t>(done));
  mark_streams();
}

// The quick step of a translation looks at the marks.
void Prefetcher::mark_streams() {
  const cache::Cache& cache = *runtime.cache;
  for (uint32_t i = 0; i < Streams::kStreams; ++i) {
    const Streams::Mark mark = streams_.mark(i);
    spillway_marks[i] = {cache.address_of(base::PageId{mark.first}) >> kTableShift,
                         mark.count * cache.page_bytes() >> kTableShift};
  }
}

// Loads the missed page and those behind it, if it is part of a sequence; else returns false.
bool Prefetcher::load_sequence(base::PageId page) {
  if (runtime.options.read_ahead == 0) return false;
  cache::Cache& cache = *runtime.cache;
  const uint32_t room = cache.frame_count() / kFramesPerSequences / std::max(thread_count(), 1u);
  const uint32_t count =
      sequences_.missed(index(page), room, static_cast<uint32_t>(runtime.options.read_ahead));
  if (count < 2 || !is_ready()) return count > 0;
  const uint64_t done = cache.prefetch_run(page, std::min(count, most_under_way()), *queue_);
  sequences_.begun(index(page), static_cast<uint32_t>(done));
  return true;
}

// Of the thread, which is in the runtime.
uint64_t Prefetcher::prefetch_range(uint64_t address, uint64_t bytes) {
  cache::Cache& cache = *runtime.cache;
  const base::PageId first = cache.page_of(address);
  const uint64_t count = index(cache.page_of(address + bytes - 1)) - index(first) + 1;
  const uint64_t done = cache.prefetch_run(first, count, *queue_);
  return done == count ? bytes : std::max(cache.address_of(first + done), address) - address;
}

namespace {

// The thread's Prefetcher, made on first use. Null: there is no memory.
Prefetcher* prefetcher_of(Thread& thread) {
  if (thread.prefetcher == nullptr) [[unlikely]] {
    const InRuntime inside;
    if (thread.prefetcher != nullptr) return thread.prefetcher;  // by a handler that came before that
    auto memory = sys::map_anonymous(sizeof(Prefetcher), "what a thread loads ahead");
    if (memory) thread.prefetcher = new (*memory) Prefetcher;
  }
  return thread.prefetcher;
}

}  // namespace

void leave_prefetcher(Thread& thread) {
  if (thread.prefetcher == nullptr) return;
  thread.prefetcher->leave_queue();
  sys::unmap(reinterpret_cast<char*>(thread.prefetcher), sizeof(Prefetcher));
  thread.prefetcher = nullptr;
}

void forget_prefetcher(Thread& thread) {
  if (thread.prefetcher != nullptr) thread.prefetcher->forget_queue();
  spare_queue.store(nullptr, std::memory_order_relaxed);
}

bool note_use(Thread& thread, uint64_t address) {
  return thread.prefetcher != nullptr && thread.prefetcher->note_use(address);
}

void note_miss(Thread& thread, uint64_t address) {
  if (Prefetcher* const prefetcher = prefetcher_of(thread); prefetcher != nullptr)
    prefetcher->note_miss(address);
}

uint64_t prefetch_range(uint64_t address, uint64_t bytes) {
  // Handlers of signals come between the pieces.
  constexpr uint64_t kPieceBytes = uint64_t{256} << 20;
  if (!runtime.started.load(std::memory_order_relaxed)) return 0;
  uint64_t asked = 0, done = 0;
  while (asked < bytes && done == asked) {
    const InRuntime inside;
    Prefetcher* const prefetcher = prefetcher_of(inside.thread());
    if (prefetcher == nullptr || !prefetcher->make_ready()) return done;
    const uint64_t piece = std::min(kPieceBytes, bytes - asked);
    done += prefetcher->prefetch_range(address + asked, piece);
    asked += piece;
  }
  base::statistics.cache_prefetches_dropped.add((bytes - asked) / runtime.cache->page_bytes());
  return done;
}

void offer_queue() {
  if (!wants_queue.load(std::memory_order_relaxed)) return;
  wants_queue.store(false, std::memory_order_relaxed);
  if (spare_queue.load(std::memory_order_relaxed) == nullptr)
    spare_queue.store(open_queue(), std::memory_order_release);
}

void choose_whether_to_look_ahead() {
  static constinit uint64_t missed_before = 0;
  static constinit uint32_t calm_rounds = 0;
  const base::Statistics& all = base::statistics;
  // Nobody could have looked ahead to pages that come into being as zeros.
  const uint64_t missed = all.cache_misses.get() + all.cache_prefetches.get() - all.cache_zero_fills.get();
  calm_rounds = missed == missed_before ? calm_rounds + 1 : 0;
  missed_before = missed;
  const bool looks =
      calm_rounds < kCalmRounds && missed != 0 && runtime.options.prefetch != 0 && is_worth_while_anywhere();
  if ((__spillway_look_ahead.load(std::memory_order_relaxed) != 0) != looks)
    __spillway_look_ahead.store(looks, std::memory_order_relaxed);
}

SPILL_EXPORT Prefetcher* __spillway_look_ahead_begin(const LoopTraits* loop, uint64_t position, uint64_t left,
                                                     int64_t* pause);
Prefetcher* __spillway_look_ahead_begin(const LoopTraits* loop, uint64_t position, uint64_t left,
                                        int64_t* pause) {
  *pause = kMaxPause;
  Thread* const thread = this_thread_if_registered();
  // Tasks hide what they wait for from each other.
  if (thread == nullptr || thread->runtime_depth != 0 || thread->task != nullptr) return nullptr;
  Prefetcher* const prefetcher = prefetcher_of(*thread);
  if (prefetcher == nullptr) return nullptr;
  InRuntime::enter(*thread);
  const bool looks = prefetcher->begin(*thread, loop, position, left, *pause);
  InRuntime::leave(*thread);
  return looks ? prefetcher : nullptr;
}

SPILL_EXPORT int64_t __spillway_look_ahead_next(Prefetcher* prefetcher);
int64_t __spillway_look_ahead_next(Prefetcher* prefetcher) { return prefetcher->next(); }

SPILL_EXPORT uint64_t __spillway_look_ahead_load(Prefetcher* prefetcher, uint64_t address, uint64_t bytes,
                                                 uint64_t bits);
uint64_t __spillway_look_ahead_load(Prefetcher* prefetcher, uint64_t address, uint64_t bytes, uint64_t bits) {
  return prefetcher->load(address, bytes, bits);
}

SPILL_EXPORT void __spillway_look_ahead_note(Prefetcher* prefetcher, uint64_t address);
void __spillway_look_ahead_note(Prefetcher* prefetcher, uint64_t address) { prefetcher->note(address); }

}  // namespace spill
