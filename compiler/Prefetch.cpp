//===- Prefetch.cpp - Loops that look ahead -------------------------------===//
#include "Prefetch.h"
#include "Abi.h"
#include "Kills.h"
#include "Loops.h"
#include "Provenance.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace spillway {

// Of a loop.
static constexpr unsigned MaxTargets = 8;
static constexpr unsigned MaxInstructions = 2000;
static constexpr unsigned MinTripCount = 16;
// Of what computes one address.
static constexpr unsigned MaxSlice = 64;
static constexpr uint64_t MaxLoadBytes = 64;
// An address that advances by so much meets another page soon.
static constexpr int64_t FarStep = 2048;
// Targets so close to another one need no look of their own.
static constexpr int64_t NearBytes = 256;
// While nobody misses, a loop asks again after so many iterations.
static constexpr uint64_t IterationsPerQuestion = 512;

namespace {

/// A value that advances by a constant, or by something the loop does not
/// change, in each iteration.
struct Counter {
  PHINode *Phi;
  Value *Step; // of 64 bits, or the phi's type
};

struct LookPlan {
  Loop *L;
  Value *TripCount; // 64 bits, in the preheader; null: nobody knows
  bool IsQuiet;     // nothing in the loop could end it but its count
  Value *Position;  // a pointer or an integer, in terms of the loop
  int64_t Step;     // of that
  SmallVector<Value *, MaxTargets> Targets; // pointers or vectors of them
  SmallPtrSet<LoadInst *, 8> Sure, Sequential;
  uint64_t Traits = 0; // bits of abi.inc
};

class LookPlanner {
public:
  LookPlanner(Function &F, FunctionAnalysisManager &FAM)
      : LI(FAM.getResult<LoopAnalysis>(F)),
        DT(FAM.getResult<DominatorTreeAnalysis>(F)),
        SE(FAM.getResult<ScalarEvolutionAnalysis>(F)),
        TTI(FAM.getResult<TargetIRAnalysis>(F)),
        AC(FAM.getResult<AssumptionAnalysis>(F)) {}

  SmallVector<LookPlan, 0> run();
  std::optional<Counter> counter(PHINode *Phi, Loop *L);
  LoopInfo &loops() { return LI; }

private:
  bool mayLook(Loop *L);
  std::optional<LookPlan> plan(Loop *L);
  void addTarget(LookPlan &Plan, Value *Pointer);
  bool isFar(Value *Pointer, Loop *L, bool Loads);
  bool slice(Value *V, Loop *L, SetVector<Instruction *> &Found);
  std::optional<int64_t> constantStep(Value *V, Loop *L);
  void choosePosition(LookPlan &Plan, const SetVector<Instruction *> &Slice);
  Value *tripCount(Loop *L);

  LoopInfo &LI;
  DominatorTree &DT;
  ScalarEvolution &SE;
  TargetTransformInfo &TTI;
  AssumptionCache &AC;
};

} // namespace

bool LookPlanner::mayLook(Loop *L) {
  if (!L->isLoopSimplifyForm() ||
      !isa<BranchInst, SwitchInst>(L->getLoopLatch()->getTerminator()))
    return false;
  unsigned MaxTrips = SE.getSmallConstantMaxTripCount(L);
  if (MaxTrips != 0 && MaxTrips < MinTripCount)
    return false;
  unsigned Instructions = 0;
  for (BasicBlock *BB : L->blocks()) {
    Instructions += BB->size();
    if (Instructions > MaxInstructions)
      return false;
  }
  return none_of(L->getHeader()->phis(),
                 [](PHINode &Phi) { return Phi.getType()->isTokenTy(); });
}

