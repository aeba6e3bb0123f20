//===- LookPlan.cpp - Which loops look ahead, and to what -----------------===//
#include "loops/LookPlan.h"
#include "Abi.h"
#include "analysis/Cold.h"
#include "analysis/Kills.h"
#include "analysis/Provenance.h"
#include "loops/LoopSplit.h"
#include "loops/Order.h"

#include "llvm/ADT/SCCIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/Loads.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"

using namespace llvm;

namespace spillway {

// Limits of a loop that looks ahead.
static constexpr unsigned MaxTargets = 8;
static constexpr unsigned MaxGuards = 2; // of a target
static constexpr unsigned MaxInstructions = 2000;
// The most instructions of a loop with a call in each iteration: a callee takes
// longer, and touches more.
static constexpr unsigned MaxBesideCalls = 50;
static constexpr unsigned MinTripCount = 16;
// The most instructions that compute one address.
static constexpr unsigned MaxSlice = 64;
static constexpr uint64_t MaxLoadBytes = 64;
// A target this close to another one needs no look of its own.
static constexpr int64_t NearBytes = 256;

namespace {

class LookPlanner {
public:
  LookPlanner(Function &F, FunctionAnalysisManager &FAM)
      : F(F), LI(FAM.getResult<LoopAnalysis>(F)),
        DT(FAM.getResult<DominatorTreeAnalysis>(F)),
        SE(FAM.getResult<ScalarEvolutionAnalysis>(F)),
        TTI(FAM.getResult<TargetIRAnalysis>(F)),
        AC(FAM.getResult<AssumptionAnalysis>(F)), Order(SE, LI), Cold(F, FAM) {}

  SmallVector<LookPlan, 0> run();

private:
  bool mayLook(Loop *L);
  bool isInCycle(const Loop *L) const;
  std::optional<LookPlan> plan(Loop *L, bool LooksInside);
  void addTarget(LookPlan &Plan, Value *Pointer, const Instruction &Access);
  void addLoad(LookPlan &Plan, LoadInst *Load);
  void findGuards(LookPlan &Plan, LookTarget &Target, const BasicBlock *Access);
  bool canCompute(LookPlan &Plan, LookGuard &Guard, const LookTarget &Target);
  bool leadsTo(const LookGuard &Guard, const BasicBlock *Access) const;
  bool stays(LookPlan &Plan, Value *Pointer);
  bool isUsuallyInOrder(LookPlan &Plan, LoadInst *Load);
  bool hasRowBegin(LookPlan &Plan, const SetVector<Instruction *> &Slice);
  bool isFar(Value *Pointer, Loop *L, bool Loads);
  bool mayLoadAnyTime(LoadInst *Load, Loop *L);
  bool isSure(LookPlan &Plan, LoadInst *Load);
  bool mayWait(Loop *L);
  bool slice(LookPlan &Plan, Value *V, SetVector<Instruction *> &Found,
             bool MayBeAtomic = false);
  bool isLoaded(LookPlan &Plan, Value *V);
  void choosePosition(LookPlan &Plan, const SetVector<Instruction *> &Slice);
  Value *tripCount(Loop *L);

