//===- Segments.cpp - Straight code that asks once ------------------------===//
#include "translation/Segments.h"
#include "Functions.h"

#include "llvm/IR/Constants.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace spillway {

// The most instructions of a segment. Each translation that is decided in it
// adds one copy of each.
static constexpr unsigned MaxLength = 64;
// The most levels of nested segments.
static constexpr unsigned MaxDepth = 4;

namespace {

class Duplicator {
public:
  explicit Duplicator(ArrayRef<Site> Sites);
  void arrange(MutableArrayRef<Site> Block, unsigned Depth);

  SmallVector<Step, 0> Steps;

private:
  void duplicate(MutableArrayRef<Site> Segment, const Access &First,
                 unsigned Depth);
  void mergeResults(BasicBlock *Hot, BasicBlock *Cold, BasicBlock *Tail,
                    ValueToValueMapTy &Copies);

  // By reference: the translations that have it. It is no operand of their
  // leader.
  DenseMap<Value *, SmallVector<Translation *, 2>> MeasuredFrom;
};

} // namespace

Duplicator::Duplicator(ArrayRef<Site> Sites) {
  for (const Site &S : Sites)
    for (const Access &A : S.Accesses)
      if (S.leads(A) && A.Shared->Reference)
        MeasuredFrom[A.Shared->Reference].push_back(A.Shared);
}

static bool uses(const Site &S, const Translation *T) {
  return any_of(S.Accesses, [&](const Access &A) { return A.Shared == T; });
}

static bool isCloneable(const Instruction &I) {
  return !isUnique(I) && !isa<AllocaInst>(I) && !I.getType()->isTokenTy();
}

// How many sites, from the first on, are near enough to it.
static size_t reach(ArrayRef<Site> Sites) {
  unsigned Length = 0;
  size_t Count = 1;
  const Instruction *I = Sites.front().Inst;
  while (Count < Sites.size()) {
    for (; I != Sites[Count].Inst; I = I->getNextNode())
      if (++Length > MaxLength || !isCloneable(*I))
        return Count;
    ++Count;
  }
  return Count;
}

// The number of sites from Sites.front() to the last that uses T, or a
// translation whose accesses are interleaved with those of T.
static size_t segmentLength(ArrayRef<Site> Sites, const Translation *T) {
  Sites = Sites.take_front(reach(Sites));
  auto LastUse = [&](const Translation *Of) {
    size_t Index = Sites.size() - 1;
    while (!uses(Sites[Index], Of))
      --Index;
    return Index;
  };
  size_t Last = LastUse(T);
  for (size_t Index = 0; Index <= Last; ++Index)
    for (const Access &A : Sites[Index].Accesses)
      if (Last > 0 && A.Shared && !A.Checked)
        Last = std::max(Last, LastUse(A.Shared));
  return Last + 1;
}

static bool isUsedBehind(const Translation &T, ArrayRef<Site> Segment) {
  return any_of(T.Followers, [&](const Instruction *Follower) {
    return none_of(Segment, [&](const Site &S) { return S.Inst == Follower; });
  });
}

// Whether all translations that the segment makes for code after it may lack an
// entry there.
static bool mayLackEntries(ArrayRef<Site> Segment) {
  for (const Site &S : Segment)
    for (const Access &A : S.Accesses)
      if (S.leads(A) && !A.Shared->MayCross && isUsedBehind(*A.Shared, Segment))
        return false;
  return true;
}

// Joins what both copies of the segment compute for the code after it.
void Duplicator::mergeResults(BasicBlock *Hot, BasicBlock *Cold,
                              BasicBlock *Tail, ValueToValueMapTy &Copies) {
  for (Instruction &I : *Hot) {
    PHINode *Either = nullptr;
    auto Merged = [&] {
      if (!Either) {
        Either = PHINode::Create(I.getType(), 2, I.getName(), Tail->begin());
        Either->setDebugLoc(I.getDebugLoc());
      }
      return Either;
    };
    for (Use &U : make_early_inc_range(I.uses()))
      if (cast<Instruction>(U.getUser())->getParent() != Hot)
        U.set(Merged());
    if (auto Found = MeasuredFrom.find(&I); Found != MeasuredFrom.end()) {
      SmallVector<Translation *, 2> Behind;
      for (Translation *T : Found->second)
        if (T->Reference == &I && T->Leader->getParent() != Hot)
          Behind.push_back(T);
      for (Translation *T : Behind) {
        T->Reference = Merged();
        MeasuredFrom[Either].push_back(T);
      }
    }
    if (Either) {
      Either->addIncoming(&I, Hot);
      Either->addIncoming(cast<Value>(Copies[&I]), Cold);
    }
  }
}

