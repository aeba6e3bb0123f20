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
//   ahead   asks the runtime's word whether pages are missed at all, and after
//           how many iterations to come back
//   look    calls a function of the loop's own, which computes the addresses of
//           iterations to come and tells the runtime of them (abi.inc,
//           LookAheadBegin and its kin): it begins to load what is not there
//
// What the function loads it asks the runtime for, which gives nothing that
// could fault. It has no other effects, so that it may run ahead of the loop's
// end, and of a nested loop's: a sparse matrix's next row begins where this one
// ends.
//
//   1  Only simple loads are done ahead: none that is volatile or atomic.
//   2  What each iteration loads whatever happens may be loaded from plain
//      memory, as long as the loop's count says that the iteration comes, and
//      what the loop stores until then has no part in the address; everything
//      else only from frames.
//   3  Of what a loop carries only counters go ahead, not what it computes.
//   4  The slots stay as they are: translations live on over a look.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_PREFETCH_H
#define SPILLWAY_COMPILER_PREFETCH_H

#include "llvm/IR/PassManager.h"

namespace spillway {

class Abi;

/// Lets the loops of F look ahead for which it may pay. Returns how many.
/// Analyses of F are stale afterwards.
unsigned lookAhead(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
                   Abi &Runtime);

} // namespace spillway

#endif
