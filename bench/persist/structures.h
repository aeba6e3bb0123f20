// Data structures that keep their content, of the kinds that the paper measures, small: each is one thread's, in memory of its own, and flushes and fences as programs of its kind do.
// (Ribbon, section 3)
//
//   hash    a hash table of two levels with buckets of a line, updates by writing a free slot and then the tokens: 2 lines, 2 fences (Level-Hashing)
//   tree    a B+-tree with sorted leaves of 512 bytes: entries are shifted, each line flushed when the shift has left it; 1 fence, more when a node splits (Fast&Fair)
//   log     a record is written behind the others, and then the end: of 128 to 1024 bytes, 2 fences (PMEMKV's and databases' logs)
//   swap    two elements of an array change places, with an undo log: 4 lines, 3 fences (Canneal)
//   store   keys and values in blocks of their own: value, key and entry are written and flushed, then the entry is linked: 2 fences (Redis). `coalesced`: the three lie in one
//           block, as persist::lay_out says
//
// Times of what is computed between are guesses of what an operation of the kind takes beside its flushes: requests, searches in lines that are in no cache.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../random.h"
#include "persist/layout.h"
#include "pm.h"

namespace load {

inline constexpr size_t kLine = 64;
inline constexpr size_t kStructureBytes = 4 << 20;

class Structure {
 public:
  virtual ~Structure() = default;
  // One operation.
  virtual void step(Pm& pm, Random& random) = 0;
  // Is the content what the operations so far have made it?
  virtual bool is_right() const = 0;
};

class Hash final : public Structure {
 public:
  explicit Hash(char* memory) : buckets_(reinterpret_cast<Bucket*>(memory)) {}

  void step(Pm& pm, Random& random) override {
    pm.compute(kNs);
    const uint64_t key = random.below(kKeys) + 1;
    Bucket* bucket = &buckets_[mix(key) % kTop];
    int slot = find(*bucket, key);
    for (const uint64_t other : {mix(key * 3) % kTop, kTop + mix(key) % kTop / 2}) {
      if (slot >= 0) break;
      slot = find(buckets_[other], key);
      if (slot >= 0) bucket = &buckets_[other];
    }
    const int free = find(*bucket, 0);
    ++operations_;
    if (free < 0) {
      // In place; of a full bucket that has not got the key the first entry goes.
      const int place = std::max(slot, 0);
      write(pm, *bucket, place, key);
      return;
    }
    write(pm, *bucket, free, key);
    if (slot < 0) return;
    pm.store(bucket->slots[slot].key, 0);
    pm.flush(&bucket->slots[slot], sizeof(Slot));
    pm.fence();
  }
  bool is_right() const override {
    for (uint64_t i = 0; i < kTop + kTop / 2; ++i)
      for (const Slot& slot : buckets_[i].slots)
        if (slot.key != 0 && slot.value >> 32 != slot.key) return false;
    return true;
  }

 private:
  static constexpr double kNs = 450;
  static constexpr uint64_t kKeys = 50'000, kTop = 32'768;
  struct Slot {
    uint64_t key, value;
  };
  struct alignas(kLine) Bucket {
    std::array<Slot, 4> slots;
  };

  static int find(const Bucket& bucket, uint64_t key) {
    for (int i = 0; i < 4; ++i)
      if (bucket.slots[i].key == key) return i;
    return -1;
  }
  void write(Pm& pm, Bucket& bucket, int place, uint64_t key) {
    Slot& slot = bucket.slots[place];
    pm.store(slot.value, key << 32 | (operations_ & 0xffffffff));
    pm.flush(&slot.value, sizeof slot.value);
    pm.fence();
    pm.store(slot.key, key);
    pm.flush(&slot.key, sizeof slot.key);
    pm.fence();
  }

  Bucket* const buckets_;
  uint64_t operations_ = 0;
};

class Tree final : public Structure {
 public:
  explicit Tree(char* memory) : nodes_(reinterpret_cast<Node*>(memory)) {}

  void step(Pm& pm, Random& random) override {
    pm.compute(kNs);
    if (node_count_ + 2 > kNodes) {
      directory_.assign(1, 0);
      nodes_[0].count = 0;
      node_count_ = 1;
      size_ = 0;
    }
    const uint64_t key = random.next() | 1;
    // The inner nodes are in memory that forgets, and made anew from the leaves (as FPTree's): only leaves are flushed.
    auto at = std::ranges::upper_bound(directory_, key, {}, [&](uint32_t node) {
      return node == directory_[0] ? uint64_t{0} : nodes_[node].entries[0].key;
    });
    Node* leaf = &nodes_[*--at];
    if (leaf->count == kEntries) {
      const uint32_t other = split(pm, *leaf);
      at = directory_.insert(at + 1, other);
      if (key < nodes_[other].entries[0].key) --at;
      leaf = &nodes_[*at];
    }
    insert(pm, *leaf, key);
    ++size_;
  }
  bool is_right() const override {
    uint64_t last = 0, count = 0;
    for (const uint32_t node : directory_)
      for (uint64_t i = 0; i < nodes_[node].count; ++i, ++count) {
        if (nodes_[node].entries[i].key < last) return false;
        last = nodes_[node].entries[i].key;
      }
    return count == size_;
  }

