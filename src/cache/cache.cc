// Cache: its construction, and operations on pages. The budget and background work are in cache_background.cc, forks in cache_fork.cc.
#include "cache/cache.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/mix.h"
#include "sys/kernel.h"
#include "sys/mappings.h"
#include "sys/memory.h"

namespace cache {
namespace {

// A partition below this many frames is not worth its imbalance.
constexpr uint64_t kFramesPerPartition = 8 * 1024;

// The memory that is mapped for a Cache; the waste page comes after it.
constexpr uint64_t kCacheBytes = base::round_up(sizeof(Cache), base::kOsPageBytes);

// So many unnamed pages between two that a prefetch names are read along with them: two reads would take longer.
constexpr uint64_t kMaxBetween = 2;

constexpr uint64_t kMaxFrames = uint64_t{1} << 30;

// Bytes of a page and of its frame's metadata.
uint64_t frame_bytes_for(size_t page_bytes) {
  return page_bytes + sizeof(Frame) + page_bytes / base::kOsPageBytes * sizeof(base::Fingerprint) + 1;
}

// Errors: EINVAL, as Cache::create.
base::Expected<uint64_t> frame_count_for(const CacheParameters& parameters) {
  const size_t page_bytes = parameters.page_bytes;
  constexpr size_t kLargestPage = Batch::kMaxPieces * base::kOsPageBytes;
  if (!std::has_single_bit(page_bytes) || page_bytes < base::kOsPageBytes || page_bytes > kLargestPage) {
    return base::failure(EINVAL, "page size ", base::Bytes{page_bytes}, " is not a power of two from ",
                         base::Bytes{base::kOsPageBytes}, " to ", base::Bytes{kLargestPage});
  }
  const uint64_t frame_count = parameters.frame_count != 0
                                   ? parameters.frame_count
                                   : parameters.memory_bytes / frame_bytes_for(page_bytes);
  if (frame_count < Cache::kMinFrames) {
    return base::failure(EINVAL, "a budget of ", base::Bytes{parameters.memory_bytes}, " holds only ",
                         frame_count, " pages of ", base::Bytes{page_bytes}, "; give at least ",
                         base::Bytes{base::round_up(Cache::kMinFrames * frame_bytes_for(page_bytes), 1024)},
                         " with --memory");
  }
  if (frame_count > kMaxFrames)
    return base::failure(EINVAL, "more than 2^30 frames; use larger pages with --page");
  return frame_count;
}

uint32_t partitions_for(uint64_t frame_count) {
  uint32_t partitions = 1;
  while (partitions < kMaxPartitions && frame_count / (partitions * 2) >= kFramesPerPartition)
    partitions *= 2;
  return partitions;
}

}  // namespace

base::Expected<Cache*> Cache::create(const CacheParameters& parameters, storage::Device& device,
                                     Holders& holders) {
  auto frame_count = frame_count_for(parameters);
  if (!frame_count) return std::unexpected(frame_count.error());
  auto memory = sys::map_anonymous(kCacheBytes + parameters.page_bytes, "the cache");
  if (!memory) return std::unexpected(memory.error());
  Cache* const cache = new (*memory) Cache;
  cache->set(parameters, *memory + kCacheBytes, device, holders);
  auto opened = cache->open_tables(parameters);
  if (opened) opened = cache->open_partitions(parameters, *frame_count);
  if (!opened) {
    cache->destroy();
    return std::unexpected(opened.error());
  }
  return cache;
}

void Cache::set(const CacheParameters& parameters, char* waste, storage::Device& device, Holders& holders) {
  const size_t page_bytes = parameters.page_bytes;
  shared_.page_bytes = page_bytes;
  shared_.waste = waste;
  shared_.read_ahead_pages = parameters.read_ahead_pages;
  shared_.chaos_seed = parameters.chaos_seed;
  shared_.large_pages = parameters.large_pages;
  shared_.policy = parameters.policy;
  shared_.device = &device;
  shared_.table = &table_;
  shared_.holders = &holders;
  shared_.origins = parameters.origins;
  shared_.closed = parameters.closed;
  shared_.budget.set_limit(parameters.memory_bytes);
  process_ = sys::syscall(SYS_getpid);
  range_begin_ = parameters.range_begin;
  range_bytes_ = parameters.range_bytes;
  frame_bytes_ = frame_bytes_for(page_bytes);
  const uint64_t region_pages =
      std::max(Table::kRegionOsPages * base::kOsPageBytes / page_bytes, kGroupPages);
  shared_.region_shift = static_cast<unsigned>(__builtin_ctzll(region_pages));
  shared_.partitions = partitions_;
}

base::Expected<void> Cache::open_tables(const CacheParameters& parameters) {
  const size_t page_bytes = parameters.page_bytes;
  if (auto opened = shared_.regions.open(parameters.range_begin + parameters.range_bytes); !opened)
    return opened;
  // If it is refused, pages are compared.
  if (parameters.for_tests.watch) static_cast<void>(shared_.watch.open().has_value());
  if (auto opened = shared_.directory.open(parameters.range_bytes / page_bytes); !opened) return opened;
  const storage::Device& device = *shared_.device;
  if (auto opened = shared_.places.open(device.capacity_bytes() / page_bytes, device.is_copied_by_fork());
      !opened)
    return opened;
  return table_.open(parameters.table_entries, parameters.range_begin, parameters.range_bytes, page_bytes,
                     shared_.budget, parameters.closed);
}

base::Expected<void> Cache::open_partitions(const CacheParameters& parameters, uint64_t frame_count) {
  const uint32_t asked = parameters.for_tests.partition_count;
  const uint32_t partitions = asked != 0 ? asked : partitions_for(frame_count);
  CHECK(std::has_single_bit(partitions) && partitions <= kMaxPartitions);
  partition_count_ = partitions;
  shared_.partition_count = partitions;
  if (parameters.chooses_policy)
    shared_.policy_choice.begin(parameters.for_tests.policy_choice, frame_count, partitions);
  const uint64_t frame_limit =
      std::clamp(parameters.most_memory_bytes / frame_bytes_, frame_count, kMaxFrames);
  for (uint32_t i = 0; i < partitions; ++i) {
    auto opened = partitions_[i].open(shared_, static_cast<uint32_t>(frame_count / partitions),
                                      static_cast<uint32_t>(frame_limit / partitions));
    if (!opened) return opened;
  }
  return {};
}

// Also for a cache that was opened in part: closing what was not opened does nothing.
void Cache::destroy() {
  if (Delegation* delegation = delegation_.load(std::memory_order_relaxed); delegation != nullptr)
    delegation->destroy();
  shared_.loads.destroy();
  for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].close();
  sys::unmap(shared_.clean_copies, shared_.clean_copy_bytes());
  shared_.watch.close();
  shared_.regions.close();
  table_.close();
  shared_.places.close();
  shared_.directory.close();
  sys::unmap(this, kCacheBytes + shared_.page_bytes);
}

