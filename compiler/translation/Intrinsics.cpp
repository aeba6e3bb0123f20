//===- Intrinsics.cpp - Lowers what is not a plain access -----------------===//
#include "translation/Intrinsics.h"
#include "Options.h"
#include "analysis/Accesses.h"
#include "analysis/Kills.h"
#include "analysis/Provenance.h"
#include "translation/Lanes.h"
#include "translation/Translate.h"

#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

namespace {

class Lowering {
public:
  Lowering(Function &F, Abi &Runtime, SmallPtrSetImpl<Instruction *> &InPage)
      : F(F), DL(F.getDataLayout()), Runtime(Runtime), InPage(InPage) {}

  void lower(Instruction &I);

private:
  void lowerMemIntrinsic(AnyMemIntrinsic &MI);
  void callRuntime(AnyMemIntrinsic &MI);
  MaybeAlign claimInLine(MaybeAlign Claimed, uint64_t Bytes) const;
  bool lowerCompare(CallBase &Call);
  void lowerByVal(CallBase &Call);
  void lowerVaStart(VAStartInst &Start);
  void lowerVaCopy(VACopyInst &Copy);
  void lowerVaArg(VAArgInst &Arg);
  bool lowerUnalignedLoad(IntrinsicInst &II);
  uint64_t vaListSize() const;
  AllocaInst *onStack(uint64_t Size, Align Alignment, const Twine &Name);
  AllocaInst *placeOfByVal(unsigned Number, uint64_t Size, Align Alignment);

  Function &F;
  const DataLayout &DL;
  Abi &Runtime;
  SmallPtrSetImpl<Instruction *> &InPage;
  // Where byval arguments are copied to, by their number among those of a call.
  SmallVector<AllocaInst *, 2> ByVal;
};

} // namespace

AllocaInst *Lowering::onStack(uint64_t Size, Align Alignment,
                              const Twine &Name) {
  BasicBlock &Entry = F.getEntryBlock();
  auto *A =
      new AllocaInst(Type::getInt8Ty(F.getContext()), /*AddrSpace=*/0,
                     ConstantInt::get(Runtime.I64, Size), Name, Entry.begin());
  A->setAlignment(Alignment);
  return A;
}

void Lowering::callRuntime(AnyMemIntrinsic &MI) {
  BuilderBefore B(&MI);
  Value *Length = B.CreateZExtOrTrunc(MI.getLength(), Runtime.I64);
  if (auto *Transfer = dyn_cast<AnyMemTransferInst>(&MI)) {
    auto *T = FunctionType::get(Runtime.Ptr,
                                {Runtime.Ptr, Runtime.Ptr, Runtime.I64}, false);
    StringRef Name = isa<AnyMemMoveInst>(MI) ? "memmove" : "memcpy";
    CallInst *Call = B.CreateCall(
        Runtime.intercepted(Name, T),
        {Transfer->getRawDest(), Transfer->getRawSource(), Length});
    Call->setTailCallKind(MI.getTailCallKind());
  } else {
    auto *T = FunctionType::get(
        Runtime.Ptr, {Runtime.Ptr, B.getInt32Ty(), Runtime.I64}, false);
    Value *Byte =
        B.CreateZExt(cast<AnyMemSetInst>(MI).getValue(), B.getInt32Ty());
    CallInst *Call = B.CreateCall(Runtime.intercepted("memset", T),
                                  {MI.getRawDest(), Byte, Length});
    Call->setTailCallKind(MI.getTailCallKind());
  }
  MI.eraseFromParent();
}

// What to claim of an address at which Bytes are copied or set in line. Where
// code generation would by itself call a function, which takes any address, an
// aligned vector instruction would end programs whose objects are not aligned
// as their types claim.
MaybeAlign Lowering::claimInLine(MaybeAlign Claimed, uint64_t Bytes) const {
  bool MayCall =
      Bytes > MaxPlainInlineBytes || F.hasOptSize() || F.hasOptNone();
  if (!Claimed || !MayCall || options::AssumeAligned)
    return Claimed;
  return std::min(*Claimed, Align(8));
}

