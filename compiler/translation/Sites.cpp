//===- Sites.cpp - Rewriting one site -------------------------------------===//
#include "translation/Sites.h"
#include "analysis/Address.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

// Metadata that holds for the program's memory need not hold for a frame. A
// frame's content changes as pages come and go, so a load must stay where its
// translation is valid. Non-temporal stores become ordinary ones, since a
// page's fingerprint is taken without a fence for them.
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

// Pointer, recomputed before the instruction Before if it is at a constant
// distance from another. If a cold path used the hot path's pointer, code
// generation could not fold that into an address.
static Value *recompute(Value *Pointer, Instruction *Before) {
  APInt Offset;
  Value *Base = baseOf(Pointer, Before->getDataLayout(), Offset);
  BuilderBefore B(Before);
  return Base == Pointer ? Pointer
                         : B.CreateGEP(B.getInt8Ty(), Base, B.getInt(Offset));
}

// The integer type of the size that S loads or stores, if the value can be
// converted to it and there is a stub for it (Abi.h); else null.
static IntegerType *registerType(const Site &S) {
  if (S.Kind != SiteKind::Load && S.Kind != SiteKind::Store)
    return nullptr;
  auto *Store = dyn_cast<StoreInst>(S.Inst);
  Type *T = Store ? Store->getValueOperand()->getType() : S.Inst->getType();
  uint64_t Bits = S.Inst->getDataLayout().getTypeSizeInBits(T);
  if (Bits < 8 || Bits > 64 || !isPowerOf2_64(Bits))
    return nullptr;
  auto *Register = IntegerType::get(T->getContext(), unsigned(Bits));
  return T->isPointerTy() ||
                 CastInst::castIsValid(Instruction::BitCast, T, Register)
             ? Register
             : nullptr;
}

// Calls a stub for the whole access. Returns what it loads; null for a store.
// REQUIRES: registerType(S).
Value *SiteRewriter::accessOutOfLine(const Site &S, IRBuilderBase &B) {
  IntegerType *Register = registerType(S);
  Value *Address = T.address(B, S.pointer(S.Accesses.front()));
  if (auto *Store = dyn_cast<StoreInst>(S.Inst)) {
    T.Runtime.store(
        B, Address,
        B.CreateBitOrPointerCast(Store->getValueOperand(), Register), S.Live);
    return nullptr;
  }
  Value *Loaded =
      T.Runtime.load(B, Address, Register->getBitWidth() / 8, S.Live);
  return B.CreateBitOrPointerCast(B.CreateTrunc(Loaded, Register),
                                  S.Inst->getType());
}

Value *SiteRewriter::bounceLoad(const Site &S, IRBuilderBase &B) {
  if (registerType(S))
    return accessOutOfLine(S, B);
  const Access &A = S.Accesses.front();
  Value *Buffer = T.buffer(A.Size);
  T.Runtime.crossLoad(B, T.address(B, S.pointer(A)), A.Size, Buffer, S.Live);
  return B.CreateAlignedLoad(S.Inst->getType(), Buffer, Align(16));
}

void SiteRewriter::bounceStore(const Site &S, IRBuilderBase &B) {
  if (registerType(S)) {
    accessOutOfLine(S, B);
    return;
  }
  const Access &A = S.Accesses.front();
  Value *Buffer = T.buffer(A.Size);
  B.CreateAlignedStore(cast<StoreInst>(S.Inst)->getValueOperand(), Buffer,
                       Align(16));
  T.Runtime.crossStore(B, T.address(B, S.pointer(A)), A.Size, Buffer, S.Live);
}

void SiteRewriter::copyOutOfLine(const Site &S, IRBuilderBase &B) {
  auto *Copy = cast<MemTransferInst>(S.Inst);
  Value *To = T.address(B, Copy->getRawDest());
  Value *From = T.address(B, Copy->getRawSource());
  T.Runtime.crossCopy(B, To, From, S.Accesses.front().Size, S.Live);
}

