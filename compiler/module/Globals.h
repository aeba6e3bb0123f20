//===- Globals.h - Globals in spilled memory --------------------*- C++ -*-===//
//
// With -spill-globals=SIZE (spillcc -fspill-globals) globals of at least that
// size are spilled where they lie. Each gets whole OS pages of its own, and the
// object file a record of where it is (abi.inc, Globals). A constructor that
// runs before all others hands the records to the runtime, which takes the
// pages into the cache. So a global's address is the same as natively: constant
// initialisers, other objects and libraries work as usual, and code that was
// not compiled by spillcc reaches it by the fault path.
//
// Not spilled, and counted by -spill-stats:
//   small        below SIZE
//   constant     never stored to: the kernel drops and rereads their pages
//   thread-local
//   annotated    "spill_none", as the program asked
//   placed       in a section of the program's choice, where neighbours matter
//   replaceable  "common": another object may have a larger one
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_GLOBALS_H
#define SPILLWAY_COMPILER_GLOBALS_H

#include "llvm/ADT/SmallPtrSet.h"

namespace llvm {
class GlobalValue;
class GlobalVariable;
class Module;
} // namespace llvm

namespace spillway {

struct GlobalCounters {
  unsigned Spilled = 0, Small = 0, Constant = 0, ThreadLocal = 0, Annotated = 0,
           Placed = 0, Replaceable = 0;
};

/// Prepares the module's globals for the runtime, except those in Annotated.
/// Each is done once, however often the pass meets the module. Returns what was
/// done, and what was left and why.
GlobalCounters
spillGlobals(llvm::Module &M,
             const llvm::SmallPtrSetImpl<const llvm::GlobalValue *> &Annotated);

/// True if G may be spilled, by this object or by the one that defines it. That
/// one may have been compiled with another SIZE: accesses to globals that this
/// misses use the fault path.
bool mayBeSpilled(const llvm::GlobalVariable &G);

} // namespace spillway

#endif
