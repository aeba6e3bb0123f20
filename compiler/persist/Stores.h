//===- Stores.h - What a function stores where ------------------*- C++ -*-===//
//
// For recording and sampling stores (Persist.h): which instructions store to
// memory that may be persistent, and how many bytes that is when they run.
//
// Left out are stores that a call makes where it is known only to the callee,
// unless it is one of the C library's functions that copy; and those of scatter
// instructions of AVX-512 as intrinsics of the processor.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_STORES_H
#define SPILLWAY_COMPILER_STORES_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

namespace spillway {

enum class StoreKind {
  Fixed,    // Bytes
  Counted,  // Count units of Bytes
  Exchange, // Bytes, if the comparison succeeded
  Lanes,    // Bytes for each lane whose mask is on, one after the other
  Scatter,  // the same, each at an address of its own
  Compress, // Bytes for each lane whose mask is on, without gaps
  String,   // what is at Address afterwards, with its end
  Append,   // the same, from the end of the string that was there before
};

struct Store {
  llvm::Instruction *Inst;
  StoreKind Kind;
  llvm::Value *Address; // Scatter: a vector of them
  uint64_t Bytes = 0;
  llvm::Value *Count = nullptr; // of units
  llvm::Value *Mask = nullptr;  // one bit, or with the sign bit, for each lane
  bool IsPastCaches = false;    // it needs a fence, and no flush
};

/// Adds the stores of I, but those which provably are not to persistent memory.
void collectStores(llvm::Instruction &I, llvm::SmallVectorImpl<Store> &Stores);

/// The instruction before which S has happened, on each path from it. Of calls
/// that may throw, when they returned.
llvm::Instruction *after(const Store &S);

/// Lets Emit make code for each range of bytes that S stored, where it has
/// happened. Ranges may be empty when the code runs.
void forEachRange(
    const Store &S,
    llvm::function_ref<void(llvm::IRBuilderBase &B, llvm::Value *Address,
                            llvm::Value *Bytes)>
        Emit);

} // namespace spillway

#endif
