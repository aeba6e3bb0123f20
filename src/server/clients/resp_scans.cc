#include "server/clients/resp_scans.h"

#include <algorithm>

#include "server/resp/glob.h"
#include "server/resp/words.h"

namespace server {

void RespScans::close() {
  for (Scan& scan : scans_) scan.walk.reset();
}

void RespScans::close_idle() {
  const uint64_t now_ms = items_.clock().now_ms();
  for (Scan& scan : scans_)
    if (scan.walk != nullptr && now_ms > scan.used_ms + kIdleMs) scan.walk.reset();
}

// In the place of none, or of the one that was not used for longest.
base::Expected<RespScans::Scan*> RespScans::begin() {
  const auto age = [](const Scan& scan) { return scan.walk == nullptr ? 0 : scan.used_ms + 1; };
  Scan& scan = *std::ranges::min_element(scans_, {}, age);
  scan.walk = std::make_unique<Walk>();
  auto opened = scan.walk->open(items_);
  if (!opened && opened.error().number == EBUSY) {
    // Some of those are its own.
    close();
    scan.walk = std::make_unique<Walk>();
    opened = scan.walk->open(items_);
  }
  if (opened) return &scan;
  scan.walk.reset();
  return std::unexpected(opened.error());
}

// False: there are no more keys.
base::Expected<bool> RespScans::fill(Scan& scan, const resp::ScanRequest& request, Step& step) {
  const bool takes_strings = request.type.empty() || resp::is_word(request.type, "string");
  size_t bytes = 0;
  for (uint64_t i = 0; i < std::min(request.count, kKeysMost) && bytes < kBytesMost; ++i) {
    Walk::Entry entry;
    auto more = scan.walk->next(entry);
    if (!more || !*more) return more;
    if (!takes_strings || !resp::glob_matches(request.pattern, entry.key)) continue;
    step.keys.emplace_back(entry.key);
    bytes += entry.key.size();
  }
  return true;
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
      if (one.walk != nullptr && one.cursor == request.cursor) scan = &one;
    if (scan == nullptr) return base::failure(ESRCH, "the cursor is not known any more; scan from 0");
  }
  Step step;
  auto more = fill(*scan, request, step);
  if (!more || !*more) scan->walk.reset();
  if (!more) return std::unexpected(more.error());
  if (!*more) return step;
  scan->cursor = step.cursor = next_cursor_++;
  scan->used_ms = items_.clock().now_ms();
  return step;
}

}  // namespace server
