#include "persist/own/recording.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "persist/domain.h"
#include "persist/own/test_child.h"

namespace persist {
namespace {

alignas(4096) char memory[8192];

// By a thread that still runs while the process ends.
TEST(RecordingTest, WhatIsMappedAfterTheEndIsLeftOut) {
  const std::string path = testing::TempDir() + "spillway-recording-" + std::to_string(getpid());
  for (const bool is_anything_recorded : {true, false}) {
    EXPECT_EQ(in_child({},
                       [&] {
                         static constinit Recording recording;
                         const auto begin = reinterpret_cast<uintptr_t>(memory);
                         recording.begin(path, true);
                         if (is_anything_recorded)
                           recording.add({.begin = begin, .end = begin + 4096}, "", 0);
                         recording.finish();
                         recording.add({.begin = begin + 4096, .end = begin + 8192}, "", 0);
                         return 0;
                       }),
              0);
    EXPECT_EQ(std::filesystem::remove(path), is_anything_recorded);
    EXPECT_EQ(std::filesystem::remove(path + ".1"), is_anything_recorded);
    EXPECT_FALSE(std::filesystem::exists(path + ".2"));
  }
}

}  // namespace
}  // namespace persist
