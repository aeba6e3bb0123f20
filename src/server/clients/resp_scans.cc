#include "server/clients/resp_scans.h"

#include <algorithm>

#include "server/resp/glob.h"
#include "server/resp/words.h"
#include "task/scheduler.h"
#include "task/worker.h"

namespace server {
namespace {

// A cursor: the steps of its worker, counted from the time at which that began, so that those of an earlier server are not known; the worker.
constexpr unsigned kWorkerBits = 8, kStepsPerMsBits = 4;
static_assert(RespScans::kWorkersMost == 1 << kWorkerBits &&
              task::Scheduler::kMostWorkers <= RespScans::kWorkersMost);

base::Error unknown() { return base::Error::of(ESRCH, "the cursor is not known any more; scan from 0"); }

}  // namespace

// Those of a worker, whose tasks alone use it.
class RespScans::Table {
 public:
  Table(uint32_t worker, Items& items)
      : worker_(worker),
        home_(*task::Worker::current()),
        items_(items),
        next_step_(items.clock().now_ms() << kStepsPerMsBits) {}

  task::Worker& home() const { return home_; }
  void end_idle();
  base::Expected<Step> step(const resp::ScanRequest& request);

 private:
  struct Scan {
    uint64_t cursor = 0;
    uint64_t used_ms = 0;
    std::unique_ptr<Walk> walk;      // null: there are no more keys than those ahead
    std::vector<std::string> ahead;  // the next one last
    bool is_under_way = false;       // a task makes a step

    bool has_more() const { return walk != nullptr || !ahead.empty(); }
    void end() { *this = {}; }
  };

  base::Expected<Scan*> begin();
  base::Expected<void> open(Scan& scan);
  static base::Expected<void> read_ahead(Scan& scan);
  static base::Expected<void> fill(Scan& scan, const resp::ScanRequest& request, Step& step);

  const uint32_t worker_;
  task::Worker& home_;
  Items& items_;
  uint64_t next_step_;
  std::array<Scan, kMost> scans_;
};

void RespScans::Table::end_idle() {
  const uint64_t now_ms = items_.clock().now_ms();
  for (Scan& scan : scans_)
    if (!scan.is_under_way && now_ms > scan.used_ms + kIdleMs) scan.end();
}

// In the place of none, or of the one that was not used for longest.
base::Expected<RespScans::Table::Scan*> RespScans::Table::begin() {
  const auto age = [](const Scan& scan) {
    return scan.is_under_way ? UINT64_MAX : scan.has_more() ? scan.used_ms + 1 : 0;
  };
  Scan& scan = *std::ranges::min_element(scans_, {}, age);
  if (scan.is_under_way) return base::failure(EBUSY, "too many scan at a time");
  scan.end();
  scan.is_under_way = true;
  if (auto opened = open(scan); !opened) {
    scan.end();
    return std::unexpected(opened.error());
  }
  return &scan;
}

base::Expected<void> RespScans::Table::open(Scan& scan) {
  scan.walk = std::make_unique<Walk>();
  auto opened = scan.walk->open(items_);
  if (opened || opened.error().number != EBUSY) return opened;
  Scan* oldest = nullptr;
  for (Scan& other : scans_)
    if (&other != &scan && other.walk != nullptr && !other.is_under_way &&
        (oldest == nullptr || other.used_ms < oldest->used_ms))
      oldest = &other;
  if (oldest == nullptr || items_.clock().now_ms() < oldest->used_ms + kUsedMs) return opened;
  oldest->end();
  scan.walk = std::make_unique<Walk>();
  return scan.walk->open(items_);
}

// REQUIRES: there are none ahead, and a walk.
base::Expected<void> RespScans::Table::read_ahead(Scan& scan) {
  for (size_t bytes = 0; scan.ahead.size() < kAheadMost && bytes < kAheadBytesMost;) {
    Walk::Entry entry;
    auto more = scan.walk->next(entry);
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
  for (uint64_t i = 0; i < std::min(request.count, kKeysMost) && bytes < kBytesMost; ++i) {
    if (scan.ahead.empty() && scan.walk != nullptr)
      if (auto read = read_ahead(scan); !read) return read;
    if (scan.ahead.empty()) break;
    std::string key = std::move(scan.ahead.back());
    scan.ahead.pop_back();
    if (!takes_strings || !resp::glob_matches(request.pattern, key)) continue;
    bytes += key.size();
    step.keys.push_back(std::move(key));
  }
  return {};
}

base::Expected<RespScans::Step> RespScans::Table::step(const resp::ScanRequest& request) {
  end_idle();
  Scan* scan = nullptr;
  if (request.cursor == 0) {
    auto begun = begin();
    if (!begun) return std::unexpected(begun.error());
    scan = *begun;
  } else {
    for (Scan& one : scans_)
      if (one.has_more() && one.cursor == request.cursor) scan = &one;
    if (scan == nullptr) return std::unexpected(unknown());
  }
  scan->cursor = 0;
  scan->is_under_way = true;
  Step step;
  auto filled = fill(*scan, request, step);
  scan->is_under_way = false;
  if (!filled || !scan->has_more()) {
    scan->end();
    return filled ? base::Expected<Step>(std::move(step)) : std::unexpected(filled.error());
  }
  scan->cursor = step.cursor = next_step_++ << kWorkerBits | worker_;
  scan->used_ms = items_.clock().now_ms();
  return step;
}

RespScans::RespScans() = default;
RespScans::~RespScans() = default;

void RespScans::begin(uint32_t worker, Items& items) {
  tables_[worker] = std::make_unique<Table>(worker, items);
}

void RespScans::end_idle(uint32_t worker) { tables_[worker]->end_idle(); }

void RespScans::end(uint32_t worker) { tables_[worker].reset(); }

base::Expected<RespScans::Step> RespScans::step(uint32_t worker, const resp::ScanRequest& request) {
  const uint32_t at =
      request.cursor == 0 ? worker : static_cast<uint32_t>(request.cursor & (kWorkersMost - 1));
  Table* const table = tables_[at].get();
  if (table == nullptr) return std::unexpected(unknown());
  if (at == worker) return table->step(request);
  base::Expected<Step> step;
  auto there = [&] { step = table->step(request); };
  auto task = task::spawn({.name = "scans",
                           .entry = [](void* call) { (*static_cast<decltype(there)*>(call))(); },
                           .argument = &there,
                           .worker = &table->home()});
  if (!task) return std::unexpected(task.error());
  task::join(**task);
  return step;
}

}  // namespace server
