//===- Persist.h - Flushes of persistent memory by the runtime --*- C++ -*-===//
//
// With -spill-persist=flush (spillcc -fspill-persist) the runtime decides when
// cache lines are flushed: the program's instructions become calls (abi.inc,
// Persist...), and the runtime may put flushes off until the thread's next
// fence.
//
//   clwb, clflushopt    PersistFlush
//   clflush             PersistFlushOrdered
//   sfence              PersistFence
//
// whether from intrinsics or inline assembly (FlushAssembly.h). Other
// instructions, which are not replaced, order flushes too. Before them, flushes
// that are pending are executed: if (PersistThreadPending != 0) PersistFence().
//
//   mfence, and fences that become one
//   locked instructions and xchg: read-modify-write operations, sequentially
//     consistent stores, atomic accesses of more than eight bytes, or of less
//     alignment than their size, for which a library is called; xbegin
//   inline assembly that has such instructions, that has sfence or clflush
//     among others, or that encodes instructions as data: it is kept whole
//   calls of functions that lock: pthread_..., sem_..., mtx_..., __atomic_...
//
// -spill-persist=sample counts stores that may be to persistent memory
// (Stores.h) down in PersistCountdown and reports one to the runtime now and
// then; -spill-persist=record reports each.
//
// The pass runs before translation (Instrument.h), which changes addresses. It
// does each function once: the attribute "spillway-persist" marks it. Functions
// that the program wants left alone ("spill_none") are instrumented too, since
// flushes that were put off elsewhere must not get past their fences.
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
