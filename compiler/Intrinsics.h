//===- Intrinsics.h - Lowers what is not a plain access ---------*- C++ -*-===//
//
// Runs before sites are collected, and leaves only plain accesses on memory
// that may be spilled:
//
//   memcpy, memmove, memset   constant and small: expanded in line, moves as
//                             vectors; else the runtime's
//   masked load, store        guarded by the mask and by the page's edge; lane
//                             by lane where they cross it
//   gather, scatter, expand, compress   lane by lane
//   memcmp, bcmp              of up to 16 bytes, if only asked whether they
//                             are equal 32: loads and a comparison
//   byval arguments           copied to the stack, since code generation copies
//                             them after us
//   va_start, va_copy, va_arg on a list in the heap: through the stack
//   prefetch                  dropped: it would fetch nothing
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

} // namespace spillway

#endif
