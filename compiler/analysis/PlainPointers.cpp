//===- PlainPointers.cpp - Plain pointers across calls --------------------===//
#include "analysis/PlainPointers.h"
#include "Functions.h"
#include "Options.h"
#include "analysis/Provenance.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/AbstractCallSite.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace spillway {

// The mark of plain arguments and results.
static constexpr StringLiteral PlainAttribute = "spillway-plain";

// Copies are made in rounds, since a copy may pass plain pointers on.
static constexpr unsigned MaxRounds = 3;
// All copies together may be at most 1/BudgetShare of the module.
static constexpr size_t BudgetShare = 12;
// For one function and one combination of plain arguments, in instructions.
static constexpr size_t MaxCopiedInstructions = 400;
// Instructions copied per access that no longer needs a translation.
static constexpr size_t MaxPerAccess = 12;

namespace {

using IsExemptFn = function_ref<bool(const Function &)>;

class PlainPointers {
public:
  PlainPointers(Module &M, FunctionAnalysisManager &FAM, IsExemptFn IsExempt)
      : M(M), FAM(FAM), IsExempt(IsExempt) {}
  unsigned run();

private:
  void believe();
  bool contradict(Function &F);
  void mark();
  unsigned copyForPlainCalls();

  Module &M;
  FunctionAnalysisManager &FAM;
  IsExemptFn IsExempt;
  SmallVector<Function *, 0> Called;    // all of whose calls are known
  SmallVector<Function *, 0> Returning; // a pointer, and not replaceable
  size_t Budget = 0;                    // instructions of copies
};

} // namespace

static bool isPointer(const Type *T) {
  return T->isPointerTy() && T->getPointerAddressSpace() == 0;
}

static bool hasPointerArgument(const Function &F) {
  return any_of(F.args(),
                [](const Argument &A) { return isPointer(A.getType()); });
}

// The call in which U is the callee, if its type is exactly F's; else null.
static CallBase *directCall(const Use &U, const Function &F) {
  auto *Call = dyn_cast<CallBase>(U.getUser());
  return Call && Call->isCallee(&U) &&
                 Call->getFunctionType() == F.getFunctionType()
             ? Call
             : nullptr;
}

// Whether U is a use by which F is only called with arguments that are visible
// at the call: directly, or through a function that passes on its arguments, as
// OpenMP's do (!callback).
static bool isKnownCall(const Use &U, const Function &F) {
  return directCall(U, F) || AbstractCallSite(&U).isCallbackCall();
}

// Whether U, a known call, passes a plain pointer for A.
static bool passesPlain(const Use &U, const Argument &A) {
  if (const CallBase *Direct = directCall(U, *A.getParent()))
    return isPlain(Direct->getArgOperand(A.getArgNo()));
  AbstractCallSite Handed(&U);
  const Value *Passed = A.getArgNo() < Handed.getNumArgOperands()
                            ? Handed.getCallArgOperand(A.getArgNo())
                            : nullptr;
  return Passed && isPointer(Passed->getType()) && isPlain(Passed);
}

static bool areAllCallsKnown(const Function &F) {
  return F.hasLocalLinkage() && !F.isDeclaration() && !F.isVarArg() &&
         !F.use_empty() &&
         all_of(F.uses(), [&](const Use &U) { return isKnownCall(U, F); });
}

bool isMarkedPlain(const Argument &A) {
  return A.getParent()->getAttributes().hasParamAttr(A.getArgNo(),
                                                     PlainAttribute);
}

bool isMarkedPlain(const Function &F) {
  return F.getAttributes().hasRetAttr(PlainAttribute);
}

bool isMarkedPlain(const LoadInst &Load) {
  return Load.getMetadata(PlainAttribute);
}

void markPlain(Argument &A) {
  A.addAttr(Attribute::get(A.getContext(), PlainAttribute));
}

void markPlain(LoadInst &Load) {
  Load.setMetadata(PlainAttribute, MDNode::get(Load.getContext(), {}));
}

void PlainPointers::believe() {
  Called.clear();
  Returning.clear();
  for (Function &F : M) {
    if (hasPointerArgument(F) && areAllCallsKnown(F)) {
      Called.push_back(&F);
      for (Argument &A : F.args())
        if (isPointer(A.getType()))
          markPlain(A);
    }
    // What a naked function returns is known to its assembly only.
    if (isPointer(F.getReturnType()) && F.hasExactDefinition() &&
        !F.hasFnAttribute(Attribute::Naked)) {
      Returning.push_back(&F);
      F.addRetAttr(Attribute::get(M.getContext(), PlainAttribute));
    }
  }
}

