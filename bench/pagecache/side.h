// What the sides of `spillway bench pagecache` share: ours, and what it is compared with. pagecache_load.cc has their words.
//
//   Side      one way to read and write blocks of a file or device
//   Turn      who asks a side for blocks, and for how long
//   Request   a block to be read, or written
//   Tree      the data, if a program searches in it (tree.h)
//
// Invariants
//  1 a block has 128 bytes, a page 32 blocks. A block begins with its number; all else of it is random: no device can compress it
//  2 each block that is read is copied to the caller and its number looked at; another one ends the program
//  3 of a turn that writes 70 % of the requests read; of a tree's lookups 5 % put another value in the place of the one that is there
//  4 a turn by a queue is one thread's, which only reads
//  5 a tree's values begin and end with a number that their key makes, and so do those that others are replaced by
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../random.h"
#include "../words.h"
#include "base/single_writer.h"
#include "storage/opening/open.h"
#include "tree.h"

namespace load {

inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint64_t kBlockBytes = 128;
inline constexpr uint64_t kBlocksOfPage = kPageBytes / kBlockBytes;
inline constexpr uint64_t kReadPercent = 70, kLookupPercent = 95;

struct Plan {
  std::string side;
  std::string place;          // of `cache` and `direct` a device string, else a path
  uint64_t bytes = 0;         // of the data, whole pages
  uint64_t memory_bytes = 0;  // of the side's own cache or buffers
  double theta = 0;           // 0: all pages alike; else Zipf's law with this exponent, below 1
  uint32_t nodes = 0;         // parts of `cache`, with a server each; 0: no servers, and what the machine has
  uint32_t value_bytes = 0;   // of a tree that the data is; 0: it is none

  uint64_t pages() const { return bytes / kPageBytes; }
};

// Which page is next. Zipf's law takes longer than a hit: what it says is drawn before the clock runs, and each thread begins somewhere.
class Pages {
 public:
  Pages(uint64_t count, double theta) : count_(count) {
    if (theta == 0) return;
    const Choice choice(count, theta);
    Random random(count);
    drawn_.resize(kDrawn);
    for (uint32_t& page : drawn_) page = static_cast<uint32_t>(choice.next(random));
  }
  uint64_t count() const { return count_; }
  // `at` is the caller's place in what was drawn.
  uint64_t next(Random& random, uint64_t& at) const {
    return drawn_.empty() ? random.below(count_) : drawn_[at++ % kDrawn];
  }

 private:
  static constexpr uint64_t kDrawn = 1 << 22;

  const uint64_t count_;
  std::vector<uint32_t> drawn_;
};

// What writes write: `kMixed` whole pages, `kUpdate` one block. `kTouch` reads a block of each page.
enum class Kind { kTouch, kRead, kMixed, kUpdate };

struct Turn {
  Kind kind;
  bool by_tasks = false;         // of one thread
  bool by_queue = false;         // of requests, of one thread; else by threads
  uint64_t depth = 1;            // so many of them
  uint64_t most = ~uint64_t{0};  // requests of each thread
  const Pages& pages;            // or keys of the tree
  const Tree* tree = nullptr;
  uint64_t seed;  // and those after it, one for each thread or task
  struct alignas(64) Count {
    std::atomic<uint64_t> value{0};
  };
  std::vector<Count> done = std::vector<Count>(by_tasks || by_queue ? 1 : depth);  // requests, by each thread
  std::atomic<bool> has_ended{false};
  mutable std::atomic<uint64_t> touched{0};

  uint64_t thread_count() const { return done.size(); }
  bool goes_on(const Count& own) const {
    return !has_ended.load(std::memory_order_relaxed) && own.value.load(std::memory_order_relaxed) < most;
  }
};

struct Request {
  bool reads;
  uint64_t page;
  uint64_t block;  // of all blocks

  uint64_t in_page_bytes() const { return block % kBlocksOfPage * kBlockBytes; }
};

// Those of one thread or task.
class Requests {
 public:
  Requests(const Turn& turn, uint64_t seed) : turn_(turn), random_(seed), at_(random_.next()) {}
  Request next() {
    const uint64_t page = turn_.kind == Kind::kTouch ? next_touched() : turn_.pages.next(random_, at_);
    const bool reads = turn_.kind <= Kind::kRead || random_.below(100) < kReadPercent;
    return {.reads = reads, .page = page, .block = page * kBlocksOfPage + random_.below(kBlocksOfPage)};
  }

 private:
  // Those who come when all have been touched begin again.
  uint64_t next_touched() {
    return turn_.touched.fetch_add(1, std::memory_order_relaxed) % turn_.pages.count();
  }

