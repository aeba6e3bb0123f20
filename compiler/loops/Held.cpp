//===- Held.cpp - Pages that loops stay in --------------------------------===//
#include "loops/Held.h"
#include "Abi.h"
#include "Options.h"
#include "analysis/Kills.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace spillway {

// How many pages are held: each takes one or two registers in the whole loop.
static constexpr unsigned MaxPerLoop = 4;
static constexpr unsigned MaxPerFunction = 12;
// Values that an address may be computed from in a loop.
static constexpr unsigned MaxValues = 48;
// How many loads an address may come from, one after the other. With more it is
// wild anyway.
static constexpr unsigned MaxLoads = 2;
// How many accesses there must be, as far as is known, for each call in the
// loop.
static constexpr uint64_t MinPerCall = 2;
// The largest step of a pointer that advances, in bytes.
static constexpr uint64_t MaxStep = 512;

namespace {

// How a pointer moves in a loop: not at all, in small steps, or arbitrarily.
enum class Course { Constant, Advancing, Wild };

// From what loads an address may start anew in an iteration: none; those of a
// member of an object that stays, such as the beginning of an array; or also
// those through an advancing pointer, as with the rows of compressed matrices
// and graphs, each of which begins where the previous one ends.
enum class Reload { None, Members, Rows };

class Holder {
public:
  Holder(Function &F, FunctionAnalysisManager &FAM, MutableArrayRef<Site> Sites)
      : F(F), FAM(FAM), DL(F.getDataLayout()),
        Loops(FAM.getResult<LoopAnalysis>(F)), Sites(Sites) {}
  void run();

private:
  SmallVector<Site *, 0> hottestFirst();
  bool callsRarely(const Loop *L, const BasicBlock *Where);
  void hold(Translation &T, Course C, const Loop *L);
  bool join(Translation &T, const Value *Pointer, const Loop *L);

  Function &F;
  FunctionAnalysisManager &FAM;
  const DataLayout &DL;
  const LoopInfo &Loops;
  MutableArrayRef<Site> Sites;
  MapVector<const BasicBlock *, SmallVector<Instruction *, 4>> Calls;
  DenseMap<const Loop *, uint64_t> CallsIn; // how often a loop runs them

  // An object whose address does not change in a loop, and the leaders that
  // hold its page.
  struct Staying {
    const Value *Base;
    const Loop *L;
    int64_t Low, High; // of the window, from Base
    SmallVector<Translation *, 2> Leaders;
    SmallVector<int64_t, 2> Offsets; // of their pointers
  };
  SmallVector<Staying, 4> Objects;
};

} // namespace

static bool isSmall(const Value *V) {
  auto *C = dyn_cast<ConstantInt>(V);
  return C && C->getValue().abs().ule(MaxStep);
}

static bool isDisjointOr(const BinaryOperator *Op) {
  auto *Or = dyn_cast<PossiblyDisjointInst>(Op);
  return Or && Or->isDisjoint();
}

static bool scales(const Instruction *I) {
  unsigned Code = I->getOpcode();
  return (Code == Instruction::Shl || Code == Instruction::Mul) &&
         isSmall(I->getOperand(1));
}

// An index of few values.
static bool isSmallMask(const Instruction *I) {
  return I->getOpcode() == Instruction::And && isSmall(I->getOperand(1));
}

// Whether I adds a small constant to its first operand.
static bool addsLittle(const Instruction *I, const DataLayout &DL) {
  if (auto *GEP = dyn_cast<GetElementPtrInst>(I)) {
    APInt Offset(64, 0);
    return GEP->accumulateConstantOffset(DL, Offset) &&
           Offset.abs().ule(MaxStep);
  }
  auto *Op = dyn_cast<BinaryOperator>(I);
  return Op && (Op->getOpcode() == Instruction::Add || isDisjointOr(Op)) &&
         isSmall(Op->getOperand(1));
}

