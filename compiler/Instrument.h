//===- Instrument.h - Instruments a module ----------------------*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_INSTRUMENT_H
#define SPILLWAY_COMPILER_INSTRUMENT_H

#include "llvm/IR/PassManager.h"

namespace spillway {

/// Translates every access of a module that may touch spilled memory. Each
/// function is done once, however often the pass meets it: the attribute
/// "spillway" marks it, and survives the merging of modules.
class InstrumentPass : public llvm::PassInfoMixin<InstrumentPass> {
public:
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Module &M,
                              llvm::ModuleAnalysisManager &MAM);
};

} // namespace spillway

#endif
