// The C++ library's functions written anew, against the library's own on the same trees, lists and bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <random>
#include <string>
#include <vector>

using TreeNode = std::_Rb_tree_node_base;
using ListNode = std::__detail::_List_node_base;

extern "C" {
TreeNode* __spill__ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base(TreeNode*);
const TreeNode* __spill__ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base(const TreeNode*);
TreeNode* __spill__ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base(TreeNode*);
const TreeNode* __spill__ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base(const TreeNode*);
void __spill__ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_(bool, TreeNode*, TreeNode*,
                                                                               TreeNode&);
TreeNode* __spill__ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_(TreeNode*, TreeNode&);
void __spill__ZNSt8__detail15_List_node_base7_M_hookEPS0_(ListNode*, ListNode*);
void __spill__ZNSt8__detail15_List_node_base9_M_unhookEv(ListNode*);
void __spill__ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_(ListNode*, ListNode*, ListNode*);
void __spill__ZNSt8__detail15_List_node_base10_M_reverseEv(ListNode*);
void __spill__ZNSt8__detail15_List_node_base4swapERS0_S1_(ListNode&, ListNode&);
size_t __spill__ZSt11_Hash_bytesPKvmm(const void*, size_t, size_t);
}

namespace {

struct Keyed : TreeNode {
  int key;
};

int key_of(const TreeNode* node) { return static_cast<const Keyed*>(node)->key; }

// A tree of distinct keys. `ours_of_ten` of ten calls go to the functions under test, the others to the library's.
class Tree {
 public:
  Tree(int ours_of_ten, unsigned seed) : ours_of_ten_(ours_of_ten), random_(seed) {}

  void insert(int key) {
    TreeNode* parent = &header_.parent_;
    bool left = true;
    for (TreeNode* node = parent->_M_parent; node != nullptr; node = left ? node->_M_left : node->_M_right) {
      parent = node;
      left = key < key_of(node);
    }
    Keyed& made = nodes_[key];
    made.key = key;
    if (ours())
      __spill__ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_(left, &made, parent,
                                                                                header_.parent_);
    else
      std::_Rb_tree_insert_and_rebalance(left, &made, parent, header_.parent_);
  }

  void erase(int key) {
    TreeNode* node = &nodes_.at(key);
    EXPECT_EQ(
        ours() ? __spill__ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_(node, header_.parent_)
               : std::_Rb_tree_rebalance_for_erase(node, header_.parent_),
        node);
    nodes_.erase(key);
  }

  bool has(int key) const { return nodes_.contains(key); }
  size_t size() const { return nodes_.size(); }

  // All that tree.cc promises, and that both directions of both kinds of steps visit all keys in order.
  void verify() const {
    const TreeNode* header = &header_.parent_;
    ASSERT_EQ(header->_M_color, std::_S_red);
    if (nodes_.empty()) {
      ASSERT_EQ(header->_M_parent, nullptr);
      ASSERT_EQ(header->_M_left, header);
      ASSERT_EQ(header->_M_right, header);
      return;
    }
    ASSERT_EQ(header->_M_parent->_M_parent, header);
    ASSERT_EQ(header->_M_parent->_M_color, std::_S_black);
    ASSERT_EQ(key_of(header->_M_left), nodes_.begin()->first);
    ASSERT_EQ(key_of(header->_M_right), nodes_.rbegin()->first);
    black_height(header->_M_parent);
    auto* node = const_cast<TreeNode*>(header->_M_left);
    for (const auto& [key, unused] : nodes_) {
      ASSERT_EQ(key_of(node), key);
      ASSERT_EQ(__spill__ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base(node),
                std::_Rb_tree_increment(node));
      node = __spill__ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base(node);
    }
    ASSERT_EQ(node, header);
    for (auto at = nodes_.rbegin(); at != nodes_.rend(); ++at) {
      ASSERT_EQ(__spill__ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base(node),
                std::_Rb_tree_decrement(node));
      node = __spill__ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base(node);
      ASSERT_EQ(key_of(node), at->first);
    }
  }

 private:
  bool ours() { return static_cast<int>(random_() % 10) < ours_of_ten_; }

  // Of the ways down from `node`, which are all equal.
  static int black_height(const TreeNode* node) {
    if (node == nullptr) return 0;
    for (const TreeNode* child : {node->_M_left, node->_M_right}) {
      if (child == nullptr) continue;
      EXPECT_EQ(child->_M_parent, node);
      EXPECT_FALSE(node->_M_color == std::_S_red && child->_M_color == std::_S_red);
    }
    const int left = black_height(node->_M_left);
    EXPECT_EQ(left, black_height(node->_M_right));
    return left + (node->_M_color == std::_S_black);
  }

