// Compiled with LINES_RUN=run_native, and by spillcc with run_compiled. (lines_work.h)
#include "lines_work.h"

#include <algorithm>

namespace lines {
namespace {

template <Instruction kInstruction>
void flush(char* line) {
  auto* const byte = static_cast<volatile char*>(line);
  if constexpr (kInstruction == Instruction::kClwb)
    asm volatile("clwb %0" : "+m"(*byte));
  else if constexpr (kInstruction == Instruction::kClflushopt)
    asm volatile("clflushopt %0" : "+m"(*byte));
  else
    asm volatile("clflush %0" : "+m"(*byte));
}

void fence() { asm volatile("sfence" ::: "memory"); }

void store(char* line, uint64_t value) { *reinterpret_cast<volatile uint64_t*>(line) = value; }

// Not timed. By an instruction that is nobody's to put off.
void prepare(const Work& work) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < kLines; ++i) {
    char* const line = work.memory + i * kLineBytes;
    if (work.state == State::kClean) sum += *reinterpret_cast<volatile uint64_t*>(line);
    if (work.state == State::kAbsent) asm volatile("clflushopt (%0); lfence" ::"r"(line) : "memory");
  }
  asm volatile("lfence; mfence" ::"r"(sum) : "memory");
}

template <Instruction kInstruction, bool kStores>
void run_lines(Work& work) {
  char* line = work.memory;
  uint64_t value = work.value;
  for (uint64_t left = kBatchFlushes; left > 0;) {
    const uint64_t count = std::min(left, work.fence == 0 ? kBatchFlushes : work.fence);
    for (uint64_t i = 0; i < count; ++i, line += kLineBytes) {
      if (kStores) store(line, ++value);
      flush<kInstruction>(line);
    }
    if (work.fence != 0) fence();
    left -= count;
  }
  work.value = value;
}

template <Instruction kInstruction>
void run_hot(Work& work) {
  char* const memory = work.memory;
  uint64_t value = work.value;
  for (uint64_t epoch = work.epochs(); epoch > 0; --epoch) {
    for (const uint32_t offset : work.order) {
      store(memory + offset, ++value);
      flush<kInstruction>(memory + offset);
    }
    fence();
  }
  work.value = value;
}

template <Instruction kInstruction>
uint64_t run(Work& work) {
  if (work.order.empty()) prepare(work);
  const uint64_t begin = __builtin_ia32_rdtsc();
  if (!work.order.empty())
    run_hot<kInstruction>(work);
  else if (work.state == State::kDirty)
    run_lines<kInstruction, true>(work);
  else
    run_lines<kInstruction, false>(work);
  const uint64_t ticks = __builtin_ia32_rdtsc() - begin;
  fence();
  return ticks;
}

}  // namespace

uint64_t LINES_RUN(Work& work) {
  switch (work.instruction) {
    case Instruction::kClwb: return run<Instruction::kClwb>(work);
    case Instruction::kClflushopt: return run<Instruction::kClflushopt>(work);
    case Instruction::kClflush: return run<Instruction::kClflush>(work);
  }
  return 0;
}

}  // namespace lines