base::Expected<void> Cache::open_servers(uint32_t count, bool always) {
  auto created = Delegation::create(shared_, count, always);
  if (!created) return std::unexpected(created.error());
  delegation_.store(*created, std::memory_order_release);
  return {};
}

char* Cache::ask(Delegation& delegation, PageId page, Workspace& workspace, bool pin) {
  if (!delegation.always()) {
    char* bytes = nullptr;
    switch (of(page).look(page, pin, bytes)) {
      case Partition::Look::kThere: base::statistics.cache_hits.add(); return bytes;
      case Partition::Look::kBusy: return nullptr;
      case Partition::Look::kNotThere: break;
    }
  }
  Client* const client = client_for(delegation, page, workspace);
  if (client == nullptr) return nullptr;
  const Request request = {.page = page, .pin = pin};
  uint64_t reply;
  client->ask(delegation.server_of(page), &request, 1, &reply);
  if (reply == Request::kRefused) return nullptr;
  if (pin) return reinterpret_cast<char*>(reply);
  // The entry says where the page is. If it has been locked meanwhile, or the page is closed, the caller loads the page itself.
  const int64_t entry = table_.entry(page, 0);
  return entry > Table::kDirect ? reinterpret_cast<char*>(table_.address(page) + entry - 1) : nullptr;
}

// The thread's client, if servers may be asked for the page; else null.
Client* Cache::client_for(Delegation& delegation, PageId page, Workspace& workspace) {
  // Files may be slow: nobody else should wait for them.
  if (shared_.origins != nullptr && shared_.origins->kind_of(page) != Origins::Kind::kZeros) return nullptr;
  if (workspace.client == nullptr) workspace.client = delegation.take_client();
  return workspace.client;
}

// Calls f(partition, first, count) for each part of the range that belongs to one partition.
template <class F>
void Cache::for_each_part(PageId first, uint64_t count, F f) {
  const uint64_t end = index(first) + count;
  while (index(first) < end) {
    uint64_t region_end = ((index(first) >> shared_.region_shift) + 1) << shared_.region_shift;
    if (region_end > end) region_end = end;
    f(of(first), first, region_end - index(first));
    first = PageId{region_end};
  }
}

