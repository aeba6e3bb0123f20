// A B+-tree in a file: what a program that searches by itself has on the page cache. It is built as a whole; then values change where they
// are, and keys stay.
//
//   a node, 4 KiB:  | level: 4 bytes | count: 4 | keys: 8 each, ascending | values, or of an inner node pages of children: 8 each |
//
// Keys, and then what they lead to, lie from fixed places on, however many there are. An inner node's key is the least one of the child.
//
// Invariants
//  1 leaves are the file's first pages, of level 0; each level follows the one below it, and the root is the last node
//  2 all nodes are full, but for the last ones of inner levels, which have at least one child
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../random.h"
#include "../words.h"

namespace load {

class Tree {
 public:
  static constexpr uint64_t kNodeBytes = 4096;

  // The largest that so many pages hold. REQUIRES: values of whole words, no more than fit in a node.
  Tree(uint64_t pages, uint32_t value_bytes)
      : value_bytes_(value_bytes), values_each_(room_for(value_bytes)) {
    uint64_t nodes = pages;
    while (node_count(nodes) > pages) --nodes;
    for (uint64_t page = 0, keys = values_each_;; keys *= kFanOut) {
      levels_.push_back({.page = page, .nodes = nodes, .keys_each = keys});
      page += nodes;
      if (nodes == 1) return;
      nodes = parents(nodes);
    }
  }

  uint32_t value_bytes() const { return value_bytes_; }
  uint64_t key_count() const { return levels_[0].nodes * values_each_; }
  uint64_t page_count() const { return root() + 1; }
  uint64_t height() const { return levels_.size(); }
  // That of rank `index`: not to be reckoned from its neighbours.
  static uint64_t key_of(uint64_t index) { return index << 24 | mix(index) >> 40; }

  // The node of a page, but for the values of a leaf: value(key, bytes) makes each. REQUIRES: page < page_count().
  template <class Value>
  void make_node(uint64_t page, std::byte* node, const Value& value) const {
    uint32_t level = 0;
    while (page >= levels_[level].page + levels_[level].nodes) ++level;
    const uint64_t first = page - levels_[level].page;
    if (level == 0) {
      set_head(node, {.level = 0, .count = values_each_});
      for (uint32_t i = 0; i < values_each_; ++i) {
        const uint64_t key = key_of(first * values_each_ + i);
        set_word(node, key_at(i), key);
        value(key, std::span(node + value_at(i), value_bytes_));
      }
      return;
    }
    const Level& below = levels_[level - 1];
    const uint64_t begin = first * kFanOut, count = std::min<uint64_t>(kFanOut, below.nodes - begin);
    set_head(node, {.level = level, .count = static_cast<uint32_t>(count)});
    for (uint32_t i = 0; i < count; ++i) {
      set_word(node, key_at(i), key_of((begin + i) * below.keys_each));
      set_word(node, child_at(i), below.page + begin + i);
    }
  }

  // A search for a key, which looks at the node of a page, and then at that of the next one.
  struct Search {
    uint64_t key;
    uint64_t page;
    uint32_t level;
    std::optional<uint32_t>
        value_at;  // in the leaf, once it has been looked at. Nothing: there is no such key
  };
  Search begin(uint64_t key) const {
    return {.key = key, .page = root(), .level = static_cast<uint32_t>(height()) - 1, .value_at = {}};
  }
  // Looks at the page's node. False: it is a leaf, and the search has ended.
  bool step(Search& search, const std::byte* node) const {
    check(node, search);
    const uint32_t after = rank_of(node, search.key);
    if (search.level == 0) {
      if (after > 0 && word(node, key_at(after - 1)) == search.key) search.value_at = value_at(after - 1);
      return false;
    }
    search.page = word(node, child_at(after == 0 ? 0 : after - 1));
    --search.level;
    return true;
  }

  // Calls use(value) for the key's, and returns where in the file it is; nothing if there is no such key.
  // Nodes: with_node(page, visit) calls visit(node), of 4 KiB.
  template <class Nodes, class Use>
  std::optional<uint64_t> find(Nodes& nodes, uint64_t key, const Use& use) const {
    Search search = begin(key);
    bool goes_on = false;
    do {
      nodes.with_node(search.page, [&](const std::byte* node) {
        goes_on = step(search, node);
        if (search.value_at) use(std::span(node + *search.value_at, value_bytes_));
      });
    } while (goes_on);
    if (!search.value_at) return {};
    return search.page * kNodeBytes + *search.value_at;
  }

 private:
  struct Head {
    uint32_t level;
    uint32_t count;
  };
  struct Level {
    uint64_t page;  // of the first node
    uint64_t nodes;
    uint64_t keys_each;  // below a node that is full
  };

  static constexpr uint32_t room_for(uint32_t bytes) {
    return static_cast<uint32_t>((kNodeBytes - sizeof(Head)) / (8 + bytes));
  }
  static constexpr uint32_t kFanOut = static_cast<uint32_t>((kNodeBytes - sizeof(Head)) / (8 + 8));

  static uint64_t parents(uint64_t nodes) { return (nodes + kFanOut - 1) / kFanOut; }
  static uint64_t node_count(uint64_t leaves) {
    uint64_t all = leaves;
    for (uint64_t nodes = leaves; nodes > 1; all += nodes) nodes = parents(nodes);
    return all;
  }

  uint64_t root() const { return levels_.back().page; }
  static uint32_t key_at(uint32_t i) { return static_cast<uint32_t>(sizeof(Head)) + 8 * i; }
  static uint32_t child_at(uint32_t i) { return key_at(kFanOut + i); }
  uint32_t value_at(uint32_t i) const { return key_at(values_each_) + value_bytes_ * i; }

  static uint64_t word(const std::byte* node, size_t at) {
    uint64_t found;
    std::memcpy(&found, node + at, sizeof found);
    return found;
  }
  static void set_word(std::byte* node, size_t at, uint64_t word) {
    std::memcpy(node + at, &word, sizeof word);
  }
  static Head head(const std::byte* node) {
    Head found;
    std::memcpy(&found, node, sizeof found);
    return found;
  }
  static void set_head(std::byte* node, Head head) { std::memcpy(node, &head, sizeof head); }

  // How many of its keys are not above this one.
  static uint32_t rank_of(const std::byte* node, uint64_t key) {
    uint32_t low = 0, high = head(node).count;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (word(node, key_at(middle)) <= key)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  void check(const std::byte* node, const Search& search) const {
    const Head found = head(node);
    const uint32_t most = search.level == 0 ? values_each_ : kFanOut;
    if (found.level != search.level || found.count == 0 || found.count > most)
      fail(1, "page " + std::to_string(search.page) + " is no node of level " + std::to_string(search.level));
  }

  const uint32_t value_bytes_;
  const uint32_t values_each_;
  std::vector<Level> levels_;  // the leaves first
};

}  // namespace load
