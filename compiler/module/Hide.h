//===- Hide.h - What other libraries must not get ---------------*- C++ -*-===//
//
// Strings and string streams, and what reads and writes strings, are compiled
// anew in each object (tools/spillcc/instantiated.tcc.in), though the C++
// library holds them compiled, so that their accesses are translated. Other
// libraries call the same symbols, and would get the program's: their strings
// would be spilled, and strings that the kernel should read with them. So these
// copies are seen by the program, or the shared library, only that they are
// linked into.
//
// A program's own malloc and its kin are seen by nobody: compiled code calls
// the runtime's, and what other libraries allocate is freed by compiled code
// and the other way round, so that all blocks must be of one heap.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_HIDE_H
#define SPILLWAY_COMPILER_HIDE_H

#include "llvm/IR/PassManager.h"

namespace spillway {

/// Makes the module's implicit instantiations of these hidden: functions,
/// virtual tables, thunks. Type information stays common. Returns
/// whether there are any.
bool hideLibraryCopies(llvm::Module &M);

/// Takes the names away from the module's definitions of malloc and its kin,
/// also from its own uses. Returns whether there are any.
bool disownHeap(llvm::Module &M);

/// Both, before anything is inlined.
struct HidePass : llvm::PassInfoMixin<HidePass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &) {
    bool Changed = hideLibraryCopies(M);
    Changed |= disownHeap(M);
    return Changed ? llvm::PreservedAnalyses::none()
                   : llvm::PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

} // namespace spillway

#endif
