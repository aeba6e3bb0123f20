//===- Lanes.cpp - Vector intrinsics that touch memory by lane ------------===//
#include "Lanes.h"
#include "Provenance.h"
#include "Translate.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

namespace {

/// The operands of a vector access in one form. Memory: a pointer, or a vector
/// of pointers.
struct VectorAccess {
  Value *Memory;
  Value *Mask;
  Value *Stored;   // null: a load
  Value *PassThru; // of a load
  Align Alignment; // of one lane
  bool Packed;     // active lanes are adjacent in memory
  FixedVectorType *Type;
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
  // The usual gather: one base, a vector of offsets.
  auto *GEP = dyn_cast<GetElementPtrInst>(A.Memory);
  return GEP && GEP->getPointerOperandType()->isPointerTy() &&
         isPlain(GEP->getPointerOperand());
}

// Emits a loop over the lanes before Before. A load's lanes are gathered in
// memory, which is returned as a vector.
static Value *emitLanes(const VectorAccess &A, Instruction *Before) {
  Function &F = *Before->getFunction();
  const DataLayout &DL = F.getDataLayout();
  Type *Lane = A.Type->getElementType();
  BasicBlock &Entry = F.getEntryBlock();
  AllocaInst *Result = nullptr, *Next = nullptr;
  BuilderBefore B(Before);
  DebugLoc Location = B.getCurrentDebugLocation();
  if (!A.Stored) {
    Result = new AllocaInst(A.Type, 0, "spill.lanes", Entry.begin());
    B.CreateStore(A.PassThru, Result);
  }
  if (A.Packed) {
    Next = new AllocaInst(A.Memory->getType(), 0, "spill.next", Entry.begin());
    B.CreateStore(A.Memory, Next);
  }

  auto [BodyEnd, Index] = SplitBlockAndInsertSimpleForLoop(
      B.getInt64(A.Type->getNumElements()), Before);
  IRBuilder<> LoopB(BodyEnd);
  LoopB.SetCurrentDebugLocation(Location);
  Value *Active = LoopB.CreateExtractElement(A.Mask, Index);
  Instruction *LaneEnd = SplitBlockAndInsertIfThen(Active, BodyEnd, false);
  LoopB.SetInsertPoint(LaneEnd);
  LoopB.SetCurrentDebugLocation(Location);

  Value *Pointer;
  if (A.Packed)
    Pointer = LoopB.CreateLoad(A.Memory->getType(), Next);
  else if (A.Memory->getType()->isPointerTy())
    Pointer = LoopB.CreateGEP(Lane, A.Memory, Index);
  else
    Pointer = LoopB.CreateExtractElement(A.Memory, Index);
  uint64_t Size = DL.getTypeStoreSize(Lane);
  Align Alignment = commonAlignment(A.Alignment, Size);
  if (!A.Memory->getType()->isPointerTy())
    Alignment = A.Alignment;
  if (A.Stored)
    LoopB.CreateAlignedStore(LoopB.CreateExtractElement(A.Stored, Index),
                             Pointer, Alignment);
  else
    LoopB.CreateStore(LoopB.CreateAlignedLoad(Lane, Pointer, Alignment),
                      LoopB.CreateGEP(Lane, Result, Index));
  if (A.Packed)
    LoopB.CreateStore(LoopB.CreateConstGEP1_64(Lane, Pointer, 1), Next);

  if (A.Stored)
    return nullptr;
  BuilderBefore JoinB(Before);
  return JoinB.CreateLoad(A.Type, Result);
}

// A masked load or store is kept where it lies in one page and any lane is
// active: then that lane makes the page one that the program accesses.
static void guardMasked(IntrinsicInst &II, const VectorAccess &A, Abi &Runtime,
                        SmallPtrSetImpl<Instruction *> &InPage) {
  uint64_t Size = II.getDataLayout().getTypeStoreSize(A.Type);
  Translator T(*II.getFunction(), Runtime);
  BuilderBefore B(&II);
  BasicBlock *Head = II.getParent();
  Instruction *AnyEnd =
      SplitBlockAndInsertIfThen(B.CreateOrReduce(A.Mask), &II, false);
  B.SetInsertPoint(AnyEnd);
  Value *Crosses = T.crossesPage(B, T.address(B, A.Memory), Size);
  Instruction *ColdEnd, *HotEnd;
  SplitBlockAndInsertIfThenElse(Crosses, AnyEnd, &ColdEnd, &HotEnd,
                                Runtime.ColdWeights);
  Value *Lanes = emitLanes(A, ColdEnd);
  BasicBlock *Join = II.getParent();
  II.moveBefore(HotEnd);
  InPage.insert(&II);
  if (A.Stored)
    return;
  IRBuilder<> AnyB(AnyEnd->getParent(), AnyEnd->getParent()->begin());
  PHINode *Loaded = AnyB.CreatePHI(A.Type, 2);
  IRBuilder<> JoinB(Join, Join->begin());
  PHINode *Result = JoinB.CreatePHI(A.Type, 2);
  II.replaceAllUsesWith(Result);
  Loaded->addIncoming(Lanes, ColdEnd->getParent());
  Loaded->addIncoming(&II, HotEnd->getParent());
  Result->addIncoming(Loaded, AnyEnd->getParent());
  Result->addIncoming(A.PassThru, Head);
}

void lowerVectorIntrinsic(IntrinsicInst &II, Abi &Runtime,
                          SmallPtrSetImpl<Instruction *> &InPage) {
  std::optional<VectorAccess> A = parse(II);
  if (!A || isPlainAccess(*A))
    return;
  Intrinsic::ID ID = II.getIntrinsicID();
  if (ID == Intrinsic::masked_load || ID == Intrinsic::masked_store) {
    guardMasked(II, *A, Runtime, InPage);
    return;
  }
  if (Value *Lanes = emitLanes(*A, &II))
    II.replaceAllUsesWith(Lanes);
  II.eraseFromParent();
}

} // namespace spillway
