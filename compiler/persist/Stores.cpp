//===- Stores.cpp - What a function stores where --------------------------===//
#include "persist/Stores.h"
#include "analysis/Accesses.h"
#include "analysis/Provenance.h"
#include "persist/FlushAssembly.h"
#include "translation/Translate.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

// Functions of the C library that store through an argument. Those that check
// sizes (__memcpy_chk) have the same arguments first.
struct LibraryFunction {
  StringLiteral Name;
  StoreKind Kind;
  unsigned Address, Count, Bytes;
};
static constexpr LibraryFunction LibraryFunctions[] = {
    {"memcpy", StoreKind::Counted, 0, 2, 1},
    {"memmove", StoreKind::Counted, 0, 2, 1},
    {"mempcpy", StoreKind::Counted, 0, 2, 1},
    {"memset", StoreKind::Counted, 0, 2, 1},
    {"bcopy", StoreKind::Counted, 1, 2, 1},
    {"bzero", StoreKind::Counted, 0, 1, 1},
    {"explicit_bzero", StoreKind::Counted, 0, 1, 1},
    {"wmemcpy", StoreKind::Counted, 0, 2, 4},
    {"wmemmove", StoreKind::Counted, 0, 2, 4},
    {"wmempcpy", StoreKind::Counted, 0, 2, 4},
    {"wmemset", StoreKind::Counted, 0, 2, 4},
    {"strcpy", StoreKind::String, 0, 0, 0},
    {"stpcpy", StoreKind::String, 0, 0, 0},
    {"strncpy", StoreKind::Counted, 0, 2, 1}, // fills up with zeros
    {"stpncpy", StoreKind::Counted, 0, 2, 1},
    {"strcat", StoreKind::Append, 0, 0, 0},
    {"strncat", StoreKind::Append, 0, 0, 0},
};

static uint64_t storeSize(const Instruction &I, Type *T) {
  return I.getDataLayout().getTypeStoreSize(T);
}

static uint64_t laneSize(const Instruction &I, const Value *Lanes) {
  return storeSize(I, Lanes->getType()->getScalarType());
}

static bool takesIt(const CallBase &Call, const LibraryFunction &Known) {
  unsigned Last = std::max(Known.Address, Known.Count);
  return Call.arg_size() > Last &&
         Call.getArgOperand(Known.Address)->getType()->isPointerTy() &&
         (Known.Kind != StoreKind::Counted ||
          Call.getArgOperand(Known.Count)->getType()->isIntegerTy(64));
}

static void collectCall(CallBase &Call, SmallVectorImpl<Store> &Stores) {
  const Function *Callee = Call.getCalledFunction();
  if (!Callee || !Callee->isDeclaration())
    return;
  StringRef Name = Callee->getName();
  if (Name.consume_back("_chk"))
    Name.consume_front("__");
  for (const LibraryFunction &Known : LibraryFunctions)
    if (Name == Known.Name && takesIt(Call, Known))
      Stores.push_back({&Call, Known.Kind, Call.getArgOperand(Known.Address),
                        Known.Bytes, Call.getArgOperand(Known.Count)});
}

// Adds the objects that the assembly declares as written. Assembly that flushes
// often declares the line as written, though it is not.
static void collectAssembly(CallBase &Call, SmallVectorImpl<Store> &Stores) {
  if (Call.isTerminator() || mayFlush(Call))
    return;
  unsigned Argument = 0;
  for (const InlineAsm::ConstraintInfo &C :
       cast<InlineAsm>(Call.getCalledOperand())->ParseConstraints()) {
    if (C.Type == InlineAsm::isOutput && C.isIndirect)
      if (Type *T = Call.getParamElementType(Argument); T && T->isSized())
        Stores.push_back({&Call, StoreKind::Fixed, Call.getArgOperand(Argument),
                          storeSize(Call, T)});
    Argument += C.hasArg();
  }
}