void SiteRewriter::bounceSet(const Site &S, IRBuilderBase &B) {
  auto *Set = cast<MemSetInst>(S.Inst);
  const Access &A = S.Accesses.front();
  Value *Buffer = T.buffer(A.Size);
  B.CreateMemSetInline(Buffer, Align(16), Set->getValue(), B.getInt64(A.Size));
  T.Runtime.crossStore(B, T.address(B, Set->getRawDest()), A.Size, Buffer,
                       S.Live);
}

// Splits the block at S.Inst, which moves to the end of the hot path. If it has
// a result, returns the phi that replaces it after both paths; the value from
// the cold path is still to be added.
PHINode *SiteRewriter::split(Value *Cold, const Site &S, Instruction *&ColdEnd,
                             Instruction *&HotEnd) {
  SplitBlockAndInsertIfThenElse(Cold, S.Inst->getIterator(), &ColdEnd, &HotEnd,
                                T.Runtime.ColdWeights);
  BasicBlock *Join = S.Inst->getParent();
  S.Inst->moveBefore(HotEnd);
  if (S.Inst->getType()->isVoidTy())
    return nullptr;
  IRBuilder<> JoinB(Join, Join->begin());
  PHINode *Result = JoinB.CreatePHI(S.Inst->getType(), 2);
  S.Inst->replaceAllUsesWith(Result);
  Result->addIncoming(S.Inst, HotEnd->getParent());
  return Result;
}

void SiteRewriter::bounceIf(Value *Crosses, const Site &S) {
  Instruction *ColdEnd, *HotEnd;
  PHINode *Result = split(Crosses, S, ColdEnd, HotEnd);
  BuilderBefore B(ColdEnd);
  B.SetCurrentDebugLocation(S.Inst->getDebugLoc());
  switch (S.Kind) {
  case SiteKind::Load:
    Result->addIncoming(bounceLoad(S, B), ColdEnd->getParent());
    break;
  case SiteKind::Store:
    bounceStore(S, B);
    break;
  case SiteKind::Copy:
    copyOutOfLine(S, B);
    break;
  case SiteKind::Set:
    bounceSet(S, B);
    break;
  case SiteKind::Native:
  case SiteKind::Anchor:
    llvm_unreachable("never bounced");
  }
}

BranchInst *SiteRewriter::shareNothingIf(Value *Cold, const Site &S) {
  Instruction *ColdEnd, *HotEnd;
  BasicBlock *Head = S.Inst->getParent();
  PHINode *Result = split(Cold, S, ColdEnd, HotEnd);
  Site Alone = S;
  Alone.Inst = S.Inst->clone();
  Alone.Inst->insertBefore(ColdEnd);
  for (Access &A : Alone.Accesses) {
    A.Shared = nullptr;
    Alone.Inst->setOperand(A.Operand, recompute(S.pointer(A), Alone.Inst));
  }
  if (Result)
    Result->addIncoming(Alone.Inst, ColdEnd->getParent());
  // A leader that went this way has no entry for its followers.
  BasicBlock *Join = HotEnd->getSuccessor(0);
  for (const Access &A : S.Accesses)
    if (S.leads(A)) {
      IRBuilder<> JoinB(Join, Join->begin());
      PHINode *Entry = JoinB.CreatePHI(T.Runtime.I64, 2, "spill.shared");
      Entry->addIncoming(JoinB.getInt64(0), ColdEnd->getParent());
      A.Shared->Entry = Entry;
    }
  rewriteAccesses(Alone, /*OutOfLine=*/true);
  return cast<BranchInst>(Head->getTerminator());
}

// Whether A must not use the translation that it shares; null: it always may.
Value *SiteRewriter::coldCondition(const Site &S, const Access &A,
                                   IRBuilderBase &B) {
  const Translation *Shared = A.Shared;
  if (!Shared || !Shared->MayCross || A.Checked)
    return nullptr;
  if (!S.leads(A))
    return B.CreateICmpEQ(Shared->Entry, B.getInt64(0), "spill.crossed");
  // An access claims nothing about bytes below its own.
  return T.mayCross(B, windowBegin(S, A, B), Shared->High - Shared->Low,
                    Shared->Low == 0 ? A.Claimed : Align(1));
}

