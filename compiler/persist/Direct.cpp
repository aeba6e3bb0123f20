//===- Direct.cpp - Flushes and fences without a call ---------------------===//
#include "persist/Direct.h"
#include "Abi.h"
#include "Options.h"
#include "translation/Translate.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

// Attribute of a call: the instruction that it stands for.
static constexpr StringLiteral Mark = "spillway-direct";

static StringRef nameOf(FlushKind Kind) {
  switch (Kind) {
  case FlushKind::Clwb:
    return "clwb";
  case FlushKind::Clflushopt:
    return "clflushopt";
  case FlushKind::Clflush:
    return "clflush";
  case FlushKind::Fence:
    return "sfence";
  case FlushKind::FullFence:
    break;
  }
  llvm_unreachable("mfence stays");
}

void markDirect(CallInst &Call, FlushKind Kind) {
  Call.addFnAttr(Attribute::get(Call.getContext(), Mark, nameOf(Kind)));
}

namespace {

class Expander {
public:
  explicit Expander(Module &M) : Runtime(M) {}

  void expandFlush(CallInst *Call, StringRef Name);
  void expandFence(CallInst *Call);

private:
  LoadInst *load(IRBuilderBase &B, Type *Kind, Value *From);
  Value *numberOf(IRBuilderBase &B, Value *Pointer);
  Value *isInRange(IRBuilderBase &B, Value *Address, StringRef Name);
  Value *isPutOff(IRBuilderBase &B, Value *Address);

  Abi Runtime;
};

} // namespace

// Loads what other threads may write.
LoadInst *Expander::load(IRBuilderBase &B, Type *Kind, Value *From) {
  LoadInst *L =
      B.CreateAlignedLoad(Kind, From, Align(Kind->isIntegerTy(32) ? 4 : 8));
  L->setAtomic(AtomicOrdering::Monotonic);
  leaveOut(L);
  return L;
}

Value *Expander::isInRange(IRBuilderBase &B, Value *Address, StringRef Name) {
  uint64_t Number = Name == "clwb" ? 0 : Name == "clflushopt" ? 1 : 2;
  Value *Range =
      load(B, Runtime.I64,
           Runtime.persistThread(B, abi::PersistThreadRanges + 8 * Number));
  Value *Page = B.CreateLShr(Address, abi::TableShift);
  Value *First = B.CreateLShr(Range, abi::PersistRangeShift);
  Value *Count = B.CreateAnd(Range, (1ull << abi::PersistRangeShift) - 1);
  return B.CreateICmpULT(B.CreateSub(Page, First), Count);
}

Value *Expander::isPutOff(IRBuilderBase &B, Value *Address) {
  constexpr uint64_t Entries = abi::PersistPutOffEntries;
  Value *Table =
      load(B, Runtime.Ptr, Runtime.persistThread(B, abi::PersistThreadPutOff));
  Value *Line = B.CreateLShr(Address, 6);
  Value *Number = B.CreateAnd(
      B.CreateXor(Line, B.CreateLShr(Line, Log2_64(Entries))), Entries - 1);
  // The mark is loaded before the entry: a handler in between may begin new
  // epochs.
  LoadInst *Mark = load(B, Runtime.I64, Table);
  Mark->setOrdering(AtomicOrdering::Acquire);
  Value *Entry =
      load(B, Runtime.I64,
           B.CreateGEP(Runtime.I64, Table, B.CreateAdd(Number, B.getInt64(1))));
  Value *Wanted = B.CreateOr(B.CreateShl(Line, abi::PersistPutOffShift), Mark);
  return B.CreateICmpEQ(Entry, Wanted);
}

// The address in Pointer, hidden from code generation's loop optimisations:
// they would turn a loop's one variable into four, in registers that the loop
// needs. The program's earlier stores stay before the loads that follow.
Value *Expander::numberOf(IRBuilderBase &B, Value *Pointer) {
  auto *Type = FunctionType::get(Runtime.I64, {Runtime.Ptr}, false);
  return B.CreateCall(
      InlineAsm::get(Type, "", "=r,0,~{memory}", /*hasSideEffects=*/true),
      {Pointer});
}

static void execute(IRBuilderBase &B, const Twine &Text,
                    ArrayRef<Value *> Line) {
  SmallVector<Type *, 1> Types;
  for (Value *V : Line)
    Types.push_back(V->getType());
  B.CreateCall(InlineAsm::get(FunctionType::get(B.getVoidTy(), Types, false),
                              Text.str(),
                              Line.empty() ? "~{memory}" : "r,~{memory}",
                              /*hasSideEffects=*/true),
               Line);
}

void Expander::expandFlush(CallInst *Call, StringRef Name) {
  BuilderBefore B(Call);
  Value *Address = numberOf(B, Call->getArgOperand(0));
  Instruction *Here, *Otherwise;
  SplitBlockAndInsertIfThenElse(isInRange(B, Address, Name),
                                Call->getIterator(), &Here, &Otherwise);
  BuilderBefore HereB(Here);
  execute(HereB, Name + " ($0)", {Address});
  if (Name == "clflush")
    return Call->moveBefore(Otherwise);
  BuilderBefore OtherwiseB(Otherwise);
  Value *IsNew = OtherwiseB.CreateNot(isPutOff(OtherwiseB, Address));
  Call->moveBefore(SplitBlockAndInsertIfThen(IsNew, Otherwise->getIterator(),
                                             /*Unreachable=*/false,
                                             Runtime.ColdWeights));
}

void Expander::expandFence(CallInst *Call) {
  Type *I32 = Type::getInt32Ty(Call->getContext());
  BuilderBefore B(Call);
  Value *Pending =
      load(B, I32, Runtime.persistThread(B, abi::PersistThreadPending));
  Value *Fences = Runtime.persistThread(B, abi::PersistThreadFences);
  Value *Left = load(B, I32, Fences);
  Value *NeedsCall = B.CreateOr(B.CreateICmpNE(Pending, B.getInt32(0)),
                                B.CreateICmpSLE(Left, B.getInt32(0)));
  Instruction *Here, *Otherwise;
  SplitBlockAndInsertIfThenElse(NeedsCall, Call->getIterator(), &Otherwise,
                                &Here, Runtime.ColdWeights);
  BuilderBefore HereB(Here);
  execute(HereB, "sfence", {});
  // After the instruction, so that waiting for it does not delay this store.
  leaveOut(HereB.CreateStore(HereB.CreateSub(Left, HereB.getInt32(1)), Fences));
  Call->moveBefore(Otherwise);
}

PreservedAnalyses DirectPass::run(Module &M, ModuleAnalysisManager &) {
  if (options::Persist == options::PersistMode::Off || !options::PersistDirect)
    return PreservedAnalyses::all();
  SmallVector<CallInst *, 0> Work;
  for (Function &F : M)
    for (Instruction &I : instructions(F))
      if (auto *Call = dyn_cast<CallInst>(&I); Call && Call->hasFnAttr(Mark))
        Work.push_back(Call);
  if (Work.empty())
    return PreservedAnalyses::all();
  Expander E(M);
  for (CallInst *Call : Work) {
    StringRef Name = Call->getFnAttr(Mark).getValueAsString();
    Call->removeFnAttr(Mark);
    if (Call->getFunction()->hasMinSize())
      continue;
    if (Name == nameOf(FlushKind::Fence))
      E.expandFence(Call);
    else
      E.expandFlush(Call, Name);
  }
  if (options::Verify && verifyModule(M, &errs()))
    report_fatal_error("spillway: expanded calls broke the module");
  return PreservedAnalyses::none();
}

} // namespace spillway
