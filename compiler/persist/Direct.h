//===- Direct.h - Flushes and fences without a call -------------*- C++ -*-===//
//
// A call of the runtime takes as long as the instruction that it stands for. So
// each call that Persist.h has put in place of clwb, clflushopt, clflush or
// sfence becomes code that first looks at the thread's PersistThread (abi.inc):
//
//   flush   in the range of its instruction:  the instruction
//           put off already:                  nothing; not for clflush
//           else                              the call
//   fence   nothing pending, fences left:     sfence, one fence less
//           else                              the call
//
// This runs after translation (Instrument.h), since the memory that is read is
// not the program's. Addresses of lines remain the program's own. Functions
// that should be as small as possible keep the calls.
//
// A signal handler may flush between the check for pending flushes and the
// fence. The fence promises nothing about that handler's flushes.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_DIRECT_H
#define SPILLWAY_COMPILER_DIRECT_H

#include "persist/FlushAssembly.h"

#include "llvm/IR/PassManager.h"

namespace llvm {
class CallInst;
}

namespace spillway {

/// Marks Call as standing for an instruction of this kind: DirectPass may put
/// code before it.
void markDirect(llvm::CallInst &Call, FlushKind Kind);

struct DirectPass : llvm::PassInfoMixin<DirectPass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

} // namespace spillway

#endif
