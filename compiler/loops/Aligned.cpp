//===- Aligned.cpp - Loops that exist for aligned data, too ---------------===//
#include "loops/Aligned.h"
#include "Functions.h"
#include "analysis/Accesses.h"
#include "analysis/Kills.h"
#include "analysis/Provenance.h"
#include "loops/Held.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace spillway {

// The most instructions of a loop that is copied.
static constexpr unsigned MaxInstructions = 300;
// The same for a loop with calls, where checks are a small part of the time.
static constexpr unsigned MaxBesideCalls = 50;
// How many pointers are checked before a loop.
static constexpr unsigned MaxRoots = 6;
// The largest access that is marked. Vectors need more alignment than the heap
// promises: a loop over them would mostly run in its copy.
static constexpr uint64_t MaxSize = 8;
// How many values an address is traced back through.
static constexpr unsigned MaxValues = 32;

namespace {

/// Pointers from outside a loop, and what each must be a multiple of.
using Roots = SmallMapVector<Value *, uint64_t, 8>;

class Copier {
public:
  Copier(Function &F, FunctionAnalysisManager &FAM,
         SmallPtrSetImpl<Instruction *> &InPage)
      : InPage(InPage), DL(F.getDataLayout()),
        LI(FAM.getResult<LoopAnalysis>(F)),
        DT(FAM.getResult<DominatorTreeAnalysis>(F)),
        SE(FAM.getResult<ScalarEvolutionAnalysis>(F)),
        AC(FAM.getResult<AssumptionAnalysis>(F)) {}

  bool run();

private:
  void consider(Loop *L);
  SmallPtrSet<Instruction *, 16> spared(Loop *L);
  void collect(Loop *L, Roots &Asked,
               SmallVectorImpl<Instruction *> &Accesses) const;
  bool isCopyable(Loop *L) const;
  bool asksRarely(Value *Pointer, Loop *L);
  bool traceTo(Roots &Found, Value *Pointer, uint64_t Size, Loop *L) const;
  void mark(ArrayRef<Instruction *> Accesses);
  Value *ask(const Roots &Asked, IRBuilderBase &B);
  void copy(Loop *L, const Roots &Asked, ArrayRef<Instruction *> Accesses);

  SmallPtrSetImpl<Instruction *> &InPage;
  const DataLayout &DL;
  LoopInfo &LI;
  DominatorTree &DT;
  ScalarEvolution &SE;
  AssumptionCache &AC;
  SmallVector<Loop *, 4> Copied;
};

} // namespace

bool Copier::isCopyable(Loop *L) const {
  if (!L->isLoopSimplifyForm() || !L->isSafeToClone())
    return false;
  unsigned Count = 0;
  bool Calls = false;
  for (BasicBlock *BB : L->blocks()) {
    if (BB->hasAddressTaken() || BB->isEHPad())
      return false;
    for (Instruction &I : *BB) {
      auto *Call = dyn_cast<CallBase>(&I);
      Calls |= endsTranslations(I);
      if (isUnique(I) || isa<AllocaInst>(I) || I.getType()->isTokenTy() ||
          (Call && Call->hasFnAttr(Attribute::ReturnsTwice)) ||
          ++Count > (Calls ? MaxBesideCalls : MaxInstructions))
        return false;
    }
  }
  return true;
}

// Whether accesses by Pointer in L, their innermost loop, will need no check
// for the edge each time anyway: because L will be split at pages' edges
// (LoopSplit.h), or hold the page (Held.h).
bool Copier::asksRarely(Value *Pointer, Loop *L) {
  for (BasicBlock *BB : L->blocks())
    if (any_of(*BB, endsTranslations))
      return false;
  if (staysInPages(Pointer, L))
    return true;
  const SCEV *Address = SE.getSCEV(Pointer);
  auto *Recurrence = dyn_cast<SCEVAddRecExpr>(Address);
  return L->isInnermost() && L->getExitingBlock() == L->getLoopLatch() &&
         !isa<SCEVCouldNotCompute>(SE.getBackedgeTakenCount(L)) &&
         (SE.isLoopInvariant(Address, L) ||
          (Recurrence && Recurrence->getLoop() == L &&
           isa<SCEVConstant>(Recurrence->getStepRecurrence(SE))));
}