std::optional<int64_t> LookPlanner::constantStep(Value *V, Loop *L) {
  if (!SE.isSCEVable(V->getType()))
    return std::nullopt;
  auto *Recurrence = dyn_cast<SCEVAddRecExpr>(SE.getSCEV(V));
  if (!Recurrence || Recurrence->getLoop() != L || !Recurrence->isAffine())
    return std::nullopt;
  auto *Step = dyn_cast<SCEVConstant>(Recurrence->getStepRecurrence(SE));
  if (!Step || Step->getAPInt().getSignificantBits() > 64)
    return std::nullopt;
  return Step->getAPInt().getSExtValue();
}

std::optional<Counter> LookPlanner::counter(PHINode *Phi, Loop *L) {
  if (!SE.isSCEVable(Phi->getType()) ||
      SE.getTypeSizeInBits(Phi->getType()) > 64)
    return std::nullopt;
  auto *Recurrence = dyn_cast<SCEVAddRecExpr>(SE.getSCEV(Phi));
  if (!Recurrence || Recurrence->getLoop() != L || !Recurrence->isAffine())
    return std::nullopt;
  const SCEV *Step = Recurrence->getStepRecurrence(SE);
  if (auto *Constant = dyn_cast<SCEVConstant>(Step))
    return Counter{Phi, Constant->getValue()};
  if (auto *Unknown = dyn_cast<SCEVUnknown>(Step))
    if (Unknown->getType()->isIntegerTy())
      return Counter{Phi, Unknown->getValue()};
  return std::nullopt;
}

// Whether V can be computed for an iteration to come; the instructions of the
// loop that it takes.
bool LookPlanner::slice(Value *V, Loop *L, SetVector<Instruction *> &Found) {
  auto *I = dyn_cast<Instruction>(V);
  if (!I)
    return !V->getType()->isTokenTy();
  if (!L->contains(I) || Found.contains(I))
    return true;
  if (Found.size() == MaxSlice)
    return false;
  if (auto *Phi = dyn_cast<PHINode>(I)) {
    Found.insert(I);
    if (I->getParent() == L->getHeader())
      return counter(Phi, L).has_value();
    // A loop inside begins with this.
    Loop *Inner = LI.getLoopFor(I->getParent());
    return Inner != L && Inner->getHeader() == I->getParent() &&
           Inner->getLoopPreheader() &&
           slice(Phi->getIncomingValueForBlock(Inner->getLoopPreheader()), L,
                 Found);
  }
  if (auto *Load = dyn_cast<LoadInst>(I)) {
    TypeSize Size = Load->getDataLayout().getTypeStoreSize(Load->getType());
    if (!Load->isSimple() || Size.isScalable() ||
        Size.getFixedValue() > MaxLoadBytes ||
        Load->getPointerAddressSpace() != 0)
      return false;
  } else if (auto *Call = dyn_cast<IntrinsicInst>(I)) {
    if (!Call->doesNotAccessMemory() || !isSafeToSpeculativelyExecute(Call))
      return false;
  } else if (I->isIntDivRem()) {
    // A zero is replaced; what overflows is not.
    bool Signed = I->getOpcode() == Instruction::SDiv ||
                  I->getOpcode() == Instruction::SRem;
    auto *Divisor = dyn_cast<ConstantInt>(I->getOperand(1));
    if (I->getType()->isVectorTy() ||
        (Signed && (!Divisor || Divisor->isZero() || Divisor->isMinusOne())))
      return false;
  } else if (!isa<GetElementPtrInst, BinaryOperator, CastInst, CmpInst,
                  SelectInst, FreezeInst, UnaryOperator, ExtractElementInst,
                  InsertElementInst, ShuffleVectorInst, ExtractValueInst>(I)) {
    return false;
  }
  Found.insert(I);
  return all_of(I->operands(),
                [&](Value *Operand) { return slice(Operand, L, Found); });
}

