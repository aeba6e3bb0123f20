#include "base/check.h"

#include "base/platform.h"
#include "base/text.h"

namespace base {

void check_failed(const char* file, int line, const char* condition) {
  Text<512> text;
  text << "spillway: internal error at " << file << ':' << line << ": " << condition << " does not hold\n";
  platform_write_error(text.c_str(), text.size());
  platform_abort();
}

void check_failed(const char* file, int line, const char* condition, uint64_t left, uint64_t right) {
  Text<512> text;
  text << "spillway: internal error at " << file << ':' << line << ": " << condition << " does not hold ("
       << left << " and " << right << ", " << Hex{left} << " and " << Hex{right} << ")\n";
  platform_write_error(text.c_str(), text.size());
  platform_abort();
}

}  // namespace base
