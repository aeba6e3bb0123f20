//===- Bodies.cpp - Two bodies for a function -----------------------------===//
#include "bodies/Bodies.h"
#include "Functions.h"
#include "analysis/Address.h"
#include "analysis/PlainPointers.h"
#include "analysis/Provenance.h"
#include "bodies/Ways.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/AttributeMask.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/SSAUpdater.h"
#include "llvm/Transforms/Utils/UnrollLoop.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

using namespace llvm;

namespace spillway {

// Native loops of at most this many instructions check the byte once in
// SmallLoopRepeats iterations.
static constexpr unsigned MaxSmallLoop = 24;
static constexpr unsigned SmallLoopRepeats = 4;

namespace {

class BodyMaker {
public:
  BodyMaker(Function &F, Abi &Runtime, FunctionAnalysisManager &FAM)
      : F(F), Runtime(Runtime), FAM(FAM) {}

  Function *run();

private:
  bool mayBeApart() const;
  void copy();
  void arrive();
  void leave();
  void lookLessOften();
  StructType *cargoType(const Way &W) const;

  Function &F; // the native body
  Abi &Runtime;
  FunctionAnalysisManager &FAM;
  Function *Spill = nullptr;
  ValueToValueMapTy Copies; // F's values in Spill
  SmallVector<Way, 4> Ways;
};

} // namespace

static bool mayBeSpilled(const Value *V) {
  return V->getType()->isVectorTy() || !isPlain(V);
}

// Whether instrumentation would change I, apart from the name of what it calls.
static bool mayAccessSpilled(const Instruction &I) {
  if (const Value *Pointer = getLoadStorePointerOperand(&I))
    return mayBeSpilled(Pointer);
  if (isa<AtomicRMWInst, AtomicCmpXchgInst, VAArgInst>(I))
    return mayBeSpilled(I.getOperand(0));
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call || !Call->mayReadOrWriteMemory())
    return false;
  bool All = isa<IntrinsicInst>(Call) || Call->isInlineAsm();
  for (unsigned Arg = 0; Arg < Call->arg_size(); ++Arg)
    if (Value *V = Call->getArgOperand(Arg);
        V->getType()->isPtrOrPtrVectorTy() &&
        (All || Call->isByValArgument(Arg)) && mayBeSpilled(V))
      return true;
  return false;
}

static bool isCopyable(const Instruction &I) {
  if (isUnique(I) || isa<IndirectBrInst, CallBrInst>(I) ||
      I.getType()->isTokenTy() || I.getType()->isX86_AMXTy() ||
      I.isSwiftError())
    return false;
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return true;
  switch (Call->getIntrinsicID()) {
  case Intrinsic::eh_sjlj_longjmp:
  case Intrinsic::eh_sjlj_setjmp:
  case Intrinsic::localescape:
    return false;
  default:
    return !Call->hasFnAttr(Attribute::ReturnsTwice);
  }
}

// Whether another function can be called with F's arguments.
static bool canHandOn(const Function &F) {
  return !F.isVarArg() &&
         is_contained({CallingConv::C, CallingConv::Fast, CallingConv::Cold},
                      F.getCallingConv()) &&
         none_of(F.args(), [](const Argument &A) {
           return A.hasInAllocaAttr() || A.hasPreallocatedAttr() ||
                  A.hasNestAttr() || A.hasSwiftErrorAttr() ||
                  A.hasAttribute(Attribute::SwiftSelf) ||
                  A.hasAttribute(Attribute::SwiftAsync);
         });
}

static bool isWanted(Function &F) {
  if (F.hasOptNone() || F.hasMinSize() || F.isPresplitCoroutine() ||
      !canHandOn(F) ||
      any_of(F, [](const BasicBlock &BB) { return BB.hasAddressTaken(); }))
    return false;
  bool Accesses = false;
  for (Instruction &I : instructions(F)) {
    if (!isCopyable(I))
      return false;
    Accesses = Accesses || mayAccessSpilled(I);
  }
  return Accesses;
}

