//===- Functions.h - What several passes do to functions --------*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_FUNCTIONS_H
#define SPILLWAY_COMPILER_FUNCTIONS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"

namespace spillway {

/// Whether M is for another processor than the program: clang hands plugins the
/// halves for devices of an offloading compilation (OpenMP, CUDA), too. These
/// are left alone.
bool isForDevice(const llvm::Module &M);

/// Moves static allocas to the front of the entry block. When that block is
/// split, one that ended up after the split would become dynamic: it would take
/// new stack each time that it runs.
void gatherStaticAllocas(llvm::Function &F);

/// Whether I must not exist more than once in a program: a call marked so, or
/// assembly that defines symbols.
bool isUnique(const llvm::Instruction &I);

/// Whether F may be copied: no block's address is taken, and nothing in it is
/// unique.
bool canCopyLocally(const llvm::Function &F);

/// A local copy of F, with F's name and Ending; the caller redirects calls to
/// it. REQUIRES: canCopyLocally(F).
llvm::Function *copyLocally(llvm::Function &F, llvm::StringRef Ending);

/// Emits a return of what Call returns.
void returnResult(llvm::IRBuilderBase &B, llvm::CallInst &Call);

/// Adds to F a block that calls Callee with F's arguments and returns what that
/// returns.
llvm::BasicBlock *callInstead(llvm::Function &F, llvm::Value *Callee);

/// Removes from F, its arguments, and the calls in it the attributes that say
/// which memory they access. Instrumented code stores to hazard slots and calls
/// the runtime, and so do its callers. Memory of a noalias argument that is
/// only read counts as constant, so loads from it may be moved anywhere; loads
/// from its frames may not.
void dropMemoryAttributes(llvm::Function &F);

} // namespace spillway

#endif