static void collectIntrinsic(IntrinsicInst &II,
                             SmallVectorImpl<Store> &Stores) {
  auto Arg = [&](unsigned Number) { return II.getArgOperand(Number); };
  switch (II.getIntrinsicID()) {
  case Intrinsic::masked_store:
    Stores.push_back(
        {&II, StoreKind::Lanes, Arg(1), laneSize(II, Arg(0)), nullptr, Arg(3)});
    break;
  case Intrinsic::masked_scatter:
    Stores.push_back({&II, StoreKind::Scatter, Arg(1), laneSize(II, Arg(0)),
                      nullptr, Arg(3)});
    break;
  case Intrinsic::masked_compressstore:
    Stores.push_back({&II, StoreKind::Compress, Arg(1), laneSize(II, Arg(0)),
                      nullptr, Arg(2)});
    break;
  case Intrinsic::x86_avx_maskstore_pd:
  case Intrinsic::x86_avx_maskstore_pd_256:
  case Intrinsic::x86_avx_maskstore_ps:
  case Intrinsic::x86_avx_maskstore_ps_256:
  case Intrinsic::x86_avx2_maskstore_d:
  case Intrinsic::x86_avx2_maskstore_d_256:
  case Intrinsic::x86_avx2_maskstore_q:
  case Intrinsic::x86_avx2_maskstore_q_256:
    Stores.push_back(
        {&II, StoreKind::Lanes, Arg(0), laneSize(II, Arg(2)), nullptr, Arg(1)});
    break;
  case Intrinsic::x86_sse2_maskmov_dqu:
    Stores.push_back({&II, StoreKind::Lanes, Arg(2), 1, nullptr, Arg(1)});
    break;
  case Intrinsic::x86_directstore32:
    Stores.push_back({&II, StoreKind::Fixed, Arg(0), 4});
    break;
  case Intrinsic::x86_directstore64:
    Stores.push_back({&II, StoreKind::Fixed, Arg(0), 8});
    break;
  case Intrinsic::x86_movdir64b:
    Stores.push_back({&II, StoreKind::Fixed, Arg(0), 64});
    break;
  default:
    break;
  }
}

static void collectAll(Instruction &I, SmallVectorImpl<Store> &Stores) {
  if (auto *S = dyn_cast<StoreInst>(&I)) {
    Stores.push_back({&I, StoreKind::Fixed, S->getPointerOperand(),
                      storeSize(I, S->getValueOperand()->getType())});
  } else if (auto *RMW = dyn_cast<AtomicRMWInst>(&I)) {
    Stores.push_back({&I, StoreKind::Fixed, RMW->getPointerOperand(),
                      storeSize(I, RMW->getValOperand()->getType())});
  } else if (auto *CX = dyn_cast<AtomicCmpXchgInst>(&I)) {
    Stores.push_back({&I, StoreKind::Exchange, CX->getPointerOperand(),
                      storeSize(I, CX->getNewValOperand()->getType())});
  } else if (auto *MI = dyn_cast<AnyMemIntrinsic>(&I)) {
    Stores.push_back(
        {&I, StoreKind::Counted, MI->getRawDest(), 1, MI->getLength()});
  } else if (auto *II = dyn_cast<IntrinsicInst>(&I)) {
    collectIntrinsic(*II, Stores);
  } else if (auto *Call = dyn_cast<CallBase>(&I)) {
    if (Call->isInlineAsm())
      collectAssembly(*Call, Stores);
    else if (!Call->isMustTailCall())
      collectCall(*Call, Stores);
  }
}

// Whether the store bypasses the processor's caches (movnti, movntdq and their
// kin). Stores marked non-temporal count only if code generation has such an
// instruction for them: a store of another type is an ordinary one, and needs a
// flush.
static bool isPastCaches(const Instruction &I) {
  if (auto *S = dyn_cast<StoreInst>(&I)) {
    Type *T = S->getValueOperand()->getType();
    uint64_t Bytes = storeSize(I, T);
    if (!S->hasMetadata(LLVMContext::MD_nontemporal))
      return false;
    if (T->isVectorTy())
      return Bytes >= 16 && isPowerOf2_64(Bytes) &&
             S->getAlign().value() >= Bytes;
    return (T->isIntegerTy() || T->isPointerTy()) && (Bytes == 4 || Bytes == 8);
  }
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return false;
  if (Call->isInlineAsm())
    return storesPastCaches(*Call);
  switch (Call->getIntrinsicID()) {
  case Intrinsic::x86_sse2_maskmov_dqu:
  case Intrinsic::x86_directstore32:
  case Intrinsic::x86_directstore64:
  case Intrinsic::x86_movdir64b:
    return true;
  default:
    return false;
  }
}

