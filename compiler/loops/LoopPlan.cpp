//===- LoopPlan.cpp - Which loops are split, and for which pointers -------===//
#include "Abi.h"
#include "Functions.h"
#include "analysis/Cold.h"
#include "analysis/Kills.h"
#include "loops/LoopSplit.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/LoopIterator.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace spillway {

// Each pointer of a loop holds a slot and a register.
static constexpr unsigned MaxPointers = 6;
static constexpr int64_t MaxStep = 1024;
static constexpr int64_t MaxWindow = 512;
static constexpr unsigned MaxInstructions = 400;
// A loop that never runs longer than this is not worth its plan.
static constexpr unsigned MinTripCount = 8;
// How complicated a trip count may be to compute, in cheap instructions.
static constexpr unsigned TripCountBudget = 8;

namespace {

class Planner {
public:
  Planner(Function &F, FunctionAnalysisManager &FAM)
      : LI(FAM.getResult<LoopAnalysis>(F)),
        DT(FAM.getResult<DominatorTreeAnalysis>(F)),
        SE(FAM.getResult<ScalarEvolutionAnalysis>(F)),
        TTI(FAM.getResult<TargetIRAnalysis>(F)),
        AC(FAM.getResult<AssumptionAnalysis>(F)) {}

  SmallVector<Loop *, 8> prepare();
  bool isSplittable(Loop *L) const;
  std::optional<LoopPlan> plan(Loop *L, ArrayRef<const Site *> Sites);

private:
  std::optional<int64_t> stepOf(const SCEV *Address, Loop *L);
  bool join(LoopPlan &Plan, const Site &S, const Access &A, int64_t Step);

  LoopInfo &LI;
  DominatorTree &DT;
  ScalarEvolution &SE;
  TargetTransformInfo &TTI;
  AssumptionCache &AC;
};

} // namespace

SmallVector<Loop *, 8> Planner::prepare() {
  for (Loop *L : LI)
    simplifyLoop(L, &DT, &LI, &SE, &AC, nullptr, /*PreserveLCSSA=*/false);
  SmallVector<Loop *, 8> Innermost;
  for (Loop *L : LI.getLoopsInPreorder())
    if (L->isInnermost())
      Innermost.push_back(L);
  return Innermost;
}

bool Planner::isSplittable(Loop *L) const {
  if (!L->isLoopSimplifyForm() || !L->isSafeToClone() ||
      L->getExitingBlock() != L->getLoopLatch() || !L->getExitBlock())
    return false;
  unsigned MaxTrips = SE.getSmallConstantMaxTripCount(L);
  if (MaxTrips != 0 && MaxTrips < MinTripCount)
    return false;
  unsigned Instructions = 0;
  bool Awaits = false;
  for (BasicBlock *BB : L->blocks())
    for (Instruction &I : *BB) {
      if (endsTranslations(I) || isUnique(I) || isa<AllocaInst>(I) ||
          I.getType()->isTokenTy() || ++Instructions > MaxInstructions)
        return false;
      Awaits |= awaitsOthers(I);
    }
  // The loop itself ends, but what it contains might wait.
  if (Awaits && hasOtherCycles(L, LI))
    return false;
  return isa<BranchInst>(L->getLoopLatch()->getTerminator()) && !isRow(L, SE);
}

// By how much the address advances per iteration, if that is a small constant.
std::optional<int64_t> Planner::stepOf(const SCEV *Address, Loop *L) {
  if (SE.isLoopInvariant(Address, L))
    return 0;
  auto *Recurrence = dyn_cast<SCEVAddRecExpr>(Address);
  if (!Recurrence || Recurrence->getLoop() != L || !Recurrence->isAffine())
    return std::nullopt;
  auto *Step = dyn_cast<SCEVConstant>(Recurrence->getStepRecurrence(SE));
  if (!Step)
    return std::nullopt;
  int64_t Bytes = Step->getAPInt().getSExtValue();
  if (Bytes < -MaxStep || Bytes > MaxStep)
    return std::nullopt;
  return Bytes;
}

bool Planner::join(LoopPlan &Plan, const Site &S, const Access &A,
                   int64_t Step) {
  const SCEV *Address = SE.getSCEV(S.pointer(A));
  for (PagePointer &P : Plan.Pointers) {
    if (P.Step != Step)
      continue;
    const PagePointer::Member &First = P.Members.front();
    auto *Distance = dyn_cast<SCEVConstant>(SE.getMinusSCEV(
        Address, SE.getSCEV(First.Inst->getOperand(First.Operand))));
    if (!Distance)
      continue;
    int64_t Offset = Distance->getAPInt().getSExtValue();
    int64_t Low = std::min(P.Low, Offset);
    int64_t High = std::max(P.High, Offset + int64_t(A.Size));
    if (Offset < -MaxWindow || Offset > MaxWindow || High - Low > MaxWindow)
      continue;
    P.Low = Low;
    P.High = High;
    P.Members.push_back({S.Inst, A.Operand});
    return true;
  }
  return false;
}

// Whether the value can be computed at the head of an iteration from what the
// loop carries (splitLoop does).
static bool isComputable(Value *V, Loop *L, unsigned Depth = 0) {
  auto *I = dyn_cast<Instruction>(V);
  if (!I || !L->contains(I))
    return true;
  if (isa<PHINode>(I))
    return I->getParent() == L->getHeader();
  constexpr unsigned MaxDepth = 6;
  if (Depth == MaxDepth || !isa<GetElementPtrInst, BinaryOperator, CastInst>(I))
    return false;
  if (I->isIntDivRem())
    return false;
  return all_of(I->operands(),
                [&](Value *O) { return isComputable(O, L, Depth + 1); });
}

