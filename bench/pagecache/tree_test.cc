#include "tree.h"

#include <gtest/gtest.h>

#include <map>

namespace {

using load::Tree;
using Value = std::vector<std::byte>;

// All nodes in memory, and what the tree should hold.
struct Stored {
  explicit Stored(const Tree& tree) : tree(tree), nodes(tree.page_count() * Tree::kNodeBytes) {
    for (uint64_t page = 0; page < tree.page_count(); ++page)
      tree.make_node(page, nodes.data() + page * Tree::kNodeBytes,
                     [&](uint64_t key, std::span<std::byte> value) {
                       expected.emplace(key, new_value());
                       std::ranges::copy(expected[key], value.begin());
                     });
  }
  Value new_value() {
    Value value(tree.value_bytes());
    for (std::byte& byte : value) byte = static_cast<std::byte>(random.next());
    return value;
  }

  template <class Visit>
  void with_node(uint64_t page, const Visit& visit) {
    ++visited;
    visit(nodes.data() + page * Tree::kNodeBytes);
  }
  // Nothing: there is no such key.
  std::optional<Value> get(uint64_t key) {
    Value value;
    if (!tree.find(*this, key,
                   [&](std::span<const std::byte> found) { value.assign(found.begin(), found.end()); }))
      return {};
    return value;
  }

  const Tree& tree;
  std::vector<std::byte> nodes;
  std::map<uint64_t, Value> expected;
  load::Random random{1};
  uint64_t visited = 0;
};

TEST(TreeTest, ItHoldsWhatAMapDoes) {
  for (const uint32_t value_bytes : {8u, 800u, 4080u})
    for (const uint64_t pages : {1, 2, 3, 4, 255, 256, 257, 258, 600}) {
      const Tree tree(pages, value_bytes);
      Stored stored(tree);
      ASSERT_EQ(stored.expected.size(), tree.key_count());
      for (const auto& [key, value] : stored.expected) {
        ASSERT_EQ(stored.get(key), value);
        for (const uint64_t other : {key - 1, key + 1})
          ASSERT_EQ(stored.get(other).has_value(), stored.expected.contains(other));
      }
      for (const uint64_t absent : {uint64_t{0}, ~uint64_t{0}})
        ASSERT_EQ(stored.get(absent).has_value(), stored.expected.contains(absent));
    }
}

TEST(TreeTest, ValuesChangeWhereTheyAre) {
  const Tree tree(300, 800);
  Stored stored(tree);
  for (int i = 0; i < 5'000; ++i) {
    const uint64_t key = Tree::key_of(stored.random.below(tree.key_count()));
    const auto found = tree.find(stored, key, [](std::span<const std::byte>) {});
    ASSERT_TRUE(found);
    stored.expected[key] = stored.new_value();
    std::ranges::copy(stored.expected[key], stored.nodes.begin() + static_cast<ptrdiff_t>(*found));
  }
  for (const auto& [key, value] : stored.expected) ASSERT_EQ(stored.get(key), value);
}

TEST(TreeTest, ItTakesAllPagesThatItCan) {
  for (const uint64_t pages : {1, 100, 257, 65'537, 65'538, 262'144}) {
    const Tree tree(pages, 8);
    EXPECT_LE(tree.page_count(), pages);
    // One leaf more may take a node of each level above it.
    EXPECT_GE(tree.page_count() + tree.height(), pages);
  }
  EXPECT_EQ(Tree(262'144, 8).height(), 4u);
  EXPECT_NEAR(static_cast<double>(Tree(39'372, 8).key_count()), 10e6, 1e3);
  EXPECT_EQ(Tree(1, 800).key_count(), 5u);
}

TEST(TreeTest, ASearchLooksAtOneNodeOfEachLevel) {
  const Tree tree(600, 8);
  Stored stored(tree);
  EXPECT_EQ(tree.height(), 3u);
  stored.get(Tree::key_of(tree.key_count() / 2));
  EXPECT_EQ(stored.visited, tree.height());
}

TEST(TreeDeathTest, AnotherPagesBytesEndIt) {
  const Tree tree(300, 8);
  Stored stored(tree);
  std::fill_n(stored.nodes.begin() + Tree::kNodeBytes, Tree::kNodeBytes, std::byte{0xff});
  EXPECT_EXIT(stored.get(Tree::key_of(255)), testing::ExitedWithCode(1), "page 1 is no node of level 0");
}

}  // namespace
