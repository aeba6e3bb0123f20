//===- Reuse.h - Accesses that share a translation --------------*- C++ -*-===//
//
// An access at a constant distance from an earlier one follows its translation
// if every path to it runs through the earlier one with no call in between, and
// all that follow it lie in a small window. Nothing is moved: a translation is
// made only where the program accesses the address.
//
//   1  a follower executes only after its leader, with the same values of what
//      the addresses are made of (dominance in SSA form)
//   2  no call lies between them (Kills.h)
//   3  the window is checked for the page's edge where the leader executes; if
//      it crosses, the entry is 0 and each of them is translated on its own
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_REUSE_H
#define SPILLWAY_COMPILER_REUSE_H

#include "analysis/Accesses.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/PassManager.h"

#include <deque>

namespace spillway {

/// Lets accesses of Sites share translations, and adds these to Translations.
/// Sites are ordered so that each block comes after its dominators; those that
/// share one already stay as they are. Translations that nobody follows are not
/// used. FAM knows F as it is now, unless F is optnone or minsize.
void shareTranslations(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
                       llvm::MutableArrayRef<Site> Sites,
                       std::deque<Translation> &Translations);

} // namespace spillway

#endif
