//===- PlainPointers.h - Plain pointers across calls ------------*- C++ -*-===//
//
// An argument is plain (Provenance.h) if all calls pass plain pointers for it,
// and a result if everything that the function returns is plain. Both are found
// for the whole module at once. The analysis first assumes that all pointers
// are plain, and withdraws what is contradicted until nothing is: so recursion
// is no obstacle.
//
//   1  An argument counts only if all calls are known: the function is local,
//      and its address is used only by direct calls with exactly its type, and
//      by calls of functions that pass on their arguments, such as OpenMP's
//      runtime.
//   2  A result counts only if the definition cannot be replaced by another
//      one.
//   3  What is found becomes an attribute of the argument or the result, and
//      holds until calls are added.
//
// If only some calls of a function pass plain pointers, those calls get a copy
// of it in which these pointers need no translation.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_PLAINPOINTERS_H
#define SPILLWAY_COMPILER_PLAINPOINTERS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/PassManager.h"

namespace llvm {
class Argument;
class Function;
class LoadInst;
class Module;
} // namespace llvm

namespace spillway {

/// Whether the argument, the function's result, or the loaded pointer was found
/// to be plain.
bool isMarkedPlain(const llvm::Argument &A);
bool isMarkedPlain(const llvm::Function &F);
bool isMarkedPlain(const llvm::LoadInst &Load);

/// Marks arguments and loads of pointers that are created later.
void markPlain(llvm::Argument &A);
void markPlain(llvm::LoadInst &Load);

/// Copies functions for calls that pass plain pointers, where it pays, and
/// marks all plain arguments and results. Functions that are not instrumented
/// (IsExempt) gain nothing, and are not copied. A local function whose calls all
/// got copies is erased; FAM forgets it. Returns the number of copies.
unsigned
findPlainPointers(llvm::Module &M, llvm::FunctionAnalysisManager &FAM,
                  llvm::function_ref<bool(const llvm::Function &)> IsExempt);

} // namespace spillway

#endif
