//===- Satc.h - Translation by software caches ------------------*- C++ -*-===//
//
// The other way to translate (spillcc -fspill-translation=satc), which TriCache
// (section 3.3) describes: every access looks in the thread's Direct cache, in
// line, and asks the runtime if the page is not there.
//
//     if (address is in the range of spilled memory)
//       line = Direct[page mod lines]
//       if (line.page is the address's)  d = line.d
//       else                             d = satc_translate(address)
//     else                               d = 1
//
// A page in Direct is pinned as long as it is there, and only the thread's next
// translation can evict it. So a translation is valid for the one access that
// follows it, and nothing is shared, hoisted, held or split.
// Accesses that cross an OS page's edge, and assembly with several operands in
// memory, use the table (Translate.h), which the runtime maintains as usual.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_SATC_H
#define SPILLWAY_COMPILER_SATC_H

#include "Abi.h"

namespace spillway {

/// Splits a copy between two places that may both be spilled into two, through
/// the stack: each is one access.
void splitCopies(llvm::Function &F, Abi &Runtime);

/// Emits a translation of Address before the instruction Before, whose block is
/// split. Returns what Translator::translate returns.
llvm::Value *translateBySatc(Abi &Runtime, llvm::Instruction *Before,
                             llvm::Value *Address);

} // namespace spillway

#endif
