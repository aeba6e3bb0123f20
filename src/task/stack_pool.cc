#include "task/stack_pool.h"

#include <sys/mman.h>

#include "base/check.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace task {
namespace {

constexpr int kGuardInstall = 102;  // MADV_GUARD_INSTALL

}  // namespace

base::Expected<void> StackPool::open(size_t stack_bytes, size_t guard_bytes) {
  CHECK_EQ((stack_bytes | guard_bytes) % base::kOsPageBytes, 0u);
  CHECK_GT(stack_bytes, 0u);
  CHECK_GT(guard_bytes, 0u);
  auto chunks = sys::map_anonymous(sizeof(Chunk) * kMaxChunks, "the list of stacks");
  if (!chunks) return std::unexpected(chunks.error());
  chunks_ = reinterpret_cast<Chunk*>(*chunks);
  stack_bytes_ = stack_bytes;
  guard_bytes_ = guard_bytes;
  slot_bytes_ = stack_bytes + guard_bytes;
  return {};
}

void StackPool::close() {
  for (uint32_t i = 0; i < chunk_count_; ++i) {
    sys::unmap(chunks_[i].memory, slot_bytes_ * kSlotsPerChunk);
    sys::unmap(chunks_[i].next, sizeof(uint32_t) * kSlotsPerChunk);
  }
  sys::unmap(chunks_, sizeof(Chunk) * kMaxChunks);
  chunks_ = nullptr;
}

base::Expected<void> StackPool::add_chunk() {
  if (chunk_count_ == kMaxChunks)
    return base::failure(EAGAIN, "there are ", uint64_t{kMaxChunks} * kSlotsPerChunk,
                         " tasks, and no more can be");
  auto memory = sys::map_anonymous(slot_bytes_ * kSlotsPerChunk, "stacks of tasks");
  if (!memory) return std::unexpected(memory.error());
  auto next = sys::map_anonymous(sizeof(uint32_t) * kSlotsPerChunk, "the list of stacks");
  if (!next) {
    sys::unmap(*memory, slot_bytes_ * kSlotsPerChunk);
    return std::unexpected(next.error());
  }
  // With large OS pages, the first touch of one stack would take the memory of many.
  sys::syscall(SYS_madvise, *memory, slot_bytes_ * kSlotsPerChunk, MADV_NOHUGEPAGE);
  chunks_[chunk_count_++] = {*memory, reinterpret_cast<uint32_t*>(*next)};
  return {};
}

void StackPool::guard(uint32_t slot) {
  char* const begin = stack_of(slot) - guard_bytes_;
  if (marks_work_) {
    if (!sys::failed(sys::syscall(SYS_madvise, begin, guard_bytes_, kGuardInstall))) return;
    marks_work_ = false;
  }
  if (protected_count_ < kMaxProtected && sys::set_access(begin, guard_bytes_, sys::Access::kNone) == 0) {
    ++protected_count_;
    return;
  }
  protected_count_ = kMaxProtected;
  if (unguarded_from_ == kNoSlot) unguarded_from_ = slot;
}

base::Expected<uint32_t> StackPool::take() {
  sys::LockGuard guarded(mutex_);
  for (uint32_t* first : {&first_free_, &first_cold_}) {
    if (*first == kNoSlot) continue;
    const uint32_t slot = *first;
    *first = chunks_[slot / kSlotsPerChunk].next[slot % kSlotsPerChunk];
    if (first == &first_free_) --free_count_;
    return slot;
  }
  const uint32_t slot = slot_count_.load(std::memory_order_relaxed);
  if (slot == chunk_count_ * kSlotsPerChunk) {
    if (auto added = add_chunk(); !added) return std::unexpected(added.error());
  }
  guard(slot);
  slot_count_.store(slot + 1, std::memory_order_release);  // pairs with slot_count()
  return slot;
}

void StackPool::give_back(uint32_t slot) {
  sys::LockGuard guarded(mutex_);
  const bool warm = free_count_ < kMaxWarm;
  if (warm)
    ++free_count_;
  else
    sys::release(stack_of(slot), stack_bytes_);
  uint32_t& first = warm ? first_free_ : first_cold_;
  chunks_[slot / kSlotsPerChunk].next[slot % kSlotsPerChunk] = first;
  first = slot;
}

uint32_t StackPool::slot_at(uint64_t address) const {
  // Acquire: pairs with the release in take(), so that the chunks of all these slots are visible.
  const uint32_t chunk_count = (slot_count() + kSlotsPerChunk - 1) / kSlotsPerChunk;
  for (uint32_t i = 0; i < chunk_count; ++i) {
    const uint64_t begin = reinterpret_cast<uint64_t>(chunks_[i].memory);
    if (address - begin < slot_bytes_ * kSlotsPerChunk)
      return i * kSlotsPerChunk + static_cast<uint32_t>((address - begin) / slot_bytes_);
  }
  return kNoSlot;
}

}  // namespace task
