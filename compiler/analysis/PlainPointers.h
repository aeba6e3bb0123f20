//===- PlainPointers.h - Plain pointers across calls ------------*- C++ -*-===//
//
// What is passed to a function, or returned by it, is plain (Provenance.h) if
// all that may be is. Found for the whole module at once, beginning with the
// belief that all pointers are: what contradicts it is taken back until nothing
// does, so that recursion does not stand in the way.
//
//   1  An argument counts only if all calls are known: the function is local,
//      its address is used by direct calls alone, each with its very type, and
//      by calls of what hands on what it is given, such as OpenMP's runtime.
//   2  A result counts only if the definition cannot be replaced by another.
//   3  What is found is an attribute of the argument or the result; it holds
//      until calls are added.
//
// Where only some calls of a function pass plain pointers, they get a copy of it
// that has all the others' pointers translated and theirs not.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_PLAINPOINTERS_H
#define SPILLWAY_COMPILER_PLAINPOINTERS_H

#include "llvm/ADT/STLFunctionalExtras.h"

namespace llvm {
class Argument;
class Function;
class LoadInst;
class Module;
} // namespace llvm

namespace spillway {

/// Whether the argument, or what the function returns, was found to be plain.
bool isMarkedPlain(const llvm::Argument &A);
bool isMarkedPlain(const llvm::Function &F);
bool isMarkedPlain(const llvm::LoadInst &Load);

/// Marks what is made later than that: an argument, and what is loaded.
void markPlain(llvm::Argument &A);
void markPlain(llvm::LoadInst &Load);

/// Copies functions for calls that pass plain pointers, where it pays, and
/// marks all plain arguments and results. IsExempt: functions that are not
/// instrumented, which gain nothing. Returns the number of copies.
unsigned
findPlainPointers(llvm::Module &M,
                  llvm::function_ref<bool(const llvm::Function &)> IsExempt);

} // namespace spillway

#endif
