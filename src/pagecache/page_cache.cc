#include "pagecache/page_cache.h"

#include <algorithm>
#include <bit>

#include "sys/huge_pages.h"
#include "sys/memory.h"

namespace pagecache {
namespace {

constexpr uint32_t kPageBytesLeast = 4096, kPageBytesMost = 64 << 10;

// Zeroed memory, of large pages if there are any.
base::Expected<std::byte*> map(uint64_t bytes) {
  auto mapped = sys::map_anonymous(bytes, "a page cache");
  if (!mapped) return std::unexpected(mapped.error());
  sys::prefer_huge_pages(*mapped, bytes);
  return reinterpret_cast<std::byte*>(*mapped);
}

}  // namespace

base::Expected<PageCache*> PageCache::open(const CacheOptions& options) {
  if (!std::has_single_bit(options.page_bytes) || options.page_bytes < kPageBytesLeast ||
      options.page_bytes > kPageBytesMost)
    return base::failure(EINVAL, "page cache: pages have 4096 to 65536 bytes, a power of two, not ",
                         options.page_bytes);
  std::unique_ptr<PageCache> cache(new PageCache(options));
  if (auto mapped = cache->map(); !mapped) return std::unexpected(mapped.error());
  cache->share_frames_out();
  return cache.release();
}

PageCache::PageCache(const CacheOptions& options)
    : options_(options),
      layout_(options.policy),
      page_shift_(static_cast<unsigned>(std::countr_zero(options.page_bytes))) {}

base::Expected<void> PageCache::map() {
  const uint64_t least = layout_.bytes + kWaysMost * uint64_t{options_.page_bytes};
  if (options_.memory_bytes < least)
    return base::failure(EINVAL, "page cache: ", options_.memory_bytes, " bytes of memory are less than the ",
                         least, " that one set of ", kWaysMost, " pages takes");
  // As few sets as can have all frames.
  for (set_count_ = 1;; set_count_ *= 2) {
    const uint64_t sets_bytes = set_count_ * layout_.bytes;
    CHECK_LT(sets_bytes, options_.memory_bytes);
    frame_count_ = (options_.memory_bytes - sets_bytes) / options_.page_bytes;
    if (frame_count_ <= set_count_ * kWaysMost) break;
  }
  if (frame_count_ > ~uint32_t{0})
    return base::failure(EINVAL, "page cache: ", options_.memory_bytes,
                         " bytes are more pages than a cache can have");
  frames_bytes_ = base::round_up(frame_count_ * options_.page_bytes, sys::kHugePageBytes);
  sets_bytes_ = base::round_up(set_count_ * layout_.bytes, base::kOsPageBytes);
  auto frames = pagecache::map(frames_bytes_);
  if (!frames) return std::unexpected(frames.error());
  frames_ = *frames;
  auto sets = pagecache::map(sets_bytes_);
  if (!sets) {
    sys::unmap(frames_, frames_bytes_);
    return std::unexpected(sets.error());
  }
  sets_ = *sets;
  return {};
}

void PageCache::share_frames_out() {
  uint32_t next = 0;
  for (uint64_t i = 0; i < set_count_; ++i) {
    const uint64_t count = frame_count_ / set_count_ + (i < frame_count_ % set_count_ ? 1 : 0);
    PageSet& set = set_at(i);
    set.set_way_count(static_cast<uint32_t>(count));
    for (uint32_t w = 0; w < count; ++w) way(set, w).give_frame(next++);
  }
  CHECK_EQ(next, frame_count_);
}

void PageCache::close() {
  sys::unmap(sets_, sets_bytes_);
  sys::unmap(frames_, frames_bytes_);
  delete this;
}

base::Expected<File*> PageCache::add(storage::Device& device) {
  if (device.block_bytes() > options_.page_bytes)
    return base::failure(EINVAL, "page cache: ", device.name(), " has blocks of ", device.block_bytes(),
                         " bytes, pages have ", options_.page_bytes);
  if (device.capacity_bytes() / options_.page_bytes >= uint64_t{1} << File::kPageBits)
    return base::failure(EFBIG, "page cache: ", device.name(), " is too large");
  sys::LockGuard scope(files_lock_);
  const auto free = std::find(files_.begin(), files_.end(), nullptr);
  const auto number = static_cast<uint32_t>(free - files_.begin()) + 1;
  if (number > File::kNumberMost) return base::failure(EMFILE, "page cache: it has too many files");
  auto file = std::make_unique<File>(device, number);
  File* const added = file.get();
  if (free == files_.end())
    files_.push_back(std::move(file));
  else
    *free = std::move(file);
  return added;
}

File& PageCache::file_of(PageKey key) {
  sys::LockGuard scope(files_lock_);
  return *files_[(static_cast<uint64_t>(key) >> File::kPageBits) - 1];
}

void PageCache::drop(const File& file) {
  sys::LockGuard scope(files_lock_);
  files_[file.number() - 1] = nullptr;
}

uint32_t PageCache::find(const Home& home) {
  uint32_t found = cache::kNoWay;
  home.set.any_of_tag(home.tag, [&](uint32_t i) {
    if (way(home.set, i).key() != home.key) return false;
    found = i;
    return true;
  });
  return found;
}

PageCache::Claim PageCache::claim(const Home& home, uint32_t& chosen, uint64_t& evictions) {
  PageSet& set = home.set;
  chosen = find(home);
  if (chosen != cache::kNoWay) return Claim::kThere;
  const uint32_t count = set.way_count();
  cache::WayMask dirty = 0, spared = ~cache::all_ways(count);
  for (uint32_t i = 0; i < count && chosen == cache::kNoWay; ++i) {
    const Way& at = way(set, i);
    if (at.is_free()) chosen = i;
    if (at.is_cleanable()) dirty |= cache::way_bit(i);
    if (!at.is_evictable()) spared |= cache::way_bit(i);
  }
  while (chosen == cache::kNoWay) {
    const uint32_t victim = set.pick_victim(layout_, spared);
    if (victim == cache::kNoWay) {
      if (dirty == 0) return Claim::kHeld;
      chosen = set.pick_victim(layout_, ~dirty);
      return Claim::kCleanable;
    }
    spared |= cache::way_bit(victim);
    if (!way(set, victim).evict()) continue;
    set.on_remove(layout_, victim, cache::Removal::kEvicted);
    ++evictions;
    chosen = victim;
  }
  way(set, chosen).claim(home.key);
  set.set_tag(chosen, home.tag);
  set.on_insert(layout_, chosen);
  return Claim::kClaimed;
}

bool PageCache::has_room(PageSet& set) {
  for (uint32_t i = 0; i < set.way_count(); ++i)
    if (const Way& at = way(set, i); at.is_free() || at.is_evictable() || at.is_cleanable()) return true;
  return false;
}

// The way is free already.
void PageCache::forget(PageSet& set, uint32_t index) {
  set.on_remove(layout_, index, cache::Removal::kForgotten);
  set.set_tag(index, 0);
}

}  // namespace pagecache