// Is it worth a look? Sequences are read ahead of anyway.
bool LookPlanner::isFar(Value *Pointer, Loop *L, bool Loads) {
  if (!SE.isSCEVable(Pointer->getType()))
    return Loads;
  const SCEV *Address = SE.getSCEV(Pointer);
  if (SE.isLoopInvariant(Address, L))
    return false;
  if (std::optional<int64_t> Step = constantStep(Pointer, L))
    return L->isInnermost() && (*Step >= FarStep || *Step <= -FarStep);
  // Of a loop inside: where it begins is what this one computes.
  return Loads || L->isInnermost();
}

// What tells one iteration from another: an address that goes on from one run
// of a nested loop to the next, or else a counter.
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
      std::optional<int64_t> Step = constantStep(V, Plan.L);
      if (!Step || *Step == 0)
        continue;
      SetVector<Instruction *> Own;
      slice(V, Plan.L, Own);
      if (any_of(Own, [](Instruction *Part) { return isa<LoadInst>(Part); }))
        continue;
      Plan.Position = V;
      Plan.Step = *Step;
    }
}

void LookPlanner::addTarget(LookPlan &Plan, Value *Pointer) {
  Loop *L = Plan.L;
  auto *I = dyn_cast<Instruction>(Pointer);
  if (!I || !L->contains(I) || Plan.Targets.size() == MaxTargets)
    return;
  if (Pointer->getType()->isPointerTy() &&
      (Pointer->getType()->getPointerAddressSpace() != 0 || isPlain(Pointer)))
    return;
  SetVector<Instruction *> Found;
  if (!slice(Pointer, L, Found))
    return;
  bool Loads =
      any_of(Found, [](Instruction *Part) { return isa<LoadInst>(Part); });
  if (!isFar(Pointer, L, Loads))
    return;
  const DataLayout &DL = I->getDataLayout();
  APInt Offset(64, 0);
  auto BaseOf = [&](Value *V, APInt &At) {
    return V->getType()->isPointerTy()
               ? V->stripAndAccumulateConstantOffsets(DL, At,
                                                      /*AllowNonInbounds=*/true)
               : V;
  };
  Value *Base = BaseOf(Pointer, Offset);
  for (Value *Other : Plan.Targets) {
    APInt At(64, 0);
    if (BaseOf(Other, At) == Base && (Offset - At).abs().ult(NearBytes))
      return;
  }
  choosePosition(Plan, Found);
  if (!Plan.Position)
    return;
  for (Instruction *Part : Found) {
    auto *Load = dyn_cast<LoadInst>(Part);
    if (!Load)
      continue;
    if (DT.dominates(Load->getParent(), L->getLoopLatch()))
      Plan.Sure.insert(Load);
    std::optional<int64_t> Step = constantStep(Load->getPointerOperand(), L);
    if (Step && *Step < FarStep && *Step > -FarStep)
      Plan.Sequential.insert(Load);
    else if (!SE.isLoopInvariant(SE.getSCEV(Load->getPointerOperand()), L))
      Plan.Traits |= abi::LookAheadAgain;
  }
  Plan.Targets.push_back(Pointer);
}

Value *LookPlanner::tripCount(Loop *L) {
  if (L->getExitingBlock() != L->getLoopLatch() || !L->getExitBlock() ||
      !isa<BranchInst>(L->getLoopLatch()->getTerminator()))
    return nullptr;
  return expandTripCount(L, SE, TTI);
}

