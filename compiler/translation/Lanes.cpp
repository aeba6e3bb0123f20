//===- Lanes.cpp - Vector intrinsics that touch memory by lane ------------===//
#include "translation/Lanes.h"
#include "analysis/Provenance.h"
#include "translation/Translate.h"

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

namespace {

/// The operands of any vector access in one form. Memory: a pointer, a vector
/// of pointers, or a vector of distances from Base.
struct VectorAccess {
  Value *Memory;
  Value *Mask;
  Value *Stored;   // null: a load
  Value *PassThru; // of a load
  Align Alignment; // of one lane
  bool Packed;     // active lanes are adjacent in memory
  FixedVectorType *Type;
  Value *Base = nullptr;
};

/// The lanes of a gather or scatter, relative to the OS page of the first
/// active one.
struct PagedLanes {
  Value *Page;    // the page's address
  Value *Offsets; // of all lanes, from there
  Value *Apart;   // whether an active lane lies elsewhere
};

} // namespace

static std::optional<VectorAccess> parse(IntrinsicInst &II) {
  VectorAccess A{};
  auto AlignmentAt = [&](unsigned Operand) {
    return cast<ConstantInt>(II.getArgOperand(Operand))
        ->getMaybeAlignValue()
        .valueOrOne();
  };
  auto Arg = [&](unsigned Operand) { return II.getArgOperand(Operand); };
  switch (II.getIntrinsicID()) {
  case Intrinsic::masked_load:
  case Intrinsic::masked_gather:
    A = {Arg(0), Arg(2), nullptr, Arg(3), AlignmentAt(1), false, nullptr};
    break;
  case Intrinsic::masked_store:
  case Intrinsic::masked_scatter:
    A = {Arg(1), Arg(3), Arg(0), nullptr, AlignmentAt(2), false, nullptr};
    break;
  case Intrinsic::masked_expandload:
    A = {Arg(0), Arg(1), nullptr, Arg(2), II.getParamAlign(0).valueOrOne(),
         true,   nullptr};
    break;
  case Intrinsic::masked_compressstore:
    A = {Arg(1), Arg(2), Arg(0), nullptr, II.getParamAlign(1).valueOrOne(),
         true,   nullptr};
    break;
  default:
    return std::nullopt;
  }
  A.Type =
      dyn_cast<FixedVectorType>(A.Stored ? A.Stored->getType() : II.getType());
  if (!A.Type)
    return std::nullopt;
  // Lanes that do not fill bytes are left to the fault path: no front end
  // emits them.
  llvm::Type *Lane = A.Type->getElementType();
  const DataLayout &DL = II.getDataLayout();
  if (DL.getTypeSizeInBits(Lane) != DL.getTypeAllocSizeInBits(Lane))
    return std::nullopt;
  return A;
}

static bool isPlainAccess(const VectorAccess &A) {
  if (A.Memory->getType()->isPointerTy())
    return isPlain(A.Memory);
  auto *Pointer = cast<PointerType>(A.Memory->getType()->getScalarType());
  if (Pointer->getAddressSpace() != 0)
    return true;
  // The usual gather: one base, vectors of offsets.
  const Value *Base = A.Memory;
  SmallPtrSet<const Value *, 8> Seen;
  while (auto *GEP = dyn_cast<GEPOperator>(Base)) {
    // Code that never runs may compute an address from itself.
    if (!Seen.insert(GEP).second)
      return false;
    Base = GEP->getPointerOperand();
  }
  if (Base->getType()->isVectorTy())
    Base = getSplatValue(Base);
  return Base && isPlain(Base);
}

static bool isAllActive(const VectorAccess &A) {
  auto *Bits = dyn_cast<Constant>(A.Mask);
  return Bits && Bits->isAllOnesValue();
}

// Stores a vector on the stack, where a loop can reach its lanes by their
// numbers.
static AllocaInst *inMemory(Value *Vector, const Twine &Name,
                            IRBuilderBase &B) {
  BasicBlock &Entry = B.GetInsertBlock()->getParent()->getEntryBlock();
  auto *A = new AllocaInst(Vector->getType(), 0, Name, Entry.begin());
  B.CreateStore(Vector, A);
  return A;
}

static Value *laneOf(AllocaInst *Vector, Value *Index, IRBuilderBase &B) {
  Type *Lane = Vector->getAllocatedType()->getScalarType();
  return B.CreateLoad(Lane, B.CreateGEP(Lane, Vector, Index));
}

// The mask as a number whose lowest bit is the first lane.
static Value *bitsOf(const VectorAccess &A, IRBuilderBase &B) {
  return B.CreateBitCast(A.Mask, B.getIntNTy(A.Type->getNumElements()));
}

