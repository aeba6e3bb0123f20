// The quick case of functions such as memcpy: ranges that lie in one OS page each, and are resident.
//
// They are translated as compiled code translates (abi.inc), in its own two slots for momentary accesses, in which
// nothing is live across a call. Nobody clears these slots; a page stays protected by them until the thread's next
// access uses them, as after any access. So the C library's function can be tail-called, with nothing left to do after it.
//
// 1 A range that is not spilled is translated too: its entry says identity, and that costs less than checking where the
//   range lies. Only a thread that is registered may use the table.
// 2 Everything else (an empty range, one that crosses the end of a page, an entry that is not positive) is left to the caller.
#pragma once
#include <cstring>

#include "spill/access.h"

namespace spill {

// The slots that compiled code uses for one access at a time (compiler/translation/Slots.h, ScratchSlots).
inline constexpr unsigned kScratchA = 0, kScratchB = 1;

inline bool has_slots(const Slot* slots) { return reinterpret_cast<uint64_t>(slots) != kUnregisteredSlots; }

// Translates n bytes at `address`. Not ready if n is 0, if they do not lie in one OS page, or if the page's entry is not
// positive. REQUIRES, like everything here: neither the runtime nor the program is called while `raw` is used. Cost: about 10 instructions.
struct QuickRange {
  QuickRange(const void* address, size_t n) {
    Slot* slots = __spillway_slots;
    if (!is_in_page(address, n) || !has_slots(slots)) [[unlikely]]
      return;
    const auto a = reinterpret_cast<uint64_t>(address);
    slots[kScratchA].store(a, std::memory_order_release);
    // As in hold().
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const int64_t entry = entry_of(a).load(std::memory_order_acquire);
    raw = reinterpret_cast<char*>(a + static_cast<uint64_t>(entry) - 1);
    ready = entry > 0;
  }
  bool ready = false;
  char* raw;  // if ready
};

// The same for two ranges of n bytes.
struct QuickPair {
  QuickPair(const void* first, const void* second, size_t n) {
    Slot* slots = __spillway_slots;
    const auto x = reinterpret_cast<uint64_t>(first), y = reinterpret_cast<uint64_t>(second);
    const uint64_t differ = (x ^ (x + n - 1)) | (y ^ (y + n - 1));
    if (n - 1 >= base::kOsPageBytes || differ >= base::kOsPageBytes || !has_slots(slots)) [[unlikely]]
      return;
    slots[kScratchA].store(x, std::memory_order_release);
    slots[kScratchB].store(y, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const int64_t entry_x = entry_of(x).load(std::memory_order_acquire);
    const int64_t entry_y = entry_of(y).load(std::memory_order_acquire);
    a = reinterpret_cast<char*>(x + static_cast<uint64_t>(entry_x) - 1);
    b = reinterpret_cast<char*>(y + static_cast<uint64_t>(entry_y) - 1);
    ready = entry_x > 0 && entry_y > 0;
  }
  bool ready = false;
  char* a;  // if ready
  char* b;
};

// Moves the first and the last sizeof(T) of n bytes; loads everything before it stores anything.
template <class T>
inline void move_ends(char* to, const char* from, size_t n) {
  T head, tail;
  __builtin_memcpy(&head, from, sizeof(T));
  __builtin_memcpy(&tail, from + n - sizeof(T), sizeof(T));
  __builtin_memcpy(to, &head, sizeof(T));
  __builtin_memcpy(to + n - sizeof(T), &tail, sizeof(T));
}

// memmove of up to kMaxMovedInline bytes.
inline constexpr size_t kMaxMovedInline = 64;
inline void move_inline(char* to, const char* from, size_t n) {
  using Vector = char __attribute__((vector_size(16)));
  if (n > 2 * sizeof(Vector)) {
    Vector a, b, c, d;
    const char* from_end = from + n - 2 * sizeof(Vector);
    __builtin_memcpy(&a, from, sizeof a);
    __builtin_memcpy(&b, from + sizeof a, sizeof b);
    __builtin_memcpy(&c, from_end, sizeof c);
    __builtin_memcpy(&d, from_end + sizeof c, sizeof d);
    char* to_end = to + n - 2 * sizeof(Vector);
    __builtin_memcpy(to, &a, sizeof a);
    __builtin_memcpy(to + sizeof a, &b, sizeof b);
    __builtin_memcpy(to_end, &c, sizeof c);
    __builtin_memcpy(to_end + sizeof c, &d, sizeof d);
  } else if (n >= sizeof(Vector)) {
    move_ends<Vector>(to, from, n);
  } else if (n >= 8) {
    move_ends<uint64_t>(to, from, n);
  } else if (n >= 4) {
    move_ends<uint32_t>(to, from, n);
  } else if (n >= 2) {
    move_ends<uint16_t>(to, from, n);
  } else if (n != 0) {
    *to = *from;
  }
}

}  // namespace spill