// Traces the values in an address back to where they enter the loop. From one
// iteration to the next, only small constants may be added; computations for
// the address alone may multiply, too. Loads: through how many of these Pointer
// was reached.
static Course course(Value *Pointer, const Loop *L, const DataLayout &DL,
                     Reload Carried, unsigned Loads = 0) {
  Course Result = Course::Constant;
  SmallPtrSet<Instruction *, 16> Seen[2]; // for the address; carried on
  SmallVector<std::pair<Value *, bool>, 8> Work(1, {Pointer, false});
  while (!Work.empty()) {
    auto [V, IsCarried] = Work.pop_back_val();
    auto *I = dyn_cast<Instruction>(V);
    if (!I || !L->contains(I) || !Seen[IsCarried].insert(I).second)
      continue;
    if (Seen[IsCarried].size() > MaxValues)
      return Course::Wild;
    auto Follow = [&](auto Operands, bool Carried) {
      for (Value *Operand : Operands)
        Work.push_back({Operand, Carried});
    };
    if (isa<PHINode, SelectInst>(I)) {
      Result = Course::Advancing;
      Follow(drop_begin(I->operands(), isa<SelectInst>(I)), true);
    } else if (isa<SExtInst, ZExtInst, TruncInst, FreezeInst>(I) ||
               addsLittle(I, DL)) {
      Follow(make_range(I->op_begin(), I->op_begin() + 1), IsCarried);
    } else if (auto *Load = dyn_cast<LoadInst>(I);
               Load && Loads < MaxLoads &&
               (!IsCarried || Carried != Reload::None)) {
      Course Where = course(Load->getPointerOperand(), L, DL,
                            /*Carried=*/Reload::None, Loads + 1);
      bool MayAdvance = IsCarried && Carried == Reload::Rows;
      if (Where == Course::Wild || (Where == Course::Advancing && !MayAdvance))
        return Course::Wild;
      Result = Course::Advancing;
    } else if (IsCarried) {
      return Course::Wild;
    } else if (isa<GetElementPtrInst>(I) || scales(I)) {
      Follow(I->operands(), false);
    } else if (!isSmallMask(I)) {
      return Course::Wild;
    } else {
      Result = Course::Advancing;
    }
  }
  return Result;
}

bool staysInPages(Value *Pointer, const Loop *L) {
  return course(Pointer, L, L->getHeader()->getDataLayout(), Reload::Members) !=
         Course::Wild;
}

// The sites in loops that may hold a page, those that run most often first:
// there are few registers and slots.
SmallVector<Site *, 0> Holder::hottestFirst() {
  SmallVector<std::pair<uint64_t, Site *>, 0> Found;
  const auto &Frequencies = FAM.getResult<BlockFrequencyAnalysis>(F);
  for (Site &S : Sites)
    if (S.Accesses.size() == 1 && S.leads(S.Accesses.front()) &&
        (S.Kind == SiteKind::Load || S.Kind == SiteKind::Store) &&
        Loops.getLoopFor(S.Inst->getParent()))
      Found.push_back(
          {Frequencies.getBlockFreq(S.Inst->getParent()).getFrequency(), &S});
  // Sites that run equally often stay in the order of the function.
  llvm::sort(Found, [](auto &A, auto &B) {
    return A.first != B.first ? A.first > B.first : A.second < B.second;
  });
  SmallVector<Site *, 0> Result;
  for (auto [Frequency, S] : Found)
    Result.push_back(S);
  return Result;
}

// Whether L calls so rarely that what an access in Where saves between two
// calls outweighs its checks. Most loops with calls call too often.
bool Holder::callsRarely(const Loop *L, const BasicBlock *Where) {
  const auto &Frequencies = FAM.getResult<BlockFrequencyAnalysis>(F);
  auto [Known, IsNew] = CallsIn.try_emplace(L, 0);
  uint64_t &Count = Known->second;
  if (IsNew)
    for (const BasicBlock *BB : L->blocks())
      if (auto Found = Calls.find(BB); Found != Calls.end())
        Count = SaturatingMultiplyAdd<uint64_t>(
            Found->second.size(), Frequencies.getBlockFreq(BB).getFrequency(),
            Count);
  return Count <= Frequencies.getBlockFreq(Where).getFrequency() / MinPerCall;
}

void Holder::hold(Translation &T, Course C, const Loop *L) {
  BasicBlock &Entry = F.getEntryBlock();
  IRBuilder<> B(&Entry, Entry.begin());
  T.HeldEntry = B.CreateAlloca(B.getInt64Ty(), nullptr, "spill.held");
  if (C == Course::Advancing)
    T.HeldPage = B.CreateAlloca(B.getInt64Ty(), nullptr, "spill.page");
  T.HeldIn.assign(L->block_begin(), L->block_end());
  auto HoldNothing = [&](Instruction *From) {
    B.SetInsertPoint(From);
    // No address is this far from one that a program can access.
    if (T.HeldPage)
      B.CreateStore(B.getInt64(uint64_t(1) << 63), T.HeldPage);
    B.CreateStore(B.getInt64(T.HeldPage ? 1 : 0), T.HeldEntry);
  };
  for (BasicBlock *Pred : predecessors(L->getHeader()))
    if (!L->contains(Pred))
      HoldNothing(Pred->getTerminator());
  for (const auto &[BB, Here] : Calls)
    if (L->contains(BB))
      for (Instruction *Call : Here)
        HoldNothing(Call);
}