static Value *lowestBit(Value *Bits, IRBuilderBase &B) {
  return B.CreateZExtOrTrunc(
      B.CreateBinaryIntrinsic(Intrinsic::cttz, Bits, B.getTrue()),
      B.getInt64Ty());
}

// Loads the vector that a loop has stored lane by lane. It is loaded lane by
// lane, too, and volatile keeps it so: a single load would wait until the last
// lane has left the store buffer.
static Value *vectorOf(AllocaInst *Lanes, IRBuilderBase &B) {
  auto *Type = cast<FixedVectorType>(Lanes->getAllocatedType());
  llvm::Type *Lane = Type->getElementType();
  Value *Vector = PoisonValue::get(Type);
  for (unsigned Index = 0; Index < Type->getNumElements(); ++Index) {
    Value *Piece = B.CreateLoad(Lane, B.CreateConstGEP1_64(Lane, Lanes, Index),
                                /*isVolatile=*/true);
    Vector = B.CreateInsertElement(Vector, Piece, Index);
  }
  return Vector;
}

// Emits a loop over the active lanes before Before. Returns what it loads; null
// if it stores. REQUIRES: there are active lanes, or the access is packed.
// Even lanes in one page are accessed by such a loop: a gather would be a
// little faster in caches and much slower from memory (docs/decisions.md,
// "Vectors and comparisons").
static Value *emitLanes(const VectorAccess &A, Instruction *Before) {
  const DataLayout &DL = Before->getDataLayout();
  Type *Lane = A.Type->getElementType();
  AllocaInst *Result = nullptr, *Next = nullptr, *Addresses = nullptr,
             *Stored = nullptr;
  BuilderBefore B(Before);
  if (A.Stored)
    Stored = inMemory(A.Stored, "spill.stored", B);
  else
    Result = inMemory(A.PassThru, "spill.lanes", B);
  if (A.Packed)
    Next = inMemory(A.Memory, "spill.next", B);
  else if (A.Memory->getType()->isVectorTy())
    Addresses = inMemory(A.Memory, "spill.addresses", B);
  // The lanes that are left: all from a number on, or those whose bits are set.
  bool All = isAllActive(A);
  Value *First = All ? B.getInt64(0) : bitsOf(A, B);

  Instruction *End = Before;
  if (A.Packed && !All)
    End = SplitBlockAndInsertIfThen(B.CreateIsNotNull(First), Before, false);
  BasicBlock *Head = End->getParent();
  BasicBlock *Body = SplitBlock(Head, End);
  BasicBlock *Exit = SplitBlock(Body, End);
  Instruction *Old = Body->getTerminator();
  IRBuilder<> LoopB(Old);
  LoopB.SetCurrentDebugLocation(B.getCurrentDebugLocation());
  PHINode *Left = LoopB.CreatePHI(First->getType(), 2, "spill.lane");
  Value *Index = All ? Left : lowestBit(Left, LoopB);

  Value *Pointer;
  if (A.Packed)
    Pointer = LoopB.CreateLoad(A.Memory->getType(), Next);
  else if (Addresses)
    Pointer = laneOf(Addresses, Index, LoopB);
  else
    Pointer = LoopB.CreateGEP(Lane, A.Memory, Index);
  if (A.Base)
    Pointer = LoopB.CreateGEP(LoopB.getInt8Ty(), A.Base, Pointer);
  Align Alignment =
      Addresses ? A.Alignment
                : commonAlignment(A.Alignment, DL.getTypeStoreSize(Lane));
  if (A.Stored)
    LoopB.CreateAlignedStore(laneOf(Stored, Index, LoopB), Pointer, Alignment);
  else
    LoopB.CreateStore(LoopB.CreateAlignedLoad(Lane, Pointer, Alignment),
                      LoopB.CreateGEP(Lane, Result, Index));
  if (A.Packed)
    LoopB.CreateStore(LoopB.CreateConstGEP1_64(Lane, Pointer, 1), Next);
  Constant *One = ConstantInt::get(Left->getType(), 1);
  Value *Others = All ? LoopB.CreateAdd(Left, One)
                      : LoopB.CreateAnd(Left, LoopB.CreateSub(Left, One));
  Value *None = LoopB.getInt64(A.Type->getNumElements());
  Value *Done =
      All ? LoopB.CreateICmpEQ(Others, None) : LoopB.CreateIsNull(Others);
  LoopB.CreateCondBr(Done, Exit, Body);
  Old->eraseFromParent();
  Left->addIncoming(First, Head);
  Left->addIncoming(Others, Body);

  if (A.Stored)
    return nullptr;
  BuilderBefore JoinB(Before);
  return vectorOf(Result, JoinB);
}

