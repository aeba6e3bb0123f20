//===- LoopSplit.cpp - The code of a split loop ---------------------------===//
#include "loops/LoopSplit.h"
#include "Abi.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace spillway {

// With fewer iterations left, or fewer in the page, a plan costs more than it
// saves.
static constexpr uint64_t MinLeft = 4;
static constexpr uint64_t MinInPage = 2;

namespace {

class Splitter {
public:
  Splitter(const LoopPlan &Plan, Chunks &Result,
           SmallPtrSetImpl<Instruction *> &InPage);
  void split();

private:
  void detachBody();
  void emitPlan();
  Value *addressAhead(const PagePointer &P, IRBuilderBase &B);
  Value *iterationsInPage(const PagePointer &P, Value *First, IRBuilderBase &B);
  void emitEnter();
  void cloneFast();
  void emitDone();
  void share();
  Value *inFast(Value *V);

  BasicBlock *block(const Twine &Name) {
    return BasicBlock::Create(F.getContext(), Name, &F, Body);
  }

  const LoopPlan &Plan;
  Chunks &Result;
  SmallPtrSetImpl<Instruction *> &InPage;
  Function &F;
  BasicBlock *Preheader, *Header, *Latch, *Exit;
  SmallVector<BasicBlock *, 8> Blocks; // of one iteration: from Body to Latch
  SmallVector<PHINode *, 8> Carried;
  DebugLoc Location;

  BasicBlock *Body, *PlanBlock, *Enter, *Fast, *Done;
  PHINode *Left;                  // iterations, in Header
  Value *Chunk;                   // iterations of Fast, in PlanBlock
  Value *FastCondition;           // the loop's, copied to Fast; unused
  SmallVector<Value *, 6> Firsts; // lowest byte of each pointer, in PlanBlock
  SmallVector<Instruction *, 6> Anchors; // of each pointer, in Enter
  ValueToValueMapTy Copies;              // from one iteration to Fast
};

} // namespace

Splitter::Splitter(const LoopPlan &Plan, Chunks &Result,
                   SmallPtrSetImpl<Instruction *> &InPage)
    : Plan(Plan), Result(Result), InPage(InPage),
      F(*Plan.L->getHeader()->getParent()),
      Preheader(Plan.L->getLoopPreheader()), Header(Plan.L->getHeader()),
      Latch(Plan.L->getLoopLatch()), Exit(Plan.L->getExitBlock()),
      Location(Plan.L->getStartLoc()) {
  for (BasicBlock *BB : Plan.L->blocks())
    if (BB != Header)
      Blocks.push_back(BB);
  for (PHINode &Phi : Header->phis())
    Carried.push_back(&Phi);
}

// Leaves only what the loop carries in Header.
void Splitter::detachBody() {
  Body = SplitBlock(Header, Header->getFirstNonPHIIt(),
                    static_cast<DominatorTree *>(nullptr));
  Body->setName("spill.body");
  Blocks.insert(Blocks.begin(), Body);
  if (Latch == Header)
    Latch = Body;
  IRBuilder<> B(Header, Header->begin());
  Left = B.CreatePHI(B.getInt64Ty(), 3, "spill.left");
  Left->addIncoming(Plan.TripCount, Preheader);
}

// The address of the first member in the iteration that is about to begin, plus
// P.Low.
Value *Splitter::addressAhead(const PagePointer &P, IRBuilderBase &B) {
  const PagePointer::Member &First = P.Members.front();
  SmallDenseMap<Value *, Value *, 8> Ahead;
  auto Compute = [&](auto &&Self, Value *V) -> Value * {
    auto *I = dyn_cast<Instruction>(V);
    if (!I || isa<PHINode>(I) || !is_contained(Blocks, I->getParent()))
      return V;
    if (Value *Known = Ahead.lookup(I))
      return Known;
    SmallVector<Value *, 4> Operands;
    for (Value *Operand : I->operands())
      Operands.push_back(Self(Self, Operand));
    Instruction *Copy = I->clone();
    for (auto [Index, Operand] : enumerate(Operands))
      Copy->setOperand(Index, Operand);
    Copy->dropPoisonGeneratingFlags();
    Copy->dropUnknownNonDebugMetadata();
    B.Insert(Copy, I->getName() + ".ahead");
    return Ahead[I] = Copy;
  };
  Value *Pointer = Compute(Compute, First.Inst->getOperand(First.Operand));
  return P.Low ? B.CreateGEP(B.getInt8Ty(), Pointer,
                             ConstantInt::getSigned(B.getInt64Ty(), P.Low))
               : Pointer;
}

// How many iterations from this one on access only the OS page of First.
Value *Splitter::iterationsInPage(const PagePointer &P, Value *First,
                                  IRBuilderBase &B) {
  uint64_t Window = P.High - P.Low;
  Value *Offset = B.CreateAnd(B.CreatePtrToInt(First, B.getInt64Ty()),
                              B.getInt64(abi::PageSize - 1));
  Value *Last = B.getInt64(abi::PageSize - Window);
  Value *Crosses = B.CreateICmpUGT(Offset, Last);
  Value *More = Left;
  if (P.Step > 0)
    More = B.CreateUDiv(B.CreateSub(Last, Offset), B.getInt64(P.Step));
  else if (P.Step < 0)
    More = B.CreateUDiv(Offset, B.getInt64(-P.Step));
  if (P.Step != 0)
    More = B.CreateAdd(More, B.getInt64(1));
  return B.CreateSelect(Crosses, B.getInt64(0), More);
}

