//===- Reuse.cpp - Accesses that share a translation ----------------------===//
#include "translation/Reuse.h"
#include "Abi.h"
#include "Options.h"
#include "analysis/Address.h"
#include "analysis/Flow.h"
#include "analysis/Kills.h"
#include "loops/Held.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"

#include <map>

using namespace llvm;

namespace spillway {

// Whether F has cycles that may be entered in their middle: LoopInfo does not
// know these.
static bool hasOtherCycles(Function &F, const LoopInfo &Loops) {
  ReversePostOrderTraversal<Function *> Order(&F);
  return containsIrreducibleCFG<BasicBlock *>(Order, Loops);
}

// Whether control may come from BB to BB again without running through Around.
// Walks backwards: where Around reaches BB freely (Flow.h), few blocks lie
// between them.
static bool returnsWithout(BasicBlock *BB, BasicBlock *Around) {
  if (BB == Around)
    return false;
  SmallPtrSet<BasicBlock *, 16> Seen;
  SmallVector<BasicBlock *, 16> Work(1, BB);
  while (!Work.empty())
    for (BasicBlock *Pred : predecessors(Work.pop_back_val())) {
      if (Pred == Around || !Seen.insert(Pred).second)
        continue;
      if (Pred == BB)
        return true;
      Work.push_back(Pred);
    }
  return false;
}

namespace {

/// A translation under construction.
struct Candidate {
  Translation *T;
  int64_t LeaderOffset; // Offset of the leader's address (Address.h)
  int64_t LeaderExtent; // the same
  Align LeaderAlign;
};

class Sharing {
public:
  Sharing(Function &F, std::deque<Translation> &Translations)
      : DL(F.getDataLayout()), Paths(F), Dominators(F), Loops(Dominators),
        HasOtherCycles(hasOtherCycles(F, Loops)), Translations(Translations) {}

  void visit(Site &S);

private:
  bool follow(Site &S, Access &A, const Address &Where,
              SmallVectorImpl<Candidate> &Earlier);

  const DataLayout &DL;
  Flow Paths;
  DominatorTree Dominators;
  LoopInfo Loops;
  bool HasOtherCycles;
  std::map<std::vector<uint64_t>, SmallVector<Candidate, 4>> Leaders;
  std::deque<Translation> &Translations;
};

} // namespace

// How many earlier translations of the same terms are tried. Only those that
// dominate the access count: in a large switch most belong to other cases.
static constexpr unsigned MaxTries = 16;

bool Sharing::follow(Site &S, Access &A, const Address &Where,
                     SmallVectorImpl<Candidate> &Earlier) {
  unsigned Tries = 0;
  const Loop *L =
      awaitsOthers(*S.Inst) ? Loops.getLoopFor(S.Inst->getParent()) : nullptr;
  for (Candidate &C : reverse(Earlier)) {
    if (!Dominators.dominates(C.T->Leader->getParent(), S.Inst->getParent()))
      continue;
    if (L && !L->contains(C.T->Leader))
      continue;
    if (++Tries > MaxTries)
      return false;
    // Relative to whatever the leader's address is when it runs.
    int64_t First = Where.Offset - C.LeaderOffset - C.LeaderExtent;
    int64_t Last = Where.Offset - C.LeaderOffset + int64_t(Where.Extent);
    int64_t Low = std::min(C.T->Low, First);
    int64_t High = std::max(C.T->High, Last + int64_t(A.Size));
    if (High - Low > int64_t(options::ReuseWindow) || C.T->Leader == S.Inst ||
        !Paths.reachesFreely(C.T->Leader, S.Inst))
      continue;
    if (HasOtherCycles && awaitsOthers(*S.Inst) &&
        returnsWithout(S.Inst->getParent(), C.T->Leader->getParent()))
      continue;
    // The leader's alignment covers the whole window.
    int64_t Unit = int64_t(std::min(C.LeaderAlign.value(), abi::PageSize));
    bool MayCross = Low < 0 || High > Unit;
    // The check whether the leader has an entry would take more code than an
    // access of its own.
    if (S.IsCold && MayCross)
      continue;
    C.T->Low = Low;
    C.T->High = High;
    C.T->MayCross = MayCross;
    C.T->Followers.push_back(S.Inst);
    A.Shared = C.T;
    return true;
  }
  return false;
}

void Sharing::visit(Site &S) {
  // Assembly ends translations; nothing could follow its own.
  if (isa<CallBase>(S.Inst) && cast<CallBase>(S.Inst)->isInlineAsm())
    return;
  for (Access &A : S.Accesses) {
    if (A.Shared || A.Size > options::ReuseWindow)
      continue;
    Address Where = decompose(S.pointer(A), DL);
    SmallVectorImpl<Candidate> &Earlier = Leaders[Where.Terms];
    if (follow(S, A, Where, Earlier))
      continue;
    if (S.IsCold)
      continue;
    Translations.push_back(
        {S.Inst, /*Low=*/0, /*High=*/int64_t(A.Size), A.MayCross});
    A.Shared = &Translations.back();
    Earlier.push_back({&Translations.back(), Where.Offset,
                       int64_t(Where.Extent), A.Alignment});
  }
}

// Makes the window begin at the address of the object itself if that is near.
// Code has that in a register, while a member's address would have to be
// computed.
static void chooseReference(Translation &T, Value *Pointer,
                            const DataLayout &DL) {
  APInt Offset;
  Value *Base = baseOf(Pointer, DL, Offset);
  int64_t Start = -Offset.getSExtValue();
  if (T.MayCross && Start <= T.Low &&
      T.High - Start <= int64_t(options::ReuseWindow)) {
    T.Low = Start;
    T.Reference = Base;
  }
}

void shareTranslations(Function &F, FunctionAnalysisManager &FAM,
                       MutableArrayRef<Site> Sites,
                       std::deque<Translation> &Translations) {
  Sharing Result(F, Translations);
  for (Site &S : Sites)
    Result.visit(S);
  if (options::Held && !F.hasOptNone() && !F.hasMinSize())
    holdPages(F, FAM, Sites);
  for (Site &S : Sites)
    for (Access &A : S.Accesses)
      if (A.Shared && A.Shared->Followers.empty() && !A.Shared->HeldEntry) {
        A.Shared = nullptr;
      } else if (S.leads(A)) {
        chooseReference(*A.Shared, S.pointer(A), F.getDataLayout());
        // If the other side of a copy lies across an edge, neither side has an
        // entry for its followers.
        A.Shared->MayCross |= S.Accesses.size() > 1;
      }
}

} // namespace spillway
