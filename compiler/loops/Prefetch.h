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
//   ahead   reads a word of the runtime that says whether pages are missed at
//           all; if not, the loop comes back after a fixed number of iterations
//   look    calls a function generated for the loop. It computes the addresses
//           of future iterations and passes them to the runtime (abi.inc,
//           LookAheadBegin and its kin), which begins to load the pages that
//           are not in memory, and says after how many iterations to come back
//
// The function asks the runtime for the address of everything that it loads,
// and gets none that could fault. It has no other effects. So it may run past
// the loop's end, even a nested loop's: the next row of a sparse matrix begins
// where this one ends. If rows begin anywhere, as those of vertices in a queue,
// the surrounding loop looks ahead as well, to where each row begins.
//
// What an iteration skips depending on a value, the function skips, too: in `if
// (kind[v] == k) use(a[b[v]])` it computes the condition first, and if that is
// false notes nothing and loads nothing from b.
//
//   1  Only simple loads are done ahead: none that are volatile, and for
//      addresses none that are atomic.
//   2  What each iteration loads in any case may be loaded from plain memory,
//      if the loop's count says that the iteration will come, if no inner cycle
//      may wait for other threads before that, and if the address depends on
//      nothing that the loop stores before that, that is a final value of an
//      inner loop, or that is a guess (3). So may what lies at a constant
//      address that is known to be memory. Everything else is loaded from
//      frames only.
//   3  Of the values that a loop carries only counters are known ahead, not
//      what the loop computes from its data. A pointer that it only reloads
//      from the same place is assumed to stay.
//   4  The slots are left as they are: translations stay live across a look.
//   5  A condition is a guess. Its value may change before the iteration comes,
//      which only costs time: a useless load, or a miss. One whose value is not
//      in memory counts as true. Exit conditions of the loop are ignored, since
//      later runs of it may go on from there, and so are conditions whose value
//      may lie anywhere: it would have to be loaded first.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_PREFETCH_H
#define SPILLWAY_COMPILER_PREFETCH_H

#include "llvm/IR/PassManager.h"

namespace spillway {

class Abi;

/// Makes those loops of F look ahead that may gain by it. Returns how many.
/// Analyses of F are stale afterwards.
unsigned lookAhead(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
                   Abi &Runtime);

} // namespace spillway

#endif
