//===- Direct.h - Flushes and fences without a call -------------*- C++ -*-===//
//
// A call of the runtime takes as long as the instruction that it stands for. So
// the calls that Persist.h has put in place of clwb, clflushopt, clflush and
// sfence become code that looks at the thread's PersistThread (abi.inc) first:
//
//   flush   in the range of its instruction:  the instruction
//           put off already:                  nothing; not of clflush
//           else                              the call
//   fence   nothing pending, fences left:     sfence, one fence less
//           else                              the call
//
// Translation (Instrument.h) comes before: what is looked at here is not the
// program's, and addresses are the program's own. Functions that are to be as
// small as possible keep the calls.
//
// What is pending is looked at before what a handler of a signal may do
// afterwards: that handler's flushes are not promised by this fence.
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

/// The call stands for this instruction, and may be left out as above.
void markDirect(llvm::CallInst &Call, FlushKind Kind);

struct DirectPass : llvm::PassInfoMixin<DirectPass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

} // namespace spillway

#endif