bool hasOtherCycles(Loop *L, const LoopInfo &LI) {
  LoopBlocksRPO Order(L);
  Order.perform(&LI);
  return containsIrreducibleCFG<const BasicBlock *>(Order, LI);
}

static constexpr StringLiteral StripKind = "spill.strip";

void markStrip(Instruction *Latch, bool WasRow) {
  LLVMContext &C = Latch->getContext();
  Latch->setMetadata(
      StripKind,
      MDNode::get(C, ConstantAsMetadata::get(ConstantInt::getBool(C, WasRow))));
}

bool isRow(const Loop *L, ScalarEvolution &SE) {
  if (MDNode *Strip =
          L->getLoopLatch()->getTerminator()->getMetadata(StripKind))
    return !mdconst::extract<ConstantInt>(Strip->getOperand(0))->isZero();
  const Loop *Around = L->getParentLoop();
  const SCEV *Taken = SE.getBackedgeTakenCount(L);
  if (!Around || isa<SCEVCouldNotCompute>(Taken) ||
      !SCEVExprContains(Taken, [&](const SCEV *S) {
        auto *Unknown = dyn_cast<SCEVUnknown>(S);
        return Unknown && !Around->isLoopInvariant(Unknown->getValue());
      }))
    return false;
  for (BasicBlock *BB : L->blocks())
    for (Instruction &I : *BB)
      if (getLoadStorePointerOperand(&I) && getLoadStoreType(&I)->isVectorTy())
        return false;
  // Last: a loop may be around thousands of others.
  return none_of(Around->blocks(), [](const BasicBlock *BB) {
    return any_of(*BB, endsTranslations);
  });
}

Value *expandTripCount(Loop *L, ScalarEvolution &SE,
                       const TargetTransformInfo &TTI) {
  const SCEV *Taken = SE.getBackedgeTakenCount(L);
  if (isa<SCEVCouldNotCompute>(Taken) || !Taken->getType()->isIntegerTy() ||
      Taken->getType()->getIntegerBitWidth() > 64)
    return nullptr;
  Instruction *At = L->getLoopPreheader()->getTerminator();
  SCEVExpander Expander(SE, At->getDataLayout(), "spill.trips");
  if (!Expander.isSafeToExpandAt(Taken, At) ||
      Expander.isHighCostExpansion(Taken, L, TripCountBudget, &TTI, At))
    return nullptr;
  Value *Count = Expander.expandCodeFor(Taken, Taken->getType(), At);
  IRBuilder<> B(At);
  Count = B.CreateZExt(Count, B.getInt64Ty());
  return B.CreateAdd(Count, B.getInt64(1), "spill.trips");
}

std::optional<LoopPlan> Planner::plan(Loop *L, ArrayRef<const Site *> Sites) {
  LoopPlan Plan{L, nullptr, {}};
  BasicBlock *Latch = L->getLoopLatch();
  // First those that every iteration accesses: only these may be translated
  // ahead.
  for (bool Always : {true, false})
    for (const Site *S : Sites) {
      if (DT.dominates(S->Inst->getParent(), Latch) != Always)
        continue;
      for (const Access &A : S->Accesses) {
        if (int64_t(A.Size) > MaxWindow)
          continue;
        Value *Pointer = S->pointer(A);
        std::optional<int64_t> Step = stepOf(SE.getSCEV(Pointer), L);
        if (!Step || join(Plan, *S, A, *Step) || !Always ||
            !isComputable(Pointer, L))
          continue;
        Plan.Pointers.push_back(
            {*Step, 0, int64_t(A.Size), {{S->Inst, A.Operand}}});
      }
    }
  if (Plan.Pointers.empty())
    return std::nullopt;
  while (Plan.Pointers.size() > MaxPointers)
    Plan.Pointers.erase(llvm::min_element(
        Plan.Pointers, [](const PagePointer &A, const PagePointer &B) {
          return A.Members.size() < B.Members.size();
        }));
  Plan.TripCount = expandTripCount(L, SE, TTI);
  if (!Plan.TripCount)
    return std::nullopt;
  formLCSSA(*L, DT, &LI, &SE);
  return Plan;
}

SmallVector<LoopPlan, 0>
planLoops(Function &F, FunctionAnalysisManager &FAM,
          const SmallPtrSetImpl<Instruction *> &InPage) {
  Planner P(F, FAM);
  SmallVector<Loop *, 8> Loops = P.prepare();
  const ColdCode Cold(F, FAM);
  erase_if(Loops, [&](Loop *L) {
    return Cold.contains(*L->getHeader()) || !P.isSplittable(L);
  });
  if (Loops.empty())
    return {};
  DenseMap<const BasicBlock *, SmallVector<const Site *, 8>> InBlock;
  const SmallPtrSet<Instruction *, 1> NoAnchors;
  SmallVector<Site, 0> Sites = collectSites(F, InPage, NoAnchors);
  for (const Site &S : Sites)
    InBlock[S.Inst->getParent()].push_back(&S);
  SmallVector<LoopPlan, 0> Plans;
  for (Loop *L : Loops) {
    SmallVector<const Site *, 16> Here;
    for (BasicBlock *BB : L->blocks())
      Here.append(InBlock.lookup(BB));
    if (std::optional<LoopPlan> Plan = P.plan(L, Here))
      Plans.push_back(std::move(*Plan));
  }
  return Plans;
}

} // namespace spillway