static bool hasByValArgument(const Function &F) {
  return any_of(F.args(), [](const Argument &A) { return A.hasByValAttr(); });
}

// Whether the instrumented body may run in a frame of its own. It does when
// control arrives by a way, and may when F has an argument by value; code that
// inspects its frame or its caller would notice.
bool BodyMaker::mayBeApart() const {
  for (const Way &W : Ways)
    if (any_of(W.Cargo, [](const Value *V) {
          auto *I = dyn_cast<IntrinsicInst>(V);
          return I && I->getIntrinsicID() == Intrinsic::stacksave;
        }))
      return false;
  if (Ways.empty() && !hasByValArgument(F))
    return true;
  return none_of(instructions(F), [](const Instruction &I) {
    auto *Call = dyn_cast<CallBase>(&I);
    if (!Call)
      return false;
    switch (Call->getIntrinsicID()) {
    case Intrinsic::addressofreturnaddress:
    case Intrinsic::eh_dwarf_cfa:
    case Intrinsic::frameaddress:
    case Intrinsic::returnaddress:
    case Intrinsic::sponentry:
      return true;
    default:
      return Call->isMustTailCall();
    }
  });
}

// Whether a C library function only accesses the memory that it is given. Then
// native code calls the library's own.
static bool isPureOfMemory(StringRef Name) {
  static const StringSet<> Names = {
      "bcmp",   "memchr",  "memcmp",  "memcpy",  "memmove", "memrchr",
      "memset", "mempcpy", "stpcpy",  "strchr",  "strcmp",  "strcpy",
      "strlen", "strncmp", "strncpy", "strnlen", "strrchr"};
  return Names.contains(Name);
}

static void callTheLibrary(Function &Native) {
  for (Instruction &I : instructions(Native)) {
    auto *Call = dyn_cast<CallBase>(&I);
    Function *Callee = Call ? Call->getCalledFunction() : nullptr;
    StringRef Name = Callee ? Callee->getName() : "";
    if (!Callee || !Name.consume_front(abi::InterceptPrefix) ||
        !isPureOfMemory(Name))
      continue;
    FunctionCallee Own = Native.getParent()->getOrInsertFunction(
        Name, Callee->getFunctionType(), Callee->getAttributes());
    Call->setCalledOperand(Own.getCallee());
  }
}

// Makes non-temporal stores ordinary ones: fingerprints of pages are taken
// without a fence for stores that bypass the caches.
static void storeIntoCaches(Function &Native) {
  for (Instruction &I : instructions(Native))
    if (isa<StoreInst>(I))
      I.setMetadata(LLVMContext::MD_nontemporal, nullptr);
}

// The way's number, then its cargo. Packed, so that alignment does not matter.
StructType *BodyMaker::cargoType(const Way &W) const {
  SmallVector<Type *, 8> Types(1, Type::getInt32Ty(F.getContext()));
  for (Value *V : W.Cargo)
    Types.push_back(V->getType());
  return StructType::get(F.getContext(), Types, /*isPacked=*/true);
}

// When control arrives by a way, arguments that are not live are not passed,
// and pointers may be based on other arguments than originally.
static void dropArgumentPromises(Function &Spill) {
  AttributeMask Promises = AttributeFuncs::getUBImplyingAttributes();
  Promises.addAttribute(Attribute::NoAlias).addAttribute(Attribute::Returned);
  for (Argument &A : Spill.args())
    Spill.removeParamAttrs(A.getArgNo(), Promises);
}