void Splitter::emitPlan() {
  PlanBlock = block("spill.plan");
  Enter = block("spill.enter");
  Instruction *ToBody = Header->getTerminator();
  IRBuilder<> B(ToBody);
  B.SetCurrentDebugLocation(Location);
  Value *Few = B.CreateICmpULT(Left, B.getInt64(MinLeft));
  B.CreateCondBr(Few, Body, PlanBlock);
  ToBody->eraseFromParent();

  B.SetInsertPoint(PlanBlock);
  Chunk = Left;
  for (const PagePointer &P : Plan.Pointers) {
    Value *First = addressAhead(P, B);
    Firsts.push_back(First);
    Chunk = B.CreateBinaryIntrinsic(Intrinsic::umin, Chunk,
                                    iterationsInPage(P, First, B));
  }
  Chunk->setName("spill.chunk");
  Value *EdgeNear = B.CreateICmpULT(Chunk, B.getInt64(MinInPage));
  B.CreateCondBr(EdgeNear, Body, Enter);
}

// Anchors stand where each pointer is to be translated.
void Splitter::emitEnter() {
  Fast = block("spill.fast");
  IRBuilder<> B(Enter);
  B.SetCurrentDebugLocation(Location);
  for (Value *First : Firsts)
    Anchors.push_back(B.Insert(new FreezeInst(First)));
  B.CreateBr(Fast);
}

Value *Splitter::inFast(Value *V) {
  Value *Copy = Copies.lookup(V);
  return Copy ? Copy : V;
}

void Splitter::cloneFast() {
  IRBuilder<> B(Fast);
  B.SetCurrentDebugLocation(Location);
  PHINode *Remaining = B.CreatePHI(B.getInt64Ty(), 2, "spill.remaining");
  Remaining->addIncoming(Chunk, Enter);
  for (PHINode *Phi : Carried) {
    PHINode *Copy = B.CreatePHI(Phi->getType(), 2, Phi->getName() + ".fast");
    Copy->addIncoming(Phi, Enter);
    Copies[Phi] = Copy;
  }
  SmallVector<BasicBlock *, 8> Clones;
  for (BasicBlock *BB : Blocks) {
    BasicBlock *Clone = CloneBasicBlock(BB, Copies, ".fast", &F);
    Clone->moveBefore(Body);
    Copies[BB] = Clone;
    Clones.push_back(Clone);
  }
  remapInstructionsInBlocks(Clones, Copies);
  B.CreateBr(cast<BasicBlock>(inFast(Body)));

  // The copy of the latch counts down instead of testing the loop's condition.
  auto *FastLatch = cast<BasicBlock>(inFast(Latch));
  auto *Old = cast<BranchInst>(FastLatch->getTerminator());
  FastCondition = Old->getCondition();
  B.SetInsertPoint(Old);
  Value *Next = B.CreateSub(Remaining, B.getInt64(1));
  B.CreateCondBr(B.CreateICmpEQ(Next, B.getInt64(0)), Done, Fast);
  Remaining->addIncoming(Next, FastLatch);
  Old->eraseFromParent();
  for (PHINode *Phi : Carried)
    cast<PHINode>(inFast(Phi))
        ->addIncoming(inFast(Phi->getIncomingValueForBlock(Latch)), FastLatch);
}

void Splitter::emitDone() {
  IRBuilder<> B(Done);
  B.SetCurrentDebugLocation(Location);
  Value *NowLeft = B.CreateSub(Left, Chunk);
  B.CreateCondBr(B.CreateICmpEQ(NowLeft, B.getInt64(0)), Exit, Header);
  Left->addIncoming(NowLeft, Done);
  IRBuilder<> LatchB(Latch->getTerminator());
  Left->addIncoming(LatchB.CreateSub(Left, LatchB.getInt64(1)), Latch);
  for (PHINode *Phi : Carried)
    Phi->addIncoming(inFast(Phi->getIncomingValueForBlock(Latch)), Done);
  for (PHINode &Phi : Exit->phis())
    Phi.addIncoming(inFast(Phi.getIncomingValueForBlock(Latch)), Done);
}

// Lets the accesses of Fast share the translations of Enter. Loads that only
// the condition was computed from have no copies there.
void Splitter::share() {
  for (auto [P, Anchor] : zip(Plan.Pointers, Anchors)) {
    SmallVector<PagePointer::Member, 4> Members;
    for (const PagePointer::Member &M : P.Members)
      if (Value *Copy = Copies.lookup(M.Inst))
        Members.push_back({cast<Instruction>(Copy), M.Operand});
    if (Members.empty()) {
      Anchor->eraseFromParent();
      continue;
    }
    Result.Translations.push_back(
        {Anchor, /*Low=*/0, /*High=*/1, /*MayCross=*/false});
    Translation &T = Result.Translations.back();
    Result.Shared[{Anchor, 0}] = &T;
    for (const PagePointer::Member &M : Members) {
      T.Followers.push_back(M.Inst);
      Result.Shared[{M.Inst, M.Operand}] = &T;
    }
  }
}

void Splitter::split() {
  detachBody();
  emitPlan();
  emitEnter();
  Done = block("spill.done");
  cloneFast();
  Done->moveBefore(Body);
  emitDone();
  // Only now: what the condition was computed from may be used after the loop.
  RecursivelyDeleteTriviallyDeadInstructions(FastCondition);
  share();
  for (BasicBlock *BB : Blocks)
    for (Instruction &I : *BB)
      if (InPage.contains(&I))
        InPage.insert(cast<Instruction>(inFast(&I)));
}

void splitLoop(const LoopPlan &Plan, Chunks &Result,
               SmallPtrSetImpl<Instruction *> &InPage) {
  Splitter(Plan, Result, InPage).split();
}

} // namespace spillway
