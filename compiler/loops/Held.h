//===- Held.h - Pages that loops stay in ------------------------*- C++ -*-===//
//
// A pointer that advances by little stays in one OS page for many iterations,
// and one that does not change stays there for all of them. Where a loop cannot
// be split (Loops.h), the leader of a translation keeps the page and its entry
// from the last time, and translates only when it is elsewhere:
//
//     if (the window is not in the page that is held)
//         if (it crosses an edge)  sharing nothing, as ever, but for (5)
//         else                     translate; this page is held from now on
//     access by the entry that is held
//
// Which values that is, is known where it is asked for, so nothing is moved and
// nothing is translated that the program does not access.
//
//   1  The slot is the leader's alone in the whole loop (Slots.h), and live in
//      all of it.
//   2  Nothing is held where the loop is entered, and behind a call; loops that
//      call often hold nothing.
//   3  A pointer that does not change needs no page: its entry is 0 while
//      nothing is held. Leaders of one object share the entry and the slot, and
//      translate the same window.
//   4  What waits for others is not served by what is held (Kills.h).
//   5  What does not change and crosses an edge does so for the whole loop, and
//      objects on the stack for as long as the process lives. If neither page is
//      spilled the loop holds the entry that says so, of which nothing needs to
//      be protected.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_HELD_H
#define SPILLWAY_COMPILER_HELD_H

#include "analysis/Accesses.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/PassManager.h"

#include <deque>

namespace llvm {
class Loop;
}

namespace spillway {

/// Chooses leaders that hold their pages, those that run most first. Sites:
/// ordered as for shareTranslations. FAM knows F as it is now.
void holdPages(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
               llvm::MutableArrayRef<Site> Sites,
               std::deque<Translation> &Translations);

/// Whether Pointer advances by little in L, or not at all.
bool staysInPages(llvm::Value *Pointer, const llvm::Loop *L);

/// Makes values of the variables that holdPages has added, when all sites are
/// rewritten.
void promoteHeldPages(llvm::Function &F,
                      const std::deque<Translation> &Translations);

} // namespace spillway

#endif
