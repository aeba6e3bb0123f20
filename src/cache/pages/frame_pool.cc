#include "cache/pages/frame_pool.h"

#include <new>

#include "sys/files.h"
#include "sys/huge_pages.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace cache {
namespace {

constexpr uint64_t kRunMask = (uint64_t{1} << FramePool::kRunFrames) - 1;
// How many words one search for a free run looks at: the bound keeps each search from looking at all runs that it may not take because they are fresh.
constexpr uint32_t kMaxWords = 8;
constexpr uint32_t kRunsPerWord = 64 / FramePool::kRunFrames;

}  // namespace

base::Expected<void> FramePool::open(uint32_t frame_count, size_t page_bytes, Budget& budget,
                                     sys::WriteWatch& watch, bool large, uint32_t frame_limit) {
  CHECK_GT(frame_count, 0u);
  frame_limit_ = frame_limit > frame_count ? frame_limit : frame_count;
  page_bytes_ = page_bytes;
  process_ = sys::syscall(SYS_getpid);
  budget_ = &budget;
  if (auto mapped = map_memory(); !mapped) {
    if (frame_limit_ == frame_count) return mapped;
    frame_limit_ = frame_count;
    if (auto less = map_memory(); !less) return less;
  }
  const uint64_t frames_bytes = base::round_up(uint64_t{frame_limit_} * sizeof(Frame), base::kLineBytes);
  const uint64_t fingerprints_bytes = frame_limit_ * pieces() * sizeof(base::Fingerprint);
  const uint64_t bits_bytes = base::round_up(frame_limit_, 64) / 8;
  const auto block_frames =
      static_cast<uint32_t>(sys::kHugePageBytes > page_bytes ? sys::kHugePageBytes / page_bytes : 1);
  const uint32_t most_blocks = frame_limit_ / block_frames;
  metadata_bytes_ = base::round_up(
      frames_bytes + fingerprints_bytes + bits_bytes + Blocks::bytes_for(most_blocks), base::kOsPageBytes);
  auto metadata = sys::map_anonymous(metadata_bytes_, "frame metadata");
  if (!metadata) return std::unexpected(metadata.error());
  frames_ = reinterpret_cast<Frame*>(*metadata);
  fingerprints_ = reinterpret_cast<base::Fingerprint*>(*metadata + frames_bytes);
  free_bits_ = reinterpret_cast<uint64_t*>(*metadata + frames_bytes + fingerprints_bytes);
  blocks_.open(*metadata + frames_bytes + fingerprints_bytes + bits_bytes, most_blocks, block_frames);
  watch_ = &watch;
  if (large && reinterpret_cast<uintptr_t>(memory_) % sys::kHugePageBytes == 0) large_failures_ = 0;
  if (auto mapped = map_unwatched(); !mapped) return mapped;
  add_frames(frame_count);
  return {};
}

// Makes the memory file, for frame_limit_ frames, and maps it where compiled code uses it.
base::Expected<void> FramePool::map_memory() {
  auto file = sys::create_memory_file(memory_bytes(), "spillway-frames");
  if (!file) return std::unexpected(file.error());
  // An entry of the table is a positive distance, so the frame of a page in a library's memory must lie above the library.
  auto memory = sys::map_shared_high(*file, memory_bytes());
  if (!memory) {
    sys::close_own_descriptor(*file);
    return std::unexpected(memory.error());
  }
  descriptor_ = *file;
  memory_ = unwatched_memory_ = *memory;
  return {};
}

// The part of the metadata that is in use.
uint64_t FramePool::charged_bytes() const {
  return base::round_up(uint64_t{frame_count_} * (sizeof(Frame) + pieces() * sizeof(base::Fingerprint)) +
                            base::round_up(frame_count_, 64) / 8 +
                            Blocks::bytes_for(frame_count_ / blocks_.frames_per_block()),
                        base::kOsPageBytes);
}

// ABSENT -> FREE up to `end`.
void FramePool::add_frames(uint32_t end) {
  const uint64_t before = charged_bytes();
  const uint32_t first = frame_count_;
  for (uint32_t i = first; i < end; ++i) {
    (new (&frames_[i]) Frame)->add();
    base::set_bit(free_bits_, i);
  }
  frame_count_.store(end, std::memory_order_relaxed);
  base::increase(free_count_, end - first);
  free_runs_ += (end - first) / kRunFrames + 1;  // an upper bound
  blocks_.grow(end / blocks_.frames_per_block(), [&](uint32_t frame) {
    return Blocks::Looks{.is_free = is_free(frame), .is_fresh = frames_[frame].fresh};
  });
  budget_->add(charged_bytes() - (first > 0 ? before : 0));
}

