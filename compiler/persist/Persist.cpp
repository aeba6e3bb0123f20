//===- Persist.cpp - Flushes of persistent memory by the runtime ----------===//
#include "persist/Persist.h"
#include "Abi.h"
#include "Functions.h"
#include "Options.h"
#include "analysis/Accesses.h"
#include "persist/Direct.h"
#include "persist/FlushAssembly.h"
#include "persist/Stores.h"
#include "translation/Translate.h"

#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

static constexpr StringLiteral DoneAttribute = "spillway-persist";

namespace {

class Persister {
public:
  explicit Persister(Module &M) : M(M), Runtime(M) {}

  bool run();

private:
  void instrument(Function &F);
  bool replace(Instruction &I);
  void emit(IRBuilderBase &B, const FlushStep &Step);
  CallInst *call(IRBuilderBase &B, StringRef Symbol,
                 ArrayRef<Value *> Arguments);
  void fenceIfPending(Instruction *Before);
  void record(const Store &S);
  void sample(const Store &S);

  Module &M;
  Abi Runtime;
  unsigned Flushes = 0, Fences = 0, Checks = 0, Stores = 0;
};

} // namespace

CallInst *Persister::call(IRBuilderBase &B, StringRef Symbol,
                          ArrayRef<Value *> Arguments) {
  SmallVector<Type *, 2> Types;
  for (Value *Argument : Arguments)
    Types.push_back(Argument->getType());
  CallInst *Call =
      B.CreateCall(M.getOrInsertFunction(
                       Symbol, FunctionType::get(B.getVoidTy(), Types, false)),
                   Arguments);
  Call->setDoesNotThrow();
  return Call;
}

void Persister::fenceIfPending(Instruction *Before) {
  ++Checks;
  BuilderBefore B(Before);
  LoadInst *Pending = B.CreateLoad(
      B.getInt32Ty(), Runtime.persistThread(B, abi::PersistThreadPending));
  leaveOut(Pending);
  Instruction *Then = SplitBlockAndInsertIfThen(
      B.CreateICmpNE(Pending, B.getInt32(0)), Before->getIterator(),
      /*Unreachable=*/false, Runtime.ColdWeights);
  Then->setDebugLoc(B.getCurrentDebugLocation());
  BuilderBefore ThenB(Then);
  call(ThenB, abi::PersistFence, {});
}

void Persister::emit(IRBuilderBase &B, const FlushStep &Step) {
  CallInst *Call;
  if (Step.Kind == FlushKind::Fence) {
    ++Fences;
    Call = call(B, abi::PersistFence, {});
  } else {
    ++Flushes;
    Value *Address = Step.Address;
    if (!Address->getType()->isPointerTy())
      Address = B.CreateIntToPtr(Address, Runtime.Ptr);
    Call = call(B,
                Step.Kind == FlushKind::Clflush ? abi::PersistFlushOrdered
                                                : abi::PersistFlush,
                {Address});
  }
  markDirect(*Call, Step.Kind);
}

// What the instruction asks of the runtime, in order; empty if it is kept.
static SmallVector<FlushStep, 2> stepsOf(Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return {};
  if (Call->isInlineAsm())
    return parseFlushes(*Call);
  auto *II = dyn_cast<IntrinsicInst>(&I);
  if (!II)
    return {};
  switch (II->getIntrinsicID()) {
  case Intrinsic::x86_clwb:
    return {{FlushKind::Clwb, II->getArgOperand(0)}};
  case Intrinsic::x86_clflushopt:
    return {{FlushKind::Clflushopt, II->getArgOperand(0)}};
  case Intrinsic::x86_sse2_clflush:
    return {{FlushKind::Clflush, II->getArgOperand(0)}};
  case Intrinsic::x86_sse_sfence:
    return {{FlushKind::Fence, nullptr}};
  default:
    return {};
  }
}

// Replaces I if it asks something of the runtime. An mfence stays, after the
// check for pending flushes.
bool Persister::replace(Instruction &I) {
  SmallVector<FlushStep, 2> Steps = stepsOf(I);
  if (Steps.empty())
    return false;
  for (const FlushStep &Step : Steps) {
    BuilderBefore B(&I);
    if (Step.Kind != FlushKind::FullFence) {
      emit(B, Step);
      continue;
    }
    auto *Type = FunctionType::get(B.getVoidTy(), false);
    fenceIfPending(B.CreateCall(
        InlineAsm::get(Type, "mfence", "~{memory}", /*hasSideEffects=*/true)));
  }
  I.eraseFromParent();
  return true;
}

// Whether it calls a locking function of the C library or the compiler's
// runtime: such functions order flushes, though that is not their purpose.
static bool callsLock(const CallBase &Call) {
  const Function *Callee = Call.getCalledFunction();
  if (!Callee || !Callee->isDeclaration())
    return false;
  StringRef Name = Callee->getName();
  return any_of(
      ArrayRef<StringLiteral>{"pthread_", "sem_", "mtx_", "cnd_", "__atomic_"},
      [&](StringRef Prefix) { return Name.starts_with(Prefix); });
}

