#include "sys/line_flush.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>

namespace sys {
namespace {

TEST(LineFlush, WhatTheCpuHasIsWhatTheKernelSays) {
  std::ifstream info("/proc/cpuinfo");
  std::string flags;
  for (std::string line; std::getline(info, line) && flags.empty();)
    if (line.starts_with("flags")) flags = line + ' ';
  for (const LineFlush instruction : kLineFlushes)
    EXPECT_EQ(has_line_flush(instruction),
              flags.find(std::string(" ") + name_of(instruction) + ' ') != flags.npos)
        << name_of(instruction);
  EXPECT_TRUE(has_line_flush(best_line_flush()));
  EXPECT_TRUE(has_line_flush(LineFlush::kClflush));
}

TEST(LineFlush, LeavesTheContentAlone) {
  alignas(64) char memory[192], expected[192];
  for (const LineFlush instruction : kLineFlushes) {
    if (!has_line_flush(instruction)) continue;
    for (size_t i = 0; i < sizeof memory; ++i) memory[i] = expected[i] = static_cast<char>(i * 3 + 1);
    for (size_t i = 0; i < sizeof memory; i += 7)
      flush_line(reinterpret_cast<uintptr_t>(memory) + i, instruction);
    EXPECT_EQ(memcmp(memory, expected, sizeof memory), 0);
  }
}

}  // namespace
}  // namespace sys