bool FramePool::grow(uint32_t frame_count) {
  CHECK_LE(frame_count, frame_limit_);
  if (frame_count <= frame_count_) return true;
  if (!has_new_memory_) {
    if (!open_own()) return false;
    const FrameId first{frame_count_.load(std::memory_order_relaxed)};
    const uint64_t length = uint64_t{frame_limit_ - frame_count_} * page_bytes_;
    if (!sys::map_shared(descriptor_, file_offset(first), length, sys::Access::kReadWrite, bytes(first)))
      return false;
    adopt(bytes(first), length);
    has_new_memory_ = true;
  }
  add_frames(frame_count);
  return true;
}

// Sets up memory of the pool's own file that has just been mapped.
void FramePool::adopt(char* memory, uint64_t length) {
  sys::keep_from_children(memory, length);
  // If that is refused, the kernel never reports anything here as untouched.
  if (can_watch() && is_watching_) static_cast<void>(watch_->add(memory, length).has_value());
}

void FramePool::close() {
  if (unwatched_memory_ != memory_) sys::unmap(unwatched_memory_, memory_bytes());
  sys::unmap(memory_, memory_bytes());
  sys::unmap(frames_, metadata_bytes_);
  if (descriptor_ >= 0) sys::close_own_descriptor(descriptor_);
}

base::Expected<void> FramePool::map_unwatched() {
  const uint64_t bytes = memory_bytes();
  if (unwatched_memory_ != memory_) sys::unmap(unwatched_memory_, bytes);
  unwatched_memory_ = memory_;
  auto again = sys::map_shared(descriptor_, 0, bytes, sys::Access::kReadWrite);
  if (!again) return std::unexpected(again.error());
  unwatched_memory_ = *again;
  sys::keep_from_core_files(*again, bytes);  // once is enough
  sys::keep_from_children(*again, bytes);
  return {};
}

FrameId FramePool::taken(uint32_t frame) {
  const uint64_t run_bits = kRunMask << (frame % 64 / kRunFrames * kRunFrames);
  if ((free_bits_[frame / 64] & run_bits) == run_bits && free_runs_ > 0) --free_runs_;
  base::clear_bit(free_bits_, frame);
  blocks_.add_free(frame, -1);
  base::increase(free_count_, ~uint32_t{0});
  if (!frames_[frame].fresh) base::increase(free_touched_count_, ~uint32_t{0});
  return FrameId{frame};
}

FrameId FramePool::take(PageId page, FrameId wish, bool allow_fresh) {
  if ((allow_fresh ? free_count() : free_touched_count()) == 0) return base::kNoFrame;
  const bool is_wished = wish != base::kNoFrame && acceptable(index(wish), allow_fresh);
  FrameId frame = is_wished ? wish : find_in_block(page, allow_fresh);
  if (frame == base::kNoFrame) frame = find_in_free_run(page, allow_fresh);
  if (frame == base::kNoFrame) frame = find_any(allow_fresh);
  if (frame == base::kNoFrame) return frame;
  if (frames_[index(frame)].fresh) {
    // A fresh frame that stays private takes memory twice.
    if (frames_[index(frame)].backing != Backing::kOwn) share_free_neighbours(frame);
    const uint32_t block = blocks_.of(index(frame));
    if (!is_wished && block != Blocks::kNone && blocks_.is_fresh(block)) fill_block(block);
  }
  return taken(index(frame));
}

// Gives a block without memory all of its memory as one large OS page, if that can be had.
void FramePool::fill_block(uint32_t block) {
  const FrameId first{block * blocks_.frames_per_block()};
  const uint64_t bytes_of_block = uint64_t{blocks_.frames_per_block()} * page_bytes_;
  if (large_failures_ == kMaxLargeFailures || frames_[index(first)].backing != Backing::kOwn || is_watching_)
    return;
  if (budget_->exceeded_by(bytes_of_block + budget_->limit_bytes() / 8)) return;
  if (!sys::fill_huge_page(bytes(first))) {
    ++large_failures_;
    return;
  }
  for (uint32_t i = 0; i < blocks_.frames_per_block(); ++i) {
    if (is_free(index(first) + i)) base::increase(free_touched_count_, 1u);
    touch(first + i);
  }
  base::statistics.memory_large_bytes.add(bytes_of_block);
}