// Makes T, whose pointer does not change in L, share the entry, the slot and
// the window of a leader that holds the same object there. Returns false if
// there is none, and records T as the first one.
bool Holder::join(Translation &T, const Value *Pointer, const Loop *L) {
  APInt Offset(64, 0);
  const Value *Base = Pointer->stripAndAccumulateConstantOffsets(
      DL, Offset, /*AllowNonInbounds=*/true);
  int64_t Low = Offset.getSExtValue() + T.Low;
  int64_t High = Offset.getSExtValue() + T.High;
  auto Found = find_if(Objects, [&](const Staying &O) {
    return O.Base == Base && O.L == L &&
           std::max(High, O.High) - std::min(Low, O.Low) <=
               int64_t(options::ReuseWindow);
  });
  if (Found == Objects.end()) {
    Objects.push_back({Base, L, Low, High, {&T}, {Offset.getSExtValue()}});
    return false;
  }
  T.HeldWith = Found->Leaders.front();
  T.HeldEntry = T.HeldWith->HeldEntry;
  Found->Low = std::min(Low, Found->Low);
  Found->High = std::max(High, Found->High);
  Found->Leaders.push_back(&T);
  Found->Offsets.push_back(Offset.getSExtValue());
  for (auto [Leader, From] : zip(Found->Leaders, Found->Offsets)) {
    Leader->MayCross |=
        Leader->Low != Found->Low - From || Leader->High != Found->High - From;
    Leader->Low = Found->Low - From;
    Leader->High = Found->High - From;
  }
  return true;
}

void Holder::run() {
  if (Loops.empty())
    return;
  for (BasicBlock &BB : F)
    for (Instruction &I : BB)
      if (endsTranslations(I))
        Calls[&BB].push_back(&I);
  // What splitting has left of a loop runs only at pages' edges.
  SmallPtrSet<const Loop *, 4> Split;
  for (const Site &S : Sites)
    if (S.Kind == SiteKind::Anchor)
      Split.insert(Loops.getLoopFor(S.Inst->getParent()));
  DenseMap<const Loop *, unsigned> Count;
  unsigned All = 0;
  for (Site *Hottest : hottestFirst()) {
    Site &S = *Hottest;
    const Loop *L = Loops.getLoopFor(S.Inst->getParent());
    if (Split.contains(L) || awaitsOthers(*S.Inst) ||
        any_of(S.Accesses.front().Shared->Followers,
               [](const Instruction *I) { return awaitsOthers(*I); }) ||
        !callsRarely(L, S.Inst->getParent()))
      continue;
    Value *Pointer = S.pointer(S.Accesses.front());
    Course C = course(Pointer, L, DL, Reload::Members);
    if (C == Course::Wild)
      continue;
    // The page is held in as many of the surrounding loops as the pointer moves
    // through in the same way.
    const Loop *Innermost = L;
    while (const Loop *Outer = L->getParentLoop()) {
      Course Further = course(Pointer, Outer, DL, Reload::Rows);
      if (Further == Course::Wild || !callsRarely(Outer, S.Inst->getParent()))
        break;
      C = Further;
      L = Outer;
    }
    Translation &T = *S.Accesses.front().Shared;
    if (Count[Innermost] == MaxPerLoop || All == MaxPerFunction)
      continue;
    if (C == Course::Constant && join(T, Pointer, L))
      continue;
    ++Count[Innermost];
    ++All;
    hold(T, C, L);
  }
}

void holdPages(Function &F, FunctionAnalysisManager &FAM,
               MutableArrayRef<Site> Sites) {
  Holder(F, FAM, Sites).run();
}

void promoteHeldPages(Function &F,
                      const std::deque<Translation> &Translations) {
  SmallVector<AllocaInst *, 16> Variables;
  for (const Translation &T : Translations) {
    if (T.HeldEntry && !T.HeldWith)
      Variables.push_back(T.HeldEntry);
    if (T.HeldPage)
      Variables.push_back(T.HeldPage);
  }
  if (Variables.empty())
    return;
  DominatorTree Dominators(F);
  PromoteMemToReg(Variables, Dominators);
}

} // namespace spillway
