#include "spill/ahead/prefetch.h"

#include <algorithm>
#include <new>

#include "base/statistics.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/ahead/patterns.h"
#include "spill/ahead/prefetcher.h"
#include "spill/file_maps.h"
#include "spill/fork.h"
#include "spill/runtime.h"
#include "sys/memory.h"

// translate_quick.c
extern "C" {
extern __thread spill::Streams::Mark spillway_marks[spill::Streams::kStreams];  // in numbers of entries
bool spillway_is_marked(uint64_t address);
}
static_assert(spill::Streams::kStreams == 4 && sizeof(spill::Streams::Mark) == 2 * sizeof(uint64_t));

// Whether compiled code looks ahead. Relaxed: no other data depends on it.
SPILL_EXPORT std::atomic<uint64_t> __spillway_look_ahead;
constinit std::atomic<uint64_t> __spillway_look_ahead{0};

namespace spill {
namespace {

// One in kFramesPerPrefetch frames may be under way ahead of use, for all threads together: more would evict each other. Pages of one read
// count once.
constexpr uint32_t kFramesPerPrefetch = 8;
// One in kFramesPerSequences frames may hold pages ahead of sequences, under way or in memory.
constexpr uint32_t kFramesPerSequences = 2;
// More threads than this keep a device busy without loads ahead; and rings are scarce (sys/io_ring.cc).
constexpr uint32_t kMaxThreads = 32;
// After this many rounds of the background thread without a miss nobody looks ahead.
constexpr uint32_t kCalmRounds = 200;

// A queue for the next thread that is about to load ahead. The background thread opens it: that takes more stack than a thread that misses
// may have.
constinit std::atomic<cache::LoadQueue*> spare_queue{nullptr};
// Relaxed, both: no other data depends on them.
constinit std::atomic<bool> wants_queue{false};
// The system has refused one: trying again and again would cost more than it gains.
constinit std::atomic<bool> has_no_queues{false};

// Null if the system refuses it; from then on no thread gets one.
cache::LoadQueue* open_queue() {
  // Undisturbed: completions of its loads do not interrupt the program's system calls.
  auto queue = runtime.cache->open_loads(/*undisturbed=*/true);
  if (queue) return *queue;
  has_no_queues.store(true, std::memory_order_relaxed);
  return nullptr;
}

// Is it worthwhile to load ahead of use from storage? Not from a device that has finished reading when submit() returns: the read costs as much
// ahead of use as after a miss, and finding the page costs extra. (A miss still brings neighbours: Partition::load.) Chaos mode does it on any
// device.
bool is_worth_while_on_storage() { return !runtime.device->ends_at_once() || runtime.options.chaos != 0; }

// Files that are mapped are on disks.
bool is_worth_while_anywhere() { return is_worth_while_on_storage() || has_file_maps(); }

}  // namespace

bool is_worth_while(uint64_t address) { return is_worth_while_on_storage() || is_file_map(address); }

uint32_t Prefetcher::share_of_frames() {
  return runtime.cache->frame_count() / kFramesPerPrefetch / std::max(thread_count(), 1u);
}

uint32_t Prefetcher::most_under_way() {
  return std::min(
      {static_cast<uint32_t>(runtime.options.prefetch), share_of_frames(), cache::LoadQueue::kDepth});
}

// A child of vfork may not: its parent would not have the descriptors that it opens.
bool Prefetcher::may_have_queue() {
  return runtime.options.prefetch != 0 && !has_no_queues.load(std::memory_order_relaxed) &&
         thread_count() <= kMaxThreads && !is_sharing_child();
}

bool Prefetcher::is_ready() {
  // A queue that was opened before the first file was mapped cannot read files: it is replaced, but not during a look that a handler interrupted.
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

void Prefetcher::find_room() {
  const uint32_t most = most_under_way();
  const uint32_t under_way = queue_ != nullptr ? queue_->under_way_count() : most;
  room_ = most > under_way ? most - under_way : 0;
}

// REQUIRES: the thread is in the runtime.
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

// REQUIRES: the thread is in the runtime.
bool Prefetcher::note_use(uint64_t address) {
  if (!spillway_is_marked(address)) return false;
  const auto window = streams_.used(index(runtime.cache->page_of(address)), pattern_at(address),
                                    static_cast<uint32_t>(runtime.options.read_ahead), share_of_frames());
  if (window.count > 0) load_window(window);
  mark_streams();
  return true;
}

// Loads what streams_ returned. REQUIRES: the thread is in the runtime.
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

// REQUIRES: the thread is in the runtime.
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