  const Turn& turn_;
  Random random_;
  uint64_t at_;
};

inline void set_number(std::byte* block, uint64_t number) { std::memcpy(block, &number, sizeof number); }
inline void set_numbers(std::byte* page, uint64_t number) {
  for (uint64_t i = 0; i < kBlocksOfPage; ++i) set_number(page + i * kBlockBytes, number * kBlocksOfPage + i);
}
inline void fill(std::span<std::byte> bytes, uint64_t seed) {
  Random random(seed);
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) set_number(bytes.data() + i, random.next());
}
// Where a block comes to; all of it is taken to be used.
inline void expect(const std::byte* block, uint64_t number) {
  uint64_t found;
  std::memcpy(&found, block, sizeof found);
  asm volatile("" ::"r"(block) : "memory");
  if (found != number)
    fail(1, "block " + std::to_string(number) + " has the bytes of block " + std::to_string(found));
}

static_assert(Tree::kNodeBytes == kPageBytes);
inline void set_value(std::span<std::byte> value, uint64_t key) {
  set_number(value.data(), mix(key));
  set_number(value.data() + value.size() - sizeof(uint64_t), mix(key));
}
// What a search for the key has found.
inline void expect_value(uint64_t key, bool is_found, std::span<const std::byte> value) {
  if (!is_found) fail(1, "key " + std::to_string(key) + " is not in the tree");
  expect(value.data(), mix(key));
  expect(value.data() + value.size() - sizeof(uint64_t), mix(key));
}

// Pages that a device has read and written for the process.
struct DevicePages {
  uint64_t reads = 0, writes = 0;
};

// Requests that were sent to servers, and the messages there and back.
struct Messages {
  uint64_t requests = 0, messages = 0;
};

class Side {
 public:
  virtual ~Side() = default;
  // As thread `index` of the turn, by all tasks or alone: asks until the turn ends.
  virtual void work(Turn& turn, uint64_t index) = 0;
  virtual DevicePages device_pages() const = 0;
  virtual Messages messages() const { return {}; }
};

// Client: as a tree's Nodes, and write(offset, bytes).
template <class Client>
void look_up(Turn& turn, uint64_t index, Client& client, uint64_t task) {
  const Tree& tree = *turn.tree;
  Random random(turn.seed + index + task);
  uint64_t at = random.next();
  Turn::Count& done = turn.done[index];
  std::vector<std::byte> fresh(tree.value_bytes()), copy(tree.value_bytes());
  fill(fresh, at);
  while (turn.goes_on(done)) {
    const uint64_t key = Tree::key_of(turn.pages.next(random, at));
    const auto found = tree.find(client, key, [&](std::span<const std::byte> value) {
      std::memcpy(copy.data(), value.data(), value.size());
    });
    expect_value(key, found.has_value(), copy);
    if (turn.kind == Kind::kUpdate && random.below(100) >= kLookupPercent) {
      set_value(fresh, key);
      client.write(*found, std::span<const std::byte>(fresh));
    }
    base::increase(done.value, uint64_t{1});
  }
}

// Client: read(offset, block), and write(offset, bytes) if it kWrites; of a side that has trees the same as look_up() wants.
template <class Client>
void ask(Turn& turn, uint64_t index, Client& client, uint64_t task = 0) {
  if constexpr (requires { client.with_node(0, [](const std::byte*) {}); })
    if (turn.tree != nullptr) return look_up(turn, index, client, task);
  const uint64_t seed = turn.seed + index + task;
  Requests requests(turn, seed);
  Turn::Count& done = turn.done[index];
  alignas(64) std::byte block[kBlockBytes];
  alignas(64) std::byte page[kPageBytes];
  fill(page, seed);
  while (turn.goes_on(done)) {
    const Request request = requests.next();
    if (request.reads) {
      client.read(request.block * kBlockBytes, std::span(block));
      expect(block, request.block);
    } else if constexpr (Client::kWrites) {
      if (turn.kind == Kind::kUpdate) {
        set_number(page, request.block);
        client.write(request.block * kBlockBytes, std::span<const std::byte>(page, kBlockBytes));
      } else {
        set_numbers(page, request.page);
        client.write(request.page * kPageBytes, std::span<const std::byte>(page));
      }
    }
    base::increase(done.value, uint64_t{1});
  }
}

// For sides with storage queues: the device, and the pages that all queues have read and written.
storage::Device& open_device(const Plan& plan);
DevicePages counted_pages();
// Zeroed memory as the cache has it: of large pages if there are any.
std::span<std::byte> memory_of(uint64_t bytes);

// Ours.
std::unique_ptr<Side> make_cache(const Plan& plan);
// The same storage queues, into a ring of buffers.
std::unique_ptr<Side> make_direct(const Plan& plan);
// The kernel's page cache, `pread_random` with POSIX_FADV_RANDOM; and the same mapped with MADV_RANDOM.
std::unique_ptr<Side> make_pread(const Plan& plan);
std::unique_ptr<Side> make_mapped(const Plan& plan);
// A map, a list in the order of use, and one lock.
std::unique_ptr<Side> make_locked(const Plan& plan);
// All of the data in memory.
std::unique_ptr<Side> make_array(const Plan& plan);

}  // namespace load