void Lowering::lowerMemIntrinsic(AnyMemIntrinsic &MI) {
  auto *Transfer = dyn_cast<AnyMemTransferInst>(&MI);
  if (MI.getDestAddressSpace() != 0 ||
      (Transfer && Transfer->getSourceAddressSpace() != 0))
    return;
  bool Plain = isPlain(MI.getRawDest()) &&
               (!Transfer || isPlain(Transfer->getRawSource()));
  auto *Length = dyn_cast<ConstantInt>(MI.getLength());
  uint64_t MaxBytes = isa<AnyMemMoveInst>(MI) ? MaxMoveInlineBytes
                      : Plain                 ? MaxPlainInlineBytes
                                              : MaxInlineBytes;
  if (!Length || Length->getZExtValue() > MaxBytes || !isa<MemIntrinsic>(MI)) {
    if (!Plain)
      callRuntime(MI);
    return;
  }
  if (isa<MemCpyInlineInst, MemSetInlineInst>(MI))
    return;
  // Code generation has to expand these in line: the function that it would
  // call may be the program's own, which uses the slots of translations that
  // are live.
  BuilderBefore B(&MI);
  MaybeAlign To = claimInLine(MI.getDestAlign(), Length->getZExtValue()), From;
  if (Transfer)
    From = claimInLine(Transfer->getSourceAlign(), Length->getZExtValue());
  if (MI.getIntrinsicID() == Intrinsic::memcpy)
    B.CreateMemCpyInline(MI.getRawDest(), To, Transfer->getRawSource(), From,
                         Length, MI.isVolatile());
  else if (MI.getIntrinsicID() == Intrinsic::memset)
    B.CreateMemSetInline(MI.getRawDest(), To, cast<MemSetInst>(MI).getValue(),
                         Length, MI.isVolatile());
  else if (!Length->isZero()) {
    // Code generation calls memmove for more than a few registers. As a vector,
    // all bytes are loaded before any is stored.
    auto *Bytes = FixedVectorType::get(B.getInt8Ty(), Length->getZExtValue());
    Value *Loaded = B.CreateAlignedLoad(Bytes, Transfer->getRawSource(),
                                        From.valueOrOne(), MI.isVolatile());
    B.CreateAlignedStore(Loaded, MI.getRawDest(), To.valueOrOne(),
                         MI.isVolatile());
  }
  MI.eraseFromParent();
}

// How two unsigned numbers must compare for U to be true, where U compares
// memcmp's result for them with a constant. None if U is no such comparison.
static std::optional<CmpInst::Predicate> orderAskedBy(const User *U) {
  auto *Compare = dyn_cast<ICmpInst>(U);
  auto *C = Compare ? dyn_cast<ConstantInt>(Compare->getOperand(1)) : nullptr;
  if (!C)
    return std::nullopt;
  CmpInst::Predicate P = Compare->getPredicate();
  if (C->isZero() && (ICmpInst::isSigned(P) || ICmpInst::isEquality(P)))
    return ICmpInst::getUnsignedPredicate(P);
  if (C->isOne() && P == CmpInst::ICMP_SLT)
    return CmpInst::ICMP_ULE;
  if (C->isMinusOne() && P == CmpInst::ICMP_SGT)
    return CmpInst::ICMP_UGE;
  return std::nullopt;
}

// Replaces Call, a memcmp, by the comparison of the unsigned numbers A and B.
static void replaceByOrder(CallBase &Call, Value *A, Value *B) {
  for (User *U : make_early_inc_range(Call.users()))
    if (std::optional<CmpInst::Predicate> P = orderAskedBy(U)) {
      auto *Compare = cast<ICmpInst>(U);
      Compare->replaceAllUsesWith(BuilderBefore(Compare).CreateICmp(*P, A, B));
      Compare->eraseFromParent();
    }
  if (Call.use_empty())
    return;
  BuilderBefore Builder(&Call);
  Type *T = Call.getType();
  Value *More = Builder.CreateZExt(Builder.CreateICmpUGT(A, B), T);
  Value *Less = Builder.CreateZExt(Builder.CreateICmpULT(A, B), T);
  Call.replaceAllUsesWith(Builder.CreateSub(More, Less));
}

namespace {

/// A memcmp that becomes a comparison of the words with which both sides begin
/// and end; the two may overlap. Code generation does this for memcmp, but not
/// for the runtime's replacement.
class WordCompare {
public:
  /// Compares Size bytes by words of Bytes.
  WordCompare(CallBase &Call, uint64_t Size, uint64_t Bytes,
              const DataLayout &DL)
      : Call(Call), Size(Size), Bytes(Bytes), DL(DL), B(&Call),
        Word(B.getIntNTy(Bytes * 8)) {}

  /// Replaces a call for which only matters whether it returns zero.
  void replaceIfOnlyEqual();
  /// Replaces any call.
  void replaceByWhichIsLess();

private:
  Value *load(unsigned Side, uint64_t Offset);
  Value *loadLast(unsigned Side) { return load(Side, Size - Bytes); }
  void lookAtLast(MutableArrayRef<Value *> Sides);

