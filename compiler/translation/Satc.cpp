//===- Satc.cpp - Translation by software caches --------------------------===//
#include "translation/Satc.h"
#include "analysis/Accesses.h"
#include "analysis/Provenance.h"
#include "translation/Translate.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

void splitCopies(Function &F, Abi &Runtime) {
  SmallVector<MemTransferInst *, 8> Copies;
  uint64_t Largest = 0;
  for (Instruction &I : instructions(F)) {
    auto *Copy = dyn_cast<MemTransferInst>(&I);
    auto *Length = Copy ? dyn_cast<ConstantInt>(Copy->getLength()) : nullptr;
    if (!Length || Length->getZExtValue() > MaxInlineBytes ||
        isPlain(Copy->getRawDest()) || isPlain(Copy->getRawSource()))
      continue;
    Copies.push_back(Copy);
    Largest = std::max(Largest, Length->getZExtValue());
  }
  if (Copies.empty())
    return;
  auto *Buffer =
      new AllocaInst(Type::getInt8Ty(F.getContext()),
                     /*AddrSpace=*/0, ConstantInt::get(Runtime.I64, Largest),
                     "spill.copied", F.getEntryBlock().begin());
  Buffer->setAlignment(Align(16));
  for (MemTransferInst *Copy : Copies) {
    BuilderBefore B(Copy);
    B.CreateMemCpyInline(Buffer, Align(16), Copy->getRawSource(),
                         Copy->getSourceAlign(), Copy->getLength(),
                         Copy->isVolatile());
    B.CreateMemCpyInline(Copy->getRawDest(), Copy->getDestAlign(), Buffer,
                         Align(16), Copy->getLength(), Copy->isVolatile());
    Copy->eraseFromParent();
  }
}

static Value *loadWord(IRBuilderBase &B, Value *Base, uint64_t Offset, Type *T,
                       const Twine &Name) {
  return B.CreateAlignedLoad(
      T, B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Base, Offset), Align(8),
      Name);
}

// The runtime may empty another thread's line, so a line's words are read
// separately: the second word belongs to its owner alone.
static LoadInst *loadLine(IRBuilderBase &B, Value *Line, uint64_t Offset,
                          Type *T, const Twine &Name) {
  auto *Load = cast<LoadInst>(loadWord(B, Line, Offset, T, Name));
  Load->setAtomic(AtomicOrdering::Monotonic);
  return Load;
}

Value *translateBySatc(Abi &Runtime, Instruction *Before, Value *Address) {
  constexpr uint64_t RangeBytes = abi::RangeEnd - abi::RangeBegin;
  static_assert(isPowerOf2_64(RangeBytes) && abi::RangeBegin % RangeBytes == 0);
  BuilderBefore B(Before);
  BasicBlock *Head = Before->getParent();
  Value *IsSpilled =
      B.CreateICmpEQ(B.CreateLShr(Address, Log2_64(RangeBytes)),
                     B.getInt64(abi::RangeBegin / RangeBytes), "spill.range");
  Instruction *ProbeEnd = SplitBlockAndInsertIfThen(
      IsSpilled, Before->getIterator(), /*Unreachable=*/false);
  ProbeEnd->setDebugLoc(B.getCurrentDebugLocation());
  BuilderBefore ProbeB(ProbeEnd);
  // Keeps accesses from moving from one translation's scope into another's.
  ProbeB.CreateFence(AtomicOrdering::SequentiallyConsistent,
                     SyncScope::SingleThread);
  Value *Satc = Runtime.satcThread(ProbeB);
  Value *Lines =
      loadWord(ProbeB, Satc, abi::SatcLines, Runtime.Ptr, "spill.lines");
  Value *Mask =
      loadWord(ProbeB, Satc, abi::SatcMask, Runtime.I64, "spill.mask");
  Value *PageBytes =
      loadWord(ProbeB, Satc, abi::SatcPageBytes, Runtime.I64, "spill.bytes");
  Value *Line = ProbeB.CreateGEP(
      ProbeB.getInt8Ty(), Lines,
      ProbeB.CreateAnd(ProbeB.CreateLShr(Address, abi::SatcLineShift), Mask),
      "spill.line");
  Value *Begin = loadLine(ProbeB, Line, 0, Runtime.I64, "spill.begin");
  Value *Misses = ProbeB.CreateICmpUGE(ProbeB.CreateSub(Address, Begin),
                                       PageBytes, "spill.misses");
  Instruction *SlowEnd, *HitEnd;
  SplitBlockAndInsertIfThenElse(Misses, ProbeEnd->getIterator(), &SlowEnd,
                                &HitEnd, Runtime.ColdWeights);
  BuilderBefore SlowB(SlowEnd), HitB(HitEnd);
  Value *Found = Runtime.satcTranslate(SlowB, Address);
  Value *Entry = loadLine(HitB, Line, 8, Runtime.I64, "spill.entry");
  IRBuilder<> EitherB(ProbeEnd->getParent(), ProbeEnd->getParent()->begin());
  PHINode *Either = EitherB.CreatePHI(Runtime.I64, 2);
  Either->addIncoming(Found, SlowEnd->getParent());
  Either->addIncoming(Entry, HitEnd->getParent());

  IRBuilder<> JoinB(Before->getParent(), Before->getParent()->begin());
  PHINode *Result = JoinB.CreatePHI(Runtime.I64, 2, "spill.d");
  Result->addIncoming(JoinB.getInt64(1), Head);
  Result->addIncoming(Either, ProbeEnd->getParent());
  return Result;
}

} // namespace spillway
