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

/// True if I is arithmetic as far as the order of accesses goes, and becomes a
/// call of a function that the program may have itself.
bool becomesCall(const llvm::Instruction &I);

/// True if a loop may do nothing but wait until I loads what others have
/// stored. Such a load must be translated anew in each iteration: while the
/// loop waits, its page may become a plain mapping of a file, and what others
/// store then is seen there only.
bool awaitsOthers(const llvm::Instruction &I);

} // namespace spillway

#endif
