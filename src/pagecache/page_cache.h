// PageCache: pages of files and devices in memory, in small sets that know nothing of each other. (papers/set-associative-page-cache.txt)
//
//   PageCache* cache = *PageCache::open({.memory_bytes = 1 << 30});
//   File* file = *cache->add(device);
//   Session session;                                  // session.h: one for each thread, or for the tasks of each worker
//   session.open(*cache);
//   session.read(*file, offset, bytes);
//
// A page's hash chooses its set. A hit takes no lock and looks at two CPU lines of the set; who misses holds the set's lock for as long
// as it takes to choose a frame, not while it reads. No lock is held during I/O, and nobody waits for more than one thing at a time.
//
// Sets have 9 to 16 ways, and as many frames: all have the same number of ways, or some one more, so that all of the memory is used.
#pragma once
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/mix.h"
#include "pagecache/page_set.h"
#include "storage/device.h"
#include "sys/lock.h"

namespace pagecache {

struct CacheOptions {
  uint64_t memory_bytes = 0;   // of frames and of what is known about them, at most
  uint32_t page_bytes = 4096;  // a power of two, 4 KiB to 64 KiB
  cache::SetPolicy policy = cache::SetPolicy::kNrlfu;
  // How long a call waits for pages that others hold, before it says EBUSY: what holds them may be the caller's own views.
  uint64_t wait_ns_max = 10'000'000'000;
};

// A device whose pages are cached. Bytes of it are only read and written through the cache meanwhile.
class File {
 public:
  static constexpr unsigned kPageBits = 48;
  static constexpr uint32_t kNumberMost = (1 << (64 - kPageBits)) - 1;

  File(storage::Device& device, uint32_t number) : device_(device), number_(number) {}

  storage::Device& device() const { return device_; }
  uint32_t number() const { return number_; }
  uint64_t bytes() const { return device_.capacity_bytes(); }
  // REQUIRES: it has such a page.
  PageKey key(uint64_t page) const { return static_cast<PageKey>(uint64_t{number_} << kPageBits | page); }
  bool has(PageKey key) const { return static_cast<uint64_t>(key) >> kPageBits == number_; }
  static uint64_t page_of(PageKey key) {
    return static_cast<uint64_t>(key) & ((uint64_t{1} << kPageBits) - 1);
  }

 private:
  friend class Session;
  storage::Device& device_;
  const uint32_t number_;
  // Of a flush that failed, for good: what the device's own cache lost nobody knows. 0: none has.
  std::atomic<int> flush_error_{0};
  mutable std::atomic<uint32_t> session_count_{0};  // that have used it
};

class PageCache {
 public:
  // Errors: EINVAL: options that make no cache, among them memory for less than one set; ENOMEM.
  static base::Expected<PageCache*> open(const CacheOptions& options);
  // REQUIRES: all sessions are closed. What was not synced is lost.
  void close();

  // The device stays the caller's, and is the cache's until Session::remove(). Any thread. Errors: EINVAL: blocks of the device that are
  // larger than a page; EFBIG; EMFILE: too many files.
  base::Expected<File*> add(storage::Device& device);

  const CacheOptions& options() const { return options_; }
  uint64_t page_bytes() const { return uint64_t{1} << page_shift_; }
  uint64_t frame_count() const { return frame_count_; }
  uint64_t set_count() const { return set_count_; }

 private:
  friend class Session;
  enum class Claim : uint8_t {
    kClaimed,    // of a way that is LOADING now, the caller's
    kThere,      // another way holds the page, or loads it
    kCleanable,  // nothing can leave but this dirty page, once it is clean
    kHeld,       // all pages are in use
  };

  // REQUIRES: the options have been checked.
  explicit PageCache(const CacheOptions& options);
  base::Expected<void> map();
  void share_frames_out();

  // Where a page is, if it is there.
  struct Home {
    PageKey key;
    PageSet& set;
    uint16_t tag;
  };
  Home home_of(PageKey key) {
    const uint64_t hash = base::mix(static_cast<uint64_t>(key));
    return {key, set_at(hash & (set_count_ - 1)), PageSet::tag_of(hash)};
  }
  PageSet& set_at(uint64_t index) { return *reinterpret_cast<PageSet*>(sets_ + index * layout_.bytes); }
  Way& way(PageSet& set, uint32_t index) { return set.way(layout_, index); }
  std::byte* frame(const Way& way) const { return frames_ + (uint64_t{way.frame()} << page_shift_); }

  // REQUIRES: it is in use. Any thread.
  File& file_of(PageKey key);
  void drop(const File& file);

  // REQUIRES, of all of these: the set's lock.
  // kNoWay: no way has the page.
  uint32_t find(const Home& home);
  // `way`: of kHeld none. Adds to `evictions` what has left.
  Claim claim(const Home& home, uint32_t& way, uint64_t& evictions);
  bool has_room(PageSet& set);
  void forget(PageSet& set, uint32_t way);

  const CacheOptions options_;
  const PageSet::Layout layout_;
  const unsigned page_shift_;
  uint64_t frame_count_ = 0;
  uint64_t set_count_ = 0;  // a power of two
  std::byte* frames_ = nullptr;
  std::byte* sets_ = nullptr;
  uint64_t frames_bytes_ = 0, sets_bytes_ = 0;  // that are mapped

  sys::Mutex files_lock_;
  std::vector<std::unique_ptr<File>> files_;  // by number - 1; under the lock
};

}  // namespace pagecache
