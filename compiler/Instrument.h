//===- Instrument.h - Instruments a module ----------------------*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_INSTRUMENT_H
#define SPILLWAY_COMPILER_INSTRUMENT_H

#include "llvm/IR/PassManager.h"

namespace spillway {

/// Translates every access of a module that may touch spilled memory. Each
/// function is done once, however often the pass meets it (attribute
/// "spillway" says so, and survives the merging of modules).
class InstrumentPass : public llvm::PassInfoMixin<InstrumentPass> {
public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Module &M,
                              llvm::ModuleAnalysisManager &MAM);
};

/// Moves static allocas to the front: where blocks are split, they must not end
/// up outside the entry block, in which they would become dynamic.
void gatherStaticAllocas(llvm::Function &F);

/// A copy of F that no other object sees, for calls that are to have it. REQUIRES:
/// the address of none of its blocks is taken.
llvm::Function *copyLocally(llvm::Function &F, llvm::StringRef Ending);

/// Takes away from a function, and from the calls in it, what is said of the
/// memory that they access: they are to call the runtime.
void dropMemoryAttributes(llvm::Function &F);

} // namespace spillway

#endif
