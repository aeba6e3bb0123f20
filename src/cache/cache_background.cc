// Cache: its budget, and the background work that keeps to it.
#include <algorithm>

#include "cache/cache.h"
#include "sys/memory.h"

namespace cache {
namespace {

// Less garbage than this is not worth an Io; and one Io discards at most so much.
constexpr uint64_t kMinGarbageBytes = uint64_t{8} << 20;
constexpr uint64_t kMaxDiscardBytes = uint64_t{64} << 20;

}  // namespace

uint64_t Cache::other_bytes() {
  const uint64_t used_bytes = shared_.budget.used_bytes(), in_frames = frames_bytes();
  return used_bytes > in_frames ? used_bytes - in_frames : 0;
}

uint64_t Cache::least_memory_bytes(uint64_t held_count, uint64_t pinned_count) {
  const uint64_t frames = partition_count_ * (2 * held_count + kMinFrames) + 2 * pinned_count;
  return other_bytes() + frames * shared_.page_bytes;
}

base::Expected<void> Cache::set_memory(uint64_t bytes, uint64_t held_count, uint64_t pinned_count) {
  const uint64_t frame_count = bytes / frame_bytes_ / partition_count_;
  uint64_t most = ~uint64_t{0};
  for (uint32_t i = 0; i < partition_count_; ++i)
    most = std::min<uint64_t>(most, partitions_[i].frames().frame_limit());
  if (frame_count > most)
    return base::failure(EINVAL, "the budget can be raised to ",
                         ((most + 1) * partition_count_ * frame_bytes_ - 1) >> 20,
                         "M, for which there are addresses, not to ", base::Bytes{bytes});
  if (const uint64_t least = least_memory_bytes(held_count, pinned_count);
      bytes < least || frame_count < kMinFrames)
    return base::failure(EINVAL, "a budget of ", base::Bytes{bytes}, " is too small; give at least ",
                         std::max(least, kMinFrames * partition_count_ * frame_bytes_) / 1024 + 1, "K");
  const uint32_t before = partitions_[0].frame_count();
  for (uint32_t i = 0; i < partition_count_; ++i) {
    if (partitions_[i].resize(static_cast<uint32_t>(frame_count))) continue;
    while (i-- > 0) static_cast<void>(partitions_[i].resize(before));
    return base::failure(EAGAIN,
                         "no memory file for more frames since a fork: raise ulimit -n, or try again when "
                         "the child has ended");
  }
  shared_.budget.set_limit(bytes);
  shared_.low_on_frames.notify_all();
  return {};
}

uint32_t Cache::frames_within_budget() {
  const uint64_t limit = shared_.budget.limit_bytes(), other = other_bytes();
  uint32_t least = 0;
  for (uint32_t i = 0; i < partition_count_; ++i) least += partitions_[i].least();
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(limit > other ? (limit - other) / shared_.page_bytes : 0, least, frame_count()));
}

uint32_t Cache::evict(Workspace& workspace) {
  uint32_t freed = 0;
  for (uint32_t i = 0; i < partition_count_; ++i)
    freed += partitions_[i].evict(partitions_[i].batch_size(), workspace);
  return freed;
}

uint32_t Cache::background_step(Workspace& workspace) {
  uint32_t freed = 0;
  if (shared_.chaos_seed != 0 && maps_regions()) {
    if (chaos_steps_-- > 0) return 0;
    end_regions(RegionsEnd::kChaos);
  }
  for (uint32_t i = 0; i < partition_count_; ++i) {
    if (partitions_[i].give_memory_back()) ++freed;
    if (shared_.chaos_seed != 0 || partitions_[i].takes_frames())
      freed += partitions_[i].evict(partitions_[i].batch_size(), workspace);
  }
  return freed;
}

base::Expected<void> Cache::prepare_cleaning() {
  const uint64_t bytes = shared_.clean_copy_bytes();
  auto memory = sys::map_anonymous(bytes, "the cleaner's copies");
  if (!memory) return std::unexpected(memory.error());
  shared_.clean_copies = *memory;
  shared_.budget.add(bytes);
  return {};
}

bool Cache::idle_step(Workspace& workspace) {
  bool worked = discard_garbage(workspace);
  for (uint32_t i = 0; i < partition_count_; ++i)
    if (partitions_[i].wants_cleaning()) worked |= partitions_[i].clean(workspace) > 0;
  return worked;
}

// One run of garbage places, up to kMaxDiscardBytes, once there is enough garbage to be worth an Io.
bool Cache::discard_garbage(Workspace& workspace) {
  Places& places = shared_.places;
  if (!shared_.device->discards() || places.garbage_count() * shared_.page_bytes < kMinGarbageBytes)
    return false;
  // While pages move, they move to garbage places. Discarding these first would cost an Io, and make the next write there slower.
  const uint32_t move_count = places.move_count();
  calm_steps_ = move_count != last_move_count_ ? 0 : calm_steps_ + (calm_steps_ < kCalmSteps);
  last_move_count_ = move_count;
  if (calm_steps_ < kCalmSteps && !places.too_much_garbage()) return false;
  const Places::Run run = places.take_garbage(static_cast<uint32_t>(kMaxDiscardBytes / shared_.page_bytes));
  if (run.count == 0) return false;
  discard(run, workspace);
  places.give_back_discarded(run);
  return true;
}

void Cache::discard(Places::Run run, Workspace& workspace) {
  storage::Io io;
  io.operation = storage::Operation::kDiscard;
  io.offset_bytes = uint64_t{index(run.first)} * shared_.page_bytes;
  io.length_bytes = uint64_t{run.count} * shared_.page_bytes;
  workspace.queue().run(
      io);  // a failure costs room on the device, nothing else: it is counted in storage.errors
}

void Cache::wait_for_background(uint64_t timeout_ns) {
  // Not conditional on wants_background(): when nothing can be evicted just now, that stays true.
  const uint32_t key = shared_.low_on_frames.prepare();
  shared_.low_on_frames.wait(key, timeout_ns);
}

bool Cache::wants_background() const {
  for (uint32_t i = 0; i < partition_count_; ++i)
    if (partitions_[i].wants_frames()) return true;
  return false;
}

}  // namespace cache