// Adds to Found the values that must be multiples of Size for Pointer to be one
// wherever L uses it.
bool Copier::traceTo(Roots &Found, Value *Pointer, uint64_t Size,
                     Loop *L) const {
  SmallPtrSet<Value *, 16> Seen;
  SmallVector<Value *, 16> Work(1, Pointer);
  while (!Work.empty()) {
    Value *V = Work.pop_back_val();
    if (!Seen.insert(V).second)
      continue;
    if (Seen.size() > MaxValues)
      return false;
    if (L->isLoopInvariant(V)) {
      APInt Offset(64, 0);
      Value *Base = V->stripAndAccumulateConstantOffsets(
          DL, Offset, /*AllowNonInbounds=*/true);
      if (Offset.urem(Size) == 0)
        V = Base;
      if (auto *C = dyn_cast<Constant>(V);
          C && (C->isNullValue() || isa<UndefValue>(C)))
        continue;
      uint64_t &Asked = Found[V];
      Asked = std::max(Asked, Size);
      continue;
    }
    if (auto *Phi = dyn_cast<PHINode>(V)) {
      Work.append(Phi->op_begin(), Phi->op_end());
    } else if (auto *Select = dyn_cast<SelectInst>(V)) {
      Work.append({Select->getTrueValue(), Select->getFalseValue()});
    } else if (auto *Freeze = dyn_cast<FreezeInst>(V)) {
      Work.push_back(Freeze->getOperand(0));
    } else if (auto *GEP = dyn_cast<GEPOperator>(V)) {
      MapVector<Value *, APInt> Variable;
      APInt Constant(64, 0);
      if (!GEP->collectOffset(DL, 64, Variable, Constant) ||
          Constant.urem(Size) != 0)
        return false;
      for (auto &[Index, Scale] : Variable)
        if (Scale.countTrailingZeros() +
                computeKnownBits(Index, DL, 0, &AC).countMinTrailingZeros() <
            Log2_64(Size))
          return false;
      Work.push_back(GEP->getPointerOperand());
    } else {
      return false;
    }
  }
  return true;
}

// The pointer by which I accesses memory, and the type of what it accesses.
// Null if it accesses none, or by several pointers.
static std::pair<Value *, Type *> accessOf(Instruction &I) {
  if (Value *Pointer = getLoadStorePointerOperand(&I))
    return {Pointer, getLoadStoreType(&I)};
  if (auto *RMW = dyn_cast<AtomicRMWInst>(&I))
    return {RMW->getPointerOperand(), RMW->getValOperand()->getType()};
  if (auto *CX = dyn_cast<AtomicCmpXchgInst>(&I))
    return {CX->getPointerOperand(), CX->getCompareOperand()->getType()};
  return {nullptr, nullptr};
}

// Collects the accesses of L that are aligned if all of Asked are the multiples
// that they must be; adds to Asked what these accesses require.
void Copier::collect(Loop *L, Roots &Asked,
                     SmallVectorImpl<Instruction *> &Accesses) const {
  for (BasicBlock *BB : L->blocks())
    for (Instruction &I : *BB) {
      auto [Pointer, Accessed] = accessOf(I);
      if (!Pointer || isPlain(Pointer))
        continue;
      TypeSize Size = DL.getTypeStoreSize(Accessed);
      if (Size.isScalable() || Size.getFixedValue() < 2 ||
          Size.getFixedValue() > MaxSize ||
          !isPowerOf2_64(Size.getFixedValue()))
        continue;
      Roots More = Asked;
      if (!traceTo(More, Pointer, Size.getFixedValue(), L) ||
          More.size() > MaxRoots)
        continue;
      Asked = std::move(More);
      Accesses.push_back(&I);
    }
}

// The accesses of L that no longer need a check if L is copied.
SmallPtrSet<Instruction *, 16> Copier::spared(Loop *L) {
  Roots Asked;
  SmallVector<Instruction *, 16> Accesses;
  if (isCopyable(L))
    collect(L, Asked, Accesses);
  SmallPtrSet<Instruction *, 16> Result;
  for (Instruction *I : Accesses)
    if (!asksRarely(accessOf(*I).first, LI.getLoopFor(I->getParent())))
      Result.insert(I);
  return Result;
}

// Chooses L, or else loops inside it. Inner loops are better if their own
// copies would spare accesses that a copy of L would not: when L loads the
// pointers with which they begin.
void Copier::consider(Loop *L) {
  SmallPtrSet<Instruction *, 16> Outer = spared(L);
  bool InnerSpareMore = any_of(L->getLoopsInPreorder(), [&](Loop *Inner) {
    return Inner != L && any_of(spared(Inner), [&](Instruction *I) {
             return !Outer.contains(I);
           });
  });
  if (!Outer.empty() && !InnerSpareMore)
    Copied.push_back(L);
  else
    for (Loop *Sub : *L)
      consider(Sub);
}