  Function &F;
  LoopInfo &LI;
  DominatorTree &DT;
  ScalarEvolution &SE;
  TargetTransformInfo &TTI;
  AssumptionCache &AC;
  const LoopOrder Order;
  const ColdCode Cold;
  /// By block: how many blocks lie in a cycle with it, itself included.
  DenseMap<const BasicBlock *, size_t> CycleBlocks;
};

} // namespace

bool LookPlanner::mayLook(Loop *L) {
  if (Cold.contains(*L->getHeader()) || !L->isLoopSimplifyForm() ||
      !isa<BranchInst, SwitchInst>(L->getLoopLatch()->getTerminator()))
    return false;
  unsigned MaxTrips = SE.getSmallConstantMaxTripCount(L);
  if (MaxTrips != 0 && MaxTrips < MinTripCount)
    return false;
  unsigned Instructions = 0, Most = MaxInstructions;
  for (BasicBlock *BB : L->blocks()) {
    Instructions += BB->size();
    if (DT.dominates(BB, L->getLoopLatch()) && any_of(*BB, endsTranslations))
      Most = MaxBesideCalls;
  }
  if (Instructions > Most)
    return false;
  return none_of(L->getHeader()->phis(),
                 [](PHINode &Phi) { return Phi.getType()->isTokenTy(); });
}

// Whether V can be computed for a future iteration. Adds to Found the
// instructions of the loop that this takes. MayBeAtomic: V is only a guess, for
// which atomic loads may be used, too.
bool LookPlanner::slice(LookPlan &Plan, Value *V,
                        SetVector<Instruction *> &Found, bool MayBeAtomic) {
  Loop *L = Plan.L;
  auto *I = dyn_cast<Instruction>(V);
  // The address of a swifterror variable is no value that may be handed on.
  if (V->isSwiftError())
    return false;
  if (!I)
    return !V->getType()->isTokenTy();
  if (!L->contains(I) || Found.contains(I))
    return true;
  if (Found.size() == MaxSlice)
    return false;
  if (auto *Phi = dyn_cast<PHINode>(I)) {
    Found.insert(I);
    if (I->getParent() == L->getHeader()) {
      Value *Step = Order.counterStep(Phi, L);
      if (!Step && Order.isReloaded(Phi, L)) {
        Step = ConstantInt::get(Type::getInt64Ty(Phi->getContext()), 0);
        Plan.Reloaded.insert(Phi);
      }
      return (Plan.Steps[Phi] = Step) != nullptr;
    }
    // The initial value of an inner loop.
    Loop *Inner = LI.getLoopFor(I->getParent());
    if (Inner == L || Inner->getHeader() != I->getParent() ||
        !Inner->getLoopPreheader())
      return false;
    Value *Begin = Phi->getIncomingValueForBlock(Inner->getLoopPreheader());
    Plan.Begins[Phi] = Begin;
    return slice(Plan, Begin, Found, MayBeAtomic);
  }
  if (auto *Load = dyn_cast<LoadInst>(I)) {
    TypeSize Size = Load->getDataLayout().getTypeStoreSize(Load->getType());
    if ((MayBeAtomic ? Load->isVolatile() : !Load->isSimple()) ||
        endsTranslations(*Load) || Size.isScalable() ||
        Size.getFixedValue() > MaxLoadBytes ||
        Load->getPointerAddressSpace() != 0)
      return false;
  } else if (auto *Call = dyn_cast<IntrinsicInst>(I)) {
    if (!Call->doesNotAccessMemory() || !isSafeToSpeculativelyExecute(Call) ||
        endsTranslations(*Call))
      return false;
  } else if (I->isIntDivRem()) {
    // A zero divisor is replaced, but overflow is not prevented.
    bool Signed = I->getOpcode() == Instruction::SDiv ||
                  I->getOpcode() == Instruction::SRem;
    auto *Divisor = dyn_cast<ConstantInt>(I->getOperand(1));
    if (I->getType()->isVectorTy() ||
        (Signed && (!Divisor || Divisor->isZero() || Divisor->isMinusOne())))
      return false;
  } else if (endsTranslations(*I) ||
             !isa<GetElementPtrInst, BinaryOperator, CastInst, CmpInst,
                  SelectInst, FreezeInst, UnaryOperator, ExtractElementInst,
                  InsertElementInst, ShuffleVectorInst, ExtractValueInst>(I)) {
    return false;
  }
  Found.insert(I);
  return all_of(I->operands(), [&](Value *Operand) {
    return slice(Plan, Operand, Found, MayBeAtomic);
  });
}

// Whether V, which can be computed, depends on what the loop loads.
bool LookPlanner::isLoaded(LookPlan &Plan, Value *V) {
  SetVector<Instruction *> Parts;
  slice(Plan, V, Parts, /*MayBeAtomic=*/true);
  return any_of(Parts, [&](Instruction *Part) {
    return isa<LoadInst>(Part) || Plan.Reloaded.contains(Part);
  });
}

// Whether a look at Pointer may pay. Sequences are read ahead anyway.
bool LookPlanner::isFar(Value *Pointer, Loop *L, bool Loads) {
  if (!SE.isSCEVable(Pointer->getType()))
    return Loads;
  const SCEV *Address = SE.getSCEV(Pointer);
  if (SE.isLoopInvariant(Address, L))
    return false;
  if (std::optional<int64_t> Step = Order.constantStep(Pointer, L))
    return L->isInnermost() && !isNearStep(Step);
  // An inner loop's pointer: this loop computes where it begins.
  return Loads || L->isInnermost();
}

// Chooses what identifies an iteration: an address, which continues from one
// run of a nested loop to the next, or else a counter.
void LookPlanner::choosePosition(LookPlan &Plan,
                                 const SetVector<Instruction *> &Slice) {
  for (bool Address : {true, false})
    for (Instruction *I : Slice) {
      auto *Load = dyn_cast<LoadInst>(I);
      Value *V = Address
                     ? (Load ? Load->getPointerOperand() : nullptr)
                     : (isa<PHINode>(I) && I->getParent() == Plan.L->getHeader()
                            ? I
                            : nullptr);
      if (!V || Plan.Position)
        continue;
      std::optional<int64_t> Step = Order.constantStep(V, Plan.L);
      if (!Step || *Step == 0 || isLoaded(Plan, V))
        continue;
      Plan.Position = V;
      Plan.Step = *Step;
    }
}

/// Can control come back to the loop after it has left? The surrounding cycle
/// may be entered in its middle, as in a second body (Bodies.h), and then
/// LoopInfo does not know it as a loop.
bool LookPlanner::isInCycle(const Loop *L) const {
  return CycleBlocks.lookup(L->getHeader()) > L->getNumBlocks();
}

// Whether Pointer stays the same, assuming that everything that the loop
// reloads from the same place does.
bool LookPlanner::stays(LookPlan &Plan, Value *Pointer) {
  Value *V = Pointer->stripInBoundsConstantOffsets();
  while (auto *Load = dyn_cast<LoadInst>(V))
    V = Load->getPointerOperand()->stripInBoundsConstantOffsets();
  auto *Phi = dyn_cast<PHINode>(V);
  return Plan.L->isLoopInvariant(V) || (Phi && Plan.Reloaded.contains(Phi));
}

// Whether Load, an instruction of the loop, loads adjacent elements of an array
// that stays.
bool LookPlanner::isUsuallyInOrder(LookPlan &Plan, LoadInst *Load) {
  if (Order.isInOrder(Load, Plan.L))
    return true;
  const SCEV *Address = SE.getSCEV(Load->getPointerOperand());
  auto *Base = dyn_cast<SCEVUnknown>(SE.getPointerBase(Address));
  return Base && stays(Plan, Base->getValue()) &&
         isNearStep(Order.constantStep(SE.removePointerBase(Address), Plan.L));
}

bool LookPlanner::hasRowBegin(LookPlan &Plan,
                              const SetVector<Instruction *> &Slice) {
  return any_of(Slice, [&](Instruction *Part) {
    auto *Load = dyn_cast<LoadInst>(Part);
    return Load && Order.isRowBegin(Load, Plan.L);
  });
}

// Whether the address, which is the same in each iteration, may always be
// loaded from, whether or not an iteration does.
bool LookPlanner::mayLoadAnyTime(LoadInst *Load, Loop *L) {
  Value *Address = Load->getPointerOperand();
  return L->isLoopInvariant(Address) &&
         isDereferenceablePointer(
             Address, Load->getType(), Load->getDataLayout(),
             L->getLoopPreheader()->getTerminator(), &AC, &DT);
}

// Whether each future iteration loads from exactly the address that is computed
// for it ahead of time. Of inner loops only the initial values are known: Load
// must run in their first iterations, and their final values must not be part
// of the address; nor may anything that is stored in between, or that is only
// assumed to stay.
bool LookPlanner::isSure(LookPlan &Plan, LoadInst *Load) {
  for (Loop *Around = LI.getLoopFor(Load->getParent());
       Around != Plan.L->getParentLoop(); Around = Around->getParentLoop())
    if (BasicBlock *Latch = Around->getLoopLatch();
        !Latch || !DT.dominates(Load->getParent(), Latch))
      return false;
  SetVector<Instruction *> Parts;
  if (!slice(Plan, Load->getPointerOperand(), Parts))
    return false; // other threads store what it is made of
  return none_of(Parts, [&](Instruction *Part) {
    return (!Plan.StoresNothing && isa<LoadInst>(Part)) ||
           Plan.Reloaded.contains(Part) ||
           !LI.getLoopFor(Part->getParent())->contains(Load);
  });
}

// Whether an iteration of L may spin in an inner loop, or in any other cycle,
// until others store something. They may never do so, and then no iteration
// follows.
bool LookPlanner::mayWait(Loop *L) {
  auto SeesOthers = [](const Loop *In) {
    return any_of(In->blocks(), [](const BasicBlock *BB) {
      return any_of(*BB, [](const Instruction &I) {
        return awaitsOthers(I) || isa<AtomicRMWInst, AtomicCmpXchgInst>(I);
      });
    });
  };
  return (SeesOthers(L) && hasOtherCycles(L, LI)) ||
         any_of(L->getLoopsInPreorder(), [&](const Loop *Inner) {
           return Inner != L &&
                  isa<SCEVCouldNotCompute>(SE.getBackedgeTakenCount(Inner)) &&
                  SeesOthers(Inner);
         });
}

// Records where Load, which an address or a guard needs, may load from.
void LookPlanner::addLoad(LookPlan &Plan, LoadInst *Load) {
  if (mayLoadAnyTime(Load, Plan.L))
    Plan.AnyTime.insert(Load);
  else if (isSure(Plan, Load))
    Plan.Sure.insert(Load);
}

// Whether an iteration that accesses memory in this block must have taken
// Guard's way before.
bool LookPlanner::leadsTo(const LookGuard &Guard,
                          const BasicBlock *Access) const {
  return DT.dominates(BasicBlockEdge(Guard.Branch->getParent(),
                                     Guard.Branch->getSuccessor(Guard.Way)),
                      Access);
}

// Whether A and B, pointers or vectors of them, are at a constant distance, and
// close to each other.
static bool areNear(Value *A, Value *B, const DataLayout &DL) {
  auto BaseOf = [&](Value *V, APInt &At) {
    return V->getType()->isPointerTy()
               ? V->stripAndAccumulateConstantOffsets(DL, At,
                                                      /*AllowNonInbounds=*/true)
               : V;
  };
  APInt AtA(64, 0), AtB(64, 0);
  return BaseOf(A, AtA) == BaseOf(B, AtB) && (AtA - AtB).abs().ult(NearBytes);
}

// Whether Guard's condition, which must be the loop's own and not its exit, can
// be computed ahead from values that lie in order, stay, or are near those that
// Target's address needs: for others pages would have to be loaded first.
// Records what it loads.
bool LookPlanner::canCompute(LookPlan &Plan, LookGuard &Guard,
                             const LookTarget &Target) {
  Loop *L = Plan.L;
  SetVector<Instruction *> Parts;
  if (LI.getLoopFor(Guard.Branch->getParent()) != L ||
      !L->contains(Guard.Branch->getSuccessor(0)) ||
      !L->contains(Guard.Branch->getSuccessor(1)) ||
      !slice(Plan, Guard.Branch->getCondition(), Parts, /*MayBeAtomic=*/true))
    return false;
  for (Instruction *Part : Parts) {
    // Final values of an inner loop are not known.
    if (LI.getLoopFor(Part->getParent()) != L)
      return false;
    auto *Load = dyn_cast<LoadInst>(Part);
    if (!Load)
      continue;
    Value *Pointer = Load->getPointerOperand();
    if (!isUsuallyInOrder(Plan, Load) && !stays(Plan, Pointer) &&
        none_of(Target.Loads, [&](LoadInst *Other) {
          return areNear(Pointer, Other->getPointerOperand(),
                         Load->getDataLayout());
        }))
      return false;
    Guard.Loads.push_back(Load);
  }
  return true;
}

// Finds the guards of Target, which is accessed in this block: the last ones on
// the way to it.
void LookPlanner::findGuards(LookPlan &Plan, LookTarget &Target,
                             const BasicBlock *Access) {
  DomTreeNode *Node = DT[Access];
  while (Node->getBlock() != Plan.L->getHeader() &&
         Target.Guards.size() < MaxGuards) {
    Node = Node->getIDom();
    auto *Branch = dyn_cast<BranchInst>(Node->getBlock()->getTerminator());
    if (!Branch || !Branch->isConditional())
      continue;
    for (unsigned Way : {0u, 1u}) {
      LookGuard Guard{Branch, Way, {}};
      if (leadsTo(Guard, Access) && canCompute(Plan, Guard, Target))
        Target.Guards.insert(Target.Guards.begin(), std::move(Guard));
    }
  }
}

void LookPlanner::addTarget(LookPlan &Plan, Value *Pointer,
                            const Instruction &Access) {
  Loop *L = Plan.L;
  auto *I = dyn_cast<Instruction>(Pointer);
  if (!I || !L->contains(I))
    return;
  if (Pointer->getType()->isPointerTy() &&
      (Pointer->getType()->getPointerAddressSpace() != 0 || isPlain(Pointer)))
    return;
  for (LookTarget &Other : Plan.Targets)
    if (areNear(Other.Pointer, Pointer, I->getDataLayout())) {
      // One target that is reached by either access.
      erase_if(Other.Guards, [&](const LookGuard &Guard) {
        return !leadsTo(Guard, Access.getParent());
      });
      return;
    }
  if (Plan.Targets.size() == MaxTargets)
    return;
  SetVector<Instruction *> Found;
  if (!slice(Plan, Pointer, Found))
    return;
  LookTarget Target;
  Target.Pointer = Pointer;
  for (Instruction *Part : Found)
    if (auto *Load = dyn_cast<LoadInst>(Part))
      Target.Loads.insert(Load);
  if (!isFar(Pointer, L, !Target.Loads.empty()))
    return;
  if (Plan.LooksInside && !hasRowBegin(Plan, Found))
    return;
  findGuards(Plan, Target, Access.getParent());
  // More iterations load what a guard needs than what lies beyond it.
  SetVector<Instruction *> Parts;
  for (const LookGuard &Guard : Target.Guards)
    Parts.insert(Guard.Loads.begin(), Guard.Loads.end());
  Parts.insert(Found.begin(), Found.end());
  choosePosition(Plan, Parts);
  if (!Plan.Position)
    return;
  for (LoadInst *Load : Target.Loads) {
    addLoad(Plan, Load);
    if (Order.isInOrder(Load, L))
      Plan.Sequential.insert(Load);
    else if (Order.isInNoOrder(Load, L))
      Plan.Traits |= abi::LookAheadAgain;
  }
  // If this is not in memory the look waits for it, rather than note targets
  // that the guard would leave out.
  for (const LookGuard &Guard : Target.Guards)
    for (LoadInst *Load : Guard.Loads) {
      addLoad(Plan, Load);
      if (isUsuallyInOrder(Plan, Load))
        Plan.Sequential.insert(Load);
    }
  Plan.Targets.push_back(std::move(Target));
}

Value *LookPlanner::tripCount(Loop *L) {
  if (L->getExitingBlock() != L->getLoopLatch() || !L->getExitBlock() ||
      !isa<BranchInst>(L->getLoopLatch()->getTerminator()))
    return nullptr;
  return expandTripCount(L, SE, TTI);
}

static bool mayStore(const Instruction &I) {
  auto *II = dyn_cast<IntrinsicInst>(&I);
  return I.mayWriteToMemory() && !(II && II->isAssumeLikeIntrinsic());
}

std::optional<LookPlan> LookPlanner::plan(Loop *L, bool LooksInside) {
  LookPlan Plan;
  Plan.L = L;
  Plan.LooksInside = LooksInside;
  Plan.StoresNothing = none_of(
      L->blocks(), [](const BasicBlock *BB) { return any_of(*BB, mayStore); });
  for (BasicBlock *BB : L->blocks())
    for (Instruction &I : *BB) {
      Plan.IsQuiet &= !endsTranslations(I);
      if (Value *Pointer = getLoadStorePointerOperand(&I)) {
        if (!I.isVolatile())
          addTarget(Plan, Pointer, I);
      } else if (auto *RMW = dyn_cast<AtomicRMWInst>(&I)) {
        addTarget(Plan, RMW->getPointerOperand(), I);
      } else if (auto *CX = dyn_cast<AtomicCmpXchgInst>(&I)) {
        addTarget(Plan, CX->getPointerOperand(), I);
      } else if (auto *II = dyn_cast<IntrinsicInst>(&I)) {
        if (II->getIntrinsicID() == Intrinsic::masked_gather)
          addTarget(Plan, II->getArgOperand(0), I);
        else if (II->getIntrinsicID() == Intrinsic::masked_scatter)
          addTarget(Plan, II->getArgOperand(1), I);
        else if (auto *MI = dyn_cast<MemIntrinsic>(II)) {
          addTarget(Plan, MI->getRawDest(), I);
          if (auto *Transfer = dyn_cast<MemTransferInst>(MI))
            addTarget(Plan, Transfer->getRawSource(), I);
        }
      } else if (auto *Call = dyn_cast<CallBase>(&I)) {
        // A callee will probably access what it is given.
        for (Value *Argument : Call->args())
          if (Argument->getType()->isPointerTy())
            addTarget(Plan, Argument, I);
      }
    }
  if (Plan.Targets.empty())
    return std::nullopt;
  Plan.IsRow = isRow(L, SE);
  Plan.TripCount = tripCount(L);
  if (!Plan.TripCount || !Plan.IsQuiet || mayWait(L))
    Plan.Sure.clear();
  if (isInCycle(L))
    Plan.Traits |= abi::LookAheadIsNested;
  if (Plan.Position->getType()->isPointerTy())
    Plan.Traits |= abi::LookAheadIsAddress;
  return Plan;
}

SmallVector<LookPlan, 0> LookPlanner::run() {
  for (Loop *L : LI)
    simplifyLoop(L, &DT, &LI, &SE, &AC, nullptr, /*PreserveLCSSA=*/false);
  for (auto Cycle = scc_begin(&F); !Cycle.isAtEnd(); ++Cycle)
    for (const BasicBlock *BB : *Cycle)
      CycleBlocks[BB] = Cycle->size();
  SmallVector<LookPlan, 0> Plans;
  SmallPtrSet<Loop *, 8> Outer; // loops around those that look ahead
  SmallVector<Loop *, 8> Preorder = LI.getLoopsInPreorder();
  for (Loop *L : reverse(Preorder)) {
    if (!mayLook(L))
      continue;
    std::optional<LookPlan> Plan = plan(L, Outer.contains(L));
    if (!Plan)
      continue;
    Plans.push_back(std::move(*Plan));
    for (Loop *O = L->getParentLoop(); O; O = O->getParentLoop())
      Outer.insert(O);
  }
  return Plans;
}

SmallVector<LookPlan, 0> planLooks(Function &F, FunctionAnalysisManager &FAM) {
  return LookPlanner(F, FAM).run();
}

} // namespace spillway
