//===- Order.h - In which order iterations access memory --------*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_ORDER_H
#define SPILLWAY_COMPILER_ORDER_H

#include <cstdint>
#include <optional>

namespace llvm {
class LoadInst;
class Loop;
class LoopInfo;
class PHINode;
class ScalarEvolution;
class SCEV;
class Value;
} // namespace llvm

namespace spillway {

/// Whether an address that advances by Step in each iteration meets another page
/// only now and then. Not if Step is not known.
bool isNearStep(std::optional<int64_t> Step);

/// What becomes of values and addresses from one iteration of a loop to the
/// next. REQUIRES: the analyses hold.
class LoopOrder {
public:
  LoopOrder(llvm::ScalarEvolution &SE, llvm::LoopInfo &LI) : SE(SE), LI(LI) {}

  /// What V, or S, advances by in each iteration of L, if that is a constant.
  std::optional<int64_t> constantStep(llvm::Value *V, llvm::Loop *L) const;
  std::optional<int64_t> constantStep(const llvm::SCEV *S, llvm::Loop *L) const;

  /// What Phi advances by in each iteration, if that is a constant or a value
  /// that the loop does not change; else null.
  llvm::Value *counterStep(llvm::PHINode *Phi, llvm::Loop *L) const;

  /// Whether Phi carries a pointer that the loop does nothing with but to load
  /// it anew from the same place, as one has to after stores that might have
  /// changed it. It is taken for one that stays.
  bool isReloaded(llvm::PHINode *Phi, llvm::Loop *L) const;

  /// Whether Load, an instruction of L, loads what lies side by side.
  bool isInOrder(llvm::LoadInst *Load, llvm::Loop *L) const;

  /// Whether it loads something else in each iteration, and not side by side.
  bool isInNoOrder(llvm::LoadInst *Load, llvm::Loop *L) const;

  /// Whether Load, an instruction of L in no order, says where a counter of a
  /// loop inside begins, which therefore begins elsewhere each time.
  bool isRowBegin(llvm::LoadInst *Load, llvm::Loop *L) const;

private:
  llvm::ScalarEvolution &SE;
  llvm::LoopInfo &LI;
};

} // namespace spillway

#endif