// Makes I claim the alignment. Atomics keep what their type claims: code
// generation would call a library for less aligned ones.
static void claim(Instruction *I, Align Alignment) {
  if (I->isAtomic())
    return;
  if (auto *Load = dyn_cast<LoadInst>(I))
    Load->setAlignment(Alignment);
  else
    cast<StoreInst>(I)->setAlignment(Alignment);
}

void Copier::mark(ArrayRef<Instruction *> Accesses) {
  for (Instruction *I : Accesses) {
    markAligned(*I);
    claim(I, Align(DL.getTypeStoreSize(accessOf(*I).second).getFixedValue()));
  }
}

// Emits the test whether all of Asked are the multiples that they must be.
Value *Copier::ask(const Roots &Asked, IRBuilderBase &B) {
  Value *Bits = B.getInt64(0);
  for (auto [Root, Size] : Asked) {
    Value *Address = B.CreatePtrToInt(B.CreateFreeze(Root), B.getInt64Ty());
    Bits = B.CreateOr(Bits, B.CreateAnd(Address, Size - 1));
  }
  return B.CreateICmpEQ(Bits, B.getInt64(0));
}

void Copier::copy(Loop *L, const Roots &Asked,
                  ArrayRef<Instruction *> Accesses) {
  formLCSSARecursively(*L, DT, &LI, &SE);
  BasicBlock *Ask = L->getLoopPreheader();
  SmallVector<BasicBlock *, 4> Exits;
  L->getUniqueExitBlocks(Exits);
  BasicBlock *Before =
      SplitBlock(Ask, Ask->getTerminator(), &DT, &LI, nullptr, "spill.aligned");
  ValueToValueMapTy Copies;
  SmallVector<BasicBlock *, 16> Clones;
  Loop *Copy =
      cloneLoopWithPreheader(Before, Ask, L, Copies, ".any", &LI, &DT, Clones);
  remapInstructionsInBlocks(Clones, Copies);
  for (BasicBlock *BB : L->blocks())
    for (Instruction &I : *BB)
      if (InPage.contains(&I))
        InPage.insert(cast<Instruction>(Copies[&I]));
  // In the copy some addresses are not what their types claim.
  for (Instruction *I : Accesses)
    claim(cast<Instruction>(Copies[I]), Align(1));

  Instruction *Old = Ask->getTerminator();
  IRBuilder<> B(Old);
  B.SetCurrentDebugLocation(L->getStartLoc());
  B.CreateCondBr(ask(Asked, B), Before, Copy->getLoopPreheader());
  Old->eraseFromParent();
  for (BasicBlock *Exit : Exits)
    for (PHINode &Phi : Exit->phis())
      for (unsigned Index = 0, End = Phi.getNumIncomingValues(); Index < End;
           ++Index) {
        Value *From = Copies.lookup(Phi.getIncomingBlock(Index));
        if (!From)
          continue;
        Value *In = Phi.getIncomingValue(Index);
        Value *Copied = Copies.lookup(In);
        Phi.addIncoming(Copied ? Copied : In, cast<BasicBlock>(From));
      }
  // What only L led to is reached through the copy, too.
  for (BasicBlock *BB : L->blocks())
    for (DomTreeNode *Node : to_vector(DT[BB]->children()))
      if (!L->contains(Node->getBlock()))
        DT.changeImmediateDominator(Node, DT[Ask]);
}

bool Copier::run() {
  for (Loop *L : LI)
    simplifyLoop(L, &DT, &LI, &SE, &AC, nullptr, /*PreserveLCSSA=*/false);
  for (Loop *L : LI)
    consider(L);
  for (Loop *L : Copied) {
    // Collected anew: after one loop has been copied, others see its values
    // through phis.
    Roots Asked;
    SmallVector<Instruction *, 16> Accesses;
    collect(L, Asked, Accesses);
    if (!Asked.empty())
      copy(L, Asked, Accesses);
    mark(Accesses);
  }
  return !Copied.empty();
}

bool copyForAlignment(Function &F, FunctionAnalysisManager &FAM,
                      SmallPtrSetImpl<Instruction *> &InPage) {
  return Copier(F, FAM, InPage).run();
}

} // namespace spillway
