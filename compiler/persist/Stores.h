//===- Stores.h - What a function stores where ------------------*- C++ -*-===//
//
// For recording and sampling stores (Persist.h): which instructions store to
// memory that may be persistent, and how many bytes that is when they run.
//
// Left out are stores inside called functions, except the C library's functions
// that copy, and the processor intrinsics of AVX-512's scatter instructions.
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
  Lanes,    // Bytes for each lane whose mask is set, one after the other
  Scatter,  // the same, each at an address of its own
  Compress, // Bytes for each lane whose mask is set, without gaps
  String,   // what is at Address afterwards, with its terminator
  Append,   // the same, from the end of the string that was there before
};

struct Store {
  llvm::Instruction *Inst;
  StoreKind Kind;
  llvm::Value *Address; // Scatter: a vector of them
  uint64_t Bytes = 0;
  llvm::Value *Count = nullptr; // of units
  llvm::Value *Mask = nullptr;  // one bit, or with the sign bit, for each lane
  bool IsPastCaches = false;    // it needs a fence, but no flush
};

/// Adds the stores of I, except those that provably are not to persistent
/// memory.
void collectStores(llvm::Instruction &I, llvm::SmallVectorImpl<Store> &Stores);

/// The first instruction after S has happened. For an invoke, that on the path
/// where it returns, not where it throws; the edge is split if need be.
llvm::Instruction *after(const Store &S);

/// Calls Emit for each range of bytes that S stores, with a builder after S.
/// Ranges may turn out to be empty when the code runs.
void forEachRange(
    const Store &S,
    llvm::function_ref<void(llvm::IRBuilderBase &B, llvm::Value *Address,
                            llvm::Value *Bytes)>
        Emit);

} // namespace spillway

#endif
