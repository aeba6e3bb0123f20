// Pager: its lists and tables, loads and discards. Its evictions are in pager_evict.cc.
#include "spill/preload/pager.h"

#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "base/probe.h"
#include "spill/address_space.h"
#include "spill/runtime.h"
#include "sys/memory.h"
#include "sys/nap.h"

namespace spill::preload {
namespace {

using base::kOsPageBytes;

constexpr uint64_t kPageCount = (kRangeEnd - kRangeBegin) / kOsPageBytes;
constexpr uint64_t kTableBytes = kPageCount * 8;
constexpr uint32_t kMaxLoaded = 64;
constexpr uint64_t kTriesForMemory = 2000;  // a millisecond each

PageNumber number_of(uint64_t address) {
  return static_cast<PageNumber>((address - kRangeBegin) / kOsPageBytes);
}
uint64_t address_of(PageNumber page) { return kRangeBegin + uint64_t{page} * kOsPageBytes; }

}  // namespace

base::Expected<void> Pager::open(sys::UserFaults& faults, storage::Device& device, uint64_t memory_bytes) {
  faults_ = &faults;
  memory_bytes_ = memory_bytes;
  if (auto opened = store_.open(device); !opened) return opened;
  // More than the budget holds: pages that cannot leave come on top.
  const uint64_t machine_bytes = sys::machine_memory_bytes();
  frame_limit_ =
      static_cast<uint32_t>(base::round_up(machine_bytes + memory_bytes, uint64_t{1} << 20) / kOsPageBytes);
  const uint32_t most = static_cast<uint32_t>(memory_bytes / kOsPageBytes);
  most_loaded_ = std::min(kMaxLoaded, std::max(most / 32, 1u));
  most_leaving_ = std::min(Store::kMaxPages, std::max(most / 16, 1u));
  const uint64_t staging_bytes = (uint64_t{most_loaded_} + 1) * kOsPageBytes;
  auto pages = sys::map_anonymous(kTableBytes, "the table of spilled pages");
  auto touched = sys::map_anonymous(kTableBytes / kOsPageBytes / 8, "the map of the table of spilled pages");
  auto frames = sys::map_anonymous(uint64_t{frame_limit_} * sizeof(Frame), "frames");
  auto side = sys::map_anonymous(uint64_t{frame_limit_} * kOsPageBytes, "pages on their way");
  auto staging = sys::map_anonymous(staging_bytes, "pages being loaded");
  for (auto* mapped : {&pages, &touched, &frames, &side, &staging})
    if (!*mapped) return std::unexpected(mapped->error());
  pages_ = reinterpret_cast<Page*>(*pages);
  touched_ = reinterpret_cast<uint64_t*>(*touched);
  frames_ = reinterpret_cast<Frame*>(*frames);
  side_ = *side;
  staging_ = *staging;
  zeros_ = *staging + uint64_t{most_loaded_} * kOsPageBytes;
  __builtin_memset(staging_, 0, staging_bytes);
  metadata_bytes_ = staging_bytes;
  return faults.add(reinterpret_cast<uint64_t>(side_), uint64_t{frame_limit_} * kOsPageBytes);
}

Pager::List& Pager::list_of(State state) {
  return state == State::kHot ? hot_ : state == State::kCooling ? cooling_ : free_;
}

void Pager::append(List& list, FrameNumber number, State state) {
  Frame& frame = frames_[number];
  frame.state = state;
  frame.next = kNone;
  frame.previous = list.last;
  (list.last == kNone ? list.first : frames_[list.last].next) = number;
  list.last = number;
  ++list.count;
}

void Pager::remove(FrameNumber number) {
  Frame& frame = frames_[number];
  List& list = list_of(frame.state);
  (frame.previous == kNone ? list.first : frames_[frame.previous].next) = frame.next;
  (frame.next == kNone ? list.last : frames_[frame.next].previous) = frame.previous;
  --list.count;
}

// A frame for `page`, in no list.
FrameNumber Pager::take_frame(PageNumber page) {
  FrameNumber number = free_.first;
  if (number != kNone) {
    remove(number);
  } else {
    CHECK_LT(frames_made_, frame_limit_);
    number = frames_made_++;
    metadata_bytes_ += sizeof(Frame);
  }
  give_frame(page, number);
  return number;
}

void Pager::give_frame(PageNumber page, FrameNumber number) {
  frames_[number].page = page;
  pages_[page].frame_plus_1 = number + 1;
  note_touched(page);
}

// Whether the table ever held anything about `page`, or about another page in the same OS page of the table.
bool Pager::is_touched(PageNumber page) const { return base::has_bit(touched_, table_page_of(page)); }

// Call before anything about `page` is stored in the table: discard() and relocate() skip what was never noted.
void Pager::note_touched(PageNumber page) {
  if (is_touched(page)) return;
  base::set_bit(touched_, table_page_of(page));
  metadata_bytes_ += kOsPageBytes;
}

// The frame's page is absent from now on. REQUIRES: in no list.
void Pager::free_frame(FrameNumber number) {
  pages_[frames_[number].page].frame_plus_1 = 0;
  append(free_, number, State::kFree);
}

// How many pages the budget has room for, after the metadata; at least half of the budget's worth.
uint32_t Pager::allowed() const {
  // Including what one more load may add.
  const uint64_t metadata_bytes = metadata_bytes_ + most_loaded_ * sizeof(Frame) + 2 * kOsPageBytes;
  const uint64_t left = memory_bytes_ > metadata_bytes ? memory_bytes_ - metadata_bytes : 0;
  return static_cast<uint32_t>(std::max(left, memory_bytes_ / 2) / kOsPageBytes);
}

void Pager::count_memory() {
  auto& statistics = base::statistics;
  const uint64_t frames_bytes = uint64_t{in_use()} * kOsPageBytes;
  statistics.memory_frames_bytes.set(frames_bytes);
  statistics.memory_metadata_bytes.set(metadata_bytes_);
  statistics.memory_peak_bytes.raise(frames_bytes + metadata_bytes_);
}

void Pager::serve(uint64_t address) {
  base::statistics.spill_faults.add();
  const PageNumber page = number_of(address);
  const FrameNumber frame = frame_of(page);
  if (!is_allocated(address))
    faults_->wake(address, kOsPageBytes);  // freed meanwhile: whoever waited finds no access
  else if (frame == kNone)
    load(page);
  else if (frames_[frame].state == State::kCooling)
    bring_back(page);
  else
    dropped_by_program(page);
  count_memory();
}

// A fault on a hot page: usually one that the kernel reported twice, and the page is there.
void Pager::dropped_by_program(PageNumber page) {
  const uint64_t address = address_of(page);
  if (faults_->copy(address, zeros_, kOsPageBytes) < 0) return faults_->wake(address, kOsPageBytes);
  store_.forget(pages_[page].spot);
  pages_[page].spot = kNoSpot;
  frames_[frame_of(page)].known = base::zero_fingerprint();
}

// Brings back a cooling page, and the neighbours that went to the side area with it.
void Pager::bring_back(PageNumber page) {
  const FrameNumber frame = frame_of(page);
  uint32_t count = 1;
  while (count < most_loaded_ && frame_of(page + count) == frame + count &&
         frames_[frame + count].state == State::kCooling)
    ++count;
  const long moved =
      faults_->move(address_of(page), reinterpret_cast<uint64_t>(side_of(frame)), count * kOsPageBytes);
  uint32_t done = moved > 0 ? static_cast<uint32_t>(static_cast<uint64_t>(moved) / kOsPageBytes) : 0;
  if (done == 0) {
    // The kernel cannot move a page into memory that may not be written, but can copy it there.
    if (faults_->copy(address_of(page), side_of(frame), kOsPageBytes) < 0)
      return faults_->wake(address_of(page), kOsPageBytes);
    sys::release(side_of(frame), kOsPageBytes);
    done = 1;
  }
  for (uint32_t i = 0; i < done; ++i) {
    remove(frame + i);
    append(hot_, frame + i, State::kHot);
  }
  base::statistics.cache_rescues.add(done);
  base::probes::rescue(address_of(page) / kOsPageBytes, 0);
}

// How many neighbours of `from`, itself included, could be loaded with it.
uint32_t Pager::absent_run(PageNumber from, uint32_t most, bool upwards) const {
  uint32_t count = 0;
  while (count < most) {
    const uint64_t page = upwards ? uint64_t{from} + count : uint64_t{from} - count;
    if (page >= kPageCount || frame_of(static_cast<PageNumber>(page)) != kNone ||
        !is_allocated(address_of(static_cast<PageNumber>(page))))
      break;
    ++count;
  }
  return count;
}

// How many pages to load at a miss of `page`: more each time if misses continue upwards or downwards.
uint32_t Pager::window_for(PageNumber page, bool& upwards) {
  for (Stream& stream : streams_) {
    if (stream.window == 0 || (page != stream.next_up && page != stream.next_down)) continue;
    upwards = page == stream.next_up;
    stream.window = std::min(stream.window * 4, most_loaded_);
    const uint32_t count = absent_run(page, stream.window, upwards);
    stream.next_up = upwards ? page + count : page + 1;
    stream.next_down = upwards ? page - 1 : page - count;
    return count;
  }
  streams_[oldest_stream_++ % kStreams] = {page + 1, page - 1, 1};
  upwards = true;
  return 1;
}

void Pager::load(PageNumber page) {
  bool upwards = true;
  uint32_t count = std::min(std::max(window_for(page, upwards), 1u), make_room(most_loaded_));
  PageNumber first = upwards ? page : page - (count - 1);
  base::probes::miss(address_of(page) / kOsPageBytes, count);
  uint64_t read_bytes = 0;
  uint32_t done = place_pages(first, count, read_bytes);
  // Whoever faulted waits for this page, which may be the last of them.
  if (page - first >= done && count > 1) done += place_pages(page, 1, read_bytes);
  base::probes::load_done(address_of(page) / kOsPageBytes, done, read_bytes);
}

// UFFDIO_COPY. Tries again while the memory cgroup is at its limit: what is being evicted is about to leave.
long Pager::copy_in(uint64_t to, const void* from, uint64_t bytes) {
  long copied = faults_->copy(to, from, bytes);
  for (uint64_t tries = 0; copied == -ENOMEM && tries < kTriesForMemory; ++tries) {
    sys::nap(1'000'000);
    copied = faults_->copy(to, from, bytes);
  }
  if (copied == -ENOMEM)
    end_process(base::Error::of(ENOMEM, "the kernel has no memory for a page; give less --memory"),
                kFatalStatus);
  return copied;
}

// Loads absent neighbours and puts them at their addresses; returns how many, and adds what was read for them.
uint32_t Pager::place_pages(PageNumber first, uint32_t count, uint64_t& read_bytes) {
  Spot spots[kMaxLoaded];
  for (uint32_t i = 0; i < count; ++i) spots[i] = pages_[first + i].spot;
  store_.load({spots, count}, staging_);
  base::Fingerprint known[kMaxLoaded];
  for (uint32_t i = 0; i < count; ++i)
    known[i] =
        spots[i] == kNoSpot ? base::zero_fingerprint() : base::take_fingerprint(staging_ + i * kOsPageBytes);
  const long copied = copy_in(address_of(first), staging_, count * kOsPageBytes);
  if (copied < 0) {
    // The memory was unmapped behind our back, or mapped and touched: whoever waits finds out.
    faults_->wake(address_of(first), count * kOsPageBytes);
    return 0;
  }
  const uint32_t done = static_cast<uint32_t>(static_cast<uint64_t>(copied) / kOsPageBytes);
  auto& statistics = base::statistics;
  for (uint32_t i = 0; i < done; ++i) {
    const FrameNumber frame = take_frame(first + i);
    frames_[frame].known = known[i];
    append(hot_, frame, State::kHot);
    if (spots[i] == kNoSpot)
      statistics.cache_zero_fills.add();
    else
      read_bytes += kOsPageBytes;
  }
  statistics.cache_misses.add();
  statistics.cache_read_aheads.add(done - 1);
  return done;
}

void Pager::discard(uint64_t address, uint64_t bytes) {
  sys::release(reinterpret_cast<void*>(address), bytes);
  FrameNumber cooled[Store::kMaxPages];
  uint32_t cooled_count = 0;
  for (PageNumber page = number_of(address); page != number_of(address + bytes); ++page) {
    // Where nothing was ever touched, not even the table is read.
    if (page % kPagesPerTablePage == 0 && number_of(address + bytes) - page >= kPagesPerTablePage &&
        !is_touched(page)) {
      page += kPagesPerTablePage - 1;
      continue;
    }
    store_.forget(pages_[page].spot);
    pages_[page].spot = kNoSpot;
    const FrameNumber frame = frame_of(page);
    if (frame == kNone) continue;
    if (frames_[frame].state == State::kCooling) cooled[cooled_count++] = frame;
    remove(frame);
    free_frame(frame);
    base::statistics.cache_discards.add();
    if (cooled_count == Store::kMaxPages) release_side({cooled, std::exchange(cooled_count, 0)});
  }
  release_side({cooled, cooled_count});
  count_memory();
}

// Moves a hot page; false if it is no longer there.
bool Pager::relocate_hot(uint64_t to, uint64_t from) {
  const long moved = faults_->move(to, from, kOsPageBytes);
  if (moved > 0 || moved == -ENOENT) return moved > 0;
  // In use by the kernel, or shared with a child of fork. It is there: copying does not wait.
  CHECK_EQ(copy_in(to, reinterpret_cast<void*>(from), kOsPageBytes), static_cast<long>(kOsPageBytes));
  sys::release(reinterpret_cast<void*>(from), kOsPageBytes);
  return true;
}

void Pager::relocate(uint64_t to, uint64_t from, uint64_t bytes) {
  discard(to, bytes);
  for (uint64_t at = 0; at < bytes; at += kOsPageBytes) {
    const PageNumber source = number_of(from + at), target = number_of(to + at);
    if (!is_touched(source)) {
      at += (kPagesPerTablePage - 1 - source % kPagesPerTablePage) * kOsPageBytes;
      continue;
    }
    const FrameNumber frame = frame_of(source);
    const Spot spot = std::exchange(pages_[source].spot, kNoSpot);
    if (frame == kNone) {
      if (spot == kNoSpot) continue;
    } else {
      const State state = frames_[frame].state;
      remove(frame);
      if (state == State::kHot && !relocate_hot(to + at, from + at)) {
        store_.forget(spot);  // the program gave it back to the kernel itself
        free_frame(frame);
        continue;
      }
      pages_[source].frame_plus_1 = 0;
      give_frame(target, frame);
      append(list_of(state), frame, state);
    }
    note_touched(target);
    pages_[target].spot = spot;
  }
}

}  // namespace spill::preload
