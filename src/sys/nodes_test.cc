#include "sys/nodes.h"

#include <gtest/gtest.h>

#include <thread>

#include "sys/memory.h"
#include "sys/threads.h"

namespace sys {
namespace {

TEST(Nodes, ListsOfNumbers) {
  const auto parse = [](std::string_view text) {
    uint64_t bits[2] = {};
    EXPECT_TRUE(parse_number_list(text, bits)) << text;
    return std::pair(bits[0], bits[1]);
  };
  EXPECT_EQ(parse("0\n"), std::pair(uint64_t{1}, uint64_t{0}));
  EXPECT_EQ(parse("0-3,8\n"), std::pair(uint64_t{0x10f}, uint64_t{0}));
  EXPECT_EQ(parse("63-64"), std::pair(uint64_t{1} << 63, uint64_t{1}));
  EXPECT_EQ(parse("127-99999999999999999999"), std::pair(uint64_t{0}, uint64_t{1} << 63));
  EXPECT_EQ(parse("\n"), std::pair(uint64_t{0}, uint64_t{0}));
  uint64_t bits[1] = {};
  for (const char* text : {"x", "-1", "1-", "1,x", "1 2"})
    EXPECT_FALSE(parse_number_list(text, bits)) << text;
}

TEST(Nodes, ThereIsOneWithThisThread) {
  const Nodes nodes = memory_nodes();
  ASSERT_GE(nodes.count, 1u);
  ASSERT_LE(nodes.count, kMaxNodes);
  for (uint32_t i = 1; i < nodes.count; ++i) EXPECT_LT(nodes.ids[i - 1], nodes.ids[i]);
  EXPECT_LT(this_node(), kMaxNodes);
}

// Systems may refuse this, and then nothing has changed.
TEST(Nodes, MemoryAndThreadsGoThere) {
  const uint32_t node = memory_nodes().ids[0];
  constexpr uint64_t kBytes = 1 << 20;
  char* const memory = *map_anonymous(kBytes, "a test");
  static_cast<void>(prefer_node(memory, kBytes, node));
  memory[kBytes - 1] = 1;
  EXPECT_EQ(memory[0], 0);
  EXPECT_FALSE(prefer_node(memory, kBytes, kMaxNodes));
  unmap(memory, kBytes);
  const uint32_t cpus_before = cpu_count();
  std::thread([&] {
    if (stay_on_node(node)) {
      EXPECT_EQ(this_node(), node);
    }
    EXPECT_FALSE(stay_on_node(kMaxNodes));
    EXPECT_LE(cpu_count(), cpus_before);
  }).join();
  EXPECT_EQ(cpu_count(), cpus_before);
}

}  // namespace
}  // namespace sys