void BodyMaker::copy() {
  FunctionType *Old = F.getFunctionType();
  SmallVector<Type *, 8> Types(Old->params());
  if (!Ways.empty())
    Types.push_back(Runtime.Ptr);
  auto *New = FunctionType::get(Old->getReturnType(), Types, false);
  Spill = Function::Create(New, F.getLinkage(), F.getAddressSpace(),
                           F.getName() + ".spill", F.getParent());
  for (auto [From, To] : zip(F.args(), Spill->args())) {
    To.setName(From.getName());
    Copies[&From] = &To;
  }
  SmallVector<ReturnInst *, 8> Returns;
  CloneFunctionInto(Spill, &F, Copies,
                    CloneFunctionChangeType::LocalChangesOnly, Returns);
  Spill->setLinkage(GlobalValue::InternalLinkage);
  Spill->setComdat(F.getComdat()); // so that both are dropped together
  Spill->removeFnAttr(Attribute::AlwaysInline);
  Spill->addFnAttr(Attribute::NoInline);
  if (Ways.empty())
    return;
  dropArgumentPromises(*Spill);
  Argument *Cargo = Spill->getArg(Spill->arg_size() - 1);
  Cargo->setName("spill.cargo");
  Cargo->addAttr(Attribute::Nest); // so that F's arguments stay in their places
  markPlain(*Cargo);
}

// Makes uses of V that ways lead to use the values that the ways bring.
static void bring(Value &V, BasicBlock *Def,
                  ArrayRef<std::pair<BasicBlock *, Value *>> Brought) {
  SSAUpdater Updater;
  Updater.Initialize(V.getType(), V.getName());
  Updater.AddAvailableValue(Def, &V);
  for (auto [Block, Value] : Brought)
    Updater.AddAvailableValue(Block, Value);
  SmallVector<Use *, 16> Uses;
  for (Use &U : V.uses())
    Uses.push_back(&U);
  for (Use *U : Uses) {
    auto *User = cast<Instruction>(U->getUser());
    // The variable may be the native body's, and this frame keeps its own all
    // the time: no lifetime marker is true of both.
    if (User->isLifetimeStartOrEnd())
      User->eraseFromParent();
    else if (isa<PHINode>(User) || User->getParent() != Def)
      Updater.RewriteUse(*U);
  }
  if (auto *I = dyn_cast<Instruction>(&V))
    Updater.UpdateDebugValues(I);
}

void BodyMaker::arrive() {
  LLVMContext &Context = F.getContext();
  BasicBlock *Entry = &Spill->getEntryBlock();
  BasicBlock *Start = Entry->getSingleSuccessor();
  Argument *Cargo = Spill->getArg(Spill->arg_size() - 1);
  auto *Arrive = BasicBlock::Create(Context, "spill.arrive", Spill, Start);
  Instruction *Old = Entry->getTerminator();
  IRBuilder<> B(Old);
  B.CreateCondBr(B.CreateIsNotNull(Cargo), Arrive, Start, Runtime.ColdWeights);
  Old->eraseFromParent();

  MapVector<Value *, SmallVector<std::pair<BasicBlock *, Value *>, 4>> Brought;
  SmallVector<BasicBlock *, 4> Blocks;
  for (const Way &W : Ways) {
    auto *Head = cast<BasicBlock>(Copies[W.Head]);
    auto *Block = BasicBlock::Create(Context, "spill.way", Spill, Head);
    Blocks.push_back(Block);
    B.SetInsertPoint(Block);
    StructType *Type = cargoType(W);
    DenseMap<Value *, Value *> Here; // F's values
    for (auto [Field, V] : enumerate(W.Cargo)) {
      LoadInst *Load = B.CreateAlignedLoad(
          V->getType(), B.CreateStructGEP(Type, Cargo, Field + 1), Align(1));
      if (V->getType()->isPointerTy() && isPlain(V))
        markPlain(*Load);
      Here[V] = Load;
      Value *Copy = Copies[V];
      if (auto *Phi = dyn_cast<PHINode>(Copy); Phi && Phi->getParent() == Head)
        Phi->addIncoming(Load, Block);
      else
        Brought[Copy].push_back({Block, Load});
    }
    for (Instruction *I : W.Derived) {
      APInt Offset;
      Value *Base = baseOf(I, F.getDataLayout(), Offset);
      Value *From = Here.lookup(Base);
      if (!From)
        From = isa<Constant>(Base) ? Base
                                   : static_cast<Value *>(Copies.lookup(Base));
      Brought[Copies[I]].push_back(
          {Block, B.CreateGEP(B.getInt8Ty(), From, B.getInt(Offset))});
    }
    B.CreateBr(Head);
  }
  B.SetInsertPoint(Arrive);
  LoadInst *Number = B.CreateAlignedLoad(B.getInt32Ty(), Cargo, Align(1));
  SwitchInst *Which = B.CreateSwitch(Number, Blocks[0], Ways.size() - 1);
  for (auto [Index, Block] : drop_begin(enumerate(Blocks)))
    Which->addCase(B.getInt32(Index), Block);
  for (auto &[V, From] : Brought) {
    auto *I = dyn_cast<Instruction>(V);
    bring(*V, I ? I->getParent() : Entry, From);
  }
}

