//===- FlushAssembly.h - Cache flushes in inline assembly -------*- C++ -*-===//
//
// Programs for persistent memory write clwb, clflushopt, clflush and sfence as
// inline assembly, to be compiled without -mclwb, or by assemblers that do not
// know them: with a prefix byte before clflush (clflushopt) or xsaveopt (clwb).
//
// Text is understood if it consists of such instructions and mfence alone, in
// AT&T's or Intel's dialect, with any blanks, case, comments, newlines and
// semicolons. The line is a memory operand, %0, or the address in an operand's
// register, (%0) or [%0]. Any other text is only searched for words.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_FLUSHASSEMBLY_H
#define SPILLWAY_COMPILER_FLUSHASSEMBLY_H

#include "llvm/ADT/SmallVector.h"

namespace llvm {
class CallBase;
class Value;
} // namespace llvm

namespace spillway {

enum class FlushKind {
  Clwb,
  Clflushopt,
  Clflush,   // orders later stores as well
  Fence,     // sfence
  FullFence, // mfence
};

struct FlushStep {
  FlushKind Kind;
  llvm::Value *Address; // a pointer or an i64; null for fences
};

/// The flushes and fences of the assembly that Call is, in order. Empty if it
/// has other instructions, or an operand or result that is not understood.
llvm::SmallVector<FlushStep, 2> parseFlushes(const llvm::CallBase &Call);

/// Whether the assembly has an instruction that flushes, or data that may be
/// one.
bool mayFlush(const llvm::CallBase &Call);

/// Whether the assembly has an instruction that orders earlier flushes, or data
/// that may be one.
bool mayOrderFlushes(const llvm::CallBase &Call);

} // namespace spillway

#endif
