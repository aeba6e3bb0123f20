// Prefetcher: what a thread loads ahead of use (prefetch.h): its queue of loads, the loops that it looks ahead in, and what it misses.
//
// Functions for looks ahead are in prefetch_looks.cc, the others in prefetch.cc.
// Thread contract: its thread.
#pragma once
#include "cache/cache.h"
#include "spill/ahead/prefetch.h"
#include "spill/ahead/runs.h"
#include "spill/ahead/sequences.h"
#include "spill/ahead/streams.h"
#include "spill/ahead/walk.h"

namespace spill {

// The least distance that a look may reach, in iterations.
inline constexpr int64_t kMinDistance = 64;
// The next look is due after at most this many iterations.
inline constexpr int64_t kMaxPause = 512;

// What a loop of compiled code tells about itself: abi.inc, LookAheadBegin.
struct LoopTraits {
  int64_t step_bytes;
  uint64_t bits;
  bool has(uint64_t bit) const { return (bits & bit) != 0; }
};

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

  // Does it have a queue, or can it take one now? If not, one will soon be there. REQUIRES: the thread is in the runtime: a handler
  // that came in the middle would do the same.
  bool is_ready();
  // The same, but opens a queue itself if there is none.
  bool make_ready();
  void leave_queue();
  // Also ends the look that a handler interrupted, if it is the handler that forks. So a look checks for a queue after it has entered the runtime.
  void forget_queue() {
    queue_ = nullptr;
    page_count_ = 0;
  }

 private:
  struct Loop {
    const LoopTraits* traits = nullptr;
    uint64_t position = 0;   // of the loop, at the last look
    uint64_t seen_to = 0;    // the position at which the next look begins
    uint64_t near_to = 0;    // and at which the next second look begins (kLookAheadAgain)
    uint64_t looked_ns = 0;  // time of the last look; 0: not usable to time iterations
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
  void find_room();  // REQUIRES: the thread is in the runtime
  static uint32_t share_of_frames();
  static uint32_t most_under_way();
  int64_t end();

  cache::LoadQueue* queue_ = nullptr;
  uint32_t level_ = kIdle;  // of signal handlers, on which a look is under way
  static constexpr uint32_t kIdle = ~uint32_t{0};
  Thread* thread_ = nullptr;
  Loop* loop_ = nullptr;
  uint64_t position_ = 0;
  // The look under way, in iterations from position_: [near_at_, near_end_) is looked at a second time, then [at_, end_) for the first time.
  int64_t near_at_ = 0, near_end_ = 0, at_ = 0, end_ = 0;
  int64_t first_ = 0;    // at_ when the look began
  int64_t current_ = 0;  // the iteration that next() returned last
  int64_t left_ = 0;     // iterations that are certain to come
  bool is_full_ = false;
  bool is_stopped_ = false;        // by a page that the next iterations need too (load)
  bool goes_on_ = false;           // the loop goes on where it was left
  uint64_t missing_count_ = 0;     // loads that this look has begun, except for what lies in order
  uint32_t misses_ = 0;            // misses of the thread, in no order
  uint32_t room_ = 0;              // pages that may be asked for; a read that is under way counts as one
  const Loop* walking_ = nullptr;  // the loop that last reported its place in memory that it loads in order
  Streams streams_;                // of pages that were missed
  Streams ahead_;                  // and of those that looks found missing
  Sequences sequences_;
  uint32_t page_count_ = 0;
  // How many of them are of iterations that are looked at a second time; these come first.
  uint32_t near_count_ = 0;
  base::PageId pages_[kMaxPages];
  Loop loops_[kLoops];
};
static_assert(sizeof(Prefetcher) <= 3 * base::kOsPageBytes);

// Is it worthwhile to load ahead of use what lies at this address? Not if its device has finished reading when submit() returns.
bool is_worth_while(uint64_t address);

}  // namespace spill
