//===- Once.h - What only one may be doing at a time ------------*- C++ -*-===//
//
// A task of a parallel_for (spillway/task.h) is suspended when it misses a
// page, and its thread runs other tasks. It must not be suspended while it
// holds something that other tasks would wait for, on the very thread that it
// needs in order to go on, or that they would mistake for their own. The
// runtime sees mutexes itself. What code does inline is marked here by calls of
// the runtime:
//
//   an initialiser of a static variable in a function, from __cxa_guard_acquire
//     to __cxa_guard_release or __cxa_guard_abort
//   an initialiser of a thread_local variable, which other tasks of the thread
//     would find half done, or do again
//   the lock that the C++ library keeps in a bit of a std::atomic<shared_ptr>
//   a constructor of the module: dlopen runs it while it has the dynamic
//   linker's lock
//
// If an initialiser of a thread_local variable throws, the mark remains: from
// then on its task is never suspended.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_ONCE_H
#define SPILLWAY_COMPILER_ONCE_H

#include "llvm/IR/PassManager.h"

namespace spillway {

/// Marks these. Must run before anything is inlined or moved.
struct OncePass : llvm::PassInfoMixin<OncePass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

} // namespace spillway

#endif
