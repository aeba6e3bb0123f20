//===- Sites.cpp - Rewriting one site -------------------------------------===//
#include "Sites.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

// What is said about the original memory need not hold of a frame: its content
// changes as pages come and go, so a load must stay where its translation is
// valid. Non-temporal stores become plain ones: a page's fingerprint is taken
// without a fence for them.
static void dropMetadata(Instruction &I) {
  for (unsigned Kind :
       {LLVMContext::MD_invariant_load, LLVMContext::MD_invariant_group,
        LLVMContext::MD_nontemporal})
    I.setMetadata(Kind, nullptr);
  // The fourth operand of an access tag says that memory is constant.
  if (MDNode *Tag = I.getMetadata(LLVMContext::MD_tbaa))
    if (Tag->getNumOperands() >= 4)
      I.setMetadata(LLVMContext::MD_tbaa, nullptr);
}

Value *SiteRewriter::bounceLoad(const Site &S, IRBuilderBase &B) {
  const Access &A = S.Accesses.front();
  Value *Buffer = T.buffer(A.Size);
  T.Runtime.crossLoad(B, T.address(B, S.pointer(A)), A.Size, Buffer, S.Live);
  return B.CreateAlignedLoad(S.Inst->getType(), Buffer, Align(16));
}

void SiteRewriter::bounceStore(const Site &S, IRBuilderBase &B) {
  const Access &A = S.Accesses.front();
  Value *Buffer = T.buffer(A.Size);
  B.CreateAlignedStore(cast<StoreInst>(S.Inst)->getValueOperand(), Buffer,
                       Align(16));
  T.Runtime.crossStore(B, T.address(B, S.pointer(A)), A.Size, Buffer, S.Live);
}

// A side that is not an access is plain memory and serves as the buffer.
void SiteRewriter::bounceCopy(const Site &S, IRBuilderBase &B) {
  auto *Copy = cast<MemTransferInst>(S.Inst);
  uint64_t Size = S.Accesses.front().Size;
  bool HasDest = S.Accesses.front().Operand == 0;
  bool HasSource = S.Accesses.back().Operand == 1;
  Value *Buffer = !HasDest     ? Copy->getRawDest()
                  : !HasSource ? Copy->getRawSource()
                               : T.buffer(Size);
  if (HasSource)
    T.Runtime.crossLoad(B, T.address(B, Copy->getRawSource()), Size, Buffer,
                        S.Live);
  if (HasDest)
    T.Runtime.crossStore(B, T.address(B, Copy->getRawDest()), Size, Buffer,
                         S.Live);
}

void SiteRewriter::bounceSet(const Site &S, IRBuilderBase &B) {
  auto *Set = cast<MemSetInst>(S.Inst);
  const Access &A = S.Accesses.front();
  Value *Buffer = T.buffer(A.Size);
  B.CreateMemSetInline(Buffer, Align(16), Set->getValue(), B.getInt64(A.Size));
  T.Runtime.crossStore(B, T.address(B, Set->getRawDest()), A.Size, Buffer,
                       S.Live);
}

// Fills the cold path with a bounced access and joins its result with that of
// the instruction, which moves to the hot path.
void SiteRewriter::bounce(const Site &S, Instruction *ColdEnd,
                          Instruction *HotEnd) {
  BuilderBefore B(ColdEnd);
  B.SetCurrentDebugLocation(S.Inst->getDebugLoc());
  BasicBlock *Join = S.Inst->getParent();
  S.Inst->moveBefore(HotEnd);
  switch (S.Kind) {
  case SiteKind::Load: {
    Value *Bounced = bounceLoad(S, B);
    IRBuilder<> JoinB(Join, Join->begin());
    PHINode *Result = JoinB.CreatePHI(S.Inst->getType(), 2);
    S.Inst->replaceAllUsesWith(Result);
    Result->addIncoming(Bounced, ColdEnd->getParent());
    Result->addIncoming(S.Inst, HotEnd->getParent());
    break;
  }
  case SiteKind::Store:
    bounceStore(S, B);
    break;
  case SiteKind::Copy:
    bounceCopy(S, B);
    break;
  case SiteKind::Set:
    bounceSet(S, B);
    break;
  case SiteKind::Native:
  case SiteKind::Anchor:
    llvm_unreachable("never bounced");
  }
}

// Whether S has to take its cold path because of A; null: never.
Value *SiteRewriter::coldCondition(const Site &S, const Access &A,
                                   IRBuilderBase &B) {
  const Translation *Shared = A.Shared;
  if (!Shared)
    return A.MayCross ? T.crossesPage(B, T.address(B, S.pointer(A)), A.Size)
                      : nullptr;
  if (!Shared->MayCross)
    return nullptr;
  if (!S.leads(A))
    return B.CreateICmpEQ(Shared->Entry, B.getInt64(0), "spill.crossed");
  Value *Low = B.CreateAdd(T.address(B, S.pointer(A)),
                           ConstantInt::getSigned(T.Runtime.I64, Shared->Low));
  return T.crossesPage(B, Low, Shared->High - Shared->Low);
}