  CallBase &Call;
  uint64_t Size, Bytes;
  const DataLayout &DL;
  BuilderBefore B;
  Type *Word;
};

} // namespace

Value *WordCompare::load(unsigned Side, uint64_t Offset) {
  Value *Pointer = Call.getArgOperand(Side);
  if (Offset != 0)
    Pointer = B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Pointer, Offset);
  if (auto *C = dyn_cast<Constant>(Pointer))
    if (Constant *Known = ConstantFoldLoadFromConstPtr(C, Word, DL))
      return Known;
  return B.CreateAlignedLoad(Word, Pointer, Pointer->getPointerAlignment(DL));
}

void WordCompare::replaceIfOnlyEqual() {
  Value *Sides[] = {load(0, 0), load(1, 0)};
  Value *Last[] = {Sides[0], Sides[1]};
  if (Bytes < Size)
    for (unsigned Side : {0, 1})
      Last[Side] = loadLast(Side);
  Value *Differ = B.CreateXor(Sides[0], Sides[1]);
  if (Bytes < Size)
    Differ = B.CreateOr(Differ, B.CreateXor(Last[0], Last[1]));
  Call.replaceAllUsesWith(B.CreateZExt(
      B.CreateICmpNE(Differ, Constant::getNullValue(Word)), Call.getType()));
}

// The first byte that differs decides: the words are compared as big-endian
// numbers.
void WordCompare::replaceByWhichIsLess() {
  Value *Sides[] = {load(0, 0), load(1, 0)};
  if (Bytes < Size)
    lookAtLast(Sides);
  if (Bytes > 1)
    for (Value *&Side : Sides)
      Side = B.CreateUnaryIntrinsic(Intrinsic::bswap, Side);
  replaceByOrder(Call, Sides[0], Sides[1]);
}

// Loads the last words only if the first ones are equal, which they rarely are.
void WordCompare::lookAtLast(MutableArrayRef<Value *> Sides) {
  BasicBlock *Head = Call.getParent();
  Instruction *End = SplitBlockAndInsertIfThen(
      B.CreateICmpEQ(Sides[0], Sides[1]), Call.getIterator(),
      /*Unreachable=*/false);
  End->setDebugLoc(B.getCurrentDebugLocation());
  B.SetInsertPoint(End);
  Value *Last[] = {loadLast(0), loadLast(1)};
  B.SetInsertPoint(Call.getParent(), Call.getParent()->begin());
  for (unsigned Side : {0, 1}) {
    PHINode *Deciding = B.CreatePHI(Word, 2);
    Deciding->addIncoming(Sides[Side], Head);
    Deciding->addIncoming(Last[Side], End->getParent());
    Sides[Side] = Deciding;
  }
  B.SetInsertPoint(&Call);
}

bool Lowering::lowerCompare(CallBase &Call) {
  Function *Callee = Call.getCalledFunction();
  if (!Callee || !Callee->isDeclaration() || Call.arg_size() != 3 ||
      !isa<CallInst>(Call) || !Call.getType()->isIntegerTy(32))
    return false;
  StringRef Name = Callee->getName();
  Name.consume_front(abi::InterceptPrefix);
  auto *Length = dyn_cast<ConstantInt>(Call.getArgOperand(2));
  // The program may have a function of that name itself, which takes something
  // else.
  if ((Name != "memcmp" && Name != "bcmp") || !Length ||
      Call.getArgOperand(0)->getType() != Runtime.Ptr ||
      Call.getArgOperand(1)->getType() != Runtime.Ptr)
    return false;
  bool OnlyEqual = Name == "bcmp" ||
                   isOnlyUsedInZeroEqualityComparison(cast<CallInst>(&Call));
  uint64_t Largest = OnlyEqual ? 16 : 8, Size = Length->getZExtValue();
  if (Size < 1 || Size > 2 * Largest)
    return false;
  WordCompare Words(Call, Size, std::min(llvm::bit_floor(Size), Largest), DL);
  if (OnlyEqual)
    Words.replaceIfOnlyEqual();
  else
    Words.replaceByWhichIsLess();
  Call.eraseFromParent();
  return true;
}