FrameId FramePool::find_in_block(PageId page, bool allow_fresh) {
  const uint64_t region = index(page) / blocks_.frames_per_block();
  uint32_t block = blocks_.find(region);
  if (block == Blocks::kNone) block = blocks_.give(region, allow_fresh);
  if (block == Blocks::kNone) return base::kNoFrame;
  const uint32_t frame =
      block * blocks_.frames_per_block() + static_cast<uint32_t>(index(page) % blocks_.frames_per_block());
  return acceptable(frame, allow_fresh) ? FrameId{frame} : base::kNoFrame;
}

FrameId FramePool::find_in_free_run(PageId page, bool allow_fresh) {
  const uint32_t words = (frame_count_ + 63) / 64;
  bool refused = false;
  for (uint32_t looked = 0; looked < words && looked < kMaxWords && free_runs_ > 0; ++looked) {
    const uint64_t word = free_bits_[run_cursor_];
    for (uint32_t run = 0; run < kRunsPerWord; ++run) {
      if ((word >> (run * kRunFrames) & kRunMask) != kRunMask) continue;
      uint32_t frame = run_cursor_ * 64 + run * kRunFrames + static_cast<uint32_t>(index(page) % kRunFrames);
      if (acceptable(frame, allow_fresh)) return FrameId{frame};
      refused = true;
    }
    run_cursor_ = (run_cursor_ + 1) % words;
    // No free runs are left; give_back() raises the count when one forms.
    if (looked + 1 == words && !refused) free_runs_ = 0;
  }
  return base::kNoFrame;
}

FrameId FramePool::find_any(bool allow_fresh) {
  const uint32_t words = (frame_count_ + 63) / 64;
  for (uint32_t looked = 0; looked <= words; ++looked) {
    for (uint64_t word = free_bits_[any_cursor_]; word != 0; word &= word - 1) {
      uint32_t frame = any_cursor_ * 64 + static_cast<uint32_t>(__builtin_ctzll(word));
      if (acceptable(frame, allow_fresh)) return FrameId{frame};
    }
    any_cursor_ = (any_cursor_ + 1) % words;
  }
  return base::kNoFrame;
}

FrameId FramePool::find_free_block(PageId page) {
  if (unshared_count_ != 0) return base::kNoFrame;
  const uint64_t region = index(page) / blocks_.frames_per_block();
  for (uint32_t looked = 0; looked < blocks_.count(); looked += Blocks::kMaxLooks) {
    const uint32_t block = blocks_.give(region, true);
    if (block != Blocks::kNone) return FrameId{block * blocks_.frames_per_block()};
  }
  return base::kNoFrame;
}

bool FramePool::take_run(FrameId first, uint32_t count) {
  if (unshared_count_ != 0) return false;
  for (uint32_t i = 0; i < count; ++i)
    if (!is_free(index(first) + i)) return false;
  if (!release_run(first, count)) return false;
  if (count == blocks_.frames_per_block()) fill_block(blocks_.of(index(first)));
  for (uint32_t i = 0; i < count; ++i) touch(taken(index(first) + i));
  return true;
}

void FramePool::give_back(FrameId frame) {
  const uint32_t i = index(frame);
  CHECK_LT(i, frame_count_);
  CHECK(!is_free(i));
  CHECK(frames_[i].state() == State::kFree);
  base::set_bit(free_bits_, i);
  blocks_.add_free(i, 1);
  base::increase(free_count_, 1u);
  if (!frames_[i].fresh) base::increase(free_touched_count_, 1u);
  const uint64_t run_bits = kRunMask << (i % 64 / kRunFrames * kRunFrames);
  if ((free_bits_[i / 64] & run_bits) == run_bits) ++free_runs_;
}

bool FramePool::release_memory(FrameId frame) {
  CHECK(is_free(index(frame)));
  if (frames_[index(frame)].fresh) return true;
  if (frames_[index(frame)].backing != Backing::kOwn)
    share(frame, 1);
  else if (sys::release_file_piece(descriptor_, file_offset(frame), page_bytes_))
    drop_content(frame);
  return frames_[index(frame)].fresh;
}

bool FramePool::release_run(FrameId first, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t end = i;
    while (end < count && !frames_[index(first) + end].fresh &&
           frames_[index(first) + end].backing == Backing::kOwn)
      ++end;
    if (end == i) continue;
    if (!sys::release_file_piece(descriptor_, file_offset(first + i), (end - i) * page_bytes_)) return false;
    for (; i < end; ++i) drop_content(first + i);
  }
  return true;
}

