//===- Order.cpp - In which order iterations access memory ----------------===//
#include "loops/Order.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace spillway {

// An address that advances by this much soon reaches another page.
static constexpr int64_t FarStep = 2048;
// The most values that are followed from one.
static constexpr unsigned MaxValues = 64;

bool isNearStep(std::optional<int64_t> Step) {
  return Step && *Step < FarStep && *Step > -FarStep;
}

std::optional<int64_t> LoopOrder::constantStep(Value *V, Loop *L) const {
  if (!SE.isSCEVable(V->getType()))
    return std::nullopt;
  return constantStep(SE.getSCEV(V), L);
}

std::optional<int64_t> LoopOrder::constantStep(const SCEV *S, Loop *L) const {
  auto *Recurrence = dyn_cast<SCEVAddRecExpr>(S);
  if (!Recurrence || Recurrence->getLoop() != L || !Recurrence->isAffine())
    return std::nullopt;
  auto *Step = dyn_cast<SCEVConstant>(Recurrence->getStepRecurrence(SE));
  if (!Step || Step->getAPInt().getSignificantBits() > 64)
    return std::nullopt;
  return Step->getAPInt().getSExtValue();
}

Value *LoopOrder::counterStep(PHINode *Phi, Loop *L) const {
  if (!SE.isSCEVable(Phi->getType()) ||
      SE.getTypeSizeInBits(Phi->getType()) > 64)
    return nullptr;
  auto *Recurrence = dyn_cast<SCEVAddRecExpr>(SE.getSCEV(Phi));
  if (!Recurrence || Recurrence->getLoop() != L || !Recurrence->isAffine())
    return nullptr;
  const SCEV *Step = Recurrence->getStepRecurrence(SE);
  if (auto *Constant = dyn_cast<SCEVConstant>(Step))
    return Constant->getValue();
  auto *Unknown = dyn_cast<SCEVUnknown>(Step);
  return Unknown && Unknown->getType()->isIntegerTy() ? Unknown->getValue()
                                                      : nullptr;
}

bool LoopOrder::isReloaded(PHINode *Phi, Loop *L) const {
  if (!Phi->getType()->isPointerTy())
    return false;
  SmallSetVector<Value *, 8> Values;
  Values.insert(Phi->getIncomingValueForBlock(L->getLoopLatch()));
  for (unsigned At = 0; At < Values.size(); ++At) {
    Value *V = Values[At];
    if (V == Phi || L->isLoopInvariant(V))
      continue;
    if (auto *Load = dyn_cast<LoadInst>(V)) {
      if (!L->isLoopInvariant(Load->getPointerOperand()))
        return false;
      continue;
    }
    auto *Other = dyn_cast<PHINode>(V);
    if (!Other || Values.size() > MaxValues)
      return false;
    Values.insert(Other->value_op_begin(), Other->value_op_end());
  }
  return true;
}

bool LoopOrder::isInOrder(LoadInst *Load, Loop *L) const {
  return isNearStep(constantStep(Load->getPointerOperand(), L));
}

bool LoopOrder::isInNoOrder(LoadInst *Load, Loop *L) const {
  return !isInOrder(Load, L) &&
         !SE.isLoopInvariant(SE.getSCEV(Load->getPointerOperand()), L);
}

bool LoopOrder::isRowBegin(LoadInst *Load, Loop *L) const {
  if (!isInNoOrder(Load, L))
    return false;
  // Also through what is computed from it on the way: unrolled loops sometimes
  // begin an iteration later.
  SmallSetVector<Value *, 8> Values;
  Values.insert(Load);
  for (unsigned At = 0; At < Values.size() && At < MaxValues; ++At)
    for (User *U : Values[At]->users()) {
      auto *Phi = dyn_cast<PHINode>(U);
      Loop *Inner = Phi ? LI.getLoopFor(Phi->getParent()) : nullptr;
      if (Phi && Inner != L && L->contains(Phi) &&
          Inner->getHeader() == Phi->getParent()) {
        if (counterStep(Phi, Inner))
          return true;
      } else if (isa<PHINode, BinaryOperator, CastInst, FreezeInst>(U)) {
        Values.insert(U);
      }
    }
  return false;
}

} // namespace spillway
