//===- Intrinsics.h - Lowers what is not a plain access ---------*- C++ -*-===//
//
// Runs before sites are collected, and leaves only plain accesses on memory
// that may be spilled:
//
//   memcpy, memmove, memset   constant and small: expanded in line, moves as
//                             vectors; else the runtime's
//   masked load, store        guarded by the mask and by the page's edge; lane
//                             by lane if they cross it
//   gather, scatter, expand, compress   lane by lane
//   lddqu                     loaded like any vector
//   memcmp, bcmp              of up to 16 bytes, or 32 if only equality
//                             matters: loads and a comparison
//   byval arguments           copied to the stack, since code generation copies
//                             them after us
//   va_start, va_copy, va_arg on a list in the heap: through the stack
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_INTRINSICS_H
#define SPILLWAY_COMPILER_INTRINSICS_H

#include "Abi.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace spillway {

/// Lowers the intrinsics of F. Adds to InPage the instructions that it guarded
/// by a check of the page's edge.
void lowerIntrinsics(llvm::Function &F, Abi &Runtime,
                     llvm::SmallPtrSetImpl<llvm::Instruction *> &InPage);

/// Redirects each prefetch of F to where the table says the page lies at that
/// moment. If that leads nowhere, or the page leaves meanwhile, no harm is
/// done: a prefetch never faults, and takes no slot. Runs after sites have been
/// collected: its loads from the table are no sites.
void redirectPrefetches(llvm::Function &F, Abi &Runtime);

/// Keeps what becomes a call of a mathematical function (Kills.h) in its place
/// among the accesses of F. Code generation would move it down, or move loads
/// of its operands below it. Runs after sites are rewritten.
void keepCallsInPlace(llvm::Function &F);

} // namespace spillway

#endif
