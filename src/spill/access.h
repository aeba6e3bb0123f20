// How the runtime's own code touches memory that may be spilled: the interface of the interceptors.
//
//   hold            one address, under a hazard slot: for copying and looking, cannot block others
//   for_each_piece  a range, piece by piece
//   WiredRange      a range pinned for a system call that does not block for long
//   Scratch         plain memory for bouncing when a call may block, and for strings
//
// Invariants
//  1 the runtime never dereferences a spilled address itself (it would fault into itself)
//  2 a held pointer reaches to the end of its page piece only; it ends with the next hold() in the
//    same slot, release(), or the return of the interceptor
//  3 no slot is held across a callback into the program or a call that may block without limit
//  4 an interceptor may clobber all of compiled code's slots: no translation lives across a call
#pragma once
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "spill/abi.h"
#include "spill/protection.h"

namespace spill {

// Slots of the runtime, numbered after compiled code's. kHoldA to kHoldD are for interceptors, and for accesses that cross a page's edge as long
// as they do not block (cross_quick.c); kHoldCross is for those that may block (translate.cc), kHoldAhead for what is read ahead of use
// (ahead/prefetch.cc), kHoldSatc for the last page that bypassed a thread's translation caches (satc.cc).
enum HoldSlot : unsigned { kHoldA = kSlotCount, kHoldB, kHoldC, kHoldD, kHoldCross, kHoldAhead, kHoldSatc };

// Translates `address` (spilled or not) and protects it in `slot`. The result is valid for the bytes
// up to the end of address's OS page (any length when it is not spilled). Cost: inline when resident;
// else may block and do I/O.
inline char* hold(const void* address, HoldSlot slot) {
  const auto a = reinterpret_cast<uint64_t>(address);
  Slot* slots = __spillway_slots;
  // Step 2 of the evict protocol (membarrier) pairs with the order of this store and the entry's load.
  slots[slot].store(a, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  int64_t entry = entry_of(a).load(std::memory_order_acquire);
  if (__builtin_expect(entry <= 0, 0)) entry = spillway_translate(a, kRuntimeSlotMask);
  return reinterpret_cast<char*>(a + static_cast<uint64_t>(entry) - 1);
}

inline void release(HoldSlot slot) { __spillway_slots[slot].store(0, std::memory_order_release); }

// Releases every slot of the thread at this level: for a call that may wait without limit.
inline void clear_slots() {
  Slot* slots = __spillway_slots;
  if (reinterpret_cast<uint64_t>(slots) == kUnregisteredSlots) return;
  for (unsigned i = 0; i < kAllSlotCount; ++i) slots[i].store(0, std::memory_order_release);
}

// Bytes from `address` to the end of its OS page.
inline size_t bytes_to_page_end(const void* address) {
  return base::kOsPageBytes - (reinterpret_cast<uint64_t>(address) & (base::kOsPageBytes - 1));
}

// Whether the n bytes at `address`, one at least, lie in one OS page.
inline bool is_in_page(const void* address, size_t n) { return n - 1 < bytes_to_page_end(address); }

// Calls f(char* raw, size_t length) for [address, address + n) in order, piece by piece; a range that
// is not spilled is one piece. f returns false to stop. Returns the bytes visited, including the last
// piece. REQUIRES: f does not use `slot`, block, or call the program.
template <class F>
size_t for_each_piece(const void* address, size_t n, HoldSlot slot, F&& f) {
  const char* at = static_cast<const char*>(address);
  if (!in_range(at)) {
    if (n > 0) f(const_cast<char*>(at), n);
    return n;
  }
  size_t done = 0;
  while (done < n) {
    size_t length = bytes_to_page_end(at + done);
    if (length > n - done) length = n - done;
    char* raw = hold(at + done, slot);
    done += length;
    if (!f(raw, length)) break;
  }
  release(slot);
  return done;
}

// Copies n bytes; either side may be spilled. REQUIRES: the two do not overlap. Bad addresses fault as they would in a plain copy.
void copy(void* to, const void* from, size_t n);

// Length of a string that may be spilled, at most `limit`.
size_t string_length(const char* text, size_t limit = ~size_t{0});

// Does a string that begins in plain memory continue in spilled memory within its first `limit` bytes? (It may lead into a
// spilled global: globals.h.) False for null. REQUIRES: not in_range(text).
bool ends_spilled(const char* text, size_t limit = ~size_t{0});

// The size of a string with its terminator, if any of it is spilled; else 0. 0 for null.
size_t spilled_string_bytes(const char* text);

// [address, address + n) pinned: its pages stay where they are until destruction, so that the kernel
// may read or write them. Covers only a prefix, of at least one piece, if the range is larger than what may be pinned, or is spilled only in part. A
// range that is not spilled is one piece and costs nothing.
// `need`: what the kernel does there; memory whose protection forbids it counts as not spilled, so that the kernel refuses it.
// One at a time in each thread, and in each handler that interrupts it. The exception is a call in which the thread was cancelled: its range stays
// until the thread's cleanup handlers and destructors have run. A child that a handler forks has the interrupted call's range too.
// Cost: may block and do I/O for each page.
class WiredRange {
 public:
  static constexpr size_t kMaxPieces = 64;
  WiredRange(const void* address, size_t n, Need need);
  ~WiredRange();
  WiredRange(const WiredRange&) = delete;
  WiredRange& operator=(const WiredRange&) = delete;

  std::span<const iovec> pieces() const { return {pieces_, piece_count_}; }
  size_t size() const { return size_; }  // bytes covered

 private:
  uint64_t begin_ = 0;  // 0: nothing pinned
  size_t size_ = 0;
  size_t piece_count_ = 0;
  iovec pieces_[kMaxPieces];
  // If the thread was cancelled in a call: what that call had pinned.
  uint64_t left_begin_ = 0;
  uint64_t left_bytes_ = 0;
};

// Plain memory of the calling thread, last in first out, freed on destruction. Up to 64 KiB comes from
// a block that the thread keeps; more is mapped. data() is null when the system has none left.
class Scratch {
 public:
  // kOwn: shares its pages with nothing else, so that the kernel may hold on to them after destruction.
  enum Pages { kShared, kOwn };
  explicit Scratch(size_t bytes, Pages pages = kShared);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_;
  size_t size_;
  bool mapped_;
};

// A string argument for the C library or the kernel: the text itself when it is not spilled, a copy
// in Scratch when any of it is. Null stays null.
class PlainString {
 public:
  explicit PlainString(const char* text);
  operator const char*() const { return text_; }

 private:
  Scratch scratch_;
  const char* text_;
};

}  // namespace spill