Value *isOver(IRBuilderBase &B, const Abi &Runtime) {
  Value *Where =
      ConstantExpr::getIntToPtr(B.getInt64(abi::NativeBodies), Runtime.Ptr);
  LoadInst *Byte = B.CreateAlignedLoad(B.getInt8Ty(), Where, Align(1),
                                       /*isVolatile=*/true, "spill.native");
  leaveOut(Byte);
  return B.CreateICmpEQ(Byte, B.getInt8(0), "spill.over");
}

void goOver(BasicBlock *From, const Bodies &Both, ArrayRef<Value *> Arguments,
            Value *Cargo) {
  Function &F = *Both.Native, &Spill = *Both.Spill;
  IRBuilder<> B(From);
  if (DISubprogram *SP = F.getSubprogram())
    B.SetCurrentDebugLocation(DILocation::get(F.getContext(), 0, 0, SP));
  SmallVector<Value *, 8> Actual(Arguments);
  bool HasWays = Spill.arg_size() > F.arg_size();
  if (HasWays)
    Actual.push_back(Cargo ? Cargo : Constant::getNullValue(B.getPtrTy()));
  CallInst *Call = B.CreateCall(&Spill, Actual);
  Call->setCallingConv(F.getCallingConv());
  Call->setAttributes(Spill.getAttributes().removeFnAttributes(F.getContext()));
  if (!Cargo)
    Call->setTailCallKind(HasWays || hasByValArgument(F)
                              ? CallInst::TCK_Tail
                              : CallInst::TCK_MustTail);
  returnResult(B, *Call);
}

// Emits the test at each head, and the part of each way that lies in the native
// body.
void BodyMaker::leave() {
  const DataLayout &DL = F.getDataLayout();
  uint64_t Bytes = 0;
  for (const Way &W : Ways)
    Bytes = std::max<uint64_t>(Bytes, DL.getTypeAllocSize(cargoType(W)));
  IRBuilder<> B(F.getContext());
  auto *Cargo =
      new AllocaInst(ArrayType::get(B.getInt8Ty(), Bytes), 0, nullptr, Align(8),
                     "spill.cargo", F.getEntryBlock().begin());
  // No code of the program can overflow it.
  Cargo->setMetadata(
      "stack-protector",
      MDNode::get(F.getContext(), ConstantAsMetadata::get(B.getInt32(0))));
  for (auto [Index, W] : enumerate(Ways)) {
    BasicBlock *Rest = SplitBlock(W.Head, W.Head->getFirstInsertionPt(),
                                  static_cast<DominatorTree *>(nullptr));
    W.Leave = BasicBlock::Create(F.getContext(), "spill.leave", &F, Rest);
    Instruction *Old = W.Head->getTerminator();
    B.SetInsertPoint(Old);
    B.SetCurrentDebugLocation(DebugLoc());
    B.CreateCondBr(isOver(B, Runtime), W.Leave, Rest, Runtime.ColdWeights);
    Old->eraseFromParent();
    B.SetInsertPoint(W.Leave);
    B.CreateAlignedStore(B.getInt32(Index), Cargo, Align(1));
    StructType *Type = cargoType(W);
    for (auto [Field, V] : enumerate(W.Cargo))
      B.CreateAlignedStore(V, B.CreateStructGEP(Type, Cargo, Field + 1),
                           Align(1));
    SmallVector<Value *, 8> Arguments;
    for (Argument &A : F.args()) {
      bool Passed = W.Arguments.test(A.getArgNo()) ||
                    A.hasPassPointeeByValueCopyAttr() || A.hasStructRetAttr();
      Arguments.push_back(Passed ? static_cast<Value *>(&A)
                                 : PoisonValue::get(A.getType()));
    }
    goOver(W.Leave, {&F, Spill}, Arguments, Cargo);
  }
}