// The lowest address of the window that S leads.
Value *SiteRewriter::windowBegin(const Site &S, const Access &A,
                                 IRBuilderBase &B) {
  const Translation *Shared = A.Shared;
  return Shared->Reference ? T.address(B, Shared->Reference)
                           : B.CreateAdd(T.address(B, S.pointer(A)),
                                         B.getInt64(uint64_t(Shared->Low)));
}

// A block for a window that crosses an edge and does not move. An object on the
// stack, or any other that is not spilled, may lie like that for its lifetime.
// If the table says identity for both pages, the loop holds that and goes on.
// Whatever the table says later, an access to the address itself is correct: at
// worst it faults, like those of foreign code.
BasicBlock *SiteRewriter::holdPlain(const Translation &Shared, Value *Begin,
                                    uint64_t Size, BasicBlock *Alone,
                                    BasicBlock *Hot) {
  Function *F = Hot->getParent();
  BasicBlock *Edge =
      BasicBlock::Create(F->getContext(), "spill.edge", F, Alone);
  BasicBlock *Plain =
      BasicBlock::Create(F->getContext(), "spill.plain", F, Alone);
  BuilderBefore B(Hot->getTerminator());
  B.SetInsertPoint(Edge);
  Value *Both =
      B.CreateAnd(T.isIdentity(B, Begin),
                  T.isIdentity(B, B.CreateAdd(Begin, B.getInt64(Size - 1))));
  B.CreateCondBr(Both, Plain, Alone);
  B.SetInsertPoint(Plain);
  B.CreateStore(B.getInt64(uint64_t(abi::Identity)), Shared.HeldEntry);
  B.CreateBr(Hot);
  return Edge;
}

// Translates before the only access of S, which leads, unless the page is held.
// Cold: the branch to the code that shares nothing (true) or to the access
// (false), which depends on whether the window crosses an edge from here on;
// null if it never does.
void SiteRewriter::holdOr(BranchInst *Cold, const Site &S) {
  const Access &A = S.Accesses.front();
  const Translation &Shared = *A.Shared;
  uint64_t Size = Shared.High - Shared.Low;
  BuilderBefore B(Cold ? Cold : S.Inst);
  Value *Begin = windowBegin(S, A, B);
  Value *Elsewhere;
  if (Shared.HeldPage) {
    Value *Page = B.CreateLoad(T.Runtime.I64, Shared.HeldPage);
    Elsewhere =
        B.CreateICmpUGT(B.CreateSub(Begin, Page),
                        B.getInt64(abi::PageSize - Size), "spill.elsewhere");
  } else {
    Value *Entry = B.CreateLoad(T.Runtime.I64, Shared.HeldEntry);
    Elsewhere = B.CreateICmpEQ(Entry, B.getInt64(0), "spill.elsewhere");
  }
  Instruction *End;
  if (Cold) {
    BasicBlock *Alone = Cold->getSuccessor(0), *Hot = Cold->getSuccessor(1);
    Function *F = Hot->getParent();
    LLVMContext &C = F->getContext();
    BasicBlock *Move = BasicBlock::Create(C, "spill.move", F, Alone);
    BasicBlock *Translate = BasicBlock::Create(C, "spill.arrive", F, Alone);
    B.CreateCondBr(Elsewhere, Move, Hot, T.Runtime.ColdWeights);
    DebugLoc Location = B.getCurrentDebugLocation();
    Cold->eraseFromParent();
    B.SetInsertPoint(Move);
    B.SetCurrentDebugLocation(Location);
    // A pointer that changes will leave the edge again.
    BasicBlock *Edge =
        Shared.HeldPage ? Alone : holdPlain(Shared, Begin, Size, Alone, Hot);
    B.CreateCondBr(T.crossesPage(B, Begin, Size), Edge, Translate,
                   T.Runtime.ColdWeights);
    B.SetInsertPoint(Translate);
    B.SetCurrentDebugLocation(Location);
    End = B.CreateBr(Hot);
  } else {
    End =
        SplitBlockAndInsertIfThen(Elsewhere, S.Inst->getIterator(),
                                  /*Unreachable=*/false, T.Runtime.ColdWeights);
  }
  Value *Entry = T.translate(End, Begin, Shared.Slot, S.Live);
  BuilderBefore EndB(End);
  if (Shared.HeldPage)
    EndB.CreateStore(EndB.CreateAnd(Begin, EndB.getInt64(-abi::PageSize)),
                     Shared.HeldPage);
  EndB.CreateStore(Entry, Shared.HeldEntry);
}

