#include "server/clients/resp_scans.h"

#include <algorithm>

#include "server/resp/glob.h"
#include "server/resp/words.h"
#include "task/scheduler.h"
#include "task/worker.h"

namespace server {
namespace {

// A cursor is the number of the step, among those of its worker, and in the lowest bits the worker. Steps are counted from the time at which the
// worker began, so that cursors of an earlier server are unknown. From 2039 on that number has more bits than there is room for: the upper ones
// are dropped.
constexpr unsigned kCursorBits = 53, kWorkerBits = 8, kStepsPerMsBits = 4;
constexpr uint64_t kSteps = uint64_t{1} << (kCursorBits - kWorkerBits);
static_assert(RespScans::kMaxWorkers == 1 << kWorkerBits &&
              task::Scheduler::kMaxWorkers <= RespScans::kMaxWorkers);

uint32_t home_of(uint64_t cursor) { return static_cast<uint32_t>(cursor & (RespScans::kMaxWorkers - 1)); }

base::Error unknown() { return base::Error::of(ESRCH, "the cursor is not known any more; scan from 0"); }

}  // namespace

// The scans of a worker. Only tasks of that worker use it.
class RespScans::Table {
 public:
  Table(uint32_t worker, Items& items)
      : worker_(worker),
        home_(*task::Worker::current()),
        items_(items),
        next_step_(items.clock().now_ms() << kStepsPerMsBits) {}

  task::Worker& home() const { return home_; }
  static constexpr int kMaxBegins = 20;

  void end_idle();
  // Marks the scan with this cursor, if it is still there, as seemingly abandoned.
  void disown(uint64_t cursor);
  // Of the scans that have a walk and seem to be abandoned, ends the least recently used. False: there is none.
  bool end_oldest_walk();
  base::Expected<Step> step(const resp::ScanRequest& request, Caller& caller);

 private:
  struct Scan {
    uint64_t cursor = 0;
    uint64_t used_ms = 0;
    std::unique_ptr<Walk> walk;      // null: there are no more keys than those in `ahead`
    std::vector<std::string> ahead;  // keys that were read ahead, the next one last
    bool is_under_way = false;       // a task is executing a step of it
    bool is_disowned = false;

    bool has_more() const { return walk != nullptr || !ahead.empty(); }
    // Also true if its last use is in the future, by a clock that was set back since.
    bool is_unused(uint64_t ms, uint64_t now_ms) const {
      return !is_under_way && (now_ms < used_ms || now_ms - used_ms >= ms);
    }
    bool may_go(uint64_t now_ms) const {
      return !is_under_way && (is_disowned || is_unused(kUsedMs, now_ms));
    }
    void end() { *this = {}; }
  };

  base::Expected<Scan*> begin(Caller& caller);
  Scan* find(uint64_t cursor);
  uint64_t next_cursor();
  base::Expected<Step> go_on(Scan& scan, const resp::ScanRequest& request);
  static base::Expected<void> read_ahead(Scan& scan);
  static base::Expected<void> fill(Scan& scan, const resp::ScanRequest& request, Step& step);