 private:
  static constexpr double kNs = 900;
  static constexpr uint64_t kEntries = 31;
  struct Entry {
    uint64_t key, value;
  };
  struct alignas(kLine) Node {
    uint64_t count, next;
    std::array<Entry, kEntries> entries;
  };
  static_assert(sizeof(Node) == 512);
  static constexpr uint32_t kNodes = kStructureBytes / sizeof(Node);

  // From the end on, so that a search sees each entry once or twice, never not at all; a line that is done is flushed.
  void insert(Pm& pm, Node& leaf, uint64_t key) {
    uint64_t i = leaf.count;
    for (; i > 0 && leaf.entries[i - 1].key > key; --i) {
      pm.move(&leaf.entries[i], &leaf.entries[i - 1], sizeof(Entry));
      pm.compute(kShiftNs);
      if (reinterpret_cast<uintptr_t>(&leaf.entries[i]) % kLine == 0)
        pm.flush(&leaf.entries[i], sizeof(Entry));
    }
    const Entry entry = {.key = key, .value = ~key};
    pm.store(&leaf.entries[i], &entry, sizeof entry);
    pm.flush(&leaf.entries[i], sizeof(Entry));
    pm.store(leaf.count, leaf.count + 1);
    pm.flush(&leaf.count, sizeof leaf.count);
    pm.fence();
  }
  uint32_t split(Pm& pm, Node& leaf) {
    const uint32_t number = node_count_++;
    Node& other = nodes_[number];
    const uint64_t half = kEntries / 2;
    pm.store(&other.entries[0], &leaf.entries[half], (kEntries - half) * sizeof(Entry));
    const uint64_t head[2] = {kEntries - half, leaf.next};
    pm.store(&other, head, sizeof head);
    pm.compute(kShiftNs * kEntries);
    pm.flush(&other, sizeof(Node));
    pm.fence();
    const uint64_t own[2] = {half, number};
    pm.store(&leaf, own, sizeof own);
    pm.flush(&leaf, sizeof own);
    pm.fence();
    return number;
  }
  static constexpr double kShiftNs = 2;

  Node* const nodes_;
  uint32_t node_count_ = kNodes;
  std::vector<uint32_t> directory_;  // leaves in the order of their keys
  uint64_t size_ = 0;
};

class Log final : public Structure {
 public:
  explicit Log(char* memory) : memory_(memory) {}

  void step(Pm& pm, Random& random) override {
    pm.compute(kNs);
    const uint64_t words = 16 + random.below(113);
    const uint64_t bytes = 8 * (words + 2);
    if (end_ + bytes > kStructureBytes) end_ = kBegin;
    char* const record = memory_ + end_;
    std::array<uint64_t, 130> content;
    content[0] = words;
    for (uint64_t i = 0; i < words; ++i) content[1 + i] = end_ + i;
    content[words + 1] = ~end_;
    // As it is written, piece by piece.
    for (uint64_t done = 0; done < bytes; done += kPieceBytes) {
      const uint64_t piece = std::min(kPieceBytes, bytes - done);
      pm.store(record + done, reinterpret_cast<const char*>(content.data()) + done, piece);
      pm.compute(kPieceNs);
      pm.flush(record + done, piece);
    }
    pm.fence();
    last_ = end_;
    end_ += bytes;
    pm.store(*reinterpret_cast<uint64_t*>(memory_), end_);
    pm.flush(memory_, sizeof end_);
    pm.fence();
  }
  bool is_right() const override {
    const auto* const record = reinterpret_cast<const uint64_t*>(memory_ + last_);
    return last_ == 0 || record[1 + record[0]] == ~last_;
  }

 private:
  static constexpr double kNs = 700, kPieceNs = 25;  // of 256 bytes: a checksum and a copy
  static constexpr uint64_t kPieceBytes = 256, kBegin = kLine;
  char* const memory_;
  uint64_t end_ = kBegin, last_ = 0;
};

class Swap final : public Structure {
 public:
  explicit Swap(char* memory)
      : log_(reinterpret_cast<Undo*>(memory)), elements_(reinterpret_cast<Element*>(memory + sizeof(Undo))) {
    for (uint64_t i = 0; i < kElements; ++i) elements_[i].place = i;
  }