// Notes that a free frame takes no memory any more and reads as zeros.
void FramePool::drop_content(FrameId frame) {
  if (frames_[index(frame)].fresh) return;
  frames_[index(frame)].fresh = true;
  blocks_.add_fresh(index(frame), 1);
  base::increase(free_touched_count_, ~uint32_t{0});
  base::increase(touched_count_, ~uint32_t{0});
  frames_[index(frame)].poisoned = false;
  frames_[index(frame)].watched = false;
  budget_->subtract(page_bytes_);
}

bool FramePool::protect(FrameId first, uint32_t count) {
  if (!is_watching_) {
    if (!watch_->add(memory_, has_new_memory_ ? memory_bytes() : uint64_t{frame_count_} * page_bytes_)) {
      watch_ = nullptr;
      return false;
    }
    is_watching_ = true;
  }
  return watch_->protect(bytes(first), count * page_bytes_);
}

void FramePool::set_backing(FrameId frame, Backing backing) {
  Frame& changed = frames_[index(frame)];
  unshared_count_ += (backing != Backing::kOwn) - (changed.backing != Backing::kOwn);
  changed.backing = backing;
  changed.watched = false;
}

void FramePool::guard(FrameId id, uint64_t i, sys::Access access) {
  Frame& frame = frames_[index(id)];
  if (frame.backing != Backing::kOwn || unwatched_memory_ == memory_) return;
  if (!frame.guarded && guarded_count_ == kMaxGuarded) return;
  if (sys::set_access(bytes(id) + i * base::kOsPageBytes, base::kOsPageBytes, access) != 0) return;
  frame.watched = false;
  if (frame.guarded) return;
  frame.guarded = true;
  ++guarded_count_;
}

void FramePool::end_guard(FrameId id) {
  if (!frames_[index(id)].guarded) return;
  uint32_t first = index(id), end = first + 1;
  const auto allow_all = [&] {
    return sys::set_access(bytes(FrameId{first}), (end - first) * page_bytes_, sys::Access::kReadWrite) == 0;
  };
  if (!allow_all()) {
    // The kernel has one mapping for it and adjacent guarded frames, and no room for the parts. Ending all of these guards needs none.
    while (first > 0 && frames_[first - 1].guarded) --first;
    while (end < frame_count_ && frames_[end].guarded) ++end;
    CHECK(allow_all());
  }
  guarded_count_ -= end - first;
  for (; first < end; ++first) frames_[first].guarded = false;
}

FramePool::Lent FramePool::lend(const PinsOverFork& pins, bool waits) {
  const auto kept = [&](Frame& frame) { return frame.pins() > 0 && pins.is_kept(frame.page); };
  const auto others_may_store = [&](Frame& frame) {
    const uint32_t count = frame.storing_pins();
    return count > 0 && count > pins.of_this_thread(frame.page);
  };
  for (uint32_t i = 0; waits && i < frame_count_; ++i) {
    Frame& frame = frames_[i];
    if (frame.backing == Backing::kOwn && !kept(frame) && others_may_store(frame)) return Lent::kLater;
  }
  for (uint32_t i = 0; unshared_count_ > 0 && i < frame_count_; ++i) {
    Frame& frame = frames_[i];
    if (frame.backing != Backing::kOld || kept(frame)) continue;
    if (others_may_store(frame) || frame.state() == State::kLoading) return Lent::kLater;
    if (!share(FrameId{i}, 1)) return stale_load_count_ > 0 ? Lent::kLater : Lent::kFailed;
  }
  for (uint32_t i = 0; guarded_count_ > 0 && i < frame_count_; ++i) end_guard(FrameId{i});
  bool failed = false;
  for (uint32_t i = 0; i < frame_count_;) {
    const auto lendable = [&](uint32_t at) {
      return frames_[at].backing == Backing::kOwn && !kept(frames_[at]);
    };
    uint32_t end = i;
    while (end < frame_count_ && lendable(end)) ++end;
    if (end > i) {
      const FrameId first{i};
      failed = failed ||
               sys::map_private(descriptor_, file_offset(first), (end - i) * page_bytes_, bytes(first)) != 0;
    }
    for (; i < end; ++i) set_backing(FrameId{i}, failed ? Backing::kOld : Backing::kPrivate);
    for (; i < frame_count_ && !lendable(i); ++i)
      if (frames_[i].backing == Backing::kOwn) set_backing(FrameId{i}, Backing::kOld);
  }
  // ABSENT frames lose their memory, which is in the base and so shared with the child; grow() gives them new memory.
  if (has_new_memory_ && frame_limit_ > frame_count_) {
    const FrameId first{frame_count_.load(std::memory_order_relaxed)};
    failed |= sys::make_inaccessible(bytes(first), uint64_t{frame_limit_ - frame_count_} * page_bytes_) != 0;
    has_new_memory_ = false;
  }
  for (uint32_t i = 0; i < frame_count_; ++i) {
    if (frames_[i].state() != State::kLoading || frames_[i].stale_load) continue;
    frames_[i].stale_load = true;
    ++stale_load_count_;
  }
  is_base_ = true;
  return failed ? Lent::kFailed : Lent::kYes;
}

