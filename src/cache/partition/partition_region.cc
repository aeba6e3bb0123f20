// Partition: regions that are mapped at their own addresses (regions.h).
#include "cache/partition/partition.h"
#include "sys/memory.h"

namespace cache {
namespace {

static_assert(kRegionBytes == Table::kRegionOsPages * base::kOsPageBytes);

// Roughly how much tables and maps take for a region.
constexpr uint64_t kMetadataBytes = 8 * 1024;

}  // namespace

uint64_t Partition::address_of(PageId page) const {
  return static_cast<uint64_t>(shared_->table->address(page));
}

PageId Partition::page_at(uint64_t address) const {
  return PageId{(address - address_of(PageId{0})) / shared_->page_bytes};
}

bool Partition::is_in_region(PageId page) const { return shared_->regions.is_mapped(address_of(page)); }

// Is a page of [first, first + count) in memory, on storage, or on its way?
bool Partition::knows_any(PageId first, uint64_t count) {
  for (PageId page = first; index(page) < index(first) + count;) {
    if (skip_unknown_group(page)) continue;
    const PageMap::Where where = map_.find(page);
    if (where.frame != base::kNoFrame || where.place != base::kNoPlace) return true;
    page = page + 1;
  }
  return false;
}

// Maps [begin, end), which lies in one frame or in adjacent frames, at its own address.
bool Partition::map_at_own_address(uint64_t begin, uint64_t end, uint64_t file_offset) {
  auto* const address = reinterpret_cast<void*>(begin);
  if (!sys::map_shared(frames_.descriptor(), file_offset, end - begin, sys::Access::kReadWrite, address))
    return false;
  sys::keep_from_children(address, end - begin);
  sys::keep_from_core_files(address, end - begin);
  return true;
}

// Map, for a page that is not known. False: the page was not loaded, and is to be loaded alone.
bool Partition::map_region(PageId page) {
  Regions& regions = shared_->regions;
  if (!regions.is_on()) return false;
  uint64_t first = address_of(page), last = first + shared_->page_bytes;
  const uint64_t begin = base::round_down(first, kRegionBytes), end = begin + kRegionBytes;
  if (!regions.mappable().find(first, last)) return false;
  const auto count = static_cast<uint32_t>(kRegionBytes / shared_->page_bytes);
  const PageId first_page{base::round_down(index(page), count)};
  FrameId frame = regions.first_frame(begin);
  const bool is_mapped = frame != base::kNoFrame;
  const bool is_known = knows_any(first_page, count);
  if (!is_mapped && is_known) return false;
  if (!is_known) {
    frame = base::kNoFrame;
    // Enough must remain that background eviction does not begin.
    const uint64_t least_bytes = kRegionBytes + kMetadataBytes + high_watermark_ * shared_->page_bytes;
    if (!shared_->budget.exceeded_by(least_bytes) && frames_.free_count() >= count + high_watermark_)
      frame = frames_.find_free_block(page);
    if (frame == base::kNoFrame) {
      regions.end(RegionsEnd::kMemoryFull);
      return false;
    }
    if (!is_mapped && !regions.begin_mapping()) return false;
    regions.note_mapped(begin, frame);
    if (!is_mapped) base::statistics.cache_regions_mapped.add();
  }
  // Pairs with the fence in Cache::cut: either cut() sees that the region is mapped, or find() below sees the change because of which cut() is called.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (first = begin; first < end; first = last) {
    last = end;
    if (!regions.mappable().find(first, last)) break;
    load_part_of_region(first, last, begin, frame);
  }
  return map_.find(page).frame != base::kNoFrame;
}

// Makes the unknown pages in [begin, end) resident, each in its own position among the region's frames, and maps them. A run of such pages is left out
// if one of its frames is not free.
void Partition::load_part_of_region(uint64_t begin, uint64_t end, uint64_t region, FrameId first_frame) {
  const uint64_t page_bytes = shared_->page_bytes;
  const uint64_t page_end = base::round_up(end, page_bytes);
  for (uint64_t at = base::round_down(begin, page_bytes); at < page_end;) {
    const PageId page = page_at(at);
    uint64_t stop = at;
    while (stop < page_end && !knows_any(page_at(stop), 1)) stop += page_bytes;
    if (stop == at) {
      at += page_bytes;
      continue;
    }
    const auto count = static_cast<uint32_t>((stop - at) / page_bytes);
    const FrameId frame = first_frame + static_cast<uint32_t>((at - region) / page_bytes);
    if (load_zeros(page, count, frame)) {
      const uint64_t from = at > begin ? at : begin;
      if (!map_at_own_address(from, stop < end ? stop : end,
                              frames_.file_offset(first_frame) + (from - region)))
        shared_->regions.end(RegionsEnd::kMappings);
    }
    at = stop;
  }
}

