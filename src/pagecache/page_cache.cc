#include "pagecache/page_cache.h"

#include <algorithm>
#include <bit>

#include "sys/memory.h"

namespace pagecache {
namespace {

constexpr uint32_t kMinPageBytes = 4096, kMaxPageBytes = 64 << 10;
constexpr uint64_t kMaxShares = 2;  // how many equal shares a node may have

}  // namespace

base::Expected<PageCache*> PageCache::open(const CacheOptions& options) {
  if (!std::has_single_bit(options.page_bytes) || options.page_bytes < kMinPageBytes ||
      options.page_bytes > kMaxPageBytes)
    return base::failure(EINVAL, "page cache: pages have 4096 to 65536 bytes, a power of two, not ",
                         options.page_bytes);
  if (!(options.dirty_share_max > 0 && options.dirty_share_max <= 1))
    return base::failure(EINVAL, "page cache: the share of dirty pages has to be more than 0, and 1 at most");
  if (options.nodes > sys::kMaxNodes)
    return base::failure(EINVAL, "page cache: it has ", sys::kMaxNodes, " nodes at most, not ",
                         options.nodes);
  auto* const cache = new PageCache(options);
  if (auto opened = cache->open_partitions(); !opened) {
    cache->close();
    return std::unexpected(opened.error());
  }
  return cache;
}

PageCache::PageCache(const CacheOptions& options)
    : options_(options),
      page_shift_(static_cast<unsigned>(std::countr_zero(options.page_bytes))),
      partition_(options.policy, page_shift_) {}

PageCache::~PageCache() { sys::unmap(frame_memory_, frame_memory_bytes_); }

void PageCache::close() { delete this; }

base::Expected<void> PageCache::open_partitions() {
  machine_nodes_ = options_.nodes == 0 ? sys::memory_nodes() : sys::Nodes{.count = options_.nodes};
  const uint64_t bytes = options_.memory_bytes;
  node_count_ = machine_nodes_.count;
  if (options_.nodes == 0 && bytes / node_count_ < partition_.least_bytes()) node_count_ = 1;
  const uint64_t bytes_max = memory_bytes_max();
  const uint64_t each_max = std::min(bytes_max, kMaxShares * (bytes_max / node_count_));
  const auto space_bytes = partition_.frame_space_bytes(each_max);
  if (!space_bytes) return std::unexpected(of_each(space_bytes.error()));
  const uint64_t frames_each = *space_bytes >> page_shift_;
  if (frames_each * node_count_ > ~uint32_t{0})
    return base::failure(EINVAL, "page cache: ", bytes_max, " bytes are more pages than a cache can have");
  auto memory = map_large_pages(*space_bytes * node_count_);
  if (!memory) return std::unexpected(memory.error());
  frame_memory_ = *memory;
  frame_memory_bytes_ = *space_bytes * node_count_;
  is_near_ = options_.nodes == 0 && node_count_ > 1;
  for (uint32_t node = 0; node < node_count_; ++node) {
    if (node != 0) others_[node - 1] = std::make_unique<Partition>(options_.policy, page_shift_);
    auto opened = partition(node).open(bytes / node_count_, each_max,
                                       {.memory = frame_memory_,
                                        .before = static_cast<uint32_t>(node * frames_each),
                                        .node = machine_node(node)});
    if (!opened) return std::unexpected(of_each(opened.error()));
  }
  if (auto size = size_of_each(bytes); !size) return std::unexpected(size.error());
  shares_.assign(node_count_, {.bytes = bytes / node_count_});
  return {};
}

uint32_t PageCache::node_of_thread() const {
  const uint32_t here = is_near_ ? sys::this_node() : Partition::kNoNode;
  for (uint32_t node = 0; is_near_ && node < node_count_; ++node)
    if (machine_nodes_.ids[node] == here) return node;
  return Partition::kNoNode;
}

// Turns the error of a node's share into that of the cache.
base::Error PageCache::of_each(const base::Error& error) const {
  if (node_count_ == 1) return error;
  return base::Error::of(error.number, error.message, "; each of ", node_count_, " nodes has a share");
}

base::Expected<Partition::Size> PageCache::size_of_each(uint64_t memory_bytes) const {
  if (node_count_ > 1 && memory_bytes > memory_bytes_max())
    return base::failure(EINVAL, "page cache: ", memory_bytes, " bytes of memory are more than the ",
                         memory_bytes_max(), " that it may have at most (memory_bytes_max)");
  auto size = partition_.size_for(memory_bytes / node_count_);
  if (!size) return std::unexpected(of_each(size.error()));
  return size;
}

// A sixteenth of an equal share: about one frame of each set.
uint64_t PageCache::part_bytes() const {
  uint64_t bytes = 0;
  for (const Share& share : shares_) bytes += share.bytes;
  return bytes / node_count_ / 16;
}

Balancer::Move PageCache::choose_move(std::span<const uint64_t> misses) const {
  const uint64_t part = part_bytes(), each = 16 * part;
  std::vector<Balancer::Load> loads;
  for (uint32_t node = 0; node < node_count_; ++node) {
    const uint64_t bytes = shares_[node].bytes;
    loads.push_back({.misses = misses[node],
                     .frames = partition(node).frame_count(),
                     .may_give = bytes >= part + std::max(each / 2, partition_.least_bytes()),
                     .may_take = bytes + part <= kMaxShares * each && partition_.size_for(bytes + part)});
  }
  return Balancer::choose(loads);
}

uint64_t PageCache::frame_count() const {
  uint64_t count = 0;
  for (uint32_t node = 0; node < node_count_; ++node) count += partition(node).frame_count();
  return count;
}

uint64_t PageCache::set_count() const {
  uint64_t count = 0;
  for (uint32_t node = 0; node < node_count_; ++node) count += partition(node).set_count();
  return count;
}

base::Expected<File*> PageCache::add(storage::Device& device, const FileOptions& options) {
  if (device.block_bytes() > options_.page_bytes)
    return base::failure(EINVAL, "page cache: ", device.name(), " has blocks of ", device.block_bytes(),
                         " bytes, pages have ", options_.page_bytes);
  if (device.capacity_bytes() / options_.page_bytes + 1 >= uint64_t{1} << File::kPageBits)
    return base::failure(EFBIG, "page cache: ", device.name(), " is too large");
  if (options.checksums && device.end_bytes() < options_.page_bytes)
    return base::failure(EINVAL, "page cache: ", device.name(), " has ", device.end_bytes(),
                         " bytes, less than a page with a checksum, ", options_.page_bytes);
  sys::LockGuard scope(files_lock_);
  const auto free = std::find(files_.begin(), files_.end(), nullptr);
  const auto number = static_cast<uint32_t>(free - files_.begin()) + 1;
  if (number > File::kMaxNumber) return base::failure(EMFILE, "page cache: it has too many files");
  auto file = std::make_unique<File>(device, number, page_shift_, options);
  File* const added = file.get();
  if (free == files_.end())
    files_.push_back(std::move(file));
  else
    *free = std::move(file);
  return added;
}

File& PageCache::file_of(PageKey key) {
  sys::LockGuard scope(files_lock_);
  return *files_[File::number_of(key) - 1];
}

void PageCache::keep_flushed(std::vector<PageKey>& keys) {
  sys::LockGuard scope(files_lock_);
  std::erase_if(keys, [&](PageKey key) {
    const File* const file = files_[File::number_of(key) - 1].get();
    return file == nullptr || file->is_left_.load(std::memory_order_relaxed);
  });
}

void PageCache::drop(const File& file) {
  sys::LockGuard scope(files_lock_);
  files_[file.number() - 1] = nullptr;
}

}  // namespace pagecache