void FramePool::set_inherited(bool inherited) {
  (inherited ? sys::give_to_children : sys::keep_from_children)(memory_, memory_bytes());
}

void FramePool::become_child() {
  if (descriptor_ >= 0) sys::close_own_descriptor(descriptor_);
  descriptor_ = -1;
  is_base_ = false;
  is_watching_ = true;          // adopt() adds pieces as they are shared
  unwatched_memory_ = memory_;  // the other mapping was not inherited
  CHECK_EQ(stale_load_count_, 0u);
  process_ = sys::syscall(SYS_getpid);
  // Opened now rather than when it is needed: by then the program may be closing all descriptors that it finds, even one that has just been opened. If
  // that fails, share tries again.
  static_cast<void>(open_own());
}

long FramePool::own_kept(FrameId frame, void* address) {
  if (!open_own()) return -ENOMEM;
  if (long result = sys::move_to_file(descriptor_, file_offset(frame), page_bytes_, address); result != 0)
    return result;
  auto mapped =
      sys::map_shared(descriptor_, file_offset(frame), page_bytes_, sys::Access::kReadWrite, bytes(frame));
  if (!mapped) return -mapped.error().number;
  set_backing(frame, Backing::kOwn);
  return 0;
}

void FramePool::end_stale_load(FrameId frame) {
  frames_[index(frame)].stale_load = false;
  --stale_load_count_;
}

bool FramePool::open_own() {
  if (descriptor_ >= 0 && !is_base_) return true;
  // A child of vfork has this memory, but descriptors of its own.
  if (sys::syscall(SYS_getpid) != process_) return false;
  // A load that began before the fork may be storing through unwatched_memory_, which is a mapping of the base.
  if (stale_load_count_ > 0) return false;
  auto file = sys::create_memory_file(memory_bytes(), "spillway-frames");
  if (!file) return false;
  if (descriptor_ >= 0) sys::close_own_descriptor(descriptor_);
  descriptor_ = *file;
  is_base_ = false;
  return map_unwatched().has_value();
}

bool FramePool::share(FrameId first, uint32_t count) {
  if (!open_own()) return false;
  char* const memory = bytes(first);
  const uint64_t length = count * page_bytes_;
  // From here on nobody stores to it until the new memory is mapped: a thread that tries faults, and waits.
  bool copied = sys::forbid_stores(memory, length);
  bool dropped = true;  // the content of those that are free
  for (FrameId frame = first; copied && index(frame) < index(first) + count; frame = frame + 1) {
    if (is_free(index(frame)) && sys::release_file_piece(descriptor_, file_offset(frame), page_bytes_))
      continue;
    if (is_free(index(frame))) dropped = false;
    copied = sys::write_file_piece(descriptor_, file_offset(frame), bytes(frame), page_bytes_);
  }
  if (!copied || !sys::map_shared(descriptor_, file_offset(first), length, sys::Access::kReadWrite, memory)
                      .has_value()) {
    sys::allow_stores(memory, length);
    return false;
  }
  adopt(memory, length);
  for (FrameId frame = first; index(frame) < index(first) + count; frame = frame + 1) {
    set_backing(frame, Backing::kOwn);
    if (dropped && is_free(index(frame))) drop_content(frame);
  }
  return true;
}

// Shares the aligned 64 frames that contain a free one which is about to be taken, if all of them are free.
void FramePool::share_free_neighbours(FrameId frame) {
  const uint32_t first = index(frame) / 64 * 64;
  const uint32_t count = frame_count_ - first < 64 ? frame_count_ - first : 64;
  if (free_bits_[first / 64] == (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1))
    share(FrameId{first}, count);
}

FrameId FramePool::next_unshared() {
  while (frames_[share_cursor_].backing == Backing::kOwn)
    share_cursor_ = share_cursor_ + 1 == frame_count_ ? 0 : share_cursor_ + 1;
  const FrameId found{share_cursor_};
  share_cursor_ = share_cursor_ + 1 == frame_count_ ? 0 : share_cursor_ + 1;
  return found;
}

FrameId FramePool::find_free_touched() {
  return free_touched_count() == 0 ? base::kNoFrame : find_any(false);
}

}  // namespace cache
