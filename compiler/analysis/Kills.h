//===- Kills.h - Where translations end -------------------------*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_KILLS_H
#define SPILLWAY_COMPILER_KILLS_H

#include "llvm/ADT/StringRef.h"

namespace llvm {
class Instruction;
}

namespace spillway {

/// Attribute of a call of ours that leaves all slots as they are.
constexpr llvm::StringLiteral KeepsTranslations = "spillway-keeps";

/// True if no translation may live across I: I is, or becomes, a call of code
/// that may use slots itself. Inline assembly counts as such a call unless it
/// accesses no memory.
bool endsTranslations(const llvm::Instruction &I);

/// True if I is mere arithmetic with respect to the order of accesses, but
/// becomes a call of a function that the program may define itself.
bool becomesCall(const llvm::Instruction &I);

/// True if a loop may just wait until I loads what others have stored. Such a
/// load must be translated anew in each iteration: while the loop waits, its
/// page may become a plain mapping of a file, and what others then store is
/// only seen there.
bool awaitsOthers(const llvm::Instruction &I);

} // namespace spillway

#endif
