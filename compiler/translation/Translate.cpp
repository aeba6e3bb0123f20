//===- Translate.cpp - The code of one translation ------------------------===//
#include "translation/Translate.h"
#include "translation/Satc.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

BuilderBefore::BuilderBefore(Instruction *I) : IRBuilder<>(I) {
  if (getCurrentDebugLocation())
    return;
  if (DISubprogram *SP = I->getFunction()->getSubprogram())
    SetCurrentDebugLocation(DILocation::get(SP->getContext(), 0, 0, SP));
}

Value *Translator::slots() {
  if (!Slots) {
    BasicBlock &Entry = F.getEntryBlock();
    IRBuilder<> B(&Entry, Entry.getFirstNonPHIOrDbgOrAlloca());
    Value *Variable = B.CreateThreadLocalAddress(Runtime.slotsVariable());
    Slots = B.CreateLoad(Runtime.Ptr, Variable, "spill.slots");
  }
  return Slots;
}

void Translator::sinkSlots() {
  if (!Slots || Slots->use_empty())
    return;
  DominatorTree Dominators(F);
  LoopInfo Loops(Dominators);
  BasicBlock *Block = nullptr;
  for (const User *U : Slots->users()) {
    BasicBlock *Use =
        const_cast<BasicBlock *>(cast<Instruction>(U)->getParent());
    Block = Block ? Dominators.findNearestCommonDominator(Block, Use) : Use;
  }
  while (const Loop *L = Loops.getLoopFor(Block))
    Block = Dominators.getNode(L->getHeader())->getIDom()->getBlock();
  if (Block == &F.getEntryBlock())
    return;
  Instruction *Before = Block->getTerminator();
  for (User *U : Slots->users())
    if (auto *I = cast<Instruction>(U);
        I->getParent() == Block && I->comesBefore(Before))
      Before = I;
  auto *Variable = cast<Instruction>(Slots->getPointerOperand());
  Variable->moveBefore(Before);
  Slots->moveBefore(Before);
}

Value *Translator::buffer(uint64_t Size) {
  Type *Byte = Type::getInt8Ty(F.getContext());
  if (!Buffer) {
    BasicBlock &Entry = F.getEntryBlock();
    Buffer =
        new AllocaInst(Byte, /*AddrSpace=*/0, "spill.buffer", Entry.begin());
    Buffer->setAlignment(Align(16));
    Buffer->setOperand(0, ConstantInt::get(Runtime.I64, 0));
  }
  if (cast<ConstantInt>(Buffer->getArraySize())->getZExtValue() < Size)
    Buffer->setOperand(0, ConstantInt::get(Runtime.I64, Size));
  return Buffer;
}

Value *Translator::address(IRBuilderBase &B, Value *Pointer) {
  return B.CreatePtrToInt(Pointer, Runtime.I64, "spill.address");
}

Value *Translator::crossesPage(IRBuilderBase &B, Value *Address,
                               uint64_t Size) {
  if (Size > abi::PageSize)
    return B.getTrue();
  Type *I32 = B.getInt32Ty();
  auto *Multiply =
      InlineAsm::get(FunctionType::get(I32, {I32}, false),
                     "imull $$" + std::to_string(abi::EdgeUnit) + ", $1, $0",
                     "=r,r,~{flags}", /*hasSideEffects=*/false);
  CallInst *Offset = B.CreateCall(Multiply, {B.CreateTrunc(Address, I32)});
  Offset->setDoesNotThrow();
  Offset->setDoesNotAccessMemory();
  return B.CreateICmpUGT(Offset, B.getInt32(abi::lastOffset(Size)),
                         "spill.crosses");
}

Value *Translator::mayCross(IRBuilderBase &B, Value *Address, uint64_t Size,
                            Align Claimed) {
  uint64_t Unit = PowerOf2Ceil(Size);
  if (Unit > std::min(Claimed.value(), abi::PageSize))
    return crossesPage(B, Address, Size);
  return B.CreateICmpNE(B.CreateAnd(Address, B.getInt64(Unit - 1)),
                        B.getInt64(0), "spill.odd");
}

Value *Translator::loadEntry(IRBuilderBase &B, Value *Address) {
  Value *Offset = B.CreateShl(B.CreateLShr(Address, abi::TableShift), 3);
  Value *EntryPointer = B.CreateIntToPtr(
      B.CreateAdd(Offset, B.getInt64(abi::TableBase)), Runtime.Ptr);
  LoadInst *Entry =
      B.CreateAlignedLoad(Runtime.I64, EntryPointer, Align(8), "spill.entry");
  Entry->setAtomic(AtomicOrdering::Acquire);
  return Entry;
}

Value *Translator::isIdentity(IRBuilderBase &B, Value *Address) {
  return B.CreateICmpEQ(loadEntry(B, Address), B.getInt64(abi::Identity));
}

Translator::Lookup Translator::lookUp(Instruction *Before, Value *Address,
                                      unsigned Slot) {
  Value *Base = slots();
  BuilderBefore B(Before);

  // 1  slots[k] = a
  Value *SlotPointer = B.CreateConstInBoundsGEP1_64(Runtime.I64, Base, Slot);
  B.CreateAlignedStore(Address, SlotPointer, Align(8))
      ->setAtomic(AtomicOrdering::Release);
  // 2  keep the compiler from moving the load up; the evictor's membarrier
  //    does the same for the CPU
  B.CreateFence(AtomicOrdering::SequentiallyConsistent,
                SyncScope::SingleThread);
  // 3  d = table[a >> 12]
  Value *Entry = loadEntry(B, Address);
  // 4  if d <= 0
  return {Entry, B.CreateICmpSLE(Entry, B.getInt64(0), "spill.slow")};
}

Value *Translator::translate(Instruction *Before, Value *Address, unsigned Slot,
                             SlotSet Live) {
  if (BySatc)
    return translateBySatc(Runtime, Before, Address);
  auto [Entry, Slow] = lookUp(Before, Address, Slot);
  BuilderBefore B(Before);
  //      d = translate(a, live)
  BasicBlock *Head = Before->getParent();
  Instruction *SlowEnd = SplitBlockAndInsertIfThen(
      Slow, Before->getIterator(), /*Unreachable=*/false, Runtime.ColdWeights);
  SlowEnd->setDebugLoc(B.getCurrentDebugLocation());
  BuilderBefore SlowB(SlowEnd);
  Value *Found = Runtime.translate(SlowB, Address, Live | SlotSet(1) << Slot);

  IRBuilder<> JoinB(Before->getParent(), Before->getParent()->begin());
  PHINode *Result = JoinB.CreatePHI(Runtime.I64, 2, "spill.d");
  Result->addIncoming(Entry, Head);
  Result->addIncoming(Found, SlowEnd->getParent());
  return Result;
}

Value *Translator::redirect(IRBuilderBase &B, Value *Pointer, Value *Entry) {
  // 5  access a + d - 1. Not inbounds: a frame is no part of the object.
  Value *Delta = B.CreateSub(Entry, ConstantInt::get(Entry->getType(), 1));
  return B.CreateGEP(B.getInt8Ty(), Pointer, Delta, "spill.pointer");
}

} // namespace spillway