// The entry for a native access that may cross an edge and shares nothing, or
// leads a window.
Value *SiteRewriter::mapOrTranslate(const Site &S, const Access &A,
                                    unsigned Slot, SlotSet Live) {
  BuilderBefore B(S.Inst);
  Value *Address = T.address(B, S.pointer(A));
  Value *Crosses =
      A.Shared ? coldCondition(S, A, B) : T.crossesPage(B, Address, A.Size);
  return mapIf(Crosses, S, Address, A.Size, A.Shared, Slot, Live);
}

// The entry for the Size bytes at Address that S accesses natively: if they
// cross an edge, that of where they are mapped. Led: the translation that S
// leads, or null.
Value *SiteRewriter::mapIf(Value *Crosses, const Site &S, Value *Address,
                           uint64_t Size, Translation *Led, unsigned Slot,
                           SlotSet Live) {
  Instruction *ColdEnd, *HotEnd;
  SplitBlockAndInsertIfThenElse(Crosses, S.Inst->getIterator(), &ColdEnd,
                                &HotEnd, T.Runtime.ColdWeights);
  BuilderBefore ColdB(ColdEnd);
  Value *Mapped = T.Runtime.crossMap(ColdB, Address, Size, Live);
  Value *Translated = T.translate(HotEnd, Address, Slot, Live);
  IRBuilder<> JoinB(S.Inst->getParent(), S.Inst->getParent()->begin());
  auto Join = [&](Value *IfCrosses) {
    PHINode *Either = JoinB.CreatePHI(T.Runtime.I64, 2);
    Either->addIncoming(IfCrosses, ColdEnd->getParent());
    Either->addIncoming(Translated, HotEnd->getParent());
    return Either;
  };
  if (Led)
    Led->Entry = Join(JoinB.getInt64(0));
  return Join(Mapped);
}