// Removes the marks of F that do not hold even if all the others do.
bool PlainPointers::contradict(Function &F) {
  bool Changed = false;
  if (isMarkedPlain(F))
    for (BasicBlock &BB : F)
      if (auto *Return = dyn_cast<ReturnInst>(BB.getTerminator());
          Return && !isPlain(Return->getReturnValue())) {
        F.removeRetAttr(PlainAttribute);
        Changed = true;
        break;
      }
  for (Argument &A : F.args())
    if (isMarkedPlain(A) &&
        !all_of(F.uses(), [&](const Use &U) { return passesPlain(U, A); })) {
      F.removeParamAttr(A.getArgNo(), PlainAttribute);
      Changed = true;
    }
  return Changed;
}

void PlainPointers::mark() {
  believe();
  bool Changed = true;
  while (Changed) {
    Changed = false;
    // Callers first: in most files a function comes after those that it calls.
    for (Function *F : reverse(Called))
      Changed |= contradict(*F);
    for (Function *F : Returning)
      Changed |= contradict(*F);
  }
}

// The arguments for which this call passes a plain pointer, though others do
// not.
static SmallBitVector plainArguments(const CallBase &Call, const Function &F) {
  SmallBitVector Plain(F.arg_size());
  for (const Argument &A : F.args())
    if (isPointer(A.getType()) && !isMarkedPlain(A) && !A.hasByValAttr() &&
        isPlain(Call.getArgOperand(A.getArgNo())) &&
        !isa<Constant>(Call.getArgOperand(A.getArgNo())))
      Plain.set(A.getArgNo());
  return Plain;
}

// How many accesses of F are through these arguments, plus how many calls pass
// them on.
static size_t countUses(Function &F, const SmallBitVector &Arguments) {
  auto IsOne = [&](const Value *Pointer) {
    auto *A = dyn_cast<Argument>(getUnderlyingObject(Pointer, 32));
    return A && Arguments.test(A->getArgNo());
  };
  size_t Count = 0;
  for (Instruction &I : instructions(F))
    if (const Value *Pointer = getLoadStorePointerOperand(&I))
      Count += IsOne(Pointer);
    else if (auto *Call = dyn_cast<CallBase>(&I))
      Count += any_of(Call->args(), [&](const Use &U) {
        return isPointer(U->getType()) && IsOne(U);
      });
  return Count;
}

static bool isCopyable(const Function &F) {
  return !F.isDeclaration() && !F.isInterposable() && !F.isVarArg() &&
         !F.hasAvailableExternallyLinkage() && !F.hasOptNone() &&
         !F.hasMinSize() && !F.hasFnAttribute(Attribute::Cold) &&
         !F.hasFnAttribute(Attribute::NoDuplicate) && canCopyLocally(F);
}

unsigned PlainPointers::copyForPlainCalls() {
  unsigned Copies = 0;
  SmallVector<Function *, 0> Candidates;
  for (Function &F : M)
    if (hasPointerArgument(F) && isCopyable(F) && !IsExempt(F))
      Candidates.push_back(&F);
  for (Function *F : Candidates) {
    size_t Size = F->getInstructionCount();
    if (Size > std::min(MaxCopiedInstructions, Budget))
      continue;
    struct Kind {
      SmallBitVector Plain;
      SmallVector<CallBase *, 4> Calls;
    };
    SmallVector<Kind, 2> Kinds;
    for (Use &U : F->uses()) {
      CallBase *Call = directCall(U, *F);
      if (!Call || IsExempt(*Call->getFunction()))
        continue;
      SmallBitVector Plain = plainArguments(*Call, *F);
      if (Plain.none())
        continue;
      auto *Known = find_if(Kinds, [&](auto &K) { return K.Plain == Plain; });
      if (Known == Kinds.end())
        Known = Kinds.insert(Kinds.end(), {Plain, {}});
      Known->Calls.push_back(Call);
    }
    for (const Kind &K : Kinds) {
      if (Size > Budget || countUses(*F, K.Plain) * MaxPerAccess < Size)
        continue;
      Function *Copy = copyLocally(*F, ".plain");
      for (CallBase *Call : K.Calls)
        Call->setCalledFunction(Copy);
      Budget -= Size;
      ++Copies;
    }
    if (!Kinds.empty() && F->hasLocalLinkage() && F->use_empty()) {
      // The next function that is created may get its address.
      FAM.clear(*F, F->getName());
      F->eraseFromParent();
    }
  }
  return Copies;
}

unsigned PlainPointers::run() {
  size_t Size = 0;
  for (Function &F : M)
    Size += F.getInstructionCount();
  Budget = Size / BudgetShare;
  unsigned Copies = 0;
  mark();
  for (unsigned Round = 0; Round < MaxRounds; ++Round) {
    unsigned Made = copyForPlainCalls();
    if (Made == 0)
      break;
    Copies += Made;
    mark();
  }
  return Copies;
}

unsigned findPlainPointers(Module &M, FunctionAnalysisManager &FAM,
                           IsExemptFn IsExempt) {
  return PlainPointers(M, FAM, IsExempt).run();
}

} // namespace spillway
