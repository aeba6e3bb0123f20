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
  T.Runtime.crossLoad(B, T.address(B, S.pointer(A)), A.Size, Buffer, 0);
  return B.CreateAlignedLoad(S.Inst->getType(), Buffer, Align(16));
}

void SiteRewriter::bounceStore(const Site &S, IRBuilderBase &B) {
  const Access &A = S.Accesses.front();
  Value *Buffer = T.buffer(A.Size);
  B.CreateAlignedStore(cast<StoreInst>(S.Inst)->getValueOperand(), Buffer,
                       Align(16));
  T.Runtime.crossStore(B, T.address(B, S.pointer(A)), A.Size, Buffer, 0);
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
    T.Runtime.crossLoad(B, T.address(B, Copy->getRawSource()), Size, Buffer, 0);
  if (HasDest)
    T.Runtime.crossStore(B, T.address(B, Copy->getRawDest()), Size, Buffer, 0);
}

void SiteRewriter::bounceSet(const Site &S, IRBuilderBase &B) {
  auto *Set = cast<MemSetInst>(S.Inst);
  const Access &A = S.Accesses.front();
  Value *Buffer = T.buffer(A.Size);
  B.CreateMemSetInline(Buffer, Align(16), Set->getValue(), B.getInt64(A.Size));
  T.Runtime.crossStore(B, T.address(B, Set->getRawDest()), A.Size, Buffer, 0);
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
    llvm_unreachable("a native access is never bounced");
  }
}

void SiteRewriter::redirectNative(const Site &S, const Access &A, unsigned Slot,
                                  SlotSet Live) {
  BuilderBefore B(S.Inst);
  Value *Address = T.address(B, S.pointer(A));
  Value *Entry;
  if (A.MayCross) {
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
    Entry = Either;
  } else {
    Entry = T.translate(S.Inst, Address, Slot, Live);
  }
  B.SetInsertPoint(S.Inst);
  S.Inst->setOperand(A.Operand, T.redirect(B, S.pointer(A), Entry));
}

// Splits off the cold path if S may cross a page's edge. Returns the
// instruction at the end of the hot path.
Instruction *SiteRewriter::splitCrossing(const Site &S) {
  BuilderBefore B(S.Inst);
  Value *Crosses = nullptr;
  for (const Access &A : S.Accesses)
    if (A.MayCross) {
      Value *C = T.crossesPage(B, T.address(B, S.pointer(A)), A.Size);
      Crosses = Crosses ? B.CreateOr(Crosses, C) : C;
    }
  if (!Crosses)
    return S.Inst;
  Instruction *ColdEnd, *HotEnd;
  SplitBlockAndInsertIfThenElse(Crosses, S.Inst->getIterator(), &ColdEnd,
                                &HotEnd, T.Runtime.ColdWeights);
  bounce(S, ColdEnd, HotEnd);
  return S.Inst;
}

void SiteRewriter::rewrite(const Site &S) {
  // Each access of a site has a slot of its own until the instruction is done.
  unsigned Slot = 0;
  SlotSet Live = 0;
  if (S.Kind == SiteKind::Native) {
    for (const Access &A : S.Accesses) {
      redirectNative(S, A, Slot, Live);
      Live |= SlotSet(1) << Slot++;
    }
    dropMetadata(*S.Inst);
    return;
  }
  splitCrossing(S);
  for (const Access &A : S.Accesses) {
    BuilderBefore B(S.Inst);
    Value *Entry = T.translate(S.Inst, T.address(B, S.pointer(A)), Slot, Live);
    B.SetInsertPoint(S.Inst);
    S.Inst->setOperand(A.Operand, T.redirect(B, S.pointer(A), Entry));
    Live |= SlotSet(1) << Slot++;
  }
  dropMetadata(*S.Inst);
}

} // namespace spillway
