//===- Provenance.h - What provably is not spill memory ---------*- C++ -*-===//
//
// Spill memory is heap and mapped memory, and globals where that is asked for
// (Globals.h). Stacks, other globals, thread-local variables, code and what the
// C library keeps to itself never are (the runtime refuses to spill memory that
// becomes a stack), and by the rules of C a pointer derived from one of them
// stays inside it.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_PROVENANCE_H
#define SPILLWAY_COMPILER_PROVENANCE_H

namespace llvm {
class Value;
}

namespace spillway {

/// True if memory accessed through Pointer provably is not spill memory, or
/// cannot be translated because it is in another address space.
bool isPlain(const llvm::Value *Pointer);

/// False if memory accessed through Pointer provably is not persistent: that is
/// mapped, so that it is none of the above, and no global either.
bool mayPersist(const llvm::Value *Pointer);

} // namespace spillway

#endif
