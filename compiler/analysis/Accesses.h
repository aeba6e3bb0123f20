//===- Accesses.h - Which instructions touch which memory -------*- C++ -*-===//
//
// A Site is an instruction that may access spilled memory. Each pointer by
// which it does so is an Access: a copy has up to two, inline assembly one for
// each operand in memory, everything else one.
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

/// Memory intrinsics of a constant size up to this many bytes are translated in
/// place; others become calls of the runtime.
constexpr uint64_t MaxInlineBytes = 256;
/// The same for memmove, which has all bytes in registers at once.
constexpr uint64_t MaxMoveInlineBytes = 64;
/// The same for plain memory: what code generation expands without a call.
constexpr uint64_t MaxPlainInlineBytes = 128;

enum class SiteKind {
  Load,   // may be replaced by a load from a buffer
  Store,  // may be replaced by a store to a buffer
  Copy,   // memcpy of a constant size
  Set,    // memset of a constant size
  Native, // must remain one instruction at one address: atomics, assembly
  Anchor, // accesses nothing, but marks where a loop's pointer is translated
};

/// One translation that several accesses share. The leader makes it. Followers
/// use it: each runs only after the leader, with no call in between. The window
/// [Low, High) covers the bytes of all of them, relative to the leader's
/// address.
struct Translation {
  llvm::Instruction *Leader;
  int64_t Low, High;
  bool MayCross; // the window does not provably lie in one OS page
  unsigned Slot = 0;
  llvm::SmallVector<llvm::Instruction *, 4> Followers = {};
  /// What is translated instead of the leader's pointer: the pointer that it
  /// was computed from, where the window then begins. Null: the leader's own.
  /// Tracks the value, which may be the result of a site that is rewritten.
  llvm::WeakTrackingVH Reference = {};
  /// The table entry, or 0 if the window crosses a page's edge. Set when the
  /// leader is rewritten.
  llvm::Value *Entry = nullptr;
  /// If the leader holds its page throughout a loop (Held.h): a variable for
  /// the entry, one for the page unless the address never changes, and the
  /// loop's blocks.
  llvm::AllocaInst *HeldEntry = nullptr;
  llvm::AllocaInst *HeldPage = nullptr;
  llvm::SmallVector<llvm::BasicBlock *, 0> HeldIn = {};
  /// The translation whose entry and slot hold the page for this one as well;
  /// null: this one holds its page alone, or none.
  Translation *HeldWith = nullptr;
};

struct Access {
  unsigned Operand;
  uint64_t Size;
  bool MayCross;         // its bytes do not provably lie in one OS page
  llvm::Align Alignment; // what is known about the address
  llvm::Align Claimed;   // what its type claims, which need not be true
  bool Checked = false;  // runs only if its shared window does not cross
  Translation *Shared = nullptr; // null: it has a translation of its own
};

struct Site {
  llvm::Instruction *Inst;
  SiteKind Kind;
  llvm::SmallVector<Access, 2> Accesses;
  /// Slots of shared translations that must stay protected here.
  uint32_t Live = 0;
  /// It runs rarely, so its code should be small rather than fast.
  bool IsCold = false;

  llvm::Value *pointer(const Access &A) const {
    return Inst->getOperand(A.Operand);
  }
  bool leads(const Access &A) const {
    return A.Shared && A.Shared->Leader == Inst;
  }
};

/// Memory operands of assembly that are near the first one, at constant
/// distances from it: they share a translation, and a register.
struct OperandGroup {
  struct Member {
    const Access *A;
    int64_t Offset; // of its address from the first one's
  };
  llvm::SmallVector<Member, 4> Members;
  int64_t Low, High; // bytes accessed, relative to the first one's address
};

/// The operands of Assembly; each is in exactly one group.
llvm::SmallVector<OperandGroup, 4> groupOperands(const Site &Assembly);

/// Finds the sites of F in program order. REQUIRES: intrinsics have been
/// lowered (Intrinsics.h). InPage: instructions whose bytes are known to lie in
/// one OS page where they execute; and computations of the page in which all
/// lanes of a vector lie, each of which is translated instead of the lanes
/// (Lanes.cpp). Anchors: those of split loops (LoopSplit.h).
llvm::SmallVector<Site, 0>
collectSites(llvm::Function &F,
             const llvm::SmallPtrSetImpl<llvm::Instruction *> &InPage,
             const llvm::SmallPtrSetImpl<llvm::Instruction *> &Anchors);

/// Records that the address of I is always a multiple of the size of what I
/// accesses.
void markAligned(llvm::Instruction &I);
/// Whether that was recorded.
bool isKnownAligned(const llvm::Instruction &I);

/// Whether code generation calls a library for I: an atomic access that claims
/// less alignment than its size. The call gets the program's own address.
bool callsAtomicLibrary(const llvm::Instruction &I);

/// Whether inline assembly stores past the caches (movnti, movntdq and their
/// kin): only a fence orders such stores.
bool storesPastCaches(const llvm::CallBase &Assembly);

/// Moves the computation of a pointer at a constant distance from another into
/// the block of the access that uses it, if that shares a translation.
/// Optimisers share such pointers between blocks and rely on code generation to
/// fold them into each address again, but it does not see through a
/// translation. Operands of assembly are computed at the assembly, too.
void sinkPointers(llvm::MutableArrayRef<Site> Sites);

} // namespace spillway

#endif