// Makes unknown pages resident, as zeros, in these frames. False if the frames cannot be had.
bool Partition::load_zeros(PageId first, uint32_t count, FrameId first_frame) {
  if (shared_->budget.exceeded_by(count * shared_->page_bytes)) {
    shared_->regions.end(RegionsEnd::kMemoryFull);
    return false;
  }
  if (!frames_.take_run(first_frame, count)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const FrameId id = first_frame + i;
    Frame& frame = frames_[id];
    frame.claim();
    frame.page = first + i;
    frame.place = base::kNoPlace;
    frame.verified = false;
    map_.set_frame(frame.page, id);
    frames_.set_fingerprints(id, base::zero_fingerprint());
    frame.loaded();
    policies_.loaded(id, frame.page, true);
    shared_->table->publish(frame.page, frames_.bytes(id), Table::Heat::kHot);
  }
  return true;
}

// Reach.
bool Partition::map_own(PageId page, Workspace& workspace) {
  for (;;) {
    uint32_t key = 0;
    bool waits = false;
    {
      sys::LockGuard guard(mutex_);
      FrameId id = map_.find(page).frame;
      if (id == base::kNoFrame && map_region(page)) return true;
      if (!is_in_region(page)) return false;
      if (id != base::kNoFrame) {
        char* bytes;
        switch (take_resident(id, false, bytes)) {
          case Attempt::kDone: return map_page_of_region(page, id);
          case Attempt::kWait: waits = true; break;
          default: return false;
        }
        key = changed_.prepare();
      }
    }
    if (waits)
      wait_for_change(key);
    else if (!load(page, workspace, workspace.stream, false))
      return false;  // the caller's next attempt reports the error
  }
}

// Maps those parts of a resident page of a mapped region that may be mapped.
bool Partition::map_page_of_region(PageId page, FrameId id) {
  Frame& frame = frames_[id];
  if (frame.backing != Backing::kOwn) return false;
  frame.watched = false;
  const uint64_t begin = address_of(page), end = begin + shared_->page_bytes;
  uint64_t last;
  for (uint64_t first = begin; first < end; first = last) {
    last = end;
    if (!shared_->regions.mappable().find(first, last)) break;
    if (!map_at_own_address(first, last, frames_.file_offset(id) + (first - begin))) return false;
  }
  return true;
}

// Unmap.
void Partition::unmap_region(uint64_t address) {
  Regions& regions = shared_->regions;
  uint64_t begin = base::round_down(address, kRegionBytes), end = begin + kRegionBytes;
  const auto unmap = [&] { return sys::make_inaccessible(reinterpret_cast<void*>(begin), end - begin) == 0; };
  if (!unmap()) {
    // The kernel has one mapping for it and adjacent regions, and no room for the parts. Unmapping all of them needs none.
    const Regions::Bounds bounds = regions.bounds();
    while (begin > bounds.begin && is_own_region(begin - kRegionBytes)) begin -= kRegionBytes;
    while (end < bounds.end && is_own_region(end)) end += kRegionBytes;
    if (!unmap()) {
      // With so many mappings, some kernels do not even replace one.
      sys::unmap(reinterpret_cast<void*>(begin), end - begin);
      CHECK(unmap());
    }
  }
  for (; begin < end; begin += kRegionBytes) {
    regions.note_unmapped(begin);
    base::statistics.cache_regions_unmapped.add();
  }
}

// Is the region at the address mapped, and this partition's?
bool Partition::is_own_region(uint64_t begin) const {
  return shared_->regions.is_mapped(begin) && &shared_->of(page_at(begin)) == this;
}

void Partition::unmap_if_mapped(uint64_t address) {
  sys::LockGuard guard(mutex_);
  if (shared_->regions.is_mapped(address)) unmap_region(address);
}

// Cut.
void Partition::cut(uint64_t begin, uint64_t end) {
  sys::LockGuard guard(mutex_);
  if (shared_->regions.is_mapped(begin)) cut_locked(begin, end);
}

void Partition::cut_locked(uint64_t begin, uint64_t end) {
  // If the kernel has no room for one more mapping, the whole region is unmapped.
  if (sys::make_inaccessible(reinterpret_cast<void*>(begin), end - begin) != 0) unmap_region(begin);
}

// Empty: drops the content of pages from `first` on, which is in a mapped region, as long as their frames are adjacent, at most up to `end`. Returns
// how many pages these were.
uint64_t Partition::empty_in_region(PageId first, PageId end) {
  const FrameId frame = map_.find(first).frame;
  if (frame == base::kNoFrame) return 0;
  uint32_t count = 0;
  while (index(first) + count < index(end) && is_in_region(first + count) &&
         map_.find(first + count).frame == frame + count &&
         frames_[frame + count].state() == State::kResident && !frames_[frame + count].io())
    ++count;
  if (count == 0 ||
      !sys::release_file_piece(frames_.descriptor(), frames_.file_offset(frame), count * shared_->page_bytes))
    return 0;
  for (uint32_t i = 0; i < count; ++i) note_zeros(frame + i);
  return count;
}

}  // namespace cache
