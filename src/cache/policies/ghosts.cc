#include "cache/policies/ghosts.h"

#include "base/check.h"
#include "base/mix.h"
#include "base/plain_memory.h"
#include "sys/memory.h"

namespace cache {
namespace {

// Mixed, so that strided page numbers are sampled evenly.
uint64_t hash_of(PageId page) { return base::mix(index(page)); }

}  // namespace

base::Expected<void> Ghosts::open(uint32_t capacity, Budget& budget) {
  CHECK_GT(capacity, 0u);
  capacity_ = capacity < kMaxCapacity ? capacity : kMaxCapacity;
  room_ = 2;
  while (room_ < 2 * capacity_) room_ *= 2;
  const uint64_t pages_bytes = room_ * sizeof *pages_;
  const uint64_t slots_bytes = 2 * room_ * sizeof *slots_;
  memory_bytes_ = base::round_up(pages_bytes + slots_bytes + (room_ + 1) * sizeof *tree_, base::kOsPageBytes);
  auto memory = sys::map_anonymous(memory_bytes_, "pages that left memory");
  if (!memory) return std::unexpected(memory.error());
  memory_ = *memory;
  pages_ = reinterpret_cast<uint64_t*>(memory_);
  slots_ = reinterpret_cast<uint16_t*>(memory_ + pages_bytes);
  tree_ = reinterpret_cast<uint16_t*>(memory_ + pages_bytes + slots_bytes);
  budget.add(memory_bytes_);
  return {};
}

void Ghosts::close() { sys::unmap(memory_, memory_bytes_); }

// The cell that holds the page's slot, or kNone.
uint32_t Ghosts::cell_of(PageId page) const {
  const uint32_t mask = 2 * room_ - 1;
  for (auto cell = static_cast<uint32_t>(hash_of(page) >> 32) & mask; slots_[cell] != 0;
       cell = (cell + 1) & mask)
    if (pages_[slots_[cell] - 1] == index(page) + 1) return cell;
  return kNone;
}

void Ghosts::change(uint32_t slot, int by) {
  for (uint32_t i = slot + 1; i <= room_; i += i & -i) tree_[i] = static_cast<uint16_t>(tree_[i] + by);
}

uint32_t Ghosts::count_up_to(uint32_t slot) const {
  uint32_t count = 0;
  for (uint32_t i = slot + 1; i > 0; i -= i & -i) count += tree_[i];
  return count;
}

void Ghosts::remove(uint32_t cell) {
  const uint32_t slot = slots_[cell] - 1u;
  pages_[slot] = 0;
  change(slot, -1);
  --count_;
  // Later cells move into the hole where their hash allows it, so that each can still be reached from its home cell.
  const uint32_t mask = 2 * room_ - 1;
  uint32_t hole = cell;
  for (uint32_t at = (cell + 1) & mask; slots_[at] != 0; at = (at + 1) & mask) {
    const auto home = static_cast<uint32_t>(hash_of(PageId{pages_[slots_[at] - 1] - 1}) >> 32) & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = 0;
}

// REQUIRES: next_ < room_, and the page is not in pages_.
void Ghosts::append(PageId page) {
  const uint32_t slot = next_++;
  pages_[slot] = index(page) + 1;
  change(slot, 1);
  ++count_;
  const uint32_t mask = 2 * room_ - 1;
  auto cell = static_cast<uint32_t>(hash_of(page) >> 32) & mask;
  while (slots_[cell] != 0) cell = (cell + 1) & mask;
  slots_[cell] = static_cast<uint16_t>(slot + 1);
}

// Closes the gaps, and drops what is no longer in the sample.
void Ghosts::pack() {
  spillway_plain_memset(slots_, 0, 2 * room_ * sizeof *slots_);
  spillway_plain_memset(tree_, 0, (room_ + 1) * sizeof *tree_);
  const uint32_t end = next_;
  next_ = count_ = 0;
  for (uint32_t slot = 0; slot < end; ++slot) {
    const uint64_t page = pages_[slot];
    pages_[slot] = 0;
    if (page != 0 && is_sampled(hash_of(PageId{page - 1}))) append(PageId{page - 1});  // never ahead of slot
  }
}

void Ghosts::left(PageId page) {
  const uint64_t hash = hash_of(page);
  if (!is_sampled(hash)) return;
  forget(page);
  while (count_ == capacity_) {
    ++shift_;
    pack();
  }
  if (next_ == room_) pack();
  if (is_sampled(hash)) append(page);
}

void Ghosts::came(PageId page, uint64_t frame_count, base::MissCurve* curve) {
  if (!is_sampled(hash_of(page))) return;
  CHECK_GT(frame_count, 0u);
  const uint64_t weight = uint64_t{1} << shift_;
  const uint32_t cell = cell_of(page);
  if (cell == kNone) {
    if (curve != nullptr) curve->add_first(weight);
    return;
  }
  const uint64_t above = count_ - count_up_to(slots_[cell] - 1u);
  remove(cell);
  if (curve == nullptr) return;
  curve->add((16 * (frame_count + above * weight) + frame_count - 1) / frame_count, weight);
}

void Ghosts::forget(PageId page) {
  if (!is_sampled(hash_of(page))) return;
  if (const uint32_t cell = cell_of(page); cell != kNone) remove(cell);
}

}  // namespace cache
