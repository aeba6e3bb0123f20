#include "pagecache/page_cache.h"

#include <algorithm>
#include <bit>

namespace pagecache {
namespace {

constexpr uint32_t kPageBytesLeast = 4096, kPageBytesMost = 64 << 10;

}  // namespace

base::Expected<PageCache*> PageCache::open(const CacheOptions& options) {
  if (!std::has_single_bit(options.page_bytes) || options.page_bytes < kPageBytesLeast ||
      options.page_bytes > kPageBytesMost)
    return base::failure(EINVAL, "page cache: pages have 4096 to 65536 bytes, a power of two, not ",
                         options.page_bytes);
  if (!(options.dirty_share_max > 0 && options.dirty_share_max <= 1))
    return base::failure(EINVAL, "page cache: the share of dirty pages is more than 0, and 1 at most");
  std::unique_ptr<PageCache> cache(new PageCache(options));
  const uint64_t bytes = options.memory_bytes, bytes_max = options.memory_bytes_max;
  if (auto opened = cache->partition_.open(bytes, bytes_max == 0 ? bytes : bytes_max); !opened)
    return std::unexpected(opened.error());
  return cache.release();
}

PageCache::PageCache(const CacheOptions& options)
    : options_(options),
      page_shift_(static_cast<unsigned>(std::countr_zero(options.page_bytes))),
      partition_(options.policy, page_shift_) {}

void PageCache::close() { delete this; }

base::Expected<File*> PageCache::add(storage::Device& device) {
  if (device.block_bytes() > options_.page_bytes)
    return base::failure(EINVAL, "page cache: ", device.name(), " has blocks of ", device.block_bytes(),
                         " bytes, pages have ", options_.page_bytes);
  if (device.capacity_bytes() / options_.page_bytes + 1 >= uint64_t{1} << File::kPageBits)
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
