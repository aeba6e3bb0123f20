//===- Once.cpp - What only one may be doing at a time --------------------===//
#include "module/Once.h"
#include "Abi.h"
#include "Functions.h"

#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace spillway {

namespace {

class Marker {
public:
  explicit Marker(Module &M) : M(M) {}
  bool run();

private:
  void call(StringRef Name, Instruction *Before,
            ArrayRef<Value *> Arguments = {});
  void markGuards();
  void markThreadLocal(GlobalVariable &Guard);
  void markLockBit(Function &F);
  void markConstructors();

  Module &M;
  bool Changed = false;
};

} // namespace

void Marker::call(StringRef Name, Instruction *Before,
                  ArrayRef<Value *> Arguments) {
  IRBuilder<> B(Before);
  SmallVector<Type *, 1> Types;
  for (Value *V : Arguments)
    Types.push_back(V->getType());
  FunctionCallee F = M.getOrInsertFunction(
      Name, FunctionType::get(B.getVoidTy(), Types, false));
  B.CreateCall(F, Arguments)->setDoesNotThrow();
  Changed = true;
}

// Marks initialisers of static variables, by the C++ library's functions that
// guard them. The result of __cxa_guard_acquire says whether the caller is to
// initialise.
void Marker::markGuards() {
  auto EachCall = [&](StringRef Name, auto Mark) {
    Function *F = M.getFunction(Name);
    if (!F)
      return;
    for (User *U : make_early_inc_range(F->users()))
      if (auto *Call = dyn_cast<CallInst>(U);
          Call && Call->getCalledOperand() == F)
        Mark(Call);
  };
  EachCall("__cxa_guard_acquire", [&](CallInst *Call) {
    if (Call->getType()->isIntegerTy(32))
      call(abi::BeginBusyIf, Call->getNextNode(), {Call});
  });
  for (StringRef Name : {"__cxa_guard_release", "__cxa_guard_abort"})
    EachCall(Name,
             [&](CallInst *Call) { call(abi::EndBusy, Call->getNextNode()); });
}

// Marks the path from where the guard is found to be zero to where it joins the
// other path again.
void Marker::markThreadLocal(GlobalVariable &Guard) {
  for (User *U : make_early_inc_range(Guard.users())) {
    auto *Load = dyn_cast<LoadInst>(U);
    auto *Compare = Load && Load->hasOneUse()
                        ? dyn_cast<ICmpInst>(*Load->user_begin())
                        : nullptr;
    auto *Branch = Compare && Compare->hasOneUse()
                       ? dyn_cast<BranchInst>(*Compare->user_begin())
                       : nullptr;
    if (!Branch || !Branch->isConditional() || !Compare->isEquality())
      continue;
    bool Equal = Compare->getPredicate() == CmpInst::ICMP_EQ;
    BasicBlock *First = Branch->getSuccessor(Equal ? 0 : 1);
    BasicBlock *Joined = Branch->getSuccessor(Equal ? 1 : 0);
    if (!First->getSinglePredecessor())
      continue;
    DominatorTree Dominators(*Load->getFunction());
    for (BasicBlock *Last : predecessors(Joined))
      if (Dominators.dominates(First, Last))
        call(abi::EndBusy, Last->getTerminator());
    call(abi::BeginBusy, &*First->getFirstInsertionPt());
  }
}

// Marks the lock in libstdc++'s _Sp_atomic<T>::_Atomic_count, by its members'
// names.
void Marker::markLockBit(Function &F) {
  StringRef Name = F.getName();
  bool Locks = Name.contains("13_Atomic_count4lockE");
  bool Unlocks = Name.contains("13_Atomic_count6unlockE") ||
                 Name.contains("13_Atomic_count14_M_swap_unlockE") ||
                 Name.contains("13_Atomic_count14_M_wait_unlockE");
  if (!Name.contains("10_Sp_atomicI") || !(Locks || Unlocks))
    return;
  for (BasicBlock &BB : F)
    if (auto *Return = dyn_cast<ReturnInst>(BB.getTerminator()))
      call(Locks ? abi::BeginBusy : abi::EndBusy, Return);
}

// Where BB returns from its function; null if it does not. A musttail call
// stands for its return.
static Instruction *endOf(BasicBlock &BB) {
  if (CallInst *Last = BB.getTerminatingMustTailCall())
    return Last;
  return dyn_cast<ReturnInst>(BB.getTerminator());
}

// dlopen runs constructors while it has the dynamic linker's lock, which the
// same thread may take again: another task of the thread would find a library
// that is half initialised.
void Marker::markConstructors() {
  GlobalVariable *All = M.getGlobalVariable("llvm.global_ctors");
  auto *Array = All && All->hasInitializer()
                    ? dyn_cast<ConstantArray>(All->getInitializer())
                    : nullptr;
  if (!Array)
    return;
  for (Value *Element : Array->operands()) {
    auto *F = dyn_cast<Function>(
        cast<Constant>(Element)->getAggregateElement(1u)->stripPointerCasts());
    if (!F || F->isDeclaration() || F->hasFnAttribute(Attribute::Naked))
      continue;
    call(abi::BeginBusy, &*F->getEntryBlock().getFirstInsertionPt());
    for (BasicBlock &BB : *F)
      if (Instruction *End = endOf(BB))
        call(abi::EndBusy, End);
  }
}

bool Marker::run() {
  markGuards();
  markConstructors();
  for (GlobalVariable &G : M.globals())
    if (G.isThreadLocal() &&
        (G.getName().starts_with("_ZGV") || G.getName() == "__tls_guard"))
      markThreadLocal(G);
  for (Function &F : M)
    if (!F.isDeclaration())
      markLockBit(F);
  return Changed;
}

PreservedAnalyses OncePass::run(Module &M, ModuleAnalysisManager &) {
  if (isForDevice(M))
    return PreservedAnalyses::all();
  return Marker(M).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace spillway