std::optional<LookPlan> LookPlanner::plan(Loop *L) {
  LookPlan Plan{L, nullptr, true, nullptr, 0, {}, {}, {}};
  for (BasicBlock *BB : L->blocks())
    for (Instruction &I : *BB) {
      Plan.IsQuiet &= !endsTranslations(I);
      if (Value *Pointer = getLoadStorePointerOperand(&I)) {
        if (!I.isVolatile())
          addTarget(Plan, Pointer);
      } else if (auto *RMW = dyn_cast<AtomicRMWInst>(&I)) {
        addTarget(Plan, RMW->getPointerOperand());
      } else if (auto *CX = dyn_cast<AtomicCmpXchgInst>(&I)) {
        addTarget(Plan, CX->getPointerOperand());
      } else if (auto *II = dyn_cast<IntrinsicInst>(&I)) {
        if (II->getIntrinsicID() == Intrinsic::masked_gather)
          addTarget(Plan, II->getArgOperand(0));
        else if (II->getIntrinsicID() == Intrinsic::masked_scatter)
          addTarget(Plan, II->getArgOperand(1));
        else if (auto *MI = dyn_cast<MemIntrinsic>(II)) {
          addTarget(Plan, MI->getRawDest());
          if (auto *Transfer = dyn_cast<MemTransferInst>(MI))
            addTarget(Plan, Transfer->getRawSource());
        }
      } else if (auto *Call = dyn_cast<CallBase>(&I)) {
        // What it is given it will look at.
        for (Value *Argument : Call->args())
          if (Argument->getType()->isPointerTy())
            addTarget(Plan, Argument);
      }
    }
  if (Plan.Targets.empty())
    return std::nullopt;
  Plan.TripCount = tripCount(L);
  if (!Plan.TripCount || !Plan.IsQuiet)
    Plan.Sure.clear();
  if (L->getParentLoop())
    Plan.Traits |= abi::LookAheadIsNested;
  if (Plan.Position->getType()->isPointerTy())
    Plan.Traits |= abi::LookAheadIsAddress;
  return Plan;
}

SmallVector<LookPlan, 0> LookPlanner::run() {
  for (Loop *L : LI)
    simplifyLoop(L, &DT, &LI, &SE, &AC, nullptr, /*PreserveLCSSA=*/false);
  SmallVector<LookPlan, 0> Plans;
  SmallPtrSet<Loop *, 8> Taken; // those that look ahead, and what they lie in
  SmallVector<Loop *, 8> Preorder = LI.getLoopsInPreorder();
  for (Loop *L : reverse(Preorder)) {
    if (Taken.contains(L) || !mayLook(L))
      continue;
    std::optional<LookPlan> Plan = plan(L);
    if (!Plan)
      continue;
    Plans.push_back(std::move(*Plan));
    for (Loop *Outer = L; Outer; Outer = Outer->getParentLoop())
      Taken.insert(Outer);
  }
  return Plans;
}

namespace {

/// The function that looks ahead for a loop, and its arguments: what the loop
/// does not change, the present values of its counters, and how many iterations
/// are left.
class LookBuilder {
public:
  LookBuilder(const LookPlan &Plan, LookPlanner &Planner, Abi &Runtime);

  Function *build(const Twine &Name);
  /// Values of the function that has the loop; phis of its header stand for
  /// what they are at the time.
  ArrayRef<Value *> arguments() const { return Arguments.getArrayRef(); }

private:
  void collect(Value *V);
  Value *compute(Value *V);
  Value *computeLoad(LoadInst *Load);
  Value *computeOther(Instruction *I);
  void note(Value *Pointer);
  FunctionCallee runtime(StringRef Symbol, Type *Result,
                         ArrayRef<Type *> Types) {
    return Runtime.M.getOrInsertFunction(
        Symbol, FunctionType::get(Result, Types, false));
  }
  Value *argument(Value *V) {
    return Helper->getArg(find(Arguments, V) - Arguments.begin());
  }

  const LookPlan &Plan;
  LookPlanner &Planner;
  Abi &Runtime;
  SetVector<Value *> Arguments;
  SmallPtrSet<Value *, 32> Collected;
  Function *Helper = nullptr;
  IRBuilder<> B;
  Value *State = nullptr;     // the runtime's
  Value *Iteration = nullptr; // from the present one on
  BasicBlock *Next = nullptr; // where it goes on when something is not there
  DenseMap<Value *, Value *> Known;
};

} // namespace

