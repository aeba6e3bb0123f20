//===- Rename.cpp - Uses of intercepted functions -------------------------===//
#include "module/Rename.h"

#include "llvm/ADT/StringSet.h"
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

// What the pass itself makes calls of must be the runtime's; operators of C++
// belong to the heap.
static bool isRuntimesAlone(StringRef Name) {
  static const StringSet<> MadeUp = {"bcmp", "memcmp", "memcpy", "memmove",
                                     "memset"};
  return Name.starts_with("_Z") || MadeUp.contains(Name);
}

// Lets the program's other modules, which cannot know of it, find its own
// function under the name that they call: weak, since a static program has the
// runtime's of that name, too, and hidden, since other libraries and the runtime
// call that.
static bool announceOwn(Abi &Runtime, StringRef Name) {
  Function *Own = Runtime.M.getFunction(Name);
  const std::string Symbol = (Twine(abi::InterceptPrefix) + Name).str();
  if (!Own || Own->isDeclaration() || !Own->hasExternalLinkage() ||
      Own->hasComdat() || isRuntimesAlone(Name) ||
      Runtime.M.getNamedValue(Symbol))
    return false;
  GlobalAlias::create(GlobalValue::WeakAnyLinkage, Symbol, Own)
      ->setVisibility(GlobalValue::HiddenVisibility);
  return true;
}

bool renameIntercepted(Abi &Runtime) {
  bool Changed = false;
  for (StringRef Name : Intercepted) {
    Changed |= announceOwn(Runtime, Name);
    Changed |= rename(Runtime, Name, Name);
    // The same, named by an assembler label.
    Changed |= rename(Runtime, ("\1" + Name).str(), Name);
  }
  return Changed;
}

} // namespace spillway
