//===- Slots.cpp - Which translation takes which slot ---------------------===//
//
// A translation's live range is that of a value in SSA form: its definition
// dominates its uses. So the ranges can be coloured greedily in dominance
// order, and only what is live where a range begins has to be looked at.
//
//===----------------------------------------------------------------------===//
#include "Slots.h"
#include "Abi.h"
#include "Flow.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/CFG.h"

using namespace llvm;

namespace spillway {

namespace {

struct LiveRange {
  SmallPtrSet<BasicBlock *, 8> LiveIn;
  DenseMap<BasicBlock *, Instruction *> LastUse;
};

class SlotAssigner {
public:
  explicit SlotAssigner(std::deque<Translation> &Translations);

  void assign(MutableArrayRef<Site> Block);
  bool isDropped(const Translation *T) const { return Dropped.contains(T); }

private:
  bool isLiveAfter(const Translation *T, const Instruction *I) const;
  void begin(Translation *T);

  DenseMap<const Translation *, LiveRange> Ranges;
  DenseMap<const BasicBlock *, SmallVector<Translation *, 4>> LiveInOf;
  SmallPtrSet<const Translation *, 4> Dropped;
  SmallVector<Translation *, 16> Active; // at the point being looked at
};

} // namespace

SlotAssigner::SlotAssigner(std::deque<Translation> &Translations) {
  for (Translation &T : Translations) {
    if (T.Followers.empty())
      continue;
    LiveRange &Range = Ranges[&T];
    for (Instruction *Follower : T.Followers) {
      SmallVector<BasicBlock *, 8> LiveIn;
      Flow::collectLiveIn(T.Leader, Follower, LiveIn);
      Range.LiveIn.insert(LiveIn.begin(), LiveIn.end());
      Instruction *&Last = Range.LastUse[Follower->getParent()];
      if (!Last || Last->comesBefore(Follower))
        Last = Follower;
    }
    for (BasicBlock *BB : Range.LiveIn)
      LiveInOf[BB].push_back(&T);
  }
}

bool SlotAssigner::isLiveAfter(const Translation *T,
                               const Instruction *I) const {
  const LiveRange &Range = Ranges.find(T)->second;
  auto Last = Range.LastUse.find(I->getParent());
  if (Last != Range.LastUse.end() && I->comesBefore(Last->second))
    return true;
  return any_of(successors(I->getParent()), [&](const BasicBlock *Next) {
    return Range.LiveIn.contains(Next);
  });
}

void SlotAssigner::begin(Translation *T) {
  SlotSet Used = (SlotSet(1) << ScratchSlots) - 1;
  for (Translation *Other : Active)
    Used |= SlotSet(1) << Other->Slot;
  static_assert(abi::SlotCount == 32, "SlotSet has a bit for each slot");
  unsigned Free = llvm::countr_one(Used);
  if (Free >= abi::SlotCount) {
    Dropped.insert(T);
    return;
  }
  T->Slot = Free;
  Active.push_back(T);
}

void SlotAssigner::assign(MutableArrayRef<Site> Block) {
  Active.clear();
  for (Translation *T : LiveInOf.lookup(Block.front().Inst->getParent()))
    if (!isDropped(T))
      Active.push_back(T);
  for (Site &S : Block) {
    // What ended between sites is taken off below, where it ended.
    for (Access &A : S.Accesses)
      if (S.leads(A))
        begin(A.Shared);
    for (Translation *T : Active)
      S.Live |= SlotSet(1) << T->Slot;
    erase_if(Active, [&](Translation *T) { return !isLiveAfter(T, S.Inst); });
  }
}

void assignSlots(MutableArrayRef<Site> Sites,
                 std::deque<Translation> &Translations) {
  SlotAssigner Assigner(Translations);
  for (size_t Begin = 0, End; Begin < Sites.size(); Begin = End) {
    BasicBlock *BB = Sites[Begin].Inst->getParent();
    End = Begin + 1;
    while (End < Sites.size() && Sites[End].Inst->getParent() == BB)
      ++End;
    Assigner.assign(Sites.slice(Begin, End - Begin));
  }
  for (Site &S : Sites)
    for (Access &A : S.Accesses)
      if (A.Shared && Assigner.isDropped(A.Shared))
        A.Shared = nullptr;
}

} // namespace spillway