void collectStores(Instruction &I, SmallVectorImpl<Store> &Stores) {
  SmallVector<Store, 2> All;
  collectAll(I, All);
  for (Store &S : All)
    if (S.Kind == StoreKind::Scatter || mayPersist(S.Address)) {
      S.IsPastCaches = isPastCaches(I);
      Stores.push_back(S);
    }
}

Instruction *after(const Store &S) {
  auto *Invoke = dyn_cast<InvokeInst>(S.Inst);
  if (!Invoke)
    return S.Inst->getNextNode();
  BasicBlock *Normal = Invoke->getNormalDest();
  if (!Normal->getSinglePredecessor())
    Normal = SplitEdge(Invoke->getParent(), Normal);
  return &*Normal->getFirstInsertionPt();
}

// Whether the lane's mask is set: its only bit, or the sign.
static Value *isOn(IRBuilderBase &B, Value *Mask, uint64_t Lane) {
  Value *One = B.CreateExtractElement(Mask, Lane);
  return One->getType()->isIntegerTy(1)
             ? One
             : B.CreateICmpSLT(One, ConstantInt::get(One->getType(), 0));
}

static Value *callStringLength(IRBuilderBase &B, Value *String) {
  Module &M = *B.GetInsertBlock()->getModule();
  FunctionCallee Length = M.getOrInsertFunction(
      "strlen", FunctionType::get(B.getInt64Ty(), {B.getPtrTy()}, false));
  CallInst *Call = B.CreateCall(Length, {String});
  Call->setDoesNotThrow();
  return Call;
}

void forEachRange(const Store &S,
                  function_ref<void(IRBuilderBase &, Value *, Value *)> Emit) {
  Value *OldLength = nullptr;
  if (S.Kind == StoreKind::Append) {
    BuilderBefore Before(S.Inst);
    OldLength = callStringLength(Before, S.Address);
  }
  BuilderBefore B(after(S));
  B.SetCurrentDebugLocation(S.Inst->getDebugLoc());
  Value *Bytes = B.getInt64(S.Bytes), *None = B.getInt64(0);
  switch (S.Kind) {
  case StoreKind::Fixed:
    return Emit(B, S.Address, Bytes);
  case StoreKind::Counted: {
    Value *Count = B.CreateZExtOrTrunc(S.Count, B.getInt64Ty());
    return Emit(B, S.Address, S.Bytes == 1 ? Count : B.CreateMul(Count, Bytes));
  }
  case StoreKind::Exchange:
    return Emit(B, S.Address,
                B.CreateSelect(B.CreateExtractValue(S.Inst, 1), Bytes, None));
  case StoreKind::String:
  case StoreKind::Append: {
    Value *Begin = OldLength ? B.CreatePtrAdd(S.Address, OldLength) : S.Address;
    return Emit(B, Begin,
                B.CreateAdd(callStringLength(B, Begin), B.getInt64(1)));
  }
  case StoreKind::Lanes:
  case StoreKind::Scatter:
  case StoreKind::Compress:
    break;
  }
  Value *Sum = None;
  unsigned Lanes = cast<FixedVectorType>(S.Mask->getType())->getNumElements();
  for (unsigned Lane = 0; Lane < Lanes; ++Lane) {
    Value *LaneBytes = B.CreateSelect(isOn(B, S.Mask, Lane), Bytes, None);
    if (S.Kind == StoreKind::Compress)
      Sum = B.CreateAdd(Sum, LaneBytes);
    else
      Emit(B,
           S.Kind == StoreKind::Scatter
               ? B.CreateExtractElement(S.Address, Lane)
               : B.CreateConstGEP1_64(B.getInt8Ty(), S.Address, Lane * S.Bytes),
           LaneBytes);
  }
  if (S.Kind == StoreKind::Compress)
    Emit(B, S.Address, Sum);
}

} // namespace spillway
