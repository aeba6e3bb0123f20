// One-line messages to the user on the process's original standard error, prefixed "spillway: ".
// Async-signal-safe; a line is one write, so lines of several threads do not mix.
#pragma once
#include "base/platform.h"
#include "base/text.h"

namespace base {

template <class... Parts>
void log(const Parts&... parts) {
  Text<512> text;
  text << "spillway: ";
  (text << ... << parts);
  text << '\n';
  platform_write_error(text.c_str(), text.size());
}

}  // namespace base
