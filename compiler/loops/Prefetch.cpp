//===- Prefetch.cpp - The code of loops that look ahead -------------------===//
#include "loops/Prefetch.h"
#include "Abi.h"
#include "analysis/Kills.h"
#include "loops/LookPlan.h"
#include "loops/LoopSplit.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/Local.h"

#include <deque>

using namespace llvm;

namespace spillway {

// While no page is missed, a loop asks again after this many iterations.
static constexpr uint64_t IterationsPerQuestion = 512;

namespace {

/// The function that looks ahead for a loop, and its arguments: what the loop
/// does not change, the present values of its counters, and how many iterations
/// are left.
class LookBuilder {
public:
  LookBuilder(const LookPlan &Plan, Abi &Runtime);

  Function *build(const Twine &Name);
  /// Values of the function that contains the loop; a phi of its header stands
  /// for its value at the time of the call.
  ArrayRef<Value *> arguments() const { return Arguments.getArrayRef(); }

private:
  void collect(Value *V);
  Value *compute(Value *V);
  Value *computeLoad(LoadInst *Load);
  Value *computeOther(Instruction *I);
  void declare(const Twine &Name);
  GlobalVariable *describe(const Twine &Name);
  Value *begin(GlobalVariable *Traits, Value *Pause);
  void noteTargets();
  void heed(const LookGuard &Guard, ArrayRef<LookTarget> Targets);
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
  Abi &Runtime;
  SetVector<Value *> Arguments;
  SmallPtrSet<Value *, 32> Collected;
  Function *Helper = nullptr;
  IRBuilder<> B;
  Value *State = nullptr;     // the runtime's
  Value *Iteration = nullptr; // from the present one on
  BasicBlock *Next = nullptr; // where to go on if something is not in memory
  DenseMap<Value *, Value *> Known;
};

} // namespace

LookBuilder::LookBuilder(const LookPlan &Plan, Abi &Runtime)
    : Plan(Plan), Runtime(Runtime), B(Runtime.M.getContext()) {
  collect(Plan.Position);
  for (const LookTarget &Target : Plan.Targets) {
    collect(Target.Pointer);
    for (const LookGuard &Guard : Target.Guards)
      collect(Guard.Branch->getCondition());
  }
}

// Adds to Arguments what the function needs to compute V.
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
    collect(Plan.Steps.lookup(Phi));
  } else {
    collect(Plan.Begins.lookup(Phi));
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
      Value *Step = compute(Plan.Steps.lookup(Phi));
      bool IsPointer = Phi->getType()->isPointerTy();
      Type *T = IsPointer ? B.getInt64Ty() : Phi->getType();
      Value *Advance = B.CreateMul(B.CreateSExtOrTrunc(Step, T),
                                   B.CreateZExtOrTrunc(Iteration, T));
      Result = IsPointer ? B.CreatePtrAdd(argument(Phi), Advance)
                         : B.CreateAdd(argument(Phi), Advance);
    } else {
      Result = compute(Plan.Begins.lookup(Phi));
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
      (Plan.AnyTime.contains(Load) ? abi::LookAheadAnyTime : 0) |
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

// Whether a function with this attribute gets calls of the program's functions
// at its begin or end (-finstrument-functions-after-inlining, -pg,
// -fxray-instrument): those use slots.
static bool asksForCalls(StringRef Attribute) {
  return Attribute.starts_with("instrument-function-") ||
         Attribute.starts_with("xray-") || Attribute == "function-instrument" ||
         Attribute == "fentry-call";
}

void LookBuilder::declare(const Twine &Name) {
  Function &F = *Plan.L->getHeader()->getParent();
  Type *I64 = B.getInt64Ty();
  SmallVector<Type *, 8> Types;
  for (Value *V : Arguments)
    Types.push_back(V->getType());
  Types.push_back(I64); // iterations left
  Helper = Function::Create(FunctionType::get(I64, Types, false),
                            GlobalValue::InternalLinkage, Name, Runtime.M);
  // Code generation needs the attributes that describe F's machine. F's other
  // attributes do not apply here.
  for (Attribute A : F.getAttributes().getFnAttrs())
    if (A.isStringAttribute() && !asksForCalls(A.getKindAsString()))
      Helper->addFnAttr(A);
  // It must preserve all vector registers, including their upper halves, which
  // code generation would clear for the sake of other code's speed.
  StringRef Features = F.getFnAttribute("target-features").getValueAsString();
  Helper->addFnAttr(
      "target-features",
      (Features + (Features.empty() ? "" : ",") + "-vzeroupper").str());
  for (Attribute::AttrKind Kind :
       {Attribute::Cold, Attribute::NoInline, Attribute::NoUnwind})
    Helper->addFnAttr(Kind);
  Helper->setUWTableKind(F.getUWTableKind());
  Helper->setCallingConv(CallingConv::PreserveAll);
}

// The constant by which the runtime knows the loop.
GlobalVariable *LookBuilder::describe(const Twine &Name) {
  return new GlobalVariable(
      Runtime.M, ArrayType::get(B.getInt64Ty(), 2), /*isConstant=*/true,
      GlobalValue::PrivateLinkage,
      ConstantDataArray::get(
          B.getContext(), ArrayRef<uint64_t>{uint64_t(Plan.Step), Plan.Traits}),
      Name + ".loop");
}

// Emits the call that asks for the runtime's state. Null: the runtime wants no
// addresses, and has stored in Pause when to come back.
Value *LookBuilder::begin(GlobalVariable *Traits, Value *Pause) {
  Type *I64 = B.getInt64Ty();
  Iteration = B.getInt64(0);
  Value *Position = B.CreateFreeze(compute(Plan.Position));
  Position = Position->getType()->isPointerTy()
                 ? B.CreatePtrToInt(Position, I64)
                 : B.CreateSExtOrTrunc(Position, I64);
  Known.clear();
  return B.CreateCall(
      runtime(abi::LookAheadBegin, Runtime.Ptr,
              {Runtime.Ptr, I64, I64, Runtime.Ptr}),
      {Traits, Position, Helper->getArg(Arguments.size()), Pause});
}

// Emits code that notes each target of Iteration that can be computed and that
// its guards lead to. Consecutive targets with the same guards share these.
void LookBuilder::noteTargets() {
  for (ArrayRef<LookTarget> Left = Plan.Targets; !Left.empty();) {
    ArrayRef<LookTarget> Same = Left.take_while([&](const LookTarget &Target) {
      return Target.Guards == Left.front().Guards;
    });
    Left = Left.drop_front(Same.size());
    auto *Behind = BasicBlock::Create(B.getContext(), "look");
    Next = Behind;
    for (const LookGuard &Guard : Same.front().Guards)
      heed(Guard, Same);
    DenseMap<Value *, Value *> Before = Known;
    for (const LookTarget &Target : Same) {
      Next = &Target == &Same.back()
                 ? Behind
                 : BasicBlock::Create(B.getContext(), "look");
      Next->insertInto(Helper);
      note(compute(Target.Pointer));
      B.CreateBr(Next);
      B.SetInsertPoint(Next);
      Known = Before; // this target's values need not have been computed
    }
    Known.clear();
  }
}

// Skips Targets if Guard certainly does not lead to them in Iteration. A
// condition that cannot be computed counts as one that does.
void LookBuilder::heed(const LookGuard &Guard, ArrayRef<LookTarget> Targets) {
  // If one of these is not in memory, no target can be computed either.
  for (LoadInst *Load : Guard.Loads)
    if (all_of(Targets, [&](const LookTarget &Target) {
          return Target.Loads.contains(Load);
        }))
      compute(Load);
  BasicBlock *Leave = Next;
  DenseMap<Value *, Value *> Before = Known;
  auto *Reached = BasicBlock::Create(B.getContext(), "reached");
  Next = Reached;
  Value *Condition = B.CreateFreeze(compute(Guard.Branch->getCondition()));
  bool IfTrue = Guard.Way == 0;
  B.CreateCondBr(Condition, IfTrue ? Reached : Leave, IfTrue ? Leave : Reached);
  Reached->insertInto(Helper);
  B.SetInsertPoint(Reached);
  Next = Leave;
  Known = std::move(Before); // what only the guard needs may not be computed
}

Function *LookBuilder::build(const Twine &Name) {
  declare(Name);
  GlobalVariable *Traits = describe(Name);
  LLVMContext &Context = B.getContext();
  Type *I64 = B.getInt64Ty();
  auto *Entry = BasicBlock::Create(Context, "", Helper);
  auto *Loop = BasicBlock::Create(Context, "next", Helper);
  auto *Body = BasicBlock::Create(Context, "look", Helper);
  auto *Nothing = BasicBlock::Create(Context, "nothing", Helper);
  auto *Done = BasicBlock::Create(Context, "done", Helper);
  B.SetInsertPoint(Entry);
  Value *Pause = B.CreateAlloca(I64, nullptr, "pause");
  State = begin(Traits, Pause);
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
  noteTargets();
  B.CreateBr(Loop);
  B.SetInsertPoint(Done);
  B.CreateRet(B.CreateNeg(NextOrPause));
  return Helper;
}

namespace {

/// Makes a loop come back to its block "ahead" (Prefetch.h) after each strip of
/// iterations.
class Interrupter {
public:
  /// Adds to Unused what may be dead once all loops have been interrupted.
  Interrupter(const LookPlan &Plan, Abi &Runtime,
              SmallVectorImpl<WeakTrackingVH> &Unused);

  /// Helper: the LookBuilder's function; Arguments: its arguments.
  void interrupt(Function *Helper, ArrayRef<Value *> Arguments);

private:
  BasicBlock *block(const Twine &Name, BasicBlock *Before) {
    return BasicBlock::Create(Header->getContext(), Name, Header->getParent(),
                              Before);
  }
  void ask();
  Value *look(Function *Helper, ArrayRef<Value *> Arguments);
  void enter(Value *PauseAfterLook);
  void comeBack();
  void comeBackUntilCounted();

  const LookPlan &Plan;
  Abi &Runtime;
  SmallVectorImpl<WeakTrackingVH> &Unused;
  BasicBlock *Preheader, *Header, *Latch;
  BasicBlock *Exit; // null: the loop's count is not known
  BasicBlock *Ahead, *Enter, *Look;
  BasicBlock *Back; // after a strip
  IRBuilder<> B;
  DenseMap<Value *, Value *> Present; // values of the header's phis, in "ahead"
  PHINode *Left = nullptr;            // iterations, in "ahead", if counted
  Value *Strip = nullptr;             // iterations until "back"
  PHINode *Done = nullptr;            // of these
};

} // namespace

Interrupter::Interrupter(const LookPlan &Plan, Abi &Runtime,
                         SmallVectorImpl<WeakTrackingVH> &Unused)
    : Plan(Plan), Runtime(Runtime), Unused(Unused),
      Preheader(Plan.L->getLoopPreheader()), Header(Plan.L->getHeader()),
      Latch(Plan.L->getLoopLatch()),
      Exit(Plan.TripCount ? Plan.L->getExitBlock() : nullptr),
      Ahead(block("spill.ahead", Header)),
      Enter(block("spill.ahead.enter", Header)),
      Look(block("spill.ahead.look", nullptr)),
      Back(block("spill.ahead.back", Latch->getNextNode())),
      B(Runtime.M.getContext()) {}

void Interrupter::interrupt(Function *Helper, ArrayRef<Value *> Arguments) {
  ask();
  enter(look(Helper, Arguments));
  if (Left)
    comeBackUntilCounted();
  else
    comeBack();
}

// Emits "ahead": the values that the loop carries, and the test whether pages
// are missed.
void Interrupter::ask() {
  B.SetInsertPoint(Ahead);
  B.SetCurrentDebugLocation(Plan.L->getStartLoc());
  for (PHINode &Phi : Header->phis()) {
    PHINode *Outer = B.CreatePHI(Phi.getType(), 2, Phi.getName() + ".ahead");
    Outer->addIncoming(Phi.getIncomingValueForBlock(Preheader), Preheader);
    Outer->addIncoming(Phi.getIncomingValueForBlock(Latch), Back);
    Present[&Phi] = Outer;
  }
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
                 MDBuilder(B.getContext()).createBranchWeights(1 << 20, 1));
}

