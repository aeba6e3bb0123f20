#include "sys/line_flush.h"

#include <cpuid.h>

namespace sys {
namespace {

// EBX of leaf 7 of CPUID.
constexpr uint32_t kClflushoptBit = 1u << 23;
constexpr uint32_t kClwbBit = 1u << 24;

bool has_feature(uint32_t bit) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit) != 0;
}

}  // namespace

const char* name_of(LineFlush instruction) {
  switch (instruction) {
    case LineFlush::kClwb: return "clwb";
    case LineFlush::kClflushopt: return "clflushopt";
    case LineFlush::kClflush: return "clflush";
  }
  return "";
}

bool has_line_flush(LineFlush instruction) {
  switch (instruction) {
    case LineFlush::kClwb: return has_feature(kClwbBit);
    case LineFlush::kClflushopt: return has_feature(kClflushoptBit);
    case LineFlush::kClflush: return true;
  }
  return false;
}

LineFlush best_line_flush() {
  for (const LineFlush instruction : kLineFlushes)
    if (has_line_flush(instruction)) return instruction;
  return LineFlush::kClflush;
}

}  // namespace sys