LookBuilder::LookBuilder(const LookPlan &Plan, LookPlanner &Planner,
                         Abi &Runtime)
    : Plan(Plan), Planner(Planner), Runtime(Runtime),
      B(Runtime.M.getContext()) {
  collect(Plan.Position);
  for (Value *Target : Plan.Targets)
    collect(Target);
}

// What has to be passed for V to be computed.
void LookBuilder::collect(Value *V) {
  if (isa<Constant, MetadataAsValue, InlineAsm>(V) ||
      !Collected.insert(V).second)
    return;
  auto *I = dyn_cast<Instruction>(V);
  if (!I || !Plan.L->contains(I)) {
    Arguments.insert(V);
    return;
  }
  auto *Phi = dyn_cast<PHINode>(I);
  if (!Phi) {
    for (Value *Operand : I->operands())
      collect(Operand);
  } else if (I->getParent() == Plan.L->getHeader()) {
    Arguments.insert(V);
    collect(Planner.counter(Phi, Plan.L)->Step);
  } else {
    Loop *Inner = Planner.loops().getLoopFor(I->getParent());
    collect(Phi->getIncomingValueForBlock(Inner->getLoopPreheader()));
  }
}

Value *LookBuilder::compute(Value *V) {
  if (isa<Constant, MetadataAsValue, InlineAsm>(V))
    return V;
  auto *I = dyn_cast<Instruction>(V);
  if (!I || !Plan.L->contains(I))
    return argument(V);
  if (Value *Computed = Known.lookup(V))
    return Computed;
  Value *Result;
  if (auto *Phi = dyn_cast<PHINode>(I)) {
    if (I->getParent() == Plan.L->getHeader()) {
      Value *Step = compute(Planner.counter(Phi, Plan.L)->Step);
      bool IsPointer = Phi->getType()->isPointerTy();
      Type *T = IsPointer ? B.getInt64Ty() : Phi->getType();
      Value *Advance = B.CreateMul(B.CreateSExtOrTrunc(Step, T),
                                   B.CreateZExtOrTrunc(Iteration, T));
      Result = IsPointer ? B.CreatePtrAdd(argument(Phi), Advance)
                         : B.CreateAdd(argument(Phi), Advance);
    } else {
      Loop *Inner = Planner.loops().getLoopFor(I->getParent());
      Result =
          compute(Phi->getIncomingValueForBlock(Inner->getLoopPreheader()));
    }
  } else if (auto *Load = dyn_cast<LoadInst>(I)) {
    Result = computeLoad(Load);
  } else {
    Result = computeOther(I);
  }
  return Known[V] = Result;
}

Value *LookBuilder::computeLoad(LoadInst *Load) {
  Type *I64 = B.getInt64Ty();
  Value *Address =
      B.CreateFreeze(B.CreatePtrToInt(compute(Load->getPointerOperand()), I64));
  uint64_t Size =
      Load->getDataLayout().getTypeStoreSize(Load->getType()).getFixedValue();
  uint64_t Bits =
      (Plan.Sure.contains(Load) ? abi::LookAheadSure : 0) |
      (Plan.Sequential.contains(Load) ? abi::LookAheadSequential : 0);
  Value *From = B.CreateCall(
      runtime(abi::LookAheadLoad, I64, {Runtime.Ptr, I64, I64, I64}),
      {State, Address, B.getInt64(Size), B.getInt64(Bits)});
  auto *There = BasicBlock::Create(B.getContext(), "there", Helper);
  B.CreateCondBr(B.CreateICmpEQ(From, B.getInt64(0)), Next, There);
  B.SetInsertPoint(There);
  LoadInst *Result = B.CreateAlignedLoad(
      Load->getType(), B.CreateIntToPtr(From, Runtime.Ptr), Align(1));
  leaveOut(Result);
  return Result;
}

