//===- Rename.cpp - Uses of intercepted functions -------------------------===//
#include "module/Rename.h"

#include "llvm/IR/InstrTypes.h"

using namespace llvm;

namespace spillway {

static constexpr StringLiteral Intercepted[] = {
#define SPILLWAY_INTERCEPT(Name) #Name,
#include "spillway/interceptors.inc"
};

// Takes from F what LLVM knows of a C library function by its name: that
// malloc's counterpart is free, for instance, is not true of functions of other
// names.
static void dropLibraryKnowledge(Function &F) {
  for (Attribute::AttrKind Kind :
       {Attribute::AllocKind, Attribute::AllocSize, Attribute::Memory,
        Attribute::Builtin, Attribute::NoBuiltin, Attribute::NoSync})
    F.removeFnAttr(Kind);
  F.removeFnAttr("alloc-family");
}

static bool rename(Abi &Runtime, StringRef Symbol, StringRef Name) {
  Function *Old = Runtime.M.getFunction(Symbol);
  if (!Old || !Old->isDeclaration() || Old->isIntrinsic())
    return false;
  FunctionCallee New = Runtime.intercepted(Name, Old->getFunctionType());
  if (auto *F = dyn_cast<Function>(New.getCallee()); F && F->isDeclaration()) {
    F->copyAttributesFrom(Old);
    dropLibraryKnowledge(*F);
  }
  for (User *U : Old->users())
    if (auto *Call = dyn_cast<CallBase>(U))
      for (Attribute::AttrKind Kind : {Attribute::AllocSize, Attribute::Memory,
                                       Attribute::Builtin, Attribute::NoSync})
        Call->removeFnAttr(Kind);
  Old->replaceAllUsesWith(New.getCallee());
  Old->eraseFromParent();
  return true;
}

bool renameIntercepted(Abi &Runtime) {
  bool Changed = false;
  for (StringRef Name : Intercepted) {
    Changed |= rename(Runtime, Name, Name);
    // The same, named by an assembler label.
    Changed |= rename(Runtime, ("\1" + Name).str(), Name);
  }
  return Changed;
}

} // namespace spillway