void Cache::load_together(PageId first, uint64_t count, Workspace& workspace) {
  Delegation* const delegation = delegation_.load(std::memory_order_acquire);
  if (delegation == nullptr || !delegation->is_running()) return;
  for_each_part(first, count, [&](Partition&, PageId page, uint64_t n) {
    Request missing[Lines::kMax];
    uint64_t replies[Lines::kMax];
    uint32_t missing_count = 0;
    for (uint64_t i = 0; i < n; ++i) {
      if (table_.entry(page + i, 0) == Table::kUnknown &&
          client_for(*delegation, page + i, workspace) != nullptr)
        missing[missing_count++] = {.page = page + i};
      // A single page at the end may as well be loaded when it is used.
      if (missing_count < (i + 1 == n ? 2 : Lines::kMax)) continue;
      workspace.client->ask(delegation->server_of(page), missing, missing_count, replies);
      missing_count = 0;
    }
  });
}

size_t Cache::prefetch(std::span<const PageId> pages, LoadQueue& queue) {
  const uint64_t now_ns = sys::monotonic_ns();
  const uint64_t most = BegunLoad::most_pages(shared_.page_bytes);
  size_t done = 0;
  while (done < pages.size()) {
    // Pages that follow each other closely are one read, with the pages between them.
    const PageId first = pages[done];
    size_t stop = done + 1;
    while (stop < pages.size() && index(pages[stop]) - index(pages[stop - 1]) <= 1 + kMaxBetween &&
           index(pages[stop]) - index(first) < most)
      ++stop;
    const auto count = static_cast<uint32_t>(index(pages[stop - 1]) - index(first) + 1);
    const uint32_t some = prefetch_some(first, count, queue, now_ns);
    if (some == 0) break;
    while (done < stop && index(pages[done]) - index(first) < some) ++done;
  }
  base::statistics.cache_prefetches_dropped.add(pages.size() - done);
  queue.flush();
  return done;
}

uint64_t Cache::prefetch_run(PageId first, uint64_t count, LoadQueue& queue) {
  const uint64_t now_ns = sys::monotonic_ns();
  uint64_t done = 0;
  while (done < count) {
    const auto most = static_cast<uint32_t>(std::min(count - done, Table::kRegionOsPages));
    const uint32_t some = prefetch_some(first + done, most, queue, now_ns);
    if (some == 0) break;
    done += some;
  }
  base::statistics.cache_prefetches_dropped.add(count - done);
  queue.flush();
  return done;
}

// Returns how many pages need nothing more, up to `most` from this one on; 0: there is no room.
uint32_t Cache::prefetch_some(PageId page, uint32_t most, LoadQueue& queue, uint64_t now_ns) {
  if (table_.entry(page, 0) != Table::kUnknown) return 1;
  uint32_t count = most;
  switch (of(page).prefetch(page, count, queue, now_ns)) {
    case Partition::Prefetched::kNoRoom: return 0;
    case Partition::Prefetched::kBegun:
      base::statistics.cache_prefetches_under_way.add(queue.under_way_count());
      break;
    case Partition::Prefetched::kThere:
    case Partition::Prefetched::kNothing: break;
  }
  return count;
}

base::Expected<uint32_t> Cache::write_back(PageId first, uint64_t count, Workspace& workspace) {
  const uint64_t bytes = shared_.clean_copy_bytes();
  auto copies = sys::map_anonymous(bytes, "copies of what is written");
  if (!copies) return std::unexpected(copies.error());
  uint32_t failed = 0;
  for_each_part(first, count, [&](Partition& partition, PageId page, uint64_t n) {
    failed += partition.write_back(page, n, workspace, *copies).failed;
  });
  sys::unmap(*copies, bytes);
  return failed;
}

void Cache::discard(PageId first, uint64_t count, Workspace& workspace, After after) {
  for_each_part(first, count, [&](Partition& partition, PageId page, uint64_t n) {
    partition.discard(page, n, after, workspace);
  });
}

void Cache::begin_regions(Mappable& mappable) {
  // When chaos mode ends them: some runs keep them to the end, some have none.
  constexpr uint64_t kMaxBits = 12;
  const uint64_t random = base::spread(shared_.chaos_seed);
  chaos_steps_ =
      static_cast<uint32_t>((random >> 32) & ((uint64_t{1} << (random >> 20) % (kMaxBits + 1)) - 1));
  shared_.regions.begin(mappable, sys::most_mappings() / 8 * 3);
}

// Calls f(partition, begin, end) for the parts of mapped regions in [address, address + bytes).
template <class F>
void Cache::for_each_region(uint64_t address, uint64_t bytes, F f) {
  const Regions::Bounds bounds = shared_.regions.bounds();
  const uint64_t end = std::min(address + bytes, bounds.end);
  for (uint64_t at = std::max(address, bounds.begin); at < end;) {
    const uint64_t stop = std::min(base::round_down(at, kRegionBytes) + kRegionBytes, end);
    if (shared_.regions.is_mapped(at)) f(of(page_of(at)), at, stop);
    at = stop;
  }
}

