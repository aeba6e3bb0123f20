//===- LoopSplit.h - Loops split at page edges ------------------*- C++ -*-===//
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
//   fast    a copy of the loop that runs these iterations on raw addresses
//   body    one iteration of the original loop, translated access by access:
//           for elements across a page's edge, or when few are left
//
//   1  A pointer is translated ahead only if the next iteration is certain to
//      access it: the access's block dominates the latch, which is the only
//      exit.
//   2  Accesses under conditions may share such a translation if they lie at a
//      constant distance: the plan keeps them in the same page.
//   3  Nothing is called between "enter" and the last iteration of "fast", and
//      nothing waits there until others store something (Kills.h).
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_LOOPSPLIT_H
#define SPILLWAY_COMPILER_LOOPSPLIT_H

#include "analysis/Accesses.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/PassManager.h"

#include <deque>

namespace llvm {
class Loop;
class LoopInfo;
class ScalarEvolution;
class TargetTransformInfo;
} // namespace llvm

namespace spillway {

/// Accesses of a loop at constant distances from each other. They share one
/// translation for as many iterations as the loop's plan allows.
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

/// Finds the loops of F that are worth splitting, and prepares them: gives them
/// preheaders, and phis where their values leave them.
llvm::SmallVector<LoopPlan, 0>
planLoops(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
          const llvm::SmallPtrSetImpl<llvm::Instruction *> &InPage);

/// The number of iterations of the loop, an i64 that is computed in its
/// preheader. Null if it is not known there, or costs too much. 2^64 iterations
/// wrap to 0. REQUIRES: L has a preheader.
llvm::Value *expandTripCount(llvm::Loop *L, llvm::ScalarEvolution &SE,
                             const llvm::TargetTransformInfo &TTI);

/// Whether L seems to walk along a row of a compressed matrix or graph: its
/// length depends on what the loop around it loads. Most rows are short, and
/// where one ends the next begins. So such a loop is not split, but its pages
/// are held across all rows (Held.h).
bool isRow(const llvm::Loop *L, llvm::ScalarEvolution &SE);

/// Whether L contains cycles that may be entered at two places. LoopInfo does
/// not know these.
bool hasOtherCycles(llvm::Loop *L, const llvm::LoopInfo &LI);

/// Records whether a loop was a row before it became a strip: an inner loop of
/// a few iterations that an outer one repeats (Prefetch.h). Latch: the latch's
/// terminator.
void markStrip(llvm::Instruction *Latch, bool WasRow);

/// What splitting leaves for the rewriting of sites: one translation for each
/// pointer. Its leader is an anchor, an instruction at the place where the
/// translation is to be made.
struct Chunks {
  std::deque<Translation> Translations;
  llvm::DenseMap<std::pair<llvm::Instruction *, unsigned>, Translation *>
      Shared;
};

/// Splits the loop of Plan. The copies of instructions in InPage (Accesses.h)
/// are added to it. Analyses of the function are stale afterwards.
void splitLoop(const LoopPlan &Plan, Chunks &Result,
               llvm::SmallPtrSetImpl<llvm::Instruction *> &InPage);

} // namespace spillway

#endif