  void step(Pm& pm, Random& random) override {
    pm.compute(kNs);
    Element &one = elements_[random.below(kElements)], &other = elements_[random.below(kElements)];
    const uint64_t places[2] = {one.place, other.place};
    const Undo undo = {.places = {places[0], places[1]}, .is_valid = 1, .rest = {}};
    pm.store(log_, &undo, sizeof undo);
    pm.flush(log_, sizeof undo);
    pm.fence();
    pm.store(one.place, places[1]);
    pm.store(other.place, places[0]);
    pm.flush(&one, sizeof one.place);
    pm.flush(&other, sizeof other.place);
    pm.fence();
    pm.store(log_->is_valid, 0);
    pm.flush(log_, sizeof log_->is_valid);
    pm.fence();
  }
  bool is_right() const override {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < kElements; ++i) sum += elements_[i].place - i;
    return sum == 0;
  }

 private:
  static constexpr double kNs = 1500;  // the cost of the nets around both
  struct alignas(kLine) Undo {
    uint64_t places[2], is_valid, rest[5];
  };
  struct alignas(kLine) Element {
    uint64_t place;
  };
  static constexpr uint64_t kElements = 32'768;
  Undo* const log_;
  Element* const elements_;
};

class Store final : public Structure {
 public:
  Store(char* memory, bool is_coalesced) : memory_(memory), is_coalesced_(is_coalesced) {}

  void step(Pm& pm, Random& random) override {
    pm.compute(kNs);
    const size_t bytes[3] = {sizeof(Entry), 16 + random.below(24), 48 + random.below(112)};
    std::array<char*, 3> parts = {};
    if (is_coalesced_) {
      std::array<size_t, 3> offsets;
      const size_t all = persist::lay_out(bytes, alignof(Entry), offsets);
      char* const block = allocate(all, kLine);
      for (size_t i = 0; i < 3; ++i) parts[i] = block + offsets[i];
    } else {
      // The value first, the key later, each with the allocator's word of 16 bytes before it.
      for (const size_t i : {2, 1, 0}) parts[i] = allocate(bytes[i] + kHeadBytes, kHeadBytes) + kHeadBytes;
    }
    const uint64_t key = random.below(kKeys) + 1;
    std::array<char, 160> content;
    content.fill(static_cast<char>(key));
    for (const size_t i : {2, 1}) {
      pm.store(parts[i], content.data(), bytes[i]);
      if (!is_coalesced_) pm.flush(parts[i], bytes[i]);
    }
    const auto offset = [&](char* part) { return static_cast<uint64_t>(part - memory_); };
    const Entry entry = {.key = offset(parts[1]), .value = offset(parts[2]), .number = key};
    pm.store(parts[0], &entry, sizeof entry);
    if (is_coalesced_) {
      char* const begin = std::min({parts[0], parts[1], parts[2]});
      pm.flush(begin, static_cast<size_t>(
                          std::max({parts[0] + bytes[0], parts[1] + bytes[1], parts[2] + bytes[2]}) - begin));
    } else {
      pm.flush(parts[0], sizeof entry);
    }
    pm.fence();
    uint64_t& head = reinterpret_cast<uint64_t*>(memory_)[key];
    pm.store(head, offset(parts[0]));
    pm.flush(&head, sizeof head);
    pm.fence();
    last_ = key;
  }
  bool is_right() const override {
    if (last_ == 0) return true;
    const auto* const entry =
        reinterpret_cast<const Entry*>(memory_ + reinterpret_cast<const uint64_t*>(memory_)[last_]);
    return entry->number == last_ && memory_[entry->value] == static_cast<char>(last_) &&
           memory_[entry->key] == static_cast<char>(last_);
  }

 private:
  static constexpr double kNs = 1200;
  static constexpr uint64_t kKeys = 10'000;
  static constexpr size_t kHeadBytes = 16;
  struct Entry {
    uint64_t key, value, number;
  };
  // Blocks are taken one behind the other, and again from the first on.
  char* allocate(size_t bytes, size_t alignment) {
    end_ = (end_ + alignment - 1) / alignment * alignment;
    if (end_ + bytes > kStructureBytes) end_ = kBegin;
    char* const block = memory_ + end_;
    end_ += (bytes + kHeadBytes - 1) / kHeadBytes * kHeadBytes;
    return block;
  }

  static constexpr size_t kBegin = (8 * (kKeys + 1) + kLine - 1) / kLine * kLine;
  char* const memory_;
  const bool is_coalesced_;
  size_t end_ = kBegin;
  uint64_t last_ = 0;
};

inline const std::vector<std::string> kStructures = {"hash", "tree", "log", "swap", "store", "coalesced"};

// In kStructureBytes of zeroed memory.
inline std::unique_ptr<Structure> make_structure(const std::string& name, char* memory) {
  if (name == "hash") return std::make_unique<Hash>(memory);
  if (name == "tree") return std::make_unique<Tree>(memory);
  if (name == "log") return std::make_unique<Log>(memory);
  if (name == "swap") return std::make_unique<Swap>(memory);
  return std::make_unique<Store>(memory, name == "coalesced");
}

}  // namespace load
