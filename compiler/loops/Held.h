//===- Held.h - Pages that loops stay in ------------------------*- C++ -*-===//
//
// A pointer that advances in small steps stays in one OS page for many
// iterations, and one that does not change stays there for all of them. If a
// loop cannot be split (LoopSplit.h), the leader of a translation keeps the
// page and its entry from its last execution, and translates only when its
// address is in another page:
//
//     if (the window is not in the page that is held)
//         if (it crosses an edge)  share nothing, as usual, except (5)
//         else                     translate; this page is held from now on
//     access by the entry that is held
//
// The check is made at the access itself. So nothing is moved, and nothing is
// translated that the program does not access.
//
//   1  The slot belongs to the leader alone in the whole loop (Slots.h), and is
//      live in all of it.
//   2  Nothing is held when the loop is entered, nor after a call. Loops that
//      call often hold nothing.
//   3  For a pointer that does not change no page is kept: the entry is 0 while
//      nothing is held. Leaders of one object share the entry and the slot, and
//      translate the same window.
//   4  Loads that wait for others are not served by what is held (Kills.h).
//   5  If a window does not move and crosses an edge, it does so for the whole
//      loop, as an object on the stack does for its lifetime. If neither page
//      is spilled, the loop holds the entry of plain memory, which needs no
//      protection.
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

/// Chooses the leaders among Sites that hold their pages, those that run most
/// often first. Sites: ordered as for shareTranslations. FAM knows F as it is
/// now.
void holdPages(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
               llvm::MutableArrayRef<Site> Sites);

/// Whether Pointer advances in L in small steps, or not at all.
bool staysInPages(llvm::Value *Pointer, const llvm::Loop *L);

/// To be called when all sites are rewritten: turns the variables that
/// holdPages has added into SSA values.
void promoteHeldPages(llvm::Function &F,
                      const std::deque<Translation> &Translations);

} // namespace spillway

#endif