  const uint32_t worker_;
  task::Worker& home_;
  Items& items_;
  uint64_t next_step_;
  std::array<Scan, kMax> scans_;
};

void RespScans::Table::end_idle() {
  const uint64_t now_ms = items_.clock().now_ms();
  for (Scan& scan : scans_)
    if (scan.is_unused(kIdleMs, now_ms)) scan.end();
}

RespScans::Table::Scan* RespScans::Table::find(uint64_t cursor) {
  for (Scan& scan : scans_)
    if (scan.has_more() && scan.cursor == cursor) return &scan;
  return nullptr;
}

uint64_t RespScans::Table::next_cursor() {
  uint64_t step = 0;  // for worker 0 that would be cursor 0: nothing is left
  while (step == 0) step = next_step_++ % kSteps;
  return step << kWorkerBits | worker_;
}

void RespScans::Table::disown(uint64_t cursor) {
  if (Scan* const scan = find(cursor); scan != nullptr) scan->is_disowned = true;
}

bool RespScans::Table::end_oldest_walk() {
  const uint64_t now_ms = items_.clock().now_ms();
  Scan* oldest = nullptr;
  for (Scan& scan : scans_)
    if (scan.walk != nullptr && scan.may_go(now_ms) && (oldest == nullptr || scan.used_ms < oldest->used_ms))
      oldest = &scan;
  if (oldest != nullptr) oldest->end();
  return oldest != nullptr;
}

// Begins a scan in a free place, or in that of the least recently used abandoned one.
base::Expected<RespScans::Table::Scan*> RespScans::Table::begin(Caller& caller) {
  auto walk = std::make_unique<Walk>();
  if (auto opened = caller.open(*walk); !opened) return std::unexpected(opened.error());
  const uint64_t now_ms = items_.clock().now_ms();
  Scan* place = nullptr;
  for (Scan& scan : scans_) {
    const bool is_free = !scan.is_under_way && !scan.has_more();
    if (!is_free && (!scan.may_go(now_ms) || (place != nullptr && place->used_ms <= scan.used_ms))) continue;
    place = &scan;
    if (is_free) break;
  }
  if (place == nullptr) return base::failure(EBUSY, "too many scans are under way; go on with one");
  place->end();
  place->walk = std::move(walk);
  return place;
}

// REQUIRES: `ahead` is empty, and there is a walk.
base::Expected<void> RespScans::Table::read_ahead(Scan& scan) {
  for (size_t bytes = 0; scan.ahead.size() < kMaxAhead && bytes < kMaxAheadBytes;) {
    Walk::Entry entry;
    auto more = scan.walk->next_item(entry);
    if (!more) return std::unexpected(more.error());
    if (!*more) {
      scan.walk.reset();
      break;
    }
    scan.ahead.emplace_back(entry.key);
    bytes += entry.key.size();
  }
  std::ranges::reverse(scan.ahead);
  return {};
}

base::Expected<void> RespScans::Table::fill(Scan& scan, const resp::ScanRequest& request, Step& step) {
  const bool takes_strings = request.type.empty() || resp::is_word(request.type, "string");
  size_t bytes = 0;
  for (uint64_t i = 0; i < std::min(request.count, kMaxKeys) && bytes < kMaxBytes; ++i) {
    if (scan.ahead.empty() && scan.walk != nullptr)
      if (auto read = read_ahead(scan); !read) return read;
    if (scan.ahead.empty()) break;
    std::string key = std::move(scan.ahead.back());
    scan.ahead.pop_back();
    if (ends_turn(i + 1, key)) task::yield();
    if (!takes_strings || !resp::glob_matches(request.pattern, key)) continue;
    bytes += key.size();
    step.keys.push_back(std::move(key));
  }
  return {};
}

base::Expected<RespScans::Step> RespScans::Table::go_on(Scan& scan, const resp::ScanRequest& request) {
  scan.cursor = 0;
  scan.is_under_way = true;
  scan.is_disowned = false;
  Step step;
  auto filled = fill(scan, request, step);
  scan.is_under_way = false;
  if (!filled || !scan.has_more()) {
    scan.end();
    return filled ? base::Expected<Step>(std::move(step)) : std::unexpected(filled.error());
  }
  scan.cursor = step.cursor = next_cursor();
  scan.used_ms = items_.clock().now_ms();
  return step;
}

base::Expected<RespScans::Step> RespScans::Table::step(const resp::ScanRequest& request, Caller& caller) {
  end_idle();
  if (request.cursor != 0) {
    Scan* const scan = find(request.cursor);
    return scan != nullptr ? go_on(*scan, request) : std::unexpected(unknown());
  }
  for (int begins = 1;; ++begins) {
    auto begun = begin(caller);
    if (!begun) return std::unexpected(begun.error());
    auto step = go_on(**begun, request);
    // ECANCELED: too much has changed meanwhile, as where a cache drops items all the time. The client has been told no key yet, so the scan can
    // begin anew.
    if (step || step.error().number != ECANCELED || begins == kMaxBegins) return step;
  }
}

RespScans::RespScans() = default;
RespScans::~RespScans() = default;

void RespScans::begin(uint32_t worker, Items& items) {
  tables_[worker] = std::make_unique<Table>(worker, items);
}

void RespScans::end_idle(uint32_t worker) { tables_[worker]->end_idle(); }

void RespScans::end(uint32_t worker) { tables_[worker].reset(); }

// Calls the function on the worker `home`, for a task of `worker`, which waits until it has returned.
template <class Function>
base::Expected<void> RespScans::run_at(uint32_t home, uint32_t worker, Function function) {
  if (home == worker) return function(), base::Expected<void>();
  auto task = task::spawn({.name = "scans",
                           .entry = [](void* call) { (*static_cast<Function*>(call))(); },
                           .argument = &function,
                           .worker = &tables_[home]->home()});
  if (!task) return std::unexpected(task.error());
  task::join(**task);
  return {};
}

void RespScans::disown(uint32_t worker, uint64_t cursor) {
  const uint32_t home = home_of(cursor);
  // If there is no memory for that, the scan just stays for a while longer.
  static_cast<void>(run_at(home, worker, [&] { tables_[home]->disown(cursor); }));
}

base::Expected<void> RespScans::Caller::open(Walk& walk) {
  auto opened = walk.open(items_);
  if (opened || opened.error().number != EBUSY) return opened;
  for (uint32_t i = 0; i < 2 * kMaxWorkers && !opened && opened.error().number == EBUSY; ++i) {
    // In the second round its own scans may end, too.
    if (i == kMaxWorkers) leave();
    const uint32_t home = (worker_ + i) % kMaxWorkers;
    Table* const table = scans_.tables_[home].get();
    if (table == nullptr) continue;
    bool has_ended = false;
    auto ran = scans_.run_at(home, worker_, [&] { has_ended = table->end_oldest_walk(); });
    if (!ran) return ran;
    if (has_ended) opened = walk.open(items_);
  }
  return opened;
}

base::Expected<RespScans::Step> RespScans::Caller::step(const resp::ScanRequest& request) {
  const uint32_t home = request.cursor == 0 ? worker_ : home_of(request.cursor);
  Table* const table = scans_.tables_[home].get();
  if (table == nullptr) return std::unexpected(unknown());
  std::erase(cursors_, request.cursor);
  base::Expected<Step> step;
  auto ran = scans_.run_at(home, worker_, [&] { step = table->step(request, *this); });
  if (!ran) return std::unexpected(ran.error());
  if (!step || step->cursor == 0) return step;
  if (cursors_.size() == kMaxKept) {
    scans_.disown(worker_, cursors_.front());
    cursors_.erase(cursors_.begin());
  }
  cursors_.push_back(step->cursor);
  return step;
}

void RespScans::Caller::leave() {
  for (const uint64_t cursor : cursors_) scans_.disown(worker_, cursor);
  cursors_.clear();
}

}  // namespace server