// All calls share these places: before a call, code generation copies from them
// once more.
AllocaInst *Lowering::placeOfByVal(unsigned Number, uint64_t Size,
                                   Align Alignment) {
  if (Number == ByVal.size())
    ByVal.push_back(onStack(Size, Alignment, "spill.byval"));
  AllocaInst *Place = ByVal[Number];
  if (cast<ConstantInt>(Place->getArraySize())->getZExtValue() < Size)
    Place->setOperand(0, ConstantInt::get(Runtime.I64, Size));
  Place->setAlignment(std::max(Place->getAlign(), Alignment));
  return Place;
}

void Lowering::lowerByVal(CallBase &Call) {
  if (Call.isMustTailCall())
    return;
  unsigned Number = 0;
  for (unsigned Arg = 0; Arg < Call.arg_size(); ++Arg) {
    Value *Pointer = Call.getArgOperand(Arg);
    if (!Call.isByValArgument(Arg) || isPlain(Pointer))
      continue;
    uint64_t Size = DL.getTypeAllocSize(Call.getParamByValType(Arg));
    Align Alignment = Call.getParamAlign(Arg).valueOrOne();
    AllocaInst *Copy =
        placeOfByVal(Number++, Size, std::max(Alignment, Align(8)));
    BuilderBefore B(&Call);
    CallInst *MemCpy =
        B.CreateMemCpy(Copy, Copy->getAlign(), Pointer, Alignment, Size);
    Call.setArgOperand(Arg, Copy);
    if (auto *CI = dyn_cast<CallInst>(&Call))
      CI->setTailCallKind(CallInst::TCK_None);
    lowerMemIntrinsic(cast<AnyMemIntrinsic>(*MemCpy));
  }
}

// struct __va_list_tag of the System V x86-64 ABI; a pointer in functions of
// Microsoft's (ms_abi).
uint64_t Lowering::vaListSize() const {
  return F.getCallingConv() == CallingConv::Win64 ? 8 : 24;
}

void Lowering::lowerVaStart(VAStartInst &Start) {
  Value *List = Start.getArgList();
  if (isPlain(List))
    return;
  AllocaInst *Local = onStack(vaListSize(), Align(8), "spill.va");
  Start.setArgOperand(0, Local);
  BuilderBefore B(Start.getNextNode());
  B.CreateMemCpyInline(List, Align(8), Local, Align(8),
                       B.getInt64(vaListSize()));
}

void Lowering::lowerVaCopy(VACopyInst &Copy) {
  if (isPlain(Copy.getDest()) && isPlain(Copy.getSrc()))
    return;
  BuilderBefore B(&Copy);
  B.CreateMemCpyInline(Copy.getDest(), Align(8), Copy.getSrc(), Align(8),
                       B.getInt64(vaListSize()));
  Copy.eraseFromParent();
}

void Lowering::lowerVaArg(VAArgInst &Arg) {
  Value *List = Arg.getPointerOperand();
  if (isPlain(List))
    return;
  AllocaInst *Local = onStack(vaListSize(), Align(8), "spill.va");
  BuilderBefore B(&Arg);
  ConstantInt *Size = B.getInt64(vaListSize());
  B.CreateMemCpyInline(Local, Align(8), List, Align(8), Size);
  Arg.setOperand(Arg.getPointerOperandIndex(), Local);
  B.SetInsertPoint(Arg.getNextNode());
  B.CreateMemCpyInline(List, Align(8), Local, Align(8), Size);
}

// lddqu (_mm_lddqu_si128) loads what any other instruction would load.
bool Lowering::lowerUnalignedLoad(IntrinsicInst &II) {
  if (II.getIntrinsicID() != Intrinsic::x86_sse3_ldu_dq &&
      II.getIntrinsicID() != Intrinsic::x86_avx_ldu_dq_256)
    return false;
  BuilderBefore B(&II);
  II.replaceAllUsesWith(
      B.CreateAlignedLoad(II.getType(), II.getArgOperand(0), Align(1)));
  II.eraseFromParent();
  return true;
}

