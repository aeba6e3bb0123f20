//===- Once.h - What only one may be doing at a time ------------*- C++ -*-===//
//
// A task of a parallel_for (spillway/task.h) is suspended when it misses, and
// its thread runs others. It must not be while it has something that the others
// would wait for, with the very thread that it needs to go on, or would take
// for theirs. Mutexes the runtime sees itself; what code does inline is marked
// here by calls of the runtime:
//
//   an initialiser of a static variable in a function, from __cxa_guard_acquire
//     to __cxa_guard_release or __cxa_guard_abort
//   an initialiser of a thread_local variable, which other tasks of the thread
//     would find half done, or do again
//   the lock that the C++ library keeps in a bit of a std::atomic<shared_ptr>
//   a constructor of the module: dlopen runs it with the dynamic linker's lock
//
// An exception that leaves an initialiser of the second kind leaves the mark:
// its task waits with its thread from then on.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_ONCE_H
#define SPILLWAY_COMPILER_ONCE_H

#include "llvm/IR/PassManager.h"

namespace spillway {

/// Before anything is inlined or moved.
struct OncePass : llvm::PassInfoMixin<OncePass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

} // namespace spillway

#endif