// The entry for a native access of its own that may cross an edge.
Value *SiteRewriter::mapOrTranslate(const Site &S, const Access &A,
                                    unsigned Slot, SlotSet Live) {
  BuilderBefore B(S.Inst);
  Value *Address = T.address(B, S.pointer(A));
  Value *Crosses = T.crossesPage(B, Address, A.Size);
  Instruction *ColdEnd, *HotEnd;
  SplitBlockAndInsertIfThenElse(Crosses, S.Inst->getIterator(), &ColdEnd,
                                &HotEnd, T.Runtime.ColdWeights);
  BuilderBefore ColdB(ColdEnd);
  Value *Mapped = T.Runtime.crossMap(ColdB, Address, A.Size, Live);
  Value *Translated = T.translate(HotEnd, Address, Slot, Live);
  IRBuilder<> JoinB(S.Inst->getParent(), S.Inst->getParent()->begin());
  PHINode *Either = JoinB.CreatePHI(T.Runtime.I64, 2);
  Either->addIncoming(Mapped, ColdEnd->getParent());
  Either->addIncoming(Translated, HotEnd->getParent());
  return Either;
}

Value *SiteRewriter::enterNative(const Site &S, const Access &A, unsigned Slot,
                                 SlotSet Live) {
  if (!A.Shared && A.MayCross)
    return mapOrTranslate(S, A, Slot, Live);
  BuilderBefore B(S.Inst);
  Value *Address = T.address(B, S.pointer(A));
  if (!A.Shared)
    return T.translate(S.Inst, Address, Slot, Live);
  if (S.leads(A)) {
    // It lies in one page itself; the window may not.
    Value *Entry = T.translate(S.Inst, Address, A.Shared->Slot, Live);
    B.SetInsertPoint(S.Inst);
    Value *Crosses = coldCondition(S, A, B);
    A.Shared->Entry =
        Crosses ? B.CreateSelect(Crosses, B.getInt64(0), Entry) : Entry;
    return Entry;
  }
  Value *Crossed = coldCondition(S, A, B);
  if (!Crossed)
    return A.Shared->Entry;
  BasicBlock *Head = S.Inst->getParent();
  Instruction *ColdEnd = SplitBlockAndInsertIfThen(
      Crossed, S.Inst->getIterator(), false, T.Runtime.ColdWeights);
  Value *Own = A.MayCross ? nullptr : T.translate(ColdEnd, Address, Slot, Live);
  if (!Own) {
    BuilderBefore ColdB(ColdEnd);
    Own = T.Runtime.crossMap(ColdB, Address, A.Size, Live);
  }
  IRBuilder<> JoinB(S.Inst->getParent(), S.Inst->getParent()->begin());
  PHINode *Either = JoinB.CreatePHI(T.Runtime.I64, 2);
  Either->addIncoming(A.Shared->Entry, Head);
  Either->addIncoming(Own, ColdEnd->getParent());
  return Either;
}

void SiteRewriter::rewriteNative(const Site &S) {
  // Each access has a slot of its own until the instruction is done.
  unsigned Slot = 0;
  SlotSet Live = S.Live;
  for (const Access &A : S.Accesses) {
    Value *Entry = enterNative(S, A, Slot, Live);
    BuilderBefore B(S.Inst);
    S.Inst->setOperand(A.Operand, T.redirect(B, S.pointer(A), Entry));
    Live |= SlotSet(1) << Slot++;
  }
}

void SiteRewriter::rewriteAnchor(const Site &S) {
  const Access &A = S.Accesses.front();
  if (A.Shared) {
    BuilderBefore B(S.Inst);
    A.Shared->Entry =
        T.translate(S.Inst, T.address(B, S.pointer(A)), A.Shared->Slot, S.Live);
  }
  S.Inst->eraseFromParent();
}

void SiteRewriter::rewrite(const Site &S) {
  if (S.Kind == SiteKind::Anchor)
    return rewriteAnchor(S);
  dropMetadata(*S.Inst);
  if (S.Kind == SiteKind::Native)
    return rewriteNative(S);

  BuilderBefore B(S.Inst);
  Value *Cold = nullptr;
  for (const Access &A : S.Accesses)
    if (Value *C = coldCondition(S, A, B))
      Cold = Cold ? B.CreateOr(Cold, C) : C;
  BasicBlock *Join = nullptr;
  Instruction *ColdEnd = nullptr, *HotEnd = nullptr;
  if (Cold) {
    SplitBlockAndInsertIfThenElse(Cold, S.Inst->getIterator(), &ColdEnd,
                                  &HotEnd, T.Runtime.ColdWeights);
    Join = S.Inst->getParent();
    bounce(S, ColdEnd, HotEnd);
  }

  unsigned Scratch = 0;
  SlotSet Live = S.Live;
  for (const Access &A : S.Accesses) {
    Value *Entry;
    if (A.Shared && !S.leads(A)) {
      Entry = A.Shared->Entry;
    } else {
      BuilderBefore HotB(S.Inst);
      unsigned Slot = A.Shared ? A.Shared->Slot : Scratch++;
      Entry = T.translate(S.Inst, T.address(HotB, S.pointer(A)), Slot, Live);
      Live |= SlotSet(1) << Slot;
      if (A.Shared)
        A.Shared->Entry = Entry;
    }
    BuilderBefore HotB(S.Inst);
    S.Inst->setOperand(A.Operand, T.redirect(HotB, S.pointer(A), Entry));
  }
  if (!Cold)
    return;
  // To those that follow, a leader that went cold has no entry.
  for (const Access &A : S.Accesses)
    if (S.leads(A)) {
      IRBuilder<> JoinB(Join, Join->begin());
      PHINode *Entry = JoinB.CreatePHI(T.Runtime.I64, 2, "spill.shared");
      Entry->addIncoming(JoinB.getInt64(0), ColdEnd->getParent());
      Entry->addIncoming(A.Shared->Entry, HotEnd->getParent());
      A.Shared->Entry = Entry;
    }
}

} // namespace spillway
