//===- Ways.cpp - From native loops into the instrumented body ------------===//
#include "bodies/Ways.h"
#include "analysis/Address.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace spillway {

// Native loops of at most this many iterations that call nothing have no way:
// they run to their end.
static constexpr unsigned MaxShortTrips = 64;

// Stack variables of at most this many bytes are gathered into one.
static constexpr unsigned MaxSmallVariable = 256;

static bool isShort(BasicBlock *Head, LoopInfo &LI, ScalarEvolution &SE) {
  Loop *L = LI.getLoopFor(Head);
  if (!L || L->getHeader() != Head)
    return false;
  unsigned Trips = SE.getSmallConstantMaxTripCount(L);
  if (Trips == 0 || Trips > MaxShortTrips)
    return false;
  return none_of(L->blocks(), [](const BasicBlock *BB) {
    return any_of(*BB, [](const Instruction &I) {
      return isa<CallBase>(I) && !isa<IntrinsicInst>(I);
    });
  });
}

// Each cycle of the code, natural loop or not, runs through the target of a
// back edge: these are the heads.
SmallVector<Way, 4> findWays(Function &F, FunctionAnalysisManager &FAM) {
  SmallVector<std::pair<const BasicBlock *, const BasicBlock *>, 8> Edges;
  FindFunctionBackedges(F, Edges);
  SmallVector<Way, 4> Ways;
  if (Edges.empty())
    return Ways;
  SetVector<BasicBlock *> Heads;
  for (auto [From, To] : Edges)
    Heads.insert(const_cast<BasicBlock *>(To));
  auto &LI = FAM.getResult<LoopAnalysis>(F);
  auto &SE = FAM.getResult<ScalarEvolutionAnalysis>(F);
  for (BasicBlock *Head : Heads)
    if (!Head->isEHPad() && !isShort(Head, LI, SE))
      Ways.push_back({Head, SmallBitVector(F.arg_size()), {}, {}});
  return Ways;
}

// The numbers of the heads of ways at which V is live.
static SmallVector<unsigned, 4>
liveAt(Value &V, const DenseMap<BasicBlock *, unsigned> &Heads) {
  auto *I = dyn_cast<Instruction>(&V);
  BasicBlock *Def = I ? I->getParent() : nullptr;
  SmallPtrSet<BasicBlock *, 16> Seen;
  SmallVector<BasicBlock *, 16> Work; // V is live at their beginning
  auto Add = [&](BasicBlock *BB) {
    if (BB != Def && Seen.insert(BB).second)
      Work.push_back(BB);
  };
  for (Use &U : V.uses()) {
    auto *User = cast<Instruction>(U.getUser());
    auto *Phi = dyn_cast<PHINode>(User);
    Add(Phi ? Phi->getIncomingBlock(U) : User->getParent());
  }
  SmallVector<unsigned, 4> Result;
  while (!Work.empty()) {
    BasicBlock *BB = Work.pop_back_val();
    if (auto Found = Heads.find(BB); Found != Heads.end())
      Result.push_back(Found->second);
    for (BasicBlock *Pred : predecessors(BB))
      Add(Pred);
  }
  return Result;
}

// Not in functions where a stack protector orders and separates variables by
// kind.
void gatherVariables(Function &F) {
  if (F.hasStackProtectorFnAttr())
    return;
  const DataLayout &DL = F.getDataLayout();
  SmallVector<std::pair<AllocaInst *, uint64_t>, 8> Small; // and where it is
  uint64_t End = 0;
  Align Most;
  for (Instruction &I : F.getEntryBlock()) {
    auto *A = dyn_cast<AllocaInst>(&I);
    if (!A || !A->isStaticAlloca() || A->isUsedWithInAlloca() ||
        A->isSwiftError() || A->getAlign() > MaxSmallVariable ||
        A->getAddressSpace() != 0)
      continue;
    uint64_t Bytes = A->getAllocationSize(DL)->getFixedValue();
    if (Bytes > MaxSmallVariable)
      continue;
    uint64_t Begin = alignTo(End, A->getAlign());
    Small.push_back({A, Begin});
    End = Begin + Bytes;
    Most = std::max(Most, A->getAlign());
  }
  if (Small.size() < 2)
    return;
  Type *Byte = Type::getInt8Ty(F.getContext());
  auto *All = new AllocaInst(ArrayType::get(Byte, End), 0, nullptr, Most,
                             "spill.variables", F.getEntryBlock().begin());
  for (auto [A, Offset] : Small)
    for (User *U : make_early_inc_range(A->users()))
      if (auto *I = cast<Instruction>(U); I->isLifetimeStartOrEnd())
        I->eraseFromParent();
  auto After = find_if(F.getEntryBlock(), [](const Instruction &I) {
    return !isa<AllocaInst>(I);
  });
  IRBuilder<> B(&F.getEntryBlock(), After);
  for (auto [A, Offset] : Small) {
    A->replaceAllUsesWith(B.CreateConstInBoundsGEP1_64(Byte, All, Offset));
    A->eraseFromParent();
  }
}

void findCargo(Function &F, MutableArrayRef<Way> Ways) {
  const DataLayout &DL = F.getDataLayout();
  DenseMap<BasicBlock *, unsigned> Heads;
  for (auto [Index, W] : enumerate(Ways)) {
    Heads[W.Head] = Index;
    for (PHINode &Phi : W.Head->phis())
      W.Cargo.insert(&Phi);
  }
  auto Add = [](Way &W, Value *V) {
    auto *A = dyn_cast<Argument>(V);
    if (A && !A->hasByValAttr()) // the callee has another copy of that
      W.Arguments.set(A->getArgNo());
    else if (A || isa<Instruction>(V))
      W.Cargo.insert(V);
  };
  for (Argument &A : F.args())
    for (unsigned Index : liveAt(A, Heads))
      Add(Ways[Index], &A);
  for (Instruction &I : instructions(F)) {
    APInt Offset;
    Value *Base = baseOf(&I, DL, Offset);
    for (unsigned Index : liveAt(I, Heads)) {
      Add(Ways[Index], Base);
      if (Base != &I)
        Ways[Index].Derived.push_back(&I);
    }
  }
}

} // namespace spillway
