#include "server/clients/resp_scans.h"

#include <algorithm>

#include "server/resp/glob.h"
#include "server/resp/words.h"

namespace server {

void RespScans::close() {
  for (Scan& scan : scans_) scan.end();
}

void RespScans::close_idle() {
  const uint64_t now_ms = items_.clock().now_ms();
  for (Scan& scan : scans_)
    if (now_ms > scan.used_ms + kIdleMs) scan.end();
}

// In the place of none, or of the one that was not used for longest.
base::Expected<RespScans::Scan*> RespScans::begin() {
  const auto age = [](const Scan& scan) { return scan.has_more() ? scan.used_ms + 1 : 0; };
  Scan& scan = *std::ranges::min_element(scans_, {}, age);
  scan.end();
  scan.walk = std::make_unique<Walk>();
  auto opened = scan.walk->open(items_);
  if (!opened && opened.error().number == EBUSY) {
    // Some of those are its own.
    close();
    scan.walk = std::make_unique<Walk>();
    opened = scan.walk->open(items_);
  }
  if (opened) return &scan;
  scan.end();
  return std::unexpected(opened.error());
}

// REQUIRES: there are none ahead, and a walk.
base::Expected<void> RespScans::read_ahead(Scan& scan) {
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

base::Expected<void> RespScans::fill(Scan& scan, const resp::ScanRequest& request, Step& step) {
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

base::Expected<RespScans::Step> RespScans::step(const resp::ScanRequest& request) {
  close_idle();
  Scan* scan = nullptr;
  if (request.cursor == 0) {
    auto begun = begin();
    if (!begun) return std::unexpected(begun.error());
    scan = *begun;
  } else {
    for (Scan& one : scans_)
      if (one.has_more() && one.cursor == request.cursor) scan = &one;
    if (scan == nullptr) return base::failure(ESRCH, "the cursor is not known any more; scan from 0");
  }
  Step step;
  if (auto filled = fill(*scan, request, step); !filled) {
    scan->end();
    return std::unexpected(filled.error());
  }
  if (!scan->has_more()) {
    scan->end();
    return step;
  }
  scan->cursor = step.cursor = next_cursor_++;
  scan->used_ms = items_.clock().now_ms();
  return step;
}

}  // namespace server
