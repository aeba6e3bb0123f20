#include "cache/frame_pool.h"

#include <new>

#include "sys/files.h"
#include "sys/memory.h"

namespace cache {
namespace {

constexpr uint64_t kRunMask = (uint64_t{1} << FramePool::kRunFrames) - 1;
// Where to look for a free run in one search. Runs that may not be taken, since their frames are fresh, would be
// looked at each time.
constexpr uint32_t kMostWords = 8;
constexpr uint32_t kRunsPerWord = 64 / FramePool::kRunFrames;

}  // namespace

base::Expected<void> FramePool::open(uint32_t frame_count, size_t page_bytes, Budget& budget,
                                     sys::WriteWatch& watch) {
  CHECK_GT(frame_count, 0u);
  frame_count_ = frame_count;
  page_bytes_ = page_bytes;
  budget_ = &budget;
  const uint64_t pieces = page_bytes / base::kOsPageBytes;
  const uint64_t frames_bytes = base::round_up(uint64_t{frame_count} * sizeof(Frame), base::kLineBytes);
  const uint64_t fingerprints_bytes = uint64_t{frame_count} * pieces * sizeof(base::Fingerprint);
  const uint64_t bits_bytes = base::round_up(frame_count, 64) / 8;
  metadata_bytes_ = base::round_up(frames_bytes + fingerprints_bytes + bits_bytes, base::kOsPageBytes);
  auto metadata = sys::map_anonymous(metadata_bytes_, "frame metadata");
  if (!metadata) return std::unexpected(metadata.error());
  frames_ = reinterpret_cast<Frame*>(*metadata);
  fingerprints_ = reinterpret_cast<base::Fingerprint*>(*metadata + frames_bytes);
  free_bits_ = reinterpret_cast<uint64_t*>(*metadata + frames_bytes + fingerprints_bytes);

  auto file = sys::create_memory_file(uint64_t{frame_count} * page_bytes, "spillway-frames");
  if (!file) return std::unexpected(file.error());
  descriptor_ = *file;
  // An entry of the table is a positive distance: a page of a library's memory needs a frame above it.
  auto memory = sys::map_shared_high(descriptor_, uint64_t{frame_count} * page_bytes);
  if (!memory) return std::unexpected(memory.error());
  memory_ = unwatched_memory_ = *memory;
  if (watch.is_open()) {
    auto again = sys::map_shared(descriptor_, 0, uint64_t{frame_count} * page_bytes, sys::Access::kReadWrite);
    if (!again) return std::unexpected(again.error());
    if (watch.add(memory_, uint64_t{frame_count} * page_bytes)) {
      watch_ = &watch;
      unwatched_memory_ = *again;
      sys::keep_from_core_files(*again, uint64_t{frame_count} * page_bytes);  // once is enough
      sys::keep_from_children(*again, uint64_t{frame_count} * page_bytes);
    } else {
      sys::unmap(*again, uint64_t{frame_count} * page_bytes);
    }
  }
  for (uint32_t i = 0; i < frame_count; ++i) {
    (new (&frames_[i]) Frame)->add();
    free_bits_[i / 64] |= uint64_t{1} << (i % 64);
  }
  free_count_.store(frame_count, std::memory_order_relaxed);
  free_runs_ = frame_count / kRunFrames;
  budget.add(metadata_bytes_);
  return {};
}

void FramePool::close() {
  if (unwatched_memory_ != memory_) sys::unmap(unwatched_memory_, uint64_t{frame_count_} * page_bytes_);
  sys::unmap(memory_, uint64_t{frame_count_} * page_bytes_);
  sys::unmap(frames_, metadata_bytes_);
  sys::close_own_descriptor(descriptor_);
}

FrameId FramePool::taken(uint32_t frame) {
  const uint64_t run_bits = kRunMask << (frame % 64 / kRunFrames * kRunFrames);
  if ((free_bits_[frame / 64] & run_bits) == run_bits && free_runs_ > 0) --free_runs_;
  free_bits_[frame / 64] &= ~(uint64_t{1} << (frame % 64));
  add(free_count_, ~uint32_t{0});
  if (!frames_[frame].fresh) add(free_touched_count_, ~uint32_t{0});
  return FrameId{frame};
}

FrameId FramePool::take(PageId page, FrameId wish, bool allow_fresh) {
  if ((allow_fresh ? free_count() : free_touched_count()) == 0) return base::kNoFrame;
  if (wish != base::kNoFrame && acceptable(index(wish), allow_fresh)) return taken(index(wish));
  FrameId frame = find_in_free_run(page, allow_fresh);
  if (frame == base::kNoFrame) frame = find_any(allow_fresh);
  return frame == base::kNoFrame ? frame : taken(index(frame));
}

FrameId FramePool::find_in_free_run(PageId page, bool allow_fresh) {
  const uint32_t words = (frame_count_ + 63) / 64;
  bool refused = false;
  for (uint32_t looked = 0; looked < words && looked < kMostWords && free_runs_ > 0; ++looked) {
    const uint64_t word = free_bits_[run_cursor_];
    for (uint32_t run = 0; run < kRunsPerWord; ++run) {
      if ((word >> (run * kRunFrames) & kRunMask) != kRunMask) continue;
      uint32_t frame = run_cursor_ * 64 + run * kRunFrames + static_cast<uint32_t>(index(page) % kRunFrames);
      if (acceptable(frame, allow_fresh)) return FrameId{frame};
      refused = true;
    }
    run_cursor_ = (run_cursor_ + 1) % words;
    // None left; give_back() raises it when one forms.
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

void FramePool::give_back(FrameId frame) {
  const uint32_t i = index(frame);
  CHECK_LT(i, frame_count_);
  CHECK(!is_free(i));
  CHECK(frames_[i].state() == State::kFree);
  free_bits_[i / 64] |= uint64_t{1} << (i % 64);
  add(free_count_, 1);
  if (!frames_[i].fresh) add(free_touched_count_, 1);
  const uint64_t run_bits = kRunMask << (i % 64 / kRunFrames * kRunFrames);
  if ((free_bits_[i / 64] & run_bits) == run_bits) ++free_runs_;
}

void FramePool::release_memory(FrameId frame) {
  CHECK(is_free(index(frame)));
  if (frames_[index(frame)].fresh) return;
  sys::release_file_piece(descriptor_, file_offset(frame), page_bytes_);
  frames_[index(frame)].fresh = true;
  add(free_touched_count_, ~uint32_t{0});
  add(touched_count_, ~uint32_t{0});
  frames_[index(frame)].poisoned = false;
  frames_[index(frame)].watched = false;
  budget_->subtract(page_bytes_);
}

FrameId FramePool::find_free_touched() {
  return free_touched_count() == 0 ? base::kNoFrame : find_any(false);
}

}  // namespace cache
