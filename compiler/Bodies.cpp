//===- Bodies.cpp - Two bodies for a function -----------------------------===//
#include "Bodies.h"
#include "Instrument.h"
#include "Provenance.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/SSAUpdater.h"
#include "llvm/Transforms/Utils/UnrollLoop.h"

using namespace llvm;

namespace spillway {

// Loops that never run longer, and call nothing, are left to their end.
static constexpr unsigned MaxShortTrips = 64;

// Native loops of so many instructions look at the byte once in so many
// iterations.
static constexpr unsigned MaxSmallLoop = 24;
static constexpr unsigned SmallLoopRepeats = 4;

static bool mayBeSpilled(const Value *V) {
  return V->getType()->isVectorTy() || !isPlain(V);
}

// Whether instrumentation would make anything of I but rename what it calls.
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
  if (isa<IndirectBrInst, CallBrInst>(I) || I.getType()->isTokenTy() ||
      I.getType()->isX86_AMXTy())
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
    return !Call->cannotDuplicate() &&
           !Call->hasFnAttr(Attribute::ReturnsTwice);
  }
}

bool NativeBody::isWanted(Function &F) {
  if (F.hasOptNone() || F.hasMinSize() || F.isPresplitCoroutine() ||
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

// Functions of the C library that do nothing but access what they are given:
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

// A page's fingerprint is taken without a fence for stores past the caches.
static void storeIntoCaches(Function &Native) {
  for (Instruction &I : instructions(Native))
    if (isa<StoreInst>(I))
      I.setMetadata(LLVMContext::MD_nontemporal, nullptr);
}

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

// Every cycle runs through the target of such an edge, be it a loop or not.
void NativeBody::findWays(FunctionAnalysisManager &FAM) {
  SmallVector<std::pair<const BasicBlock *, const BasicBlock *>, 8> Edges;
  FindFunctionBackedges(F, Edges);
  if (Edges.empty())
    return;
  SetVector<BasicBlock *> Heads;
  for (auto [From, To] : Edges)
    Heads.insert(const_cast<BasicBlock *>(To));
  auto &LI = FAM.getResult<LoopAnalysis>(F);
  auto &SE = FAM.getResult<ScalarEvolutionAnalysis>(F);
  for (BasicBlock *Head : Heads)
    if (!Head->isEHPad() && !isShort(Head, LI, SE))
      Ways.push_back({Head, nullptr, nullptr, {}, {}});
}

NativeBody::NativeBody(Function &F, Abi &Runtime, FunctionAnalysisManager &FAM)
    : F(F), Runtime(Runtime) {
  BasicBlock *Entry = &F.getEntryBlock();
  auto First = find_if(*Entry, [](const Instruction &I) {
    auto *A = dyn_cast<AllocaInst>(&I);
    return !A || !A->isStaticAlloca();
  });
  SplitBlock(Entry, &*First, static_cast<DominatorTree *>(nullptr));
  FAM.invalidate(F, PreservedAnalyses::none());
  findWays(FAM);
  copyBlocks();
  openWays();
  for (Way &W : Ways)
    leaveAtHead(W);
  lookLessOften(FAM);
  FAM.invalidate(F, PreservedAnalyses::none());
}

void NativeBody::copyBlocks() {
  Native = Function::Create(F.getFunctionType(), GlobalValue::InternalLinkage,
                            F.getAddressSpace(), "", F.getParent());
  for (auto [From, To] : zip(F.args(), Native->args()))
    Copies[&From] = &To;
  SmallVector<BasicBlock *, 16> Blocks;
  for (BasicBlock &BB : F) {
    Copies[&BB] = CloneBasicBlock(&BB, Copies, ".native", Native);
    Blocks.push_back(cast<BasicBlock>(Copies[&BB]));
  }
  remapInstructionsInBlocks(Blocks, Copies);
  callTheLibrary(*Native);
  storeIntoCaches(*Native);
}

// The heads of ways, by their numbers, that I is alive at.
static SmallVector<unsigned, 4>
liveAt(Instruction &I, const DenseMap<BasicBlock *, unsigned> &Heads) {
  BasicBlock *Def = I.getParent();
  SmallPtrSet<BasicBlock *, 16> Seen;
  SmallVector<BasicBlock *, 16> Work; // I is alive where they begin
  auto Add = [&](BasicBlock *BB) {
    if (BB != Def && Seen.insert(BB).second)
      Work.push_back(BB);
  };
  for (Use &U : I.uses()) {
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

// An instruction that nothing is known of, but that a plain pointer is one.
Instruction *NativeBody::standIn(Way &W, Instruction &For) {
  Instruction *End = W.Block->getTerminator();
  Type *T = For.getType();
  Instruction *Result;
  if (T->isPointerTy() && isPlain(&For))
    Result = GetElementPtrInst::Create(Type::getInt8Ty(F.getContext()), Plain,
                                       Choice->getCondition(), "",
                                       End->getIterator());
  else
    Result = new FreezeInst(PoisonValue::get(T), "", End->getIterator());
  W.StandIns.push_back(Result);
  W.Values.push_back(Copies[&For]);
  return Result;
}

static void rewriteUses(SSAUpdater &Updater, Instruction &I) {
  SmallVector<Use *, 16> Uses;
  for (Use &U : I.uses())
    Uses.push_back(&U);
  for (Use *U : Uses) {
    auto *User = cast<Instruction>(U->getUser());
    if (isa<PHINode>(User) || User->getParent() != I.getParent())
      Updater.RewriteUse(*U);
  }
  Updater.UpdateDebugValues(&I);
}

// On the ways by which it is alive, what the native body has computed takes
// I's place.
void NativeBody::bring(Instruction &I, ArrayRef<unsigned> LiveAt) {
  SSAUpdater Updater;
  Updater.Initialize(I.getType(), I.getName());
  Updater.AddAvailableValue(I.getParent(), &I);
  for (unsigned Index : LiveAt)
    Updater.AddAvailableValue(Ways[Index].Block, standIn(Ways[Index], I));
  rewriteUses(Updater, I);
}

void NativeBody::openWays() {
  // Before there are ways: a value is alive at heads that it dominates.
  DenseMap<BasicBlock *, unsigned> Heads;
  for (auto [Index, W] : enumerate(Ways))
    Heads[W.Head] = Index;
  SmallVector<std::pair<Instruction *, SmallVector<unsigned, 4>>, 16> Alive;
  BasicBlock *Entry = &F.getEntryBlock();
  if (!Ways.empty())
    for (BasicBlock &BB : drop_begin(F))
      for (Instruction &I : BB)
        if (auto At = liveAt(I, Heads); !At.empty())
          Alive.push_back({&I, std::move(At)});

  BasicBlock *Start = Entry->getSingleSuccessor();
  Entry->getTerminator()->eraseFromParent();
  Type *I32 = Type::getInt32Ty(F.getContext());
  Plain =
      new AllocaInst(Type::getInt8Ty(F.getContext()), 0, "", Entry->begin());
  auto *Unknown = new FreezeInst(PoisonValue::get(I32), "", Entry);
  Choice = SwitchInst::Create(Unknown, Start, Ways.size(), Entry);
  for (auto [Index, W] : enumerate(Ways)) {
    W.Block = BasicBlock::Create(F.getContext(), "spill.way", &F, W.Head);
    BranchInst::Create(W.Head, W.Block);
    Choice->addCase(cast<ConstantInt>(ConstantInt::get(I32, Index)), W.Block);
    for (PHINode &Phi : W.Head->phis())
      Phi.addIncoming(standIn(W, Phi), W.Block);
  }
  for (auto &[I, At] : Alive)
    bring(*I, At);
}

// Whether only instrumented bodies may run.
Value *NativeBody::isOver(IRBuilderBase &B) {
  Value *Where =
      ConstantExpr::getIntToPtr(B.getInt64(abi::NativeBodies), Runtime.Ptr);
  LoadInst *Byte = B.CreateAlignedLoad(B.getInt8Ty(), Where, Align(1),
                                       /*isVolatile=*/true, "spill.native");
  leaveOut(Byte);
  return B.CreateICmpEQ(Byte, B.getInt8(0), "spill.over");
}

// The test, and behind it an instruction that uses what is to be brought.
void NativeBody::leaveAtHead(Way &W) {
  auto *Head = cast<BasicBlock>(Copies[W.Head]);
  BasicBlock *Rest = SplitBlock(Head, Head->getFirstInsertionPt(),
                                static_cast<DominatorTree *>(nullptr));
  W.Leave = BasicBlock::Create(F.getContext(), "spill.leave", Native, Rest);
  Instruction *Old = Head->getTerminator();
  IRBuilder<> B(Old);
  B.CreateCondBr(isOver(B), W.Leave, Rest, Runtime.ColdWeights);
  Old->eraseFromParent();
  SmallVector<Type *, 8> Types;
  for (Value *V : W.Values)
    Types.push_back(V->getType());
  B.SetInsertPoint(W.Leave);
  B.CreateCall(FunctionType::get(B.getVoidTy(), Types, false),
               PoisonValue::get(Runtime.Ptr), W.Values);
  B.CreateUnreachable();
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

// A test takes a third of the time of the smallest loops. So they do several
// iterations for each.
void NativeBody::lookLessOften(FunctionAnalysisManager &FAM) {
  if (Ways.empty() || F.hasOptSize())
    return;
  DominatorTree DT(*Native);
  LoopInfo LI(DT);
  SmallVector<std::pair<Loop *, const Way *>, 4> Small;
  for (const Way &W : Ways) {
    auto *Head = cast<BasicBlock>(Copies[W.Head]);
    Loop *L = LI.getLoopFor(Head);
    if (L && L->isInnermost() && L->getHeader() == Head && isSmall(*L))
      Small.push_back({L, &W});
  }
  if (Small.empty())
    return;
  AssumptionCache AC(*Native);
  auto &TLI = FAM.getResult<TargetLibraryAnalysis>(F);
  auto &TTI = FAM.getResult<TargetIRAnalysis>(F);
  ScalarEvolution SE(*Native, TLI, AC, DT, LI);
  OptimizationRemarkEmitter ORE(Native);
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

void NativeBody::connect(const Way &W) {
  auto *Carrier = cast<CallInst>(W.Leave->getTerminator()->getPrevNode());
  for (auto [StandIn, Value] : zip(W.StandIns, Carrier->args()))
    if (auto *I = cast_or_null<Instruction>(StandIn)) {
      I->replaceAllUsesWith(Value);
      I->eraseFromParent();
    }
  W.Leave->getTerminator()->eraseFromParent();
  Carrier->eraseFromParent();
  BranchInst::Create(W.Block, W.Leave);
}

// What instrumentation computes once is not the native body's to compute.
void NativeBody::moveOutOfEntry() {
  BasicBlock *Start = Choice->getDefaultDest();
  auto To = Start->getFirstInsertionPt();
  SmallVector<Instruction *, 4> Moved;
  for (Instruction &I : make_early_inc_range(F.getEntryBlock())) {
    if (isa<AllocaInst>(I) || &I == Choice || &I == Choice->getCondition())
      continue;
    I.moveBefore(*Start, To);
    Moved.push_back(&I);
  }
  SmallVector<SmallVector<Instruction *, 4>, 4> OnWay; // the same on each way
  for (const Way &W : Ways) {
    SmallVector<Instruction *, 4> &Here = OnWay.emplace_back();
    ValueToValueMapTy Map;
    for (Instruction *I : Moved) {
      Here.push_back(I->clone());
      Here.back()->insertBefore(W.Block->getTerminator());
      RemapInstruction(Here.back(), Map, RF_IgnoreMissingLocals);
      Map[I] = Here.back();
    }
  }
  for (auto [Index, I] : enumerate(Moved)) {
    SSAUpdater Updater;
    Updater.Initialize(I->getType(), I->getName());
    Updater.AddAvailableValue(Start, I);
    for (auto [W, Here] : zip(Ways, OnWay))
      Updater.AddAvailableValue(W.Block, Here[Index]);
    rewriteUses(Updater, *I);
  }
}

void NativeBody::putBack() {
  moveOutOfEntry();
  BasicBlock &Entry = F.getEntryBlock();
  for (auto [Own, Copy] : zip(F.args(), Native->args()))
    Copy.replaceAllUsesWith(&Own);
  for (Instruction &I : Entry)
    if (Value *Copy = Copies.lookup(&I))
      Copy->replaceAllUsesWith(&I);
  BasicBlock &NativeEntry = Native->getEntryBlock();
  BasicBlock *NativeStart = NativeEntry.getSingleSuccessor();
  NativeEntry.eraseFromParent();
  F.splice(std::next(F.begin()), Native);
  Native->eraseFromParent();

  IRBuilder<> B(Choice);
  B.CreateCondBr(isOver(B), Choice->getDefaultDest(), NativeStart,
                 Runtime.ColdWeights);
  for (const Way &W : Ways)
    connect(W);
  auto *Unknown = cast<Instruction>(Choice->getCondition());
  Choice->eraseFromParent();
  Unknown->eraseFromParent();
  Plain->eraseFromParent();
}

} // namespace spillway