void Duplicator::duplicate(MutableArrayRef<Site> Segment, const Access &First,
                           unsigned Depth) {
  Translation *T = First.Shared;
  Step Decision{Step::Decide, Segment.front()};
  Decision.S.Accesses = {First};
  for (Site &S : Segment)
    for (Access &A : S.Accesses)
      A.Checked |= A.Shared == T;

  BasicBlock *Head = Segment.front().Inst->getParent();
  BasicBlock *Hot = SplitBlock(Head, Segment.front().Inst);
  BasicBlock *Tail = SplitBlock(Hot, Segment.back().Inst->getNextNode());
  ValueToValueMapTy Copies;
  BasicBlock *Cold = CloneBasicBlock(Hot, Copies, ".cold", Head->getParent());
  remapInstructionsInBlocks({Cold}, Copies);
  Instruction *Old = Head->getTerminator();
  Decision.Branch = BranchInst::Create(
      Cold, Hot, ConstantInt::getFalse(Head->getContext()), Old->getIterator());
  Decision.Branch->setDebugLoc(Segment.front().Inst->getDebugLoc());
  Old->eraseFromParent();
  Steps.push_back(std::move(Decision));

  mergeResults(Hot, Cold, Tail, Copies);

  SmallVector<Step, 2> Joins;
  SmallVector<Site, 8> ColdSites;
  Type *I64 = Type::getInt64Ty(Head->getContext());
  for (const Site &S : Segment) {
    Site Copy = S;
    Copy.Inst = cast<Instruction>(Copies[S.Inst]);
    Copy.IsCold = true;
    for (auto [A, CopyA] : zip(S.Accesses, Copy.Accesses)) {
      if (!A.Shared)
        continue;
      bool Begins = any_of(Segment, [&, Shared = A.Shared](const Site &Other) {
        return Other.Inst == Shared->Leader;
      });
      if (Begins || A.Shared == T) {
        CopyA.Shared = nullptr;
        CopyA.Checked = false;
      }
      if (S.leads(A) && isUsedBehind(*A.Shared, Segment)) {
        PHINode *Entry = PHINode::Create(I64, 2, "spill.behind", Tail->begin());
        Entry->addIncoming(ConstantInt::get(I64, 0), Hot);
        Entry->addIncoming(ConstantInt::get(I64, 0), Cold);
        Joins.push_back({Step::Join, S, nullptr, A.Shared, Entry});
      }
    }
    ColdSites.push_back(std::move(Copy));
  }
  arrange(Segment, Depth + 1);
  for (Site &S : ColdSites)
    Steps.push_back({Step::Rewrite, std::move(S)});
  Steps.append(Joins.begin(), Joins.end());
}

void Duplicator::arrange(MutableArrayRef<Site> Block, unsigned Depth) {
  while (!Block.empty()) {
    const Site &S = Block.front();
    size_t Length = 0;
    const Access *First = nullptr;
    if (Depth < MaxDepth)
      for (const Access &A : S.Accesses) {
        // A site that leads with one access and shares with another has no
        // entry for its followers if either of the two crosses.
        if (!A.Shared || !A.Shared->MayCross || A.Checked ||
            (S.leads(A) && S.Accesses.size() > 1))
          continue;
        size_t Candidate = segmentLength(Block, A.Shared);
        if (Candidate > Length && mayLackEntries(Block.take_front(Candidate))) {
          Length = Candidate;
          First = &A;
        }
      }
    if (Length > 1) {
      duplicate(Block.take_front(Length), Access(*First), Depth);
      Block = Block.drop_front(Length);
    } else {
      Steps.push_back({Step::Rewrite, S});
      Block = Block.drop_front();
    }
  }
}

SmallVector<Step, 0> arrangeSteps(MutableArrayRef<Site> Sites,
                                  bool Duplicates) {
  Duplicator Result(Sites);
  while (!Sites.empty()) {
    size_t Count = 1;
    while (Count < Sites.size() &&
           Sites[Count].Inst->getParent() == Sites.front().Inst->getParent())
      ++Count;
    MutableArrayRef<Site> Block = Sites.take_front(Count);
    Sites = Sites.drop_front(Count);
    Result.arrange(Block, Duplicates ? 0 : MaxDepth);
  }
  return std::move(Result.Steps);
}

} // namespace spillway
