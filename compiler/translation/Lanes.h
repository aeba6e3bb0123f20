//===- Lanes.h - Vector intrinsics that touch memory by lane ----*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_LANES_H
#define SPILLWAY_COMPILER_LANES_H

#include "Abi.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace llvm {
class IntrinsicInst;
}

namespace spillway {

/// Lowers II if it is a masked load or store, gather, scatter, expanding load
/// or compressing store on memory that may be spilled. A lane that is masked
/// off is never translated: its address may be anything.
void lowerVectorIntrinsic(llvm::IntrinsicInst &II, Abi &Runtime,
                          llvm::SmallPtrSetImpl<llvm::Instruction *> &InPage);

} // namespace spillway

#endif
