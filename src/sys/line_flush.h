// The instructions that write a CPU's cache lines back to memory.
//
// clwb may leave the line in the cache (Zen 4 does), clflushopt and clflush evict it. The first two are ordered by the next sfence,
// mfence or locked instruction of the thread; clflush comes before whatever the thread stores afterwards.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace sys {

enum class LineFlush : uint8_t { kClwb, kClflushopt, kClflush };
inline constexpr LineFlush kLineFlushes[] = {LineFlush::kClwb, LineFlush::kClflushopt, LineFlush::kClflush};

const char* name_of(LineFlush instruction);
// Does this CPU have it? All x86-64 CPUs have clflush.
bool has_line_flush(LineFlush instruction);
// The first of kLineFlushes that this CPU has.
LineFlush best_line_flush();

// Writes back the line of `address`. REQUIRES: the CPU has the instruction, and the address is mapped (else SIGSEGV). Cost: some 2 ns while few
// are under way; a fence waits some 100 ns for the last.
inline void flush_line(uintptr_t address, LineFlush instruction) {
  auto* const byte = reinterpret_cast<volatile char*>(address);
  switch (instruction) {
    case LineFlush::kClwb: asm volatile("clwb %0" : "+m"(*byte)); return;
    case LineFlush::kClflushopt: asm volatile("clflushopt %0" : "+m"(*byte)); return;
    case LineFlush::kClflush: asm volatile("clflush %0" : "+m"(*byte)); return;
  }
}

}  // namespace sys