void Cache::cut(uint64_t address, uint64_t bytes) {
  if (!has_regions()) return;
  // Pairs with the fence in Partition::map_region.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for_each_region(address, bytes,
                  [](Partition& partition, uint64_t begin, uint64_t end) { partition.cut(begin, end); });
}

void Cache::unmap_regions(uint64_t address, uint64_t bytes) {
  if (!has_regions()) return;
  for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].wait_for_mapping();
  for_each_region(address, bytes,
                  [](Partition& partition, uint64_t begin, uint64_t) { partition.unmap_if_mapped(begin); });
}

void Cache::unmap_all_regions() { unmap_regions(range_begin_, range_bytes_); }

Partition::Seen Cache::close_again(PageId first, uint64_t count) {
  Partition::Seen all;
  // By regions of the table: when much was reserved at once, most regions have nothing in memory.
  const uint64_t region_pages = Table::kRegionOsPages * base::kOsPageBytes / shared_.page_bytes;
  const uint64_t end = index(first) + count;
  for (uint64_t at = index(first); at < end;) {
    uint64_t stop = base::round_down(at, region_pages) + region_pages;
    if (stop > end) stop = end;
    if (table_.may_have_residents(PageId{at})) {
      const Partition::Seen seen = of(PageId{at}).close_again(PageId{at}, stop - at);
      all.resident |= seen.resident;
      all.guarded |= seen.guarded;
    }
    at = stop;
  }
  return all;
}

Partition::Left Cache::forget(PageId first, uint64_t count, Workspace& workspace) {
  Partition::Left all;
  for_each_part(first, count, [&](Partition& partition, PageId page, uint64_t n) {
    const Partition::Left left = partition.forget(page, n, workspace);
    all.busy += left.busy;
    all.held += left.held;
  });
  if (all.busy > 0) shared_.loads.poll();
  return all;
}

bool Cache::is_in_frame(const char* address) {
  for (uint32_t i = 0; i < partition_count_; ++i) {
    const Pool of_partition = pool(i);
    if (static_cast<uint64_t>(address - of_partition.begin) < of_partition.bytes) return true;
  }
  return false;
}

std::optional<uint64_t> Cache::guarded_address(const char* address) {
  for (uint32_t i = 0; i < partition_count_; ++i) {
    const Pool of_partition = pool(i);
    const auto offset = static_cast<uint64_t>(address - of_partition.begin);
    if (offset >= of_partition.bytes) continue;
    const auto page =
        partitions_[i].guarded_page(FrameId{static_cast<uint32_t>(offset / shared_.page_bytes)});
    if (!page) return std::nullopt;
    return address_of(*page) + offset % shared_.page_bytes;
  }
  return std::nullopt;
}

uint32_t Cache::frame_count() const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < partition_count_; ++i) count += partitions_[i].frame_count();
  return count;
}

uint32_t Cache::resident_count() {
  uint32_t count = 0;
  for (uint32_t i = 0; i < partition_count_; ++i) count += partitions_[i].resident_count();
  return count;
}

uint32_t Cache::used_count() const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < partition_count_; ++i) {
    const FramePool& frames = partitions_[i].frames();
    count += frames.frame_count() - std::min(frames.free_count(), frames.frame_count());
  }
  return count;
}

uint64_t Cache::frames_bytes() {
  uint64_t count = 0;
  for (uint32_t i = 0; i < partition_count_; ++i) count += partitions_[i].frames().touched_count();
  return count * shared_.page_bytes;
}

Cache::FilePiece Cache::file_piece(PageId page, const char* pinned) {
  FramePool& frames = of(page).frames();
  return {frames.descriptor(), static_cast<uint64_t>(pinned - frames.bytes(FrameId{0}))};
}

Cache::Pool Cache::pool(uint32_t partition) {
  FramePool& frames = partitions_[partition].frames();
  return {frames.bytes(FrameId{0}), frames.memory_bytes(), frames.descriptor()};
}

Layout Cache::layout() const {
  Layout layout = {};
  layout.range_begin = range_begin_;
  layout.range_bytes = range_bytes_;
  layout.page_bytes = shared_.page_bytes;
  layout.directory = reinterpret_cast<uint64_t>(shared_.directory.leaves());
  layout.region_shift = shared_.region_shift;
  layout.partition_count = partition_count_;
  for (uint32_t i = 0; i < partition_count_; ++i) layout.parts[i] = partitions_[i].layout();
  return layout;
}

void Cache::verify() {
  for (uint32_t i = 0; i < partition_count_; ++i) partitions_[i].verify();
}

}  // namespace cache
