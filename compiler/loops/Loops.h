//===- Loops.h - Loops split at page edges ----------------------*- C++ -*-===//
//
// A countable innermost loop without calls, some of whose pointers advance by a
// constant, becomes
//
//     preheader ─► header ──few left──────────────► body ─► latch ─┬─► exit
//                   ▲  ▲ └► plan ─edge near─────────▲              │
//                   │  │     └► enter ─► fast ⟲ ─► done ─┬─► exit  │
//                   │  └─────────────────────────────────┘         │
//                   └──────────────────────────────────────────────┘
//
//   header  the values that the loop carries, and how many iterations are left
//   plan    how many of them keep every pointer inside its OS page
//   enter   translates each pointer once, for all of those iterations
//   fast    a copy of the loop that runs them on raw addresses
//   body    one iteration of the loop as it was, translated access by access:
//           taken where an element lies across a page's edge
//
//   1  A pointer is translated ahead only if the iteration that comes next
//      accesses it whatever happens: its block dominates the latch, which is
//      the only exit.
//   2  Accesses under conditions may share the translation: same distance, same
//      page.
//   3  Nothing is called between "enter" and the last iteration of "fast".
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_LOOPS_H
#define SPILLWAY_COMPILER_LOOPS_H

#include "analysis/Accesses.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/PassManager.h"

#include <deque>

namespace llvm {
class Loop;
class ScalarEvolution;
class TargetTransformInfo;
} // namespace llvm

namespace spillway {

/// Accesses of a loop at constant distances from each other, in the same page
/// for as many iterations as the loop's plan allows.
struct PagePointer {
  struct Member {
    llvm::Instruction *Inst;
    unsigned Operand;
  };
  int64_t Step;      // bytes per iteration
  int64_t Low, High; // bytes accessed, relative to the first member's address
  llvm::SmallVector<Member, 4> Members;
};

struct LoopPlan {
  llvm::Loop *L;
  llvm::Value *TripCount; // 64 bits, available in the preheader
  llvm::SmallVector<PagePointer, 4> Pointers;
};

/// Finds the loops of F that are worth splitting, and prepares them: they have
/// preheaders, and phis where their values leave them.
llvm::SmallVector<LoopPlan, 0>
planLoops(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
          const llvm::SmallPtrSetImpl<llvm::Instruction *> &InPage);

/// How often the loop runs, in 64 bits, computed in its preheader; null if that
/// is not known there, or costs too much. All 2^64 iterations wrap to none.
/// REQUIRES: L has a preheader.
llvm::Value *expandTripCount(llvm::Loop *L, llvm::ScalarEvolution &SE,
                             const llvm::TargetTransformInfo &TTI);

/// Whether L is a row of a compressed matrix or graph, by all appearances: how
/// long it is was loaded in the loop around. Most are short, and where one ends
/// the next begins: it is not split, but the page is held over all of them
/// (Held.h).
bool isRow(const llvm::Loop *L, llvm::ScalarEvolution &SE);

/// Notes of a loop that has become a part of another, which runs it again and
/// again, whether it was a row before. Latch: how it ends.
void markStrip(llvm::Instruction *Latch, bool WasRow);

/// What splitting leaves for the rewriting of sites: one translation per
/// pointer, whose leader is an anchor, an instruction that stands where it is
/// to be made.
struct Chunks {
  std::deque<Translation> Translations;
  llvm::DenseMap<std::pair<llvm::Instruction *, unsigned>, Translation *>
      Shared;
};

/// Splits the loop of Plan. The copies of instructions in InPage are added to
/// it. Analyses of the function are stale afterwards.
void splitLoop(const LoopPlan &Plan, Chunks &Result,
               llvm::SmallPtrSetImpl<llvm::Instruction *> &InPage);

} // namespace spillway

#endif
