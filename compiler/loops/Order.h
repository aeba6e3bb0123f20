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

/// Whether an address that advances by Step in each iteration reaches another
/// page only now and then. False if Step is not known.
bool isNearStep(std::optional<int64_t> Step);

/// How values and addresses change from one iteration of a loop to the next.
/// REQUIRES: the analyses hold.
class LoopOrder {
public:
  LoopOrder(llvm::ScalarEvolution &SE, llvm::LoopInfo &LI) : SE(SE), LI(LI) {}

  /// By how much V, or S, advances in each iteration of L, if that is a
  /// constant.
  std::optional<int64_t> constantStep(llvm::Value *V, llvm::Loop *L) const;
  std::optional<int64_t> constantStep(const llvm::SCEV *S, llvm::Loop *L) const;

  /// By how much Phi advances in each iteration, if that is a constant or a
  /// value that the loop does not change; else null.
  llvm::Value *counterStep(llvm::PHINode *Phi, llvm::Loop *L) const;

  /// Whether Phi carries a pointer that the loop changes only by reloading it
  /// from the same place, as is necessary after stores that might have changed
  /// it. It is assumed to stay.
  bool isReloaded(llvm::PHINode *Phi, llvm::Loop *L) const;

  /// Whether Load, an instruction of L, loads adjacent elements.
  bool isInOrder(llvm::LoadInst *Load, llvm::Loop *L) const;

  /// Whether it loads different, non-adjacent elements in each iteration.
  bool isInNoOrder(llvm::LoadInst *Load, llvm::Loop *L) const;

  /// Whether Load, an instruction of L in no order, gives the initial value of
  /// an inner loop's counter, which therefore begins elsewhere each time.
  bool isRowBegin(llvm::LoadInst *Load, llvm::Loop *L) const;

private:
  llvm::ScalarEvolution &SE;
  llvm::LoopInfo &LI;
};

} // namespace spillway

#endif