  struct Header {
    Header() { parent_ = {std::_S_red, nullptr, &parent_, &parent_}; }
    TreeNode parent_;
  };
  Header header_;
  std::map<int, Keyed> nodes_;
  int ours_of_ten_;
  std::mt19937 random_;
};

class TreeTest : public testing::TestWithParam<int> {};

TEST_P(TreeTest, KeepsItsPromisesUnderRandomChanges) {
  for (const int keys : {3, 8, 40, 700}) {
    Tree tree(GetParam(), 7u + static_cast<unsigned>(keys));
    std::mt19937 random(static_cast<unsigned>(keys));
    for (int step = 0; step < 6000; ++step) {
      const int key = static_cast<int>(random() % static_cast<unsigned>(keys));
      // Grows and shrinks by turns.
      const bool wants = random() % 10 < (step / 1500 % 2 == 0 ? 8 : 2);
      if (wants && !tree.has(key)) tree.insert(key);
      if (!wants && tree.has(key)) tree.erase(key);
      if (keys <= 40 || step % 50 == 0) tree.verify();
      if (HasFailure()) FAIL() << keys << " keys, step " << step;
    }
  }
}

TEST_P(TreeTest, InOrderAndBackAndEmptyAgain) {
  for (const bool rising : {true, false})
    for (const bool first_in_first_out : {true, false}) {
      Tree tree(GetParam(), 3);
      std::vector<int> keys(500);
      for (int i = 0; i < 500; ++i) keys[static_cast<size_t>(i)] = rising ? i : -i;
      for (const int key : keys) tree.insert(key);
      tree.verify();
      if (!first_in_first_out) std::reverse(keys.begin(), keys.end());
      for (const int key : keys) {
        tree.erase(key);
        tree.verify();
        if (HasFailure()) FAIL() << key;
      }
      EXPECT_EQ(tree.size(), 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(OursOfTenCalls, TreeTest, testing::Values(10, 5));

// A ring of nodes 0 to n - 1 behind a header, and what it is expected to hold.
struct Ring {
  explicit Ring(std::vector<ListNode*> members = {}) : nodes(std::move(members)) {
    header._M_next = header._M_prev = &header;
    for (ListNode* node : nodes) __spill__ZNSt8__detail15_List_node_base7_M_hookEPS0_(node, &header);
  }
  void verify(const std::vector<ListNode*>& expected) const {
    const ListNode* node = &header;
    for (const ListNode* next : expected) {
      ASSERT_EQ(node->_M_next, next);
      ASSERT_EQ(next->_M_prev, node);
      node = next;
    }
    ASSERT_EQ(node->_M_next, &header);
    ASSERT_EQ(header._M_prev, node);
  }
  void verify() const { verify(nodes); }
  ListNode header;
  std::vector<ListNode*> nodes;
};

TEST(ListTest, HooksAndUnhooksAnywhere) {
  std::array<ListNode, 4> n;
  Ring ring({&n[0], &n[1], &n[2]});
  ring.verify();
  __spill__ZNSt8__detail15_List_node_base7_M_hookEPS0_(&n[3], &n[1]);
  ring.verify({&n[0], &n[3], &n[1], &n[2]});
  for (const int i : {1, 0, 2})
    __spill__ZNSt8__detail15_List_node_base9_M_unhookEv(&n[static_cast<size_t>(i)]);
  ring.verify({&n[3]});
  __spill__ZNSt8__detail15_List_node_base9_M_unhookEv(&n[3]);
  ring.verify({});
}

TEST(ListTest, TransfersWithinAndBetween) {
  std::array<ListNode, 6> n;
  Ring ring({&n[0], &n[1], &n[2], &n[3]});
  Ring other({&n[4], &n[5]});
  const auto transfer = __spill__ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_;
  transfer(&n[0], &n[2], &ring.header);  // within: the end to the front
  ring.verify({&n[2], &n[3], &n[0], &n[1]});
  transfer(&n[3], &n[2], &n[3]);  // before itself: nothing
  ring.verify({&n[2], &n[3], &n[0], &n[1]});
  transfer(&other.header, &n[3], &n[1]);  // the middle to another's end
  ring.verify({&n[2], &n[1]});
  other.verify({&n[4], &n[5], &n[3], &n[0]});
  transfer(&n[2], &n[4], &other.header);  // all of it
  ring.verify({&n[4], &n[5], &n[3], &n[0], &n[2], &n[1]});
  other.verify({});
}

TEST(ListTest, ReversesAnyLength) {
  std::array<ListNode, 5> n;
  for (size_t count = 0; count <= n.size(); ++count) {
    std::vector<ListNode*> nodes;
    for (size_t i = 0; i < count; ++i) nodes.push_back(&n[i]);
    Ring ring(nodes);
    __spill__ZNSt8__detail15_List_node_base10_M_reverseEv(&ring.header);
    std::reverse(nodes.begin(), nodes.end());
    ring.verify(nodes);
  }
}

TEST(ListTest, SwapsAnyLengths) {
  for (size_t first_count = 0; first_count < 4; ++first_count)
    for (size_t second_count = 0; second_count < 4; ++second_count) {
      std::array<ListNode, 8> n;
      std::vector<ListNode*> in_first, in_second;
      for (size_t i = 0; i < first_count; ++i) in_first.push_back(&n[i]);
      for (size_t i = 0; i < second_count; ++i) in_second.push_back(&n[4 + i]);
      Ring first(in_first), second(in_second);
      __spill__ZNSt8__detail15_List_node_base4swapERS0_S1_(first.header, second.header);
      first.verify(in_second);
      second.verify(in_first);
      __spill__ZNSt8__detail15_List_node_base4swapERS0_S1_(first.header, first.header);
      first.verify(in_second);
    }
}

TEST(HashTest, IsTheLibrarys) {
  std::mt19937_64 random(5);
  std::string bytes(300, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  for (size_t size = 0; size < 200; ++size)
    for (size_t offset = 0; offset < 9; ++offset)
      for (const size_t seed : {size_t{0}, size_t{0xc70f6907}, static_cast<size_t>(random())})
        ASSERT_EQ(__spill__ZSt11_Hash_bytesPKvmm(bytes.data() + offset, size, seed),
                  std::_Hash_bytes(bytes.data() + offset, size, seed))
            << size;
}

}  // namespace
