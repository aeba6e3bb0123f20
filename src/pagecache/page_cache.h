// PageCache: pages of files and devices in memory, in small sets that are independent of each other. (set-associative page cache)
//
//   PageCache* cache = *PageCache::open({.memory_bytes = 1 << 30});
//   File* file = *cache->add(device);
//   Session session;                                  // session.h: one for each thread, or for the tasks of each worker
//   session.open(*cache);
//   session.read(*file, offset, bytes);
//
// A page's hash chooses its set. A hit takes no lock, and looks at two CPU lines of the set. A miss holds the set's lock while it chooses a
// frame, not while it reads. No lock is held during I/O, and no call waits for more than one thing at a time.
//
// Sets have 7 to 16 frames: all have the same number, or some have one more, so that all of the memory is used. partition.h says how their
// number changes while calls are under way.
//
// A cache has a partition for each memory node. The hash of a page's region, 64 pages of its file, chooses the node, so that consecutive
// pages are on one node.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/error.h"
#include "pagecache/balancer.h"
#include "pagecache/file.h"
#include "pagecache/flush_queue.h"
#include "pagecache/partition.h"
#include "pagecache/set_statistics.h"
#include "sys/lock.h"
#include "sys/nodes.h"

namespace pagecache {

struct CacheOptions {
  uint64_t memory_bytes = 0;  // for frames and sets together, at most
  // The most memory to which it may be resized. 0: memory_bytes.
  uint64_t memory_bytes_max = 0;
  uint32_t page_bytes = 4096;  // a power of two, 4 KiB to 64 KiB
  cache::SetPolicy policy = cache::SetPolicy::kAlfu;
  // How long a call waits for held pages before it fails with EBUSY; the caller's own views may be what holds them.
  uint64_t wait_ns_max = 10'000'000'000;
  // The share of all pages, more than 0 and at most 1, that may be dirty before servers flush more than the pages that leave next. When
  // another eighth of all pages is dirty beyond that, a call that makes a page dirty also writes one back. Without servers any number may be
  // dirty.
  double dirty_share_max = 0.5;
  // About how long a page may be dirty before servers write it back even if nobody needs its frame. 0: for ever.
  uint64_t dirty_ns_max = 30'000'000'000;
  // How many partitions the cache has, one for each memory node, at most 64. 0: as many as the machine has nodes, or one if there is too
  // little memory for so many. Other numbers are for tests: the memory of these partitions is on any node.
  uint32_t nodes = 0;
  // Servers move frames to nodes that miss more than others in relation to their frames. A node keeps at least half an equal share of
  // memory_bytes, and gets at most two shares.
  bool balances_nodes = true;
};

class PageCache {
 public:
  // Errors: EINVAL: invalid options, such as memory for less than one set; ENOMEM.
  static base::Expected<PageCache*> open(const CacheOptions& options);
  // What was not synced is lost. REQUIRES: all sessions and servers are closed.
  void close();

  // Makes the device a file of the cache, until Session::remove(), after which the caller closes the device. Any thread. Errors: EINVAL: its
  // blocks are larger than a page, or with checksums it has less than a page; EFBIG; EMFILE: too many files.
  base::Expected<File*> add(storage::Device& device, const FileOptions& options = {});

  const CacheOptions& options() const { return options_; }
  uint64_t page_bytes() const { return uint64_t{1} << page_shift_; }
  uint32_t node_count() const { return node_count_; }
  // The node, counted from 0, whose partition contains the page's home.
  uint32_t node_of(PageKey key) const {
    const uint64_t hash = base::mix(static_cast<uint64_t>(key) >> kRegionShift);
    return static_cast<uint32_t>((hash >> 32) * node_count_ >> 32);
  }
  // Any thread. Both change while the cache is resized (Session::resize).
  uint64_t frame_count() const;
  uint64_t set_count() const;
  // For tests. REQUIRES: there is such a node.
  uint64_t frame_count_of(uint32_t node) const { return partition(node).frame_count(); }
  uint64_t dirty_count() const {
    return static_cast<uint64_t>(std::max<int64_t>(0, dirty_count_.load(std::memory_order_relaxed)));
  }
  // Any thread. Cost: a look at each set, with its lock.
  SetStatistics set_statistics();

