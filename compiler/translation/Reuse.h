//===- Reuse.h - Accesses that share a translation --------------*- C++ -*-===//
//
// An access at a constant distance from an earlier one follows that one's
// translation if every path to it runs through the earlier one with no call in
// between, and all followers lie in a small window. Nothing is moved: a
// translation is made only where the program accesses the address.
//
//   1  A follower executes only after its leader, and the values that the two
//      addresses are made of are the same then (dominance in SSA form).
//   2  No call lies between them (Kills.h).
//   3  The window is checked for the page's edge where the leader executes. If
//      it crosses, the entry is 0, and each access is translated on its own.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_REUSE_H
#define SPILLWAY_COMPILER_REUSE_H

#include "analysis/Accesses.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/PassManager.h"

#include <deque>

namespace spillway {

/// Lets accesses of Sites share translations, which are added to Translations.
/// Sites must be ordered so that each block comes after its dominators.
/// Accesses that already share a translation (LoopSplit.h) keep it. A
/// translation that nobody follows, and that no loop holds, stays unused. FAM
/// knows F as it is now, unless F is optnone or minsize.
void shareTranslations(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
                       llvm::MutableArrayRef<Site> Sites,
                       std::deque<Translation> &Translations);

} // namespace spillway

#endif
