//===- Slots.cpp - Which translation takes which slot ---------------------===//
//
// A translation's live range is that of a value in SSA form: its definition
// dominates its uses. So ranges can be coloured greedily in dominance order,
// and only what is live where a range begins has to be considered. Translations
// that a loop holds are the exception, since in it they are live before their
// leaders: they get their slots first.
//
//===----------------------------------------------------------------------===//
#include "translation/Slots.h"
#include "Abi.h"
#include "analysis/Flow.h"

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
  bool meet(const Translation *T, const Translation *Other) const;
  SlotSet slotsOfHeld(const Translation *T) const;
  void begin(Translation *T);
  bool take(Translation *T, SlotSet Used);

  DenseMap<const Translation *, LiveRange> Ranges;
  DenseMap<const BasicBlock *, SmallVector<Translation *, 4>> LiveInOf;
  SmallPtrSet<const Translation *, 4> Dropped;
  SmallVector<Translation *, 4> Held;    // have had slots from the start
  SmallVector<Translation *, 16> Active; // live at the present site
};

} // namespace

SlotAssigner::SlotAssigner(std::deque<Translation> &Translations) {
  for (Translation &T : Translations) {
    if (T.Followers.empty() && !T.HeldEntry)
      continue;
    LiveRange &Range = Ranges[&T];
    Range.LiveIn.insert(T.HeldIn.begin(), T.HeldIn.end());
    for (Instruction *Follower : T.Followers) {
      SmallVector<BasicBlock *, 8> LiveIn;
      Flow::collectLiveIn(T.Leader, Follower, LiveIn);
      Range.LiveIn.insert(LiveIn.begin(), LiveIn.end());
      Instruction *&Last = Range.LastUse[Follower->getParent()];
      if (!Last || Last->comesBefore(Follower))
        Last = Follower;
    }
  }
  for (Translation &T : Translations)
    if (T.HeldWith) {
      LiveRange &Range = Ranges[T.HeldWith];
      const LiveRange &Joined = Ranges[&T];
      Range.LiveIn.insert(Joined.LiveIn.begin(), Joined.LiveIn.end());
    }
  for (Translation &T : Translations)
    if (T.HeldEntry && !T.HeldWith && take(&T, slotsOfHeld(&T)))
      Held.push_back(&T);
  // Only after all of these have their slots: a translation that holds for
  // another may come after it.
  for (Translation &T : Translations) {
    if (!T.HeldWith)
      continue;
    if (isDropped(T.HeldWith)) {
      Dropped.insert(&T);
    } else {
      T.Slot = T.HeldWith->Slot;
      Held.push_back(&T);
    }
  }
  for (Translation &T : Translations)
    if (auto Found = Ranges.find(&T); Found != Ranges.end())
      for (BasicBlock *BB : Found->second.LiveIn)
        LiveInOf[BB].push_back(&T);
}

// Whether both are live in some block.
bool SlotAssigner::meet(const Translation *T, const Translation *Other) const {
  auto IsIn = [&](const Translation *Of, const BasicBlock *BB) {
    return Of->Leader->getParent() == BB ||
           Ranges.find(Of)->second.LiveIn.contains(BB);
  };
  return IsIn(Other, T->Leader->getParent()) ||
         any_of(Ranges.find(T)->second.LiveIn,
                [&](const BasicBlock *BB) { return IsIn(Other, BB); });
}

SlotSet SlotAssigner::slotsOfHeld(const Translation *T) const {
  SlotSet Slots = (SlotSet(1) << ScratchSlots) - 1;
  for (const Translation *Other : Held)
    if (meet(T, Other))
      Slots |= SlotSet(1) << Other->Slot;
  return Slots;
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

bool SlotAssigner::take(Translation *T, SlotSet Used) {
  static_assert(abi::SlotCount == 32, "SlotSet has a bit for each slot");
  unsigned Free = llvm::countr_one(Used);
  if (Free >= abi::SlotCount) {
    Dropped.insert(T);
    return false;
  }
  T->Slot = Free;
  return true;
}

void SlotAssigner::begin(Translation *T) {
  if (is_contained(Held, T)) {
    if (!is_contained(Active, T))
      Active.push_back(T);
    return;
  }
  if (isDropped(T))
    return;
  SlotSet Used = slotsOfHeld(T);
  for (Translation *Other : Active)
    Used |= SlotSet(1) << Other->Slot;
  if (take(T, Used))
    Active.push_back(T);
}

void SlotAssigner::assign(MutableArrayRef<Site> Block) {
  Active.clear();
  for (Translation *T : LiveInOf.lookup(Block.front().Inst->getParent()))
    if (!isDropped(T))
      Active.push_back(T);
  for (Site &S : Block) {
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