Value *LookBuilder::computeOther(Instruction *I) {
  SmallVector<Value *, 4> Operands;
  for (Value *Operand : I->operands())
    Operands.push_back(compute(Operand));
  Instruction *Copy = I->clone();
  for (auto [Index, Operand] : enumerate(Operands))
    Copy->setOperand(Index, Operand);
  if (I->isIntDivRem() && !isa<Constant>(Operands[1])) {
    Value *Divisor = B.CreateFreeze(Operands[1]);
    Value *One = ConstantInt::get(I->getType(), 1);
    Value *IsZero = B.CreateICmpEQ(Divisor, ConstantInt::get(I->getType(), 0));
    Copy->setOperand(1, B.CreateSelect(IsZero, One, Divisor));
  }
  Copy->dropPoisonGeneratingFlags();
  Copy->dropUnknownNonDebugMetadata();
  Copy->setDebugLoc(DebugLoc());
  return B.Insert(Copy, I->getName());
}

void LookBuilder::note(Value *Pointer) {
  Type *I64 = B.getInt64Ty();
  FunctionCallee Note =
      runtime(abi::LookAheadNote, B.getVoidTy(), {Runtime.Ptr, I64});
  auto *Vector = dyn_cast<FixedVectorType>(Pointer->getType());
  for (unsigned Lane = 0; Lane < (Vector ? Vector->getNumElements() : 1);
       ++Lane) {
    Value *One =
        Vector ? B.CreateExtractElement(Pointer, uint64_t(Lane)) : Pointer;
    B.CreateCall(Note, {State, B.CreateFreeze(B.CreatePtrToInt(One, I64))});
  }
}

Function *LookBuilder::build(const Twine &Name) {
  LLVMContext &Context = Runtime.M.getContext();
  Function &F = *Plan.L->getHeader()->getParent();
  Type *I64 = B.getInt64Ty();
  SmallVector<Type *, 8> Types;
  for (Value *V : Arguments)
    Types.push_back(V->getType());
  Types.push_back(I64); // iterations left
  Helper = Function::Create(FunctionType::get(I64, Types, false),
                            GlobalValue::InternalLinkage, Name, Runtime.M);
  // Code generation needs what it knows of F's machine; nothing else of F is
  // true here.
  for (Attribute A : F.getAttributes().getFnAttrs())
    if (A.isStringAttribute())
      Helper->addFnAttr(A);
  // It returns with all vector registers as they were, which code generation
  // forgets where it spares others the cost of their upper halves.
  StringRef Features = F.getFnAttribute("target-features").getValueAsString();
  Helper->addFnAttr(
      "target-features",
      (Features + (Features.empty() ? "" : ",") + "-vzeroupper").str());
  for (Attribute::AttrKind Kind :
       {Attribute::Cold, Attribute::NoInline, Attribute::NoUnwind})
    Helper->addFnAttr(Kind);
  Helper->setUWTableKind(F.getUWTableKind());
  Helper->setCallingConv(CallingConv::PreserveAll);

  auto *Traits = new GlobalVariable(
      Runtime.M, ArrayType::get(I64, 2), /*isConstant=*/true,
      GlobalValue::PrivateLinkage,
      ConstantDataArray::get(
          Context, ArrayRef<uint64_t>{uint64_t(Plan.Step), Plan.Traits}),
      Name + ".loop");

  auto *Entry = BasicBlock::Create(Context, "", Helper);
  auto *Loop = BasicBlock::Create(Context, "next", Helper);
  auto *Body = BasicBlock::Create(Context, "look", Helper);
  auto *Nothing = BasicBlock::Create(Context, "nothing", Helper);
  auto *Done = BasicBlock::Create(Context, "done", Helper);
  B.SetInsertPoint(Entry);
  Value *Pause = B.CreateAlloca(I64, nullptr, "pause");
  Iteration = B.getInt64(0);
  Value *Position = B.CreateFreeze(compute(Plan.Position));
  Position = Position->getType()->isPointerTy()
                 ? B.CreatePtrToInt(Position, I64)
                 : B.CreateSExtOrTrunc(Position, I64);
  Known.clear();
  State =
      B.CreateCall(runtime(abi::LookAheadBegin, Runtime.Ptr,
                           {Runtime.Ptr, I64, I64, Runtime.Ptr}),
                   {Traits, Position, Helper->getArg(Arguments.size()), Pause});
  B.CreateCondBr(B.CreateIsNull(State), Nothing, Loop);
  B.SetInsertPoint(Nothing);
  LoadInst *AfterNothing = B.CreateAlignedLoad(I64, Pause, Align(8));
  leaveOut(AfterNothing);
  B.CreateRet(AfterNothing);

  B.SetInsertPoint(Loop);
  Value *NextOrPause =
      B.CreateCall(runtime(abi::LookAheadNext, I64, {Runtime.Ptr}), {State});
  Iteration = NextOrPause;
  B.CreateCondBr(B.CreateICmpSLT(Iteration, B.getInt64(0)), Done, Body);
  B.SetInsertPoint(Body);
  for (Value *Target : Plan.Targets) {
    Next = BasicBlock::Create(Context, "look", Helper);
    note(compute(Target));
    B.CreateBr(Next);
    B.SetInsertPoint(Next);
    Known.clear(); // another's may not have been computed
  }
  B.CreateBr(Loop);
  B.SetInsertPoint(Done);
  B.CreateRet(B.CreateNeg(NextOrPause));
  return Helper;
}

