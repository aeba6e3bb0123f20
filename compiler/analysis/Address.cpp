//===- Address.cpp - What an address is made of ---------------------------===//
#include "analysis/Address.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"

#include <algorithm>
#include <array>
#include <optional>

using namespace llvm;

namespace spillway {

namespace {

constexpr unsigned MaxSteps = 16;

/// Scale * extend(Index), extended from Index's width to that of a pointer.
struct Term {
  Value *Index;
  bool ZeroExtended;
  uint64_t Scale;
};

} // namespace

// Moves constants from an index to Offset. A constant that is added before the
// index is extended may be moved only if that addition cannot wrap.
static void simplify(Term &T, uint64_t &Offset) {
  bool Narrow = T.Index->getType()->getIntegerBitWidth() < 64;
  for (unsigned Step = 0; Step < MaxSteps; ++Step) {
    if (auto *Cast = dyn_cast<CastInst>(T.Index);
        Cast && !Narrow && isa<SExtInst, ZExtInst>(Cast)) {
      T.ZeroExtended = isa<ZExtInst>(Cast);
      T.Index = Cast->getOperand(0);
      Narrow = true;
      continue;
    }
    auto *Op = dyn_cast<BinaryOperator>(T.Index);
    auto *C = Op ? dyn_cast<ConstantInt>(Op->getOperand(1)) : nullptr;
    if (!C)
      return;
    bool Safe = !Narrow;
    uint64_t Value =
        T.ZeroExtended ? C->getZExtValue() : uint64_t(C->getSExtValue());
    if (Op->getOpcode() == Instruction::Add) {
      Safe |= T.ZeroExtended ? Op->hasNoUnsignedWrap() : Op->hasNoSignedWrap();
    } else if (Op->getOpcode() == Instruction::Or) {
      if (!cast<PossiblyDisjointInst>(Op)->isDisjoint())
        return;
      Safe = true;
    } else {
      return;
    }
    if (!Safe)
      return;
    Offset += Value * T.Scale;
    T.Index = Op->getOperand(0);
  }
}

// The largest value of an index, if it is known to be small and not negative.
static std::optional<uint64_t> smallMaximum(const Term &T) {
  constexpr uint64_t Limit = 64;
  if (T.Index->getType()->isIntegerTy(1))
    return T.ZeroExtended ? std::optional<uint64_t>(1) : std::nullopt;
  auto Small = [&](const Value *V) -> std::optional<uint64_t> {
    auto *C = dyn_cast<ConstantInt>(V);
    // The upper bit of a type as narrow as i7 is a sign bit if it is
    // sign-extended.
    if (!C || C->getValue().ugt(Limit) || (!T.ZeroExtended && C->isNegative()))
      return std::nullopt;
    return C->getZExtValue();
  };
  if (auto *Select = dyn_cast<SelectInst>(T.Index)) {
    auto A = Small(Select->getTrueValue()), B = Small(Select->getFalseValue());
    return A && B ? std::optional<uint64_t>(std::max(*A, *B)) : std::nullopt;
  }
  auto *Op = dyn_cast<BinaryOperator>(T.Index);
  return Op && Op->getOpcode() == Instruction::And ? Small(Op->getOperand(1))
                                                   : std::nullopt;
}

// What Other is where Phi, of the same block, is its incoming value with this
// number. Most phis of a block name its predecessors in the same order; to
// search them each time would take long where there are thousands.
static Value *incomingBeside(const PHINode &Other, const PHINode &Phi,
                             unsigned Number) {
  BasicBlock *From = Phi.getIncomingBlock(Number);
  return Other.getIncomingBlock(Number) == From
             ? Other.getIncomingValue(Number)
             : Other.getIncomingValueForBlock(From);
}

// Loops may carry several pointers side by side, such as those of an element
// and of its neighbour. Returns an earlier phi of the block from which Phi
// always has the same small distance, and adds the distance to Offset; null if
// there is none.
static Value *besideAnother(PHINode *Phi, const DataLayout &DL,
                            uint64_t &Offset) {
  // How far apart they may be for a common translation to pay.
  constexpr int64_t MaxDistance = 64;
  unsigned Tries = 0;
  for (PHINode &Other : Phi->getParent()->phis()) {
    if (&Other == Phi || ++Tries > MaxSteps)
      return nullptr;
    if (Other.getType() != Phi->getType())
      continue;
    std::optional<int64_t> Distance;
    bool IsBeside = true;
    for (unsigned I = 0; IsBeside && I < Phi->getNumIncomingValues(); ++I) {
      APInt Own(64, 0), Others(64, 0);
      Value *From = Phi->getIncomingValue(I)->stripAndAccumulateConstantOffsets(
          DL, Own, /*AllowNonInbounds=*/true);
      Value *OthersFrom =
          incomingBeside(Other, *Phi, I)
              ->stripAndAccumulateConstantOffsets(DL, Others,
                                                  /*AllowNonInbounds=*/true);
      int64_t Here = (Own - Others).getSExtValue();
      // Both advance by the same amount: the distance does not change.
      if (From == Phi && OthersFrom == &Other) {
        IsBeside = Here == 0;
        continue;
      }
      IsBeside = From == OthersFrom && std::abs(Here) <= MaxDistance &&
                 Distance.value_or(Here) == Here;
      Distance = Here;
    }
    if (IsBeside && Distance) {
      Offset += *Distance;
      return &Other;
    }
  }
  return nullptr;
}

Value *baseOf(Value *V, const DataLayout &DL, APInt &Offset) {
  Offset = APInt(64, 0);
  if (!V->getType()->isPointerTy() ||
      V->getType()->getPointerAddressSpace() != 0)
    return V;
  Value *Base = V->stripAndAccumulateConstantOffsets(DL, Offset,
                                                     /*AllowNonInbounds=*/true);
  if (Base->getType() == V->getType())
    return Base;
  Offset = APInt(64, 0);
  return V;
}

Address decompose(Value *Pointer, const DataLayout &DL) {
  constexpr uint64_t MaxExtent = 256;
  uint64_t Offset = 0, Extent = 0;
  SmallVector<Term, 4> Terms;
  for (unsigned Step = 0; Step < MaxSteps; ++Step) {
    if (auto *Phi = dyn_cast<PHINode>(Pointer)) {
      Value *Other = besideAnother(Phi, DL, Offset);
      if (!Other)
        break;
      Pointer = Other;
      continue;
    }
    auto *GEP = dyn_cast<GEPOperator>(Pointer);
    if (!GEP)
      break;
    MapVector<Value *, APInt> Variable;
    APInt Constant(64, 0);
    if (!GEP->collectOffset(DL, 64, Variable, Constant))
      break;
    if (any_of(Variable, [](auto &V) {
          return V.first->getType()->getIntegerBitWidth() > 64;
        }))
      break;
    Offset += Constant.getSExtValue();
    for (auto &[Index, Scale] : Variable) {
      Term T{Index, false, uint64_t(Scale.getSExtValue())};
      simplify(T, Offset);
      std::optional<uint64_t> Maximum = smallMaximum(T);
      if (Maximum && T.Scale <= MaxExtent &&
          Extent + *Maximum * T.Scale <= MaxExtent)
        Extent += *Maximum * T.Scale;
      else
        Terms.push_back(T);
    }
    Pointer = GEP->getPointerOperand();
  }
  Address Result;
  Result.Offset = int64_t(Offset);
  Result.Extent = Extent;
  Result.Terms.push_back(reinterpret_cast<uintptr_t>(Pointer));
  std::vector<std::array<uint64_t, 3>> Sorted;
  for (const Term &T : Terms)
    Sorted.push_back({reinterpret_cast<uintptr_t>(T.Index),
                      uint64_t(T.ZeroExtended), T.Scale});
  std::sort(Sorted.begin(), Sorted.end());
  for (const auto &Words : Sorted)
    Result.Terms.insert(Result.Terms.end(), Words.begin(), Words.end());
  return Result;
}

} // namespace spillway
