#include "sys/memory_pressure.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace sys {
namespace {

namespace fs = std::filesystem;

// A root with the files of control groups that a test wants.
class MemoryPressureTest : public testing::Test {
 protected:
  MemoryPressureTest() {
    std::string name = testing::TempDir() + "spillway-memory-pressure-XXXXXX";
    root = mkdtemp(name.data());
  }
  ~MemoryPressureTest() override {
    pressure.close();
    fs::remove_all(root);
  }
  void file(const std::string& path, const std::string& text = "") {
    fs::create_directories(root / fs::path(path).parent_path());
    std::ofstream(root / path) << text;
  }
  std::string content(const std::string& path) {
    std::ifstream in(root / path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path root;
  MemoryPressure pressure;
};

TEST_F(MemoryPressureTest, ListensToTheGroupOfVersion1) {
  file("proc/self/cgroup", "12:cpu:/x\n4:memory:/a/b\n0::/c\n");
  file("sys/fs/cgroup/memory/a/b/memory.pressure_level");
  file("sys/fs/cgroup/memory/a/b/cgroup.event_control");
  file("sys/fs/cgroup/c/memory.pressure");
  ASSERT_TRUE(pressure.open(root.c_str()).has_value());
  EXPECT_EQ(pressure.source(), root.string() + "/sys/fs/cgroup/memory/a/b/memory.pressure_level");
  EXPECT_FALSE(pressure.take());
  // As the kernel would: the first number is the event.
  const std::string said = content("sys/fs/cgroup/memory/a/b/cgroup.event_control");
  EXPECT_TRUE(said.ends_with(" medium")) << said;
  const uint64_t one = 1;
  ASSERT_EQ(write(std::stoi(said), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  EXPECT_TRUE(pressure.take());
  EXPECT_FALSE(pressure.take());
}

TEST_F(MemoryPressureTest, InAContainerTheGroupIsTheRoot) {
  file("proc/self/cgroup", "4:memory:/outside/only\n");
  file("sys/fs/cgroup/memory/memory.pressure_level");
  file("sys/fs/cgroup/memory/cgroup.event_control");
  ASSERT_TRUE(pressure.open(root.c_str()).has_value());
  EXPECT_EQ(pressure.source(), root.string() + "/sys/fs/cgroup/memory/memory.pressure_level");
}

TEST_F(MemoryPressureTest, ListensToTheGroupOfVersion2) {
  file("proc/self/cgroup", "0::/a\n");
  file("sys/fs/cgroup/a/memory.pressure");
  ASSERT_TRUE(pressure.open(root.c_str()).has_value());
  EXPECT_EQ(pressure.source(), root.string() + "/sys/fs/cgroup/a/memory.pressure");
  EXPECT_TRUE(content("sys/fs/cgroup/a/memory.pressure").starts_with("some 150000 2000000"));
  EXPECT_FALSE(pressure.take());
}

TEST_F(MemoryPressureTest, ElseToTheMachine) {
  file("proc/self/cgroup", "0::/a\n");
  file("proc/pressure/memory");
  ASSERT_TRUE(pressure.open(root.c_str()).has_value());
  EXPECT_EQ(pressure.source(), root.string() + "/proc/pressure/memory");
}

TEST_F(MemoryPressureTest, SaysThatThereIsNone) {
  auto opened = pressure.open(root.c_str());
  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(std::string(opened.error().message).find("memory.pressure_level"), std::string::npos);
  EXPECT_FALSE(pressure.take());
}

TEST_F(MemoryPressureTest, WhateverIsHereOpensAgain) {
  if (!pressure.open().has_value()) GTEST_SKIP() << "the kernel tells of no pressure here";
  pressure.take();
  pressure.close();
  EXPECT_FALSE(pressure.is_open());
  EXPECT_TRUE(pressure.open().has_value());
}

}  // namespace
}  // namespace sys