// Returns after how many iterations the helper wants to be called again.
Value *Interrupter::look(Function *Helper, ArrayRef<Value *> Arguments) {
  B.SetInsertPoint(Look);
  SmallVector<Value *, 8> Passed;
  for (Value *V : Arguments)
    Passed.push_back(Present.contains(V) ? Present[V] : V);
  Passed.push_back(Left ? static_cast<Value *>(Left)
                        : B.getInt64(~uint64_t(0)));
  CallInst *Call = B.CreateCall(Helper, Passed);
  Call->setCallingConv(Helper->getCallingConv());
  Call->setDoesNotThrow();
  Call->addFnAttr(Attribute::get(B.getContext(), KeepsTranslations));
  B.CreateBr(Enter);
  return Call;
}

// Makes the loop be entered from "enter", with a strip, instead of its
// preheader.
void Interrupter::enter(Value *PauseAfterLook) {
  B.SetInsertPoint(Enter);
  PHINode *Pause = B.CreatePHI(Runtime.I64, 2, "spill.ahead.pause");
  Pause->addIncoming(B.getInt64(IterationsPerQuestion), Ahead);
  Pause->addIncoming(PauseAfterLook, Look);
  Strip = Pause;
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
  Done = B.CreatePHI(Runtime.I64, 2, "spill.ahead.done");
  Done->addIncoming(B.getInt64(0), Enter);
}

