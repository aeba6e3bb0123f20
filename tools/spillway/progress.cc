#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "command.h"
#include "sys/kernel.h"

namespace tools {
namespace {

constexpr uint64_t kEveryNs = 200'000'000;
constexpr const char* kEraseLine = "\r\x1b[K";

}  // namespace

void show_line(std::string_view line) {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    line = line.substr(0, size.ws_col - 1u);
  std::fprintf(stderr, "%s%.*s", kEraseLine, static_cast<int>(line.size()), line.data());
  std::fflush(stderr);
}

void erase_line() { std::fputs(kEraseLine, stderr); }

Progress::Progress(const char* what, Unit unit, bool is_wanted)
    : what_(what),
      unit_(unit),
      is_shown_(is_wanted && is_terminal(STDERR_FILENO)),
      began_ns_(sys::monotonic_ns()),
      next_ns_(began_ns_ + kEveryNs) {}

void Progress::clear() {
  if (has_line_) erase_line();
  has_line_ = false;
}

std::string Progress::amount(uint64_t count) const {
  return unit_ == Unit::kBytes ? readable_bytes(count) : concat(count, " keys");
}

void Progress::at(uint64_t done, uint64_t all) {
  if (!is_shown_) return;
  const uint64_t now_ns = sys::monotonic_ns();
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + kEveryNs;
  const double seconds = static_cast<double>(now_ns - began_ns_) / 1e9;
  std::string line = concat(what_, ": ", amount(done));
  if (all > 0) line += concat(" of ", amount(all), ", ", 100 * done / all, " %");
  line += concat(", ", amount(static_cast<uint64_t>(static_cast<double>(done) / seconds)), " a second");
  show_line(line);
  has_line_ = true;
}

}  // namespace tools
