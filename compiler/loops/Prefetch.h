//===- Prefetch.h - Loops that look ahead -----------------------*- C++ -*-===//
//
// A loop that accesses memory at addresses which depend on what it loads, such
// as a[b[i]], x[column[e]] or table[hash(key[i])], or far apart, becomes
//
//     preheader ─► ahead ─nobody misses─► enter ─► header ... latch ─┬─► exit
//                   ▲ └──► look ─────────►┘         ▲                │
//                   │                               └────────────────┤
//                   └───────── so many iterations later ─────────────┘
//
//   ahead   reads a word of the runtime's that says whether pages are missed at
//           all; if not, the loop comes back after a fixed number of iterations
//   look    calls a function that is made for the loop. It computes the
//           addresses of iterations to come and tells the runtime of them
//           (abi.inc, LookAheadBegin and its kin), which begins to load the
//           pages that are not in memory, and says after how many iterations to
//           come back
//
// The function asks the runtime for all that it loads, and gets nothing that
// could fault. It has no other effects. So it may run ahead of the loop's end,
// also of a nested loop's: the next row of a sparse matrix begins where this
// one ends. Where rows begin anywhere, as those of vertices in a queue, the loop
// around looks ahead as well, to where each row begins.
//
// What an iteration leaves out after a look at a value the function leaves out,
// too: in `if (kind[v] == k) use(a[b[v]])` it computes the condition first, and
// where that is false tells of nothing and loads nothing from b.
//
//   1  Only simple loads are done ahead: none that is volatile, and for an
//      address none that is atomic.
//   2  What each iteration loads whatever happens may be loaded from plain
//      memory, if the loop's count says that the iteration comes, if no loop
//      inside may wait for other threads until then, and if nothing has a part
//      in the address that the loop stores until then, that a loop inside ends
//      with, or that is a guess (3). So may what lies at an address that never
//      changes and is known to be memory. Everything else is loaded from frames
//      only.
//   3  Of the values that a loop carries only counters are known ahead, not
//      what the loop computes from its data. A pointer that it only loads anew
//      from the same place is taken for one that stays.
//   4  The slots stay as they are: translations live on over a look.
//   5  A condition is a guess. Until the iteration comes its value may change,
//      which costs time: a load for nothing, or a miss. One whose value is not
//      in memory counts as true. Those by which the loop ends are not heeded,
//      since other runs of it may go on from there, nor those whose value lies
//      anywhere: it would have to be loaded first.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_PREFETCH_H
#define SPILLWAY_COMPILER_PREFETCH_H

#include "llvm/IR/PassManager.h"

namespace spillway {

class Abi;

/// Lets those loops of F look ahead that may gain by it. Returns how many they
/// are. Analyses of F are stale afterwards.
unsigned lookAhead(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
                   Abi &Runtime);

} // namespace spillway

#endif