Value *SiteRewriter::enterNative(const Site &S, const Access &A, unsigned Slot,
                                 SlotSet Live) {
  bool Leads = S.leads(A);
  if (A.MayCross && (Leads ? !A.Checked : !A.Shared))
    return mapOrTranslate(S, A, Leads ? A.Shared->Slot : Slot, Live);
  BuilderBefore B(S.Inst);
  if (!A.Shared)
    return T.translate(S.Inst, T.address(B, S.pointer(A)), Slot, Live);
  if (Leads) {
    // The access itself lies in one page; its window may not.
    Value *Entry =
        T.translate(S.Inst, T.address(B, S.pointer(A)), A.Shared->Slot, Live);
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
  Value *Pointer = recompute(S.pointer(A), ColdEnd);
  BuilderBefore ColdB(ColdEnd);
  Value *Address = T.address(ColdB, Pointer);
  Value *Own = A.MayCross
                   ? T.Runtime.crossMap(ColdB, Address, A.Size, Live)
                   : T.Runtime.translateAlone(ColdB, Address, Slot, Live);
  IRBuilder<> JoinB(S.Inst->getParent(), S.Inst->getParent()->begin());
  PHINode *Either = JoinB.CreatePHI(T.Runtime.I64, 2);
  Either->addIncoming(A.Shared->Entry, Head);
  Either->addIncoming(Own, ColdEnd->getParent());
  return Either;
}

void SiteRewriter::rewriteNative(const Site &S) {
  if (auto *Call = dyn_cast<CallBase>(S.Inst); Call && Call->isInlineAsm())
    return rewriteAssembly(S);
  const Access &A = S.Accesses.front();
  Value *Entry = enterNative(S, A, /*Slot=*/0, S.Live);
  BuilderBefore B(S.Inst);
  S.Inst->setOperand(A.Operand, T.redirect(B, S.pointer(A), Entry));
}

// Pointer, in a register of its own. As a sum it would take one for each term.
static Value *inRegister(IRBuilderBase &B, Value *Pointer) {
  Type *P = Pointer->getType();
  CallInst *Same =
      B.CreateCall(InlineAsm::get(FunctionType::get(P, {P}, false), "", "=r,0",
                                  /*hasSideEffects=*/false),
                   {Pointer}, "spill.pointer");
  Same->setDoesNotThrow();
  Same->setDoesNotAccessMemory();
  return Same;
}

void SiteRewriter::rewriteAssembly(const Site &S) {
  // Each group has a slot of its own until the instruction is done.
  unsigned Slot = 0;
  SlotSet Live = S.Live;
  for (const OperandGroup &Group : groupOperands(S)) {
    BuilderBefore B(S.Inst);
    Value *First = S.pointer(*Group.Members.front().A);
    Value *Begin =
        B.CreateAdd(T.address(B, First), B.getInt64(uint64_t(Group.Low)));
    uint64_t Size = uint64_t(Group.High - Group.Low);
    Value *Entry = mapIf(T.crossesPage(B, Begin, Size), S, Begin, Size,
                         /*Led=*/nullptr, Slot, Live);
    B.SetInsertPoint(S.Inst);
    Value *Where = T.redirect(B, First, Entry);
    SmallDenseMap<int64_t, Value *, 4> At; // by distance from the first
    At[0] = S.Accesses.size() > 1 ? inRegister(B, Where) : Where;
    for (auto [A, Offset] : Group.Members) {
      Value *&Pointer = At[Offset];
      if (!Pointer)
        Pointer =
            B.CreateConstGEP1_64(B.getInt8Ty(), At.lookup(0), uint64_t(Offset));
      S.Inst->setOperand(A->Operand, Pointer);
    }
    Live |= SlotSet(1) << Slot++;
  }
  // Without a fence such a store might reach its frame when the slots already
  // protect something else.
  if (auto *Call = dyn_cast<CallInst>(S.Inst);
      Call && Call->isInlineAsm() && storesPastCaches(*Call)) {
    BuilderBefore B(Call->getNextNode());
    B.CreateCall(InlineAsm::get(FunctionType::get(B.getVoidTy(), false),
                                "sfence", "~{memory}",
                                /*hasSideEffects=*/true));
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

  const Access &First = S.Accesses.front();
  if (S.leads(First) && First.Shared->HeldEntry)
    rewriteHolder(S);
  else
    rewriteAccesses(S, S.IsCold);
}

void SiteRewriter::rewriteHolder(const Site &S) {
  const Access &A = S.Accesses.front();
  // In a segment, page and edge were checked where it begins.
  if (!A.Checked)
    holdOr(A.Shared->MayCross
               ? shareNothingIf(ConstantInt::getFalse(S.Inst->getContext()), S)
               : nullptr,
           S);
  BuilderBefore B(S.Inst);
  Value *Entry = B.CreateLoad(T.Runtime.I64, A.Shared->HeldEntry, "spill.d");
  S.Inst->setOperand(A.Operand, T.redirect(B, S.pointer(A), Entry));
  publish(S, A, Entry);
}

// If A leads, lets its followers know its entry.
void SiteRewriter::publish(const Site &S, const Access &A, Value *Entry) {
  if (!S.leads(A))
    return;
  if (auto *Joined = cast_or_null<PHINode>(A.Shared->Entry))
    Joined->addIncoming(Entry, S.Inst->getParent());
  else
    A.Shared->Entry = Entry;
}

void SiteRewriter::perform(const Step &S) {
  switch (S.Kind) {
  case Step::Rewrite:
    return rewrite(S.S);
  case Step::Decide: {
    const Access &First = S.S.Accesses.front();
    if (S.S.leads(First) && First.Shared->HeldEntry)
      return holdOr(S.Branch, S.S);
    BuilderBefore B(S.Branch);
    S.Branch->setCondition(coldCondition(S.S, First, B));
    S.Branch->setMetadata(LLVMContext::MD_prof, T.Runtime.ColdWeights);
    return;
  }
  case Step::Join:
    S.Entry->setIncomingValue(0, S.Shared->Entry);
    S.Shared->Entry = S.Entry;
    return;
  }
}

// A load or store that may cross and shares nothing. If it crosses, or its page
// is not in memory, all of it is done by the same call out of line.
void SiteRewriter::rewriteAlone(const Site &S) {
  const Access &A = S.Accesses.front();
  BasicBlock *Head = S.Inst->getParent();
  BuilderBefore B(S.Inst);
  Value *Address = T.address(B, S.pointer(A));
  Value *Crosses = T.mayCross(B, Address, A.Size, A.Claimed);
  BasicBlock *Hot = SplitBlock(Head, S.Inst);
  auto [Entry, Slow] = T.lookUp(S.Inst, Address, /*Slot=*/0);
  Instruction *ColdEnd, *HotEnd;
  PHINode *Result = split(Slow, S, ColdEnd, HotEnd);
  Instruction *Old = Head->getTerminator();
  BuilderBefore HeadB(Old);
  HeadB.CreateCondBr(Crosses, ColdEnd->getParent(), Hot, T.Runtime.ColdWeights);
  Old->eraseFromParent();
  BuilderBefore ColdB(ColdEnd);
  ColdB.SetCurrentDebugLocation(S.Inst->getDebugLoc());
  Value *Loaded = accessOutOfLine(S, ColdB);
  if (Result)
    Result->addIncoming(Loaded, ColdEnd->getParent());
  BuilderBefore HotB(S.Inst);
  S.Inst->setOperand(A.Operand, T.redirect(HotB, S.pointer(A), Entry));
}

void SiteRewriter::rewriteAccesses(const Site &S, bool OutOfLine) {
  BuilderBefore B(S.Inst);
  if (OutOfLine && !S.Accesses.front().Shared && registerType(S)) {
    if (Value *Loaded = accessOutOfLine(S, B))
      S.Inst->replaceAllUsesWith(Loaded);
    S.Inst->eraseFromParent();
    return;
  }
  // Not for one that never crosses: it comes after both ways have joined, and
  // may be merged into one instruction with the use of its value.
  if (const Access &A = S.Accesses.front();
      A.MayCross && !A.Shared && registerType(S) && !T.isBySatc())
    return rewriteAlone(S);
  Value *Cold = nullptr;
  bool Shares = false;
  for (const Access &A : S.Accesses) {
    Shares |= A.Shared != nullptr;
    Value *C = nullptr;
    if (A.Shared)
      C = coldCondition(S, A, B);
    else if (A.MayCross)
      C = T.mayCross(B, T.address(B, S.pointer(A)), A.Size, A.Claimed);
    Cold = Cold && C ? B.CreateOr(Cold, C) : Cold ? Cold : C;
  }
  if (Cold && Shares)
    shareNothingIf(Cold, S);
  else if (Cold)
    bounceIf(Cold, S);

  unsigned Scratch = 0;
  SlotSet Live = S.Live;
  SmallVector<Value *, 2> Entries;
  for (const Access &A : S.Accesses) {
    BuilderBefore HotB(S.Inst);
    Value *Entry = nullptr;
    if (A.Shared && !S.leads(A)) {
      Entry = A.Shared->Entry;
    } else {
      unsigned Slot = A.Shared ? A.Shared->Slot : Scratch++;
      Value *Reference = A.Shared ? A.Shared->Reference : nullptr;
      Value *Address = T.address(HotB, Reference ? Reference : S.pointer(A));
      Entry = OutOfLine ? T.Runtime.translateAlone(HotB, Address, Slot, Live)
                        : T.translate(S.Inst, Address, Slot, Live);
      Live |= SlotSet(1) << Slot;
      HotB.SetInsertPoint(S.Inst);
    }
    S.Inst->setOperand(A.Operand, T.redirect(HotB, S.pointer(A), Entry));
    Entries.push_back(Entry);
  }
  for (auto [A, Entry] : zip(S.Accesses, Entries))
    publish(S, A, Entry);
}

} // namespace spillway