static bool isSmall(const Loop &L) {
  unsigned Count = 0;
  for (BasicBlock *BB : L.blocks())
    for (Instruction &I : *BB) {
      auto *Call = dyn_cast<CallBase>(&I);
      if (++Count > MaxSmallLoop ||
          (Call && (!isa<IntrinsicInst>(Call) || Call->isConvergent())))
        return false;
    }
  return L.getLoopLatch() && L.isSafeToClone();
}

// A test takes a third of the time of the smallest loops: these do several
// iterations per test.
void BodyMaker::lookLessOften() {
  if (F.hasOptSize())
    return;
  DominatorTree DT(F);
  LoopInfo LI(DT);
  SmallVector<std::pair<Loop *, const Way *>, 4> Small;
  for (const Way &W : Ways) {
    Loop *L = LI.getLoopFor(W.Head);
    if (L && L->isInnermost() && L->getHeader() == W.Head && isSmall(*L))
      Small.push_back({L, &W});
  }
  if (Small.empty())
    return;
  AssumptionCache AC(F);
  auto &TLI = FAM.getResult<TargetLibraryAnalysis>(F);
  auto &TTI = FAM.getResult<TargetIRAnalysis>(F);
  ScalarEvolution SE(F, TLI, AC, DT, LI);
  OptimizationRemarkEmitter ORE(&F);
  UnrollLoopOptions Options{};
  Options.Count = SmallLoopRepeats;
  for (auto [L, W] : Small) {
    BasicBlock *Head = L->getHeader();
    simplifyLoop(L, &DT, &LI, &SE, &AC, nullptr, /*PreserveLCSSA=*/false);
    formLCSSA(*L, DT, &LI, &SE);
    UnrollLoop(L, Options, &LI, &SE, &DT, &AC, &TTI, &ORE,
               /*PreserveLCSSA=*/false);
    for (BasicBlock *Pred : to_vector(predecessors(W->Leave))) {
      if (Pred == Head)
        continue;
      auto *Test = cast<BranchInst>(Pred->getTerminator());
      auto *Compare = cast<Instruction>(Test->getCondition());
      auto *Byte = cast<Instruction>(Compare->getOperand(0));
      W->Leave->removePredecessor(Pred);
      BranchInst::Create(Test->getSuccessor(1), Test->getIterator());
      for (Instruction *I : {cast<Instruction>(Test), Compare, Byte})
        I->eraseFromParent();
    }
  }
}

Function *BodyMaker::run() {
  Ways = findWays(F, FAM);
  if (!Ways.empty()) {
    gatherVariables(F);
    findCargo(F, Ways);
  }
  if (!mayBeApart())
    return nullptr;
  BasicBlock *Entry = &F.getEntryBlock();
  auto First = find_if(*Entry, [](const Instruction &I) {
    auto *A = dyn_cast<AllocaInst>(&I);
    return !A || !A->isStaticAlloca();
  });
  SplitBlock(Entry, &*First, static_cast<DominatorTree *>(nullptr));
  copy();
  callTheLibrary(F);
  storeIntoCaches(F);
  if (!Ways.empty()) {
    arrive();
    leave();
    lookLessOften();
  }
  FAM.invalidate(F, PreservedAnalyses::none());
  return Spill;
}

Function *addSpillBody(Function &F, Abi &Runtime,
                       FunctionAnalysisManager &FAM) {
  return isWanted(F) ? BodyMaker(F, Runtime, FAM).run() : nullptr;
}

} // namespace spillway
