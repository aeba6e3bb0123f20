//===- Accesses.h - Which instructions touch which memory -------*- C++ -*-===//
//
// A Site is an instruction that accesses memory which may be spilled; each
// pointer through which it does is an Access. A copy has up to two, inline
// assembly any number, everything else one.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_ACCESSES_H
#define SPILLWAY_COMPILER_ACCESSES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/ValueHandle.h"
#include "llvm/Support/Alignment.h"

namespace llvm {
class AllocaInst;
class CallBase;
} // namespace llvm

namespace spillway {

/// Largest constant-size memory intrinsic that is translated in place.
constexpr uint64_t MaxInlineBytes = 256;
/// Of a memmove: it is in registers as a whole.
constexpr uint64_t MaxMoveInlineBytes = 64;
/// Where nothing is translated: what code generation expands anyway.
constexpr uint64_t MaxPlainInlineBytes = 128;

enum class SiteKind {
  Load,   // may be replaced by a load from a buffer
  Store,  // may be replaced by a store to a buffer
  Copy,   // memcpy of a constant size
  Set,    // memset of a constant size
  Native, // must be one instruction at one address: atomics, assembly
  Anchor, // accesses nothing: stands where a translation is to be made ahead
};

/// One translation that several accesses share: the first leads, the others
/// follow where it has run and nothing was called since. Offsets are relative
/// to the leader's address.
struct Translation {
  llvm::Instruction *Leader;
  int64_t Low, High; // bytes that leader and followers touch
  bool MayCross;     // they do not provably lie in one OS page
  unsigned Slot = 0;
  llvm::SmallVector<llvm::Instruction *, 4> Followers = {};
  /// What is translated: the leader's pointer, or the one that it was computed
  /// from, Low bytes from it and inside the window too. Tracks the value, which
  /// may be the result of a site that is rewritten.
  llvm::WeakTrackingVH Reference = {};
  /// Set when the leader is rewritten: the table entry, or 0 if the bytes do
  /// cross a page's edge.
  llvm::Value *Entry = nullptr;
  /// Of a leader that holds its page (Held.h): variables for the entry and,
  /// unless the address is always the same, the page; and the loop's blocks.
  llvm::AllocaInst *HeldEntry = nullptr;
  llvm::AllocaInst *HeldPage = nullptr;
  llvm::SmallVector<llvm::BasicBlock *, 0> HeldIn = {};
  /// The one that holds the page for this one too, in the same slot; null: none.
  Translation *HeldWith = nullptr;
};

struct Access {
  unsigned Operand;
  uint64_t Size;
  bool MayCross;         // not provably inside one OS page
  llvm::Align Alignment; // of the address
  llvm::Align Claimed;   // what its type says, which need not be true
  bool Checked = false;  // runs only where what it shares does not cross
  Translation *Shared = nullptr; // null: a translation of its own
};

struct Site {
  llvm::Instruction *Inst;
  SiteKind Kind;
  llvm::SmallVector<Access, 2> Accesses;
  /// Slots of shared translations that must stay protected here.
  uint32_t Live = 0;
  /// It runs rarely: its code is to be small.
  bool IsCold = false;

  llvm::Value *pointer(const Access &A) const {
    return Inst->getOperand(A.Operand);
  }
  bool leads(const Access &A) const {
    return A.Shared && A.Shared->Leader == Inst;
  }
};

/// Finds the sites of F in the order of its text. Intrinsics were lowered
/// before (Intrinsics.h). InPage: instructions whose bytes are known to lie in
/// one OS page where they execute, and the addresses of pages in which vectors'
/// lanes lie, translated in their stead (Lanes.cpp). Anchors: those of split
/// loops (Loops.h).
llvm::SmallVector<Site, 0>
collectSites(llvm::Function &F,
             const llvm::SmallPtrSetImpl<llvm::Instruction *> &InPage,
             const llvm::SmallPtrSetImpl<llvm::Instruction *> &Anchors);

/// Whether inline assembly stores past the caches: movnti, movntdq and their
/// kin, which only a fence orders.
bool storesPastCaches(const llvm::CallBase &Assembly);

/// Lets accesses that share a translation compute pointers which lie at a
/// constant distance from another in their own blocks. Optimisers share such
/// pointers between blocks, trusting that code generation makes them a part of
/// each address again; it does not see through a translation.
void sinkPointers(llvm::MutableArrayRef<Site> Sites);

} // namespace spillway

#endif
