//===- BenchCalls.h - Translation by calls, for comparison ------*- C++ -*-===//
//
// The other way to translate, which `spillway bench kernels` compares with:
// every access tests its address with a signed compare and calls out of line
// for what is below zero, and nothing is shared, hoisted or split. Chosen by
// -spill-emit=call; the callee is the benchmark's (bench/kernels/satc.cc), not
// the runtime's, and such objects do not run without it.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_BENCHCALLS_H
#define SPILLWAY_COMPILER_BENCHCALLS_H

#include "analysis/Accesses.h"

namespace spillway {

class Abi;

/// Whether -spill-emit=call was given.
bool emitsBenchCalls();

/// Makes the accesses of S go through calls. Accesses that cross a page's edge
/// get no special treatment: the frames of such a program are adjacent.
void emitBenchCalls(const Site &S, Abi &Runtime);

} // namespace spillway

#endif