// For a loop whose count is not known: its exits stay as they are.
void Interrupter::comeBack() {
  Latch->getTerminator()->replaceSuccessorWith(Header, Back);
  B.SetInsertPoint(Back);
  Value *Next = B.CreateAdd(Done, B.getInt64(1));
  B.CreateCondBr(B.CreateICmpEQ(Next, Strip), Ahead, Header);
  Header->replacePhiUsesWith(Latch, Back);
  Done->addIncoming(Next, Back);
}

// For a loop whose count is known: the count ends it now. It still has one
// exit, so that it can be split at page edges.
void Interrupter::comeBackUntilCounted() {
  Instruction *Old = Latch->getTerminator();
  Value *Condition = cast<BranchInst>(Old)->getCondition();
  B.SetInsertPoint(Old);
  Value *Next = B.CreateAdd(Done, B.getInt64(1));
  markStrip(B.CreateCondBr(B.CreateICmpEQ(Next, Strip), Back, Header),
            Plan.IsRow);
  Old->eraseFromParent();
  Done->addIncoming(Next, Latch);
  B.SetInsertPoint(Back);
  Value *NowLeft = B.CreateSub(Left, Strip);
  B.CreateCondBr(B.CreateICmpEQ(NowLeft, B.getInt64(0)), Exit, Ahead);
  Left->addIncoming(NowLeft, Back);
  Exit->replacePhiUsesWith(Latch, Back);
  Unused.push_back(Condition);
}

unsigned lookAhead(Function &F, FunctionAnalysisManager &FAM, Abi &Runtime) {
  FAM.invalidate(F, PreservedAnalyses::none());
  SmallVector<LookPlan, 0> Plans = planLooks(F, FAM);
  // All functions first: the analyses describe the unchanged F.
  SmallVector<std::pair<Function *, SmallVector<Value *, 8>>, 4> Helpers;
  for (const LookPlan &Plan : Plans) {
    LookBuilder Builder(Plan, Runtime);
    Function *Helper = Builder.build(F.getName() + ".spill.ahead");
    Helpers.push_back({Helper, SmallVector<Value *, 8>(Builder.arguments())});
  }
  // Loops may be nested: each finds its blocks before any new ones exist.
  SmallVector<WeakTrackingVH, 8> Unused;
  std::deque<Interrupter> Interrupters;
  for (const LookPlan &Plan : Plans)
    Interrupters.emplace_back(Plan, Runtime, Unused);
  for (auto [Loop, Helper] : zip(Interrupters, Helpers))
    Loop.interrupt(Helper.first, Helper.second);
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(Unused);
  FAM.invalidate(F, PreservedAnalyses::none());
  return Plans.size();
}

} // namespace spillway
