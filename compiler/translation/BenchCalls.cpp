//===- BenchCalls.cpp - Translation by calls, for comparison --------------===//
#include "translation/BenchCalls.h"
#include "Abi.h"
#include "translation/Translate.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

static cl::opt<std::string>
    Emit("spill-emit", cl::init("table"), cl::Hidden,
         cl::desc("table, or for benchmarks call: translate out of line"));

bool emitsBenchCalls() { return Emit == "call"; }

static bool writes(const Site &S, const Access &A) {
  switch (S.Kind) {
  case SiteKind::Load:
  case SiteKind::Anchor:
    return false;
  case SiteKind::Copy:
    return A.Operand == 0;
  case SiteKind::Store:
  case SiteKind::Set:
  case SiteKind::Native:
    return true;
  }
  llvm_unreachable("no such kind");
}

void emitBenchCalls(const Site &S, Abi &Runtime) {
  // The cached side is marked unlikely, as in TriCache: code that never meets
  // such memory runs straight through.
  MDNode *Weights = MDBuilder(S.Inst->getContext()).createBranchWeights(0, 1);
  for (const Access &A : S.Accesses) {
    Value *Pointer = S.pointer(A);
    BuilderBefore B(S.Inst);
    Value *Address = B.CreatePtrToInt(Pointer, Runtime.I64);
    Value *Cached = B.CreateICmpSLE(Address, B.getInt64(0));
    BasicBlock *Head = S.Inst->getParent();
    Instruction *End = SplitBlockAndInsertIfThen(
        Cached, S.Inst->getIterator(), /*Unreachable=*/false, Weights);
    BuilderBefore CallB(End);
    FunctionCallee Callee = Runtime.M.getOrInsertFunction(
        writes(S, A) ? "__spillway_bench_translate_store"
                     : "__spillway_bench_translate_load",
        FunctionType::get(Runtime.Ptr, {Runtime.I64}, false));
    CallInst *Call = CallB.CreateCall(Callee, {Address});
    Call->setDoesNotThrow();
    IRBuilder<> JoinB(S.Inst->getParent(), S.Inst->getParent()->begin());
    PHINode *Frame = JoinB.CreatePHI(Runtime.Ptr, 2);
    Frame->addIncoming(Pointer, Head);
    Frame->addIncoming(Call, End->getParent());
    S.Inst->setOperand(A.Operand, Frame);
  }
}

} // namespace spillway