void Lowering::lower(Instruction &I) {
  if (auto *MI = dyn_cast<AnyMemIntrinsic>(&I))
    return lowerMemIntrinsic(*MI);
  if (auto *Start = dyn_cast<VAStartInst>(&I))
    return lowerVaStart(*Start);
  if (auto *Copy = dyn_cast<VACopyInst>(&I))
    return lowerVaCopy(*Copy);
  if (auto *Arg = dyn_cast<VAArgInst>(&I))
    return lowerVaArg(*Arg);
  if (auto *II = dyn_cast<IntrinsicInst>(&I)) {
    Intrinsic::ID ID = II->getIntrinsicID();
    // This may jump out of a signal handler, which the runtime must know. Calls
    // of longjmp() reach the runtime's.
    if (ID == Intrinsic::eh_sjlj_longjmp) {
      BuilderBefore B(II);
      auto *T = FunctionType::get(B.getVoidTy(), {Runtime.Ptr}, false);
      B.CreateCall(Runtime.M.getOrInsertFunction(abi::LeaveHandlers, T),
                   {II->getArgOperand(0)});
      return;
    }
    // va_end does nothing on x86-64, but it keeps a call before it from being
    // a tail call, which would give up the stack where the arguments are.
    if (ID == Intrinsic::vaend && !isPlain(II->getArgOperand(0)))
      II->setArgOperand(0, onStack(vaListSize(), Align(8), "spill.va"));
    else if (!lowerUnalignedLoad(*II))
      lowerVectorIntrinsic(*II, Runtime, InPage);
    return;
  }
  if (auto *Call = dyn_cast<CallBase>(&I); Call && !lowerCompare(*Call))
    lowerByVal(*Call);
}

void lowerIntrinsics(Function &F, Abi &Runtime,
                     SmallPtrSetImpl<Instruction *> &InPage) {
  SmallVector<Instruction *, 0> Candidates;
  for (Instruction &I : instructions(F))
    if (isa<CallBase, VAArgInst>(I))
      Candidates.push_back(&I);
  Lowering L(F, Runtime, InPage);
  for (Instruction *I : Candidates)
    L.lower(*I);
}

static void redirectPrefetch(IntrinsicInst &Prefetch, Abi &Runtime) {
  Value *Pointer = Prefetch.getArgOperand(0);
  BuilderBefore B(&Prefetch);
  Value *Address = B.CreatePtrToInt(Pointer, Runtime.I64, "spill.address");
  // The table has entries for addresses of 47 bits.
  Value *Page = B.CreateAnd(B.CreateLShr(Address, abi::TableShift),
                            (1ull << (47 - abi::TableShift)) - 1);
  Value *Offset = B.CreateShl(Page, 3);
  LoadInst *Entry = B.CreateAlignedLoad(
      Runtime.I64,
      B.CreateIntToPtr(B.CreateAdd(Offset, B.getInt64(abi::TableBase)),
                       Runtime.Ptr),
      Align(8), "spill.entry");
  Entry->setAtomic(AtomicOrdering::Monotonic);
  Prefetch.setArgOperand(0, Translator::redirect(B, Pointer, Entry));
}

void redirectPrefetches(Function &F, Abi &Runtime) {
  SmallVector<IntrinsicInst *, 8> Prefetches;
  for (Instruction &I : instructions(F))
    if (auto *II = dyn_cast<IntrinsicInst>(&I);
        II && II->getIntrinsicID() == Intrinsic::prefetch &&
        !isPlain(II->getArgOperand(0)))
      Prefetches.push_back(II);
  for (IntrinsicInst *II : Prefetches)
    redirectPrefetch(*II, Runtime);
}

// V, pinned in place: available only after all accesses that come before, and
// before all that follow.
static Value *inPlace(IRBuilderBase &B, Value *V) {
  Type *T = V->getType();
  if (T->isFloatTy() || T->isDoubleTy())
    return B.CreateCall(InlineAsm::get(FunctionType::get(T, {T}, false), "",
                                       "=x,0,~{memory}",
                                       /*hasSideEffects=*/true),
                        {V});
  // Others go through memory: not all have registers. Volatile, or the variable
  // would be removed when bitcode is optimised again.
  BasicBlock &Entry = B.GetInsertBlock()->getParent()->getEntryBlock();
  auto *Place = new AllocaInst(T, 0, "spill.place", Entry.begin());
  B.CreateStore(V, Place, /*isVolatile=*/true);
  B.CreateCall(InlineAsm::get(FunctionType::get(B.getVoidTy(), false), "",
                              "~{memory}", /*hasSideEffects=*/true));
  return B.CreateLoad(T, Place, /*isVolatile=*/true);
}

void keepCallsInPlace(Function &F) {
  SmallVector<Instruction *, 8> Calls;
  for (Instruction &I : instructions(F))
    if (becomesCall(I))
      Calls.push_back(&I);
  for (Instruction *I : Calls) {
    BuilderBefore Before(I);
    I->setOperand(0, inPlace(Before, I->getOperand(0)));
    SmallVector<Use *, 4> Uses;
    for (Use &U : I->uses())
      Uses.push_back(&U);
    BuilderBefore Behind(I->getNextNode());
    Value *Result = inPlace(Behind, I);
    for (Use *U : Uses)
      U->set(Result);
  }
}

} // namespace spillway
