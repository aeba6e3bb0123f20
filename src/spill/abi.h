// The numbers of include/spillway/abi.inc as C++ constants: what compiled code and the runtime share.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/ids.h"

// For functions that compiled code calls, and for whatever else is exported.
#define SPILL_EXPORT extern "C" __attribute__((visibility("default")))

namespace spill {

#define SPILLWAY_NUMBER(name, value, doc) inline constexpr uint64_t k##name = value;
#include "spillway/abi.inc"

// Slots of one thread at one level of signal handling: those of compiled code, then the runtime's own.
inline constexpr unsigned kRuntimeSlotCount = 32;
inline constexpr unsigned kAllSlotCount = kSlotCount + kRuntimeSlotCount;
inline constexpr uint64_t kRuntimeSlotMask = ~uint64_t{0} << kSlotCount;

using Slot = std::atomic<uint64_t>;
using Entry = std::atomic<int64_t>;
// Addresses that have entries in the table.
inline constexpr unsigned kAddressBits = 47;
inline constexpr uint64_t kTableBytes = (uint64_t{1} << (kAddressBits - kTableShift)) * sizeof(Entry);

inline constexpr int64_t kEntryUnknown = 0;
inline constexpr int64_t kEntryIdentity = 1;
inline constexpr int64_t kEntryLocked = -1;

// The table entry of an address. REQUIRES: spillway_start() has reserved the table.
inline Entry& entry_of(uint64_t address) {
  return reinterpret_cast<Entry*>(kTableBase)[address >> kTableShift];
}

// The part of the address space that holds spilled memory only.
inline bool in_reserved_range(uint64_t address) { return address - kRangeBegin < kRangeEnd - kRangeBegin; }

// Is the address, which lies outside that range, part of a spilled global? (address_space.h)
bool is_global(uint64_t address);
// How many bytes from a plain address on come before the next spilled global; at most `bytes`.
uint64_t bytes_before_globals(uint64_t begin, uint64_t bytes);

}  // namespace spill

extern "C" {
// Whether globals were ever spilled (spill/globals.h).
extern std::atomic<bool> spillway_has_globals;
// Constant-initialised to kUnregisteredSlots in every new thread (spill/thread.h). __thread, since each
// access to an extern thread_local checks whether an initialiser must run.
extern __thread spill::Slot* __spillway_slots
    __attribute__((tls_model("initial-exec"), visibility("default")));
// The C++ side of the slow path (translate.cc); called directly by the runtime.
int64_t spillway_translate(uint64_t address, uint64_t live);
}

namespace spill {

// May the address be spilled memory: in the range, or a spilled global?
inline bool in_range(uint64_t address) {
  if (in_reserved_range(address)) return true;
  if (!spillway_has_globals.load(std::memory_order_relaxed)) [[likely]]
    return false;
  return is_global(address);
}
inline bool in_range(const void* pointer) { return in_range(reinterpret_cast<uint64_t>(pointer)); }

// How many of the n bytes at `memory` come before the first spilled one: plain memory may lead up to a spilled global (globals.h). n for null.
// REQUIRES: not in_range(memory).
inline uint64_t plain_length(const void* memory, uint64_t n) {
  if (!spillway_has_globals.load(std::memory_order_relaxed) || memory == nullptr) [[likely]]
    return n;
  return bytes_before_globals(reinterpret_cast<uint64_t>(memory), n);
}
// May any of the n bytes be spilled memory?
inline bool reaches_range(const void* memory, uint64_t n) {
  return in_range(memory) || plain_length(memory, n) < n;
}

}  // namespace spill
