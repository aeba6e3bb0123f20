//===- Hide.h - What other libraries must not get ---------------*- C++ -*-===//
//
// The C++ library contains strings, string streams, and functions that read and
// write strings in compiled form. Each object compiles them anew
// (tools/spillcc/instantiated.tcc.in), so that their accesses are translated.
// Other libraries use the same symbols, and would get the program's copies:
// their strings would be spilled, including some that they pass to the kernel.
// So the copies are visible only in the program or shared library into which
// they are linked.
//
// A program's own malloc and its kin are visible to nobody. Compiled code calls
// the runtime's, and since blocks that other libraries allocate may be freed by
// compiled code and the other way round, all must come from one heap.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_HIDE_H
#define SPILLWAY_COMPILER_HIDE_H

#include "Functions.h"

#include "llvm/IR/PassManager.h"

namespace spillway {

/// Hides the module's implicit instantiations of these classes and functions:
/// functions, virtual tables, thunks. Type information stays visible. Returns
/// whether there are any.
bool hideLibraryCopies(llvm::Module &M);

/// Renames the module's definitions of malloc and its kin, and redirects its
/// own uses of them, and their aliases, to the runtime's. Returns whether there
/// are any.
bool disownHeap(llvm::Module &M);

/// Does both. Must run before anything is inlined.
struct HidePass : llvm::PassInfoMixin<HidePass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &) {
    if (isForDevice(M))
      return llvm::PreservedAnalyses::all();
    bool Changed = hideLibraryCopies(M);
    Changed |= disownHeap(M);
    return Changed ? llvm::PreservedAnalyses::none()
                   : llvm::PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

} // namespace spillway

#endif
