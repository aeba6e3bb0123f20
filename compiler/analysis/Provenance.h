//===- Provenance.h - What provably is not spill memory ---------*- C++ -*-===//
//
// Spilled memory is heap, mapped memory, and globals if that is asked for
// (Globals.h). Stacks, other globals, thread-local variables, code and the C
// library's internal memory are plain: never spilled. (The runtime does not
// spill memory that becomes a stack.) By the rules of C a pointer that is
// derived from an object stays inside it.
//
// A program that breaks these rules still works: an access that is wrongly
// taken for plain uses the fault path.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_PROVENANCE_H
#define SPILLWAY_COMPILER_PROVENANCE_H

namespace llvm {
class Value;
}

namespace spillway {

/// True if the memory that Pointer points to is provably plain, or cannot be
/// translated since it is in another address space.
bool isPlain(const llvm::Value *Pointer);

/// False if the memory that Pointer points to is provably not persistent.
/// Persistent memory is always mapped by the program: it is neither plain in
/// the sense above nor a global.
bool mayPersist(const llvm::Value *Pointer);

} // namespace spillway

#endif
