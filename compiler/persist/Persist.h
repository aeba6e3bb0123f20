//===- Persist.h - Flushes of persistent memory by the runtime --*- C++ -*-===//
//
// With -spill-persist=flush (spillcc -fspill-persist) cache lines are not
// flushed where the program does it: instructions become calls of the runtime
// (abi.inc, Persist...), which may put flushes off until the thread's next
// fence.
//
//   clwb, clflushopt    PersistFlush
//   clflush             PersistFlushOrdered
//   sfence              PersistFence
//
// whether from intrinsics or inline assembly (FlushAssembly.h). Flushes are
// also ordered by what is not replaced. Before it, they are executed if there
// are any: if (PersistPending != 0) PersistFence().
//
//   mfence, and fences that become one
//   locked instructions and xchg: read-modify-write operations, sequentially
//     consistent stores, atomic accesses of more than eight bytes, xbegin
//   inline assembly that has such instructions, sfence or clflush beside
//     others, or instructions as numbers: it stays whole
//   calls of functions that lock: pthread_..., sem_..., mtx_..., __atomic_...
//
// -spill-persist=sample counts stores that may be to persistent memory
// (Stores.h) down in PersistCountdown and tells the runtime of one now and
// then; -spill-persist=record tells it of each.
//
// The pass comes before translation (Instrument.h), which changes addresses,
// and does each function once: attribute "spillway-persist". Functions that are
// to be left alone at the program's wish ("spill_none") are done too: what was
// put off elsewhere must not get past their fences.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_PERSIST_H
#define SPILLWAY_COMPILER_PERSIST_H

#include "llvm/IR/PassManager.h"

namespace spillway {

struct PersistPass : llvm::PassInfoMixin<PersistPass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

} // namespace spillway

#endif