// The loop comes back to the block "ahead" every so many iterations.
static void interrupt(const LookPlan &Plan, Function *Helper,
                      ArrayRef<Value *> Arguments, Abi &Runtime) {
  BasicBlock *Preheader = Plan.L->getLoopPreheader();
  BasicBlock *Header = Plan.L->getHeader();
  BasicBlock *Latch = Plan.L->getLoopLatch();
  BasicBlock *Exit = Plan.TripCount ? Plan.L->getExitBlock() : nullptr;
  Function &F = *Header->getParent();
  LLVMContext &Context = F.getContext();
  auto Block = [&](const Twine &Name, BasicBlock *Before) {
    return BasicBlock::Create(Context, Name, &F, Before);
  };
  BasicBlock *Ahead = Block("spill.ahead", Header);
  BasicBlock *Enter = Block("spill.ahead.enter", Header);
  BasicBlock *Look = Block("spill.ahead.look", nullptr);
  BasicBlock *Back = Block("spill.ahead.back", Latch->getNextNode());

  IRBuilder<> B(Ahead);
  B.SetCurrentDebugLocation(Plan.L->getStartLoc());
  DenseMap<Value *, Value *> Present;
  for (PHINode &Phi : Header->phis()) {
    PHINode *Outer = B.CreatePHI(Phi.getType(), 2, Phi.getName() + ".ahead");
    Outer->addIncoming(Phi.getIncomingValueForBlock(Preheader), Preheader);
    Outer->addIncoming(Phi.getIncomingValueForBlock(Latch), Back);
    Present[&Phi] = Outer;
  }
  PHINode *Left = nullptr;
  if (Plan.TripCount) {
    Left = B.CreatePHI(Runtime.I64, 2, "spill.ahead.left");
    Left->addIncoming(Plan.TripCount, Preheader);
  }
  LoadInst *Wanted = B.CreateAlignedLoad(
      Runtime.I64, Runtime.M.getOrInsertGlobal(abi::LookAhead, Runtime.I64),
      Align(8), "spill.ahead.wanted");
  Wanted->setAtomic(AtomicOrdering::Monotonic);
  leaveOut(Wanted);
  Value *Nobody = B.CreateICmpEQ(Wanted, B.getInt64(0));
  B.CreateCondBr(Nobody, Enter, Look,
                 MDBuilder(Context).createBranchWeights(1 << 20, 1));

  B.SetInsertPoint(Look);
  SmallVector<Value *, 8> Passed;
  for (Value *V : Arguments)
    Passed.push_back(Present.contains(V) ? Present[V] : V);
  Passed.push_back(Left ? static_cast<Value *>(Left)
                        : B.getInt64(~uint64_t(0)));
  CallInst *Call = B.CreateCall(Helper, Passed);
  Call->setCallingConv(Helper->getCallingConv());
  Call->setDoesNotThrow();
  B.CreateBr(Enter);

  B.SetInsertPoint(Enter);
  PHINode *Pause = B.CreatePHI(Runtime.I64, 2, "spill.ahead.pause");
  Pause->addIncoming(B.getInt64(IterationsPerQuestion), Ahead);
  Pause->addIncoming(Call, Look);
  Value *Strip = Pause;
  if (Left)
    Strip = B.CreateBinaryIntrinsic(Intrinsic::umin, Left, Strip);
  B.CreateBr(Header);
  Preheader->getTerminator()->replaceSuccessorWith(Header, Ahead);

  for (PHINode &Phi : Header->phis()) {
    int Index = Phi.getBasicBlockIndex(Preheader);
    Phi.setIncomingBlock(Index, Enter);
    Phi.setIncomingValue(Index, Present[&Phi]);
  }
  B.SetInsertPoint(Header, Header->begin());
  PHINode *Done = B.CreatePHI(Runtime.I64, 2, "spill.ahead.done");
  Done->addIncoming(B.getInt64(0), Enter);

  if (!Left) {
    // What ends the loop stays as it is.
    Latch->getTerminator()->replaceSuccessorWith(Header, Back);
    B.SetInsertPoint(Back);
    Value *Next = B.CreateAdd(Done, B.getInt64(1));
    B.CreateCondBr(B.CreateICmpEQ(Next, Strip), Ahead, Header);
    Header->replacePhiUsesWith(Latch, Back);
    Done->addIncoming(Next, Back);
    return;
  }
  // Its count ends the loop: there is one exit still, so that it can be split
  // at page edges.
  Instruction *Old = Latch->getTerminator();
  Value *Condition = cast<BranchInst>(Old)->getCondition();
  B.SetInsertPoint(Old);
  Value *Next = B.CreateAdd(Done, B.getInt64(1));
  B.CreateCondBr(B.CreateICmpEQ(Next, Strip), Back, Header);
  Old->eraseFromParent();
  Done->addIncoming(Next, Latch);
  B.SetInsertPoint(Back);
  Value *NowLeft = B.CreateSub(Left, Strip);
  B.CreateCondBr(B.CreateICmpEQ(NowLeft, B.getInt64(0)), Exit, Ahead);
  Left->addIncoming(NowLeft, Back);
  Exit->replacePhiUsesWith(Latch, Back);
  RecursivelyDeleteTriviallyDeadInstructions(Condition);
}

unsigned lookAhead(Function &F, FunctionAnalysisManager &FAM, Abi &Runtime) {
  FAM.invalidate(F, PreservedAnalyses::none());
  LookPlanner Planner(F, FAM);
  SmallVector<LookPlan, 0> Plans = Planner.run();
  // All functions first: the analyses know F as it was.
  SmallVector<std::pair<Function *, SmallVector<Value *, 8>>, 4> Helpers;
  for (const LookPlan &Plan : Plans) {
    LookBuilder Builder(Plan, Planner, Runtime);
    Function *Helper = Builder.build(F.getName() + ".spill.ahead");
    Helpers.push_back({Helper, SmallVector<Value *, 8>(Builder.arguments())});
  }
  for (auto [Plan, Helper] : zip(Plans, Helpers))
    interrupt(Plan, Helper.first, Helper.second, Runtime);
  FAM.invalidate(F, PreservedAnalyses::none());
  return Plans.size();
}

} // namespace spillway