// Finds out whether the active lanes of a gather or scatter lie in one OS page,
// that of the first one. Addresses of other lanes do not matter. They may be
// poison, and then their lanes of Offsets are, too.
static PagedLanes findPage(const VectorAccess &A, Abi &Runtime,
                           IRBuilderBase &B) {
  const DataLayout &DL = B.GetInsertBlock()->getDataLayout();
  uint64_t Size = DL.getTypeStoreSize(A.Type->getElementType());
  ElementCount Count = A.Type->getElementCount();
  auto *Words = VectorType::get(Runtime.I64, Count);
  bool All = isAllActive(A);
  PagedLanes L;
  Value *First = All ? B.getInt64(0) : lowestBit(bitsOf(A, B), B);
  L.Page = B.CreateIntrinsic(
      Intrinsic::ptrmask, {Runtime.Ptr, Runtime.I64},
      {B.CreateExtractElement(A.Memory, First), B.getInt64(-abi::PageSize)});
  L.Offsets = B.CreateSub(
      B.CreatePtrToInt(A.Memory, Words),
      B.CreateVectorSplat(Count, B.CreatePtrToInt(L.Page, Runtime.I64)));
  Value *Outside =
      B.CreateICmpUGT(L.Offsets, ConstantInt::get(Words, abi::PageSize - Size));
  if (!All)
    Outside = B.CreateSelect(A.Mask, Outside,
                             Constant::getNullValue(Outside->getType()));
  L.Apart = B.CreateOrReduce(Outside);
  return L;
}

static Value *eitherOf(BasicBlock *At, Value *A, BasicBlock *FromA, Value *B,
                       BasicBlock *FromB) {
  IRBuilder<> Builder(At, At->begin());
  PHINode *Either = Builder.CreatePHI(A->getType(), 2);
  Either->addIncoming(A, FromA);
  Either->addIncoming(B, FromB);
  return Either;
}

// Makes the access run only if there are active lanes, with a single
// translation if they all lie in one page: then the program does access that
// page.
static void guard(IntrinsicInst &II, const VectorAccess &A, Abi &Runtime,
                  SmallPtrSetImpl<Instruction *> &InPage) {
  BuilderBefore B(&II);
  BasicBlock *Head = II.getParent();
  Instruction *AnyEnd = &II;
  if (!isAllActive(A)) {
    AnyEnd = SplitBlockAndInsertIfThen(B.CreateOrReduce(A.Mask), &II, false);
    B.SetInsertPoint(AnyEnd);
  }
  Instruction *ApartEnd, *InPageEnd;
  Value *Loaded;
  if (A.Memory->getType()->isPointerTy()) {
    Translator T(*II.getFunction(), Runtime);
    Value *Crosses = T.crossesPage(B, T.address(B, A.Memory),
                                   II.getDataLayout().getTypeStoreSize(A.Type));
    SplitBlockAndInsertIfThenElse(Crosses, AnyEnd, &ApartEnd, &InPageEnd,
                                  Runtime.ColdWeights);
    Instruction *Copy = II.clone();
    Copy->insertBefore(InPageEnd);
    InPage.insert(Copy);
    Loaded = Copy;
  } else {
    // Random addresses mostly lie apart: neither way is rare.
    PagedLanes L = findPage(A, Runtime, B);
    SplitBlockAndInsertIfThenElse(L.Apart, AnyEnd, &ApartEnd, &InPageEnd);
    // The page is translated; addresses computed from it are not.
    auto *Frame = GetElementPtrInst::Create(B.getInt8Ty(), L.Page,
                                            B.getInt64(0), "", InPageEnd);
    Frame->setDebugLoc(B.getCurrentDebugLocation());
    InPage.insert(Frame);
    VectorAccess Near = A;
    Near.Base = Frame;
    Near.Memory = L.Offsets;
    Loaded = emitLanes(Near, InPageEnd);
  }
  Value *Lanes = emitLanes(A, ApartEnd);
  if (!A.Stored) {
    BasicBlock *Any = AnyEnd->getParent();
    Value *Result = eitherOf(Any, Lanes, ApartEnd->getParent(), Loaded,
                             InPageEnd->getParent());
    if (!isAllActive(A))
      Result = eitherOf(II.getParent(), Result, Any, A.PassThru, Head);
    II.replaceAllUsesWith(Result);
  }
  II.eraseFromParent();
}

void lowerVectorIntrinsic(IntrinsicInst &II, Abi &Runtime,
                          SmallPtrSetImpl<Instruction *> &InPage) {
  std::optional<VectorAccess> A = parse(II);
  if (!A || isPlainAccess(*A))
    return;
  if (!A->Packed) {
    guard(II, *A, Runtime, InPage);
    return;
  }
  if (Value *Lanes = emitLanes(*A, &II))
    II.replaceAllUsesWith(Lanes);
  II.eraseFromParent();
}

} // namespace spillway
