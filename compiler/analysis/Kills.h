//===- Kills.h - Where translations end -------------------------*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_KILLS_H
#define SPILLWAY_COMPILER_KILLS_H

#include "llvm/ADT/StringRef.h"

namespace llvm {
class Instruction;
}

namespace spillway {

/// Attribute of a call after which the slots are what they were.
constexpr llvm::StringLiteral KeepsTranslations = "spillway-keeps";

/// True if no translation may live across I: it is a call of code that uses
/// slots itself, or might. Inline assembly counts as one, unless it accesses no
/// memory.
bool endsTranslations(const llvm::Instruction &I);

/// True if I loads what others may store while a loop does nothing but wait for
/// it: no translation from outside of the loop may serve it. The page may have
/// become a plain mapping of a file meanwhile, which others write to.
bool awaitsOthers(const llvm::Instruction &I);

} // namespace spillway

#endif