 private:
  friend class RequestQueue;
  friend class Servers;
  friend class Session;
  static constexpr unsigned kRegionShift = 6;  // of pages

  // REQUIRES: the options have been checked.
  explicit PageCache(const CacheOptions& options);
  ~PageCache();
  base::Expected<void> open_partitions();
  base::Error of_each(const base::Error& error) const;

  // What each node gets if the cache has `memory_bytes`. Errors: EINVAL.
  base::Expected<Partition::Size> size_of_each(uint64_t memory_bytes) const;
  uint64_t memory_bytes_max() const {
    return options_.memory_bytes_max == 0 ? options_.memory_bytes : options_.memory_bytes_max;
  }
  // The memory that a node is to have, and whether it has the frames and sets for that already. For whoever resizes.
  struct Share {
    uint64_t bytes = 0;
    bool is_settled = true;
  };
  // How much of a node's share goes to another node at a time.
  uint64_t part_bytes() const;
  Balancer::Move choose_move(std::span<const uint64_t> misses) const;
  // False: another call is resizing.
  bool begin_resize() { return !is_resizing_.exchange(true, std::memory_order_acquire); }
  void end_resize() { is_resizing_.store(false, std::memory_order_release); }

  // The machine's number for a node; kNoNode: the node's memory may be on any of the machine's.
  uint32_t machine_node(uint32_t node) const {
    return is_near_ ? machine_nodes_.ids[node] : Partition::kNoNode;
  }
  // The node on whose CPU the calling thread runs; kNoNode: it is none of them, or their memory may be on any.
  uint32_t node_of_thread() const;

  Partition& partition(uint32_t node) { return node == 0 ? partition_ : *others_[node - 1]; }
  const Partition& partition(uint32_t node) const { return node == 0 ? partition_ : *others_[node - 1]; }
  // Inline for one node. The call for many nodes is out of line and preserves registers, so that hits are not slowed down.
  Partition& partition_of(PageKey key) { return node_count_ == 1 ? partition_ : partition_of_many(key); }
  [[gnu::noinline, clang::preserve_most]] Partition& partition_of_many(PageKey key) {
    return partition(node_of(key));
  }
  // Partition::for_all_sets, for all nodes.
  template <class Each, class... Between>
  void for_all_sets(const Each& each, const Between&... between) {
    for (uint32_t node = 0; node < node_count_; ++node) partition(node).for_all_sets(each, between...);
  }

  // The page's file. Any thread. REQUIRES: it is not removed meanwhile.
  File& file_of(PageKey key);
  void drop(const File& file);
  // Removes the keys of files that servers have left, or that have been removed. Any thread.
  void keep_flushed(std::vector<PageKey>& keys);

  // Should servers flush more than the pages that leave next? Should calls that write also clean a page themselves?
  bool has_many_dirty() const { return flushes_.is_served() && is_dirtier_than(options_.dirty_share_max); }
  bool has_too_many_dirty() const {
    return flushes_.is_served() && is_dirtier_than(options_.dirty_share_max + kDirtyShareMargin);
  }
  bool is_dirtier_than(double share) const {
    return static_cast<double>(dirty_count()) > share * static_cast<double>(frame_count());
  }

  static constexpr double kDirtyShareMargin = 1.0 / 8;

  const CacheOptions options_;
  const unsigned page_shift_;
  uint32_t node_count_ = 0;
  Partition
      partition_;  // the first node's; a direct member, so that hits find it at once if there is no other
  std::array<std::unique_ptr<Partition>, sys::kMaxNodes - 1> others_;
  sys::Nodes machine_nodes_;
  bool is_near_ = false;  // each node's memory is on one of the machine's nodes
  std::byte* frame_memory_ = nullptr;
  uint64_t frame_memory_bytes_ = 0;
  std::atomic<bool> is_resizing_{false};
  std::vector<Share> shares_;  // by node; their sum is what was asked for
  Balancer balancer_;
  FlushQueue flushes_;

  sys::Mutex files_lock_;
  std::vector<std::unique_ptr<File>> files_;  // by number - 1; under the lock

  // Changes after the page's mark, so it may be below 0 for a moment. Relaxed: a count, which orders nothing.
  alignas(base::kLineBytes) std::atomic<int64_t> dirty_count_{0};
};

}  // namespace pagecache