static bool ordersFlushes(const Instruction &I) {
  const DataLayout &DL = I.getDataLayout();
  if (auto *Fence = dyn_cast<FenceInst>(&I))
    return Fence->getOrdering() == AtomicOrdering::SequentiallyConsistent &&
           Fence->getSyncScopeID() != SyncScope::SingleThread;
  if (isa<AtomicRMWInst, AtomicCmpXchgInst>(I))
    return true;
  // The library's function may lock.
  if (callsAtomicLibrary(I))
    return true;
  if (auto *S = dyn_cast<StoreInst>(&I))
    return S->isAtomic() &&
           (S->getOrdering() == AtomicOrdering::SequentiallyConsistent ||
            DL.getTypeStoreSize(S->getValueOperand()->getType()) > 8);
  if (auto *L = dyn_cast<LoadInst>(&I))
    return L->isAtomic() && DL.getTypeStoreSize(L->getType()) > 8;
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return false;
  if (Call->isInlineAsm())
    return mayOrderFlushes(*Call);
  switch (Call->getIntrinsicID()) {
  case Intrinsic::not_intrinsic:
    return callsLock(*Call);
  case Intrinsic::x86_sse2_mfence:
  case Intrinsic::x86_serialize:
  case Intrinsic::x86_xbegin:
    return true;
  default:
    return false;
  }
}

void Persister::record(const Store &S) {
  ++Stores;
  forEachRange(S, [&](IRBuilderBase &B, Value *Address, Value *Bytes) {
    call(B, S.IsPastCaches ? abi::PersistStorePastCaches : abi::PersistStore,
         {Address, Bytes});
  });
}

void Persister::sample(const Store &S) {
  ++Stores;
  Instruction *After = after(S);
  BuilderBefore B(After);
  B.SetCurrentDebugLocation(S.Inst->getDebugLoc());
  Value *Countdown = Runtime.persistCountdown(B);
  LoadInst *Old = B.CreateLoad(B.getInt32Ty(), Countdown);
  leaveOut(Old);
  Value *New = B.CreateSub(Old, B.getInt32(1));
  leaveOut(B.CreateStore(New, Countdown));
  Instruction *Then = SplitBlockAndInsertIfThen(
      B.CreateICmpSLT(New, B.getInt32(0)), After->getIterator(),
      /*Unreachable=*/false, Runtime.ColdWeights);
  Then->setDebugLoc(B.getCurrentDebugLocation());
  BuilderBefore ThenB(Then);
  // A scatter has a vector of addresses: any one will do.
  Value *Address = S.Kind == StoreKind::Scatter
                       ? ThenB.CreateExtractElement(S.Address, uint64_t(0))
                       : S.Address;
  call(ThenB, abi::PersistSampled, {Address});
}

void Persister::instrument(Function &F) {
  F.addFnAttr(DoneAttribute);
  gatherStaticAllocas(F);
  SmallVector<Instruction *, 0> Work;
  for (Instruction &I : instructions(F))
    Work.push_back(&I);
  for (Instruction *I : Work) {
    if (replace(*I))
      continue;
    SmallVector<Store, 2> Found;
    if (options::Persist != options::PersistMode::Flush)
      collectStores(*I, Found);
    for (const Store &S : Found)
      if (options::Persist == options::PersistMode::Record)
        record(S);
      else
        sample(S);
    if (ordersFlushes(*I))
      fenceIfPending(I);
  }
}

bool Persister::run() {
  // Resolvers of indirect functions run before the runtime can be called.
  SmallPtrSet<const Function *, 4> Resolvers;
  for (GlobalIFunc &I : M.ifuncs())
    Resolvers.insert(I.getResolverFunction());
  SmallVector<Function *, 0> Work;
  for (Function &F : M)
    if (!F.isDeclaration() && !F.hasAvailableExternallyLinkage() &&
        !F.hasFnAttribute(Attribute::Naked) &&
        !F.hasFnAttribute(DoneAttribute) && !Resolvers.contains(&F))
      Work.push_back(&F);
  for (Function *F : Work)
    instrument(*F);
  for (Function *F : Work)
    dropMemoryAttributes(*F);
  if (options::Verify && verifyModule(M, &errs()))
    report_fatal_error("spillway: instrumentation broke the module");
  if (options::Stats)
    errs() << "spillway: " << M.getSourceFileName() << ": " << Flushes
           << " flushes, " << Fences << " fences, " << Checks
           << " checks for pending ones, " << Stores << " stores\n";
  return !Work.empty();
}

PreservedAnalyses PersistPass::run(Module &M, ModuleAnalysisManager &) {
  if (options::Persist == options::PersistMode::Off || isForDevice(M))
    return PreservedAnalyses::all();
  return Persister(M).run() ? PreservedAnalyses::none()
                            : PreservedAnalyses::all();
}

} // namespace spillway
