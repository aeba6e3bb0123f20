// StackPool: the stacks of a scheduler's tasks, all of one size, each above a guard of one or more inaccessible pages.
//
//   chunk (kSlotsPerChunk slots)    | guard | stack ...            top |   one slot
//                                             stack_bytes()
//
// A guard is a mark in the page table (MADV_GUARD_INSTALL, Linux 6.13), which needs no mapping of its own; a protected page needs one of the
// 65,530 that the kernel allows. Where there are no such marks, the first kMaxProtected guards are protected pages, and later stacks have
// none. For these, and for stack frames that reach beyond a guard, the scheduler checks the stack pointer when a task is switched out.
//
// Memory: a stack takes what its task has touched, and 8 bytes of page table for each of its pages. kMaxWarm of the stacks that were given
// back keep their memory.
//
// Thread contract: any thread. take() and give_back() hold a lock.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "base/ids.h"
#include "sys/lock.h"

namespace task {

class StackPool {
 public:
  static constexpr uint32_t kSlotsPerChunk = 1024;
  static constexpr uint32_t kMaxChunks = 1 << 16;
  static constexpr uint32_t kMaxProtected = 16'000;
  static constexpr uint32_t kMaxWarm = 4096;
  static constexpr uint32_t kNoSlot = ~uint32_t{0};

  // REQUIRES: both are non-zero multiples of an OS page. Errors: ENOMEM.
  base::Expected<void> open(size_t stack_bytes, size_t guard_bytes = base::kOsPageBytes);
  void close();

  size_t stack_bytes() const { return stack_bytes_; }

  // Takes a slot; the content of its stack is undefined. Errors: ENOMEM; EAGAIN if there are as many as there can be. Cost: 1 us for a new
  // slot, and a page fault for each page that is touched.
  base::Expected<uint32_t> take();
  // REQUIRES: nothing runs on its stack.
  void give_back(uint32_t slot);
  // The lowest byte of the slot's stack, which is stack_bytes() long.
  char* stack_of(uint32_t slot) const {
    return chunks_[slot / kSlotsPerChunk].memory + slot % kSlotsPerChunk * slot_bytes_ + guard_bytes_;
  }
  // The slot whose guard or stack contains the address; kNoSlot: none does. Async-signal-safe.
  uint32_t slot_at(uint64_t address) const;
  // How many slots have been made; all their stacks may be read.
  uint32_t slot_count() const { return slot_count_.load(std::memory_order_acquire); }
  // Does the slot have a guard? If not, only the check of the stack pointer detects an overflow. For tests.
  bool is_guarded(uint32_t slot) const { return slot < unguarded_from_; }

 private:
  struct Chunk {
    char* memory = nullptr;
    uint32_t* next = nullptr;  // for each slot: the next one in the list of slots that were given back
  };
  base::Expected<void> add_chunk();
  void guard(uint32_t slot);

  size_t stack_bytes_ = 0;
  size_t guard_bytes_ = 0;
  size_t slot_bytes_ = 0;
  Chunk* chunks_ = nullptr;
  uint32_t chunk_count_ = 0;
  std::atomic<uint32_t> slot_count_{0};  // stored with release after the slot can be read
  uint32_t first_free_ = kNoSlot;        // given back, with their memory
  uint32_t free_count_ = 0;              // how many these are
  uint32_t first_cold_ = kNoSlot;        // given back, without memory
  uint32_t protected_count_ = 0;
  bool marks_work_ = true;
  uint32_t unguarded_from_ = kNoSlot;
  sys::Mutex mutex_;
};

}  // namespace task
