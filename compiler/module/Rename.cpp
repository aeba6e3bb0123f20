//===- Rename.cpp - Uses of intercepted functions -------------------------===//
#include "module/Rename.h"
#include "Functions.h"

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

// C++'s operators new and delete that a program may replace. The C++ library has
// plain ones, others for what is aligned further than by default, and forms of
// these (for arrays, with a size, that return null), which call them.
static bool isOperator(StringRef Name) {
  return Name.starts_with("_Zn") || Name.starts_with("_Zd");
}
static bool isForAligned(StringRef Name) {
  return Name.contains("St11align_val_t");
}

static bool definesOperators(const Module &M, bool ForAligned) {
  return any_of(Intercepted, [&](StringRef Name) {
    if (!isOperator(Name) || isForAligned(Name) != ForAligned)
      return false;
    const GlobalValue *Own = M.getNamedValue(Name);
    return Own && !Own->isDeclarationForLinker();
  });
}

static FunctionType *typeOfOperator(StringRef Name, const Abi &Runtime) {
  Type *Result = Runtime.Ptr;
  if (Name.starts_with("_Zd"))
    Result = Type::getVoidTy(Runtime.M.getContext());
  SmallVector<Type *, 3> Arguments;
  StringRef Rest = Name.drop_front(StringRef("_Znw").size());
  while (!Rest.empty())
    if (Rest.consume_front("Pv") || Rest.consume_front("RKSt9nothrow_t"))
      Arguments.push_back(Runtime.Ptr);
    else if (Rest.consume_front("m") || Rest.consume_front("St11align_val_t"))
      Arguments.push_back(Runtime.I64);
    else
      llvm_unreachable("no argument of an operator");
  return FunctionType::get(Result, Arguments, /*isVarArg=*/false);
}

static StringRef withoutForm(StringRef Name) {
  if (Name.starts_with("_Zn"))
    return isForAligned(Name) ? "_ZnwmSt11align_val_t" : "_Znwm";
  return isForAligned(Name) ? "_ZdlPvSt11align_val_t" : "_ZdlPv";
}

// Adds to F, which stands for the form Name of an operator, a block that does
// without the form.
static BasicBlock *callWithoutForm(Function &F, StringRef Name, Abi &Runtime) {
  SmallVector<Value *, 2> Arguments(1, F.getArg(0));
  if (isForAligned(Name))
    Arguments.push_back(F.getArg(Name.contains("Pvm") ? 2 : 1));
  StringRef Plain = withoutForm(Name);
  FunctionCallee Callee =
      Runtime.M.getOrInsertFunction(Plain, typeOfOperator(Plain, Runtime));
  IRBuilder<> B(BasicBlock::Create(F.getContext(), "", &F));
  CallInst *Call = B.CreateCall(Callee, Arguments);
  if (F.getReturnType()->isVoidTy())
    B.CreateRetVoid();
  else
    B.CreateRet(Call);
  return B.GetInsertBlock();
}

// Lets the program's other modules, which cannot know of it, find its own
// operator under the name that they call, weak and hidden as below. What is not
// here is another module's, or the C++ library's. If it is nobody's, since
// nothing else asks for it, or for the library at all, its plain operator will
// do.
static bool leadToOperator(Abi &Runtime, StringRef Name) {
  FunctionType *T = typeOfOperator(Name, Runtime);
  auto *F = dyn_cast<Function>(Runtime.intercepted(Name, T).getCallee());
  if (!F || !F->isDeclaration())
    return false;
  F->setLinkage(GlobalValue::WeakAnyLinkage);
  F->setVisibility(GlobalValue::HiddenVisibility);
  bool IsHere = Runtime.M.getNamedValue(Name) || withoutForm(Name) == Name;
  Value *Named = Runtime.M.getOrInsertFunction(Name, T).getCallee();
  if (IsHere) {
    callInstead(*F, Named);
    return true;
  }
  cast<Function>(Named)->setLinkage(GlobalValue::ExternalWeakLinkage);
  IRBuilder<> B(BasicBlock::Create(F->getContext(), "", F));
  BasicBlock *Form = callInstead(*F, Named);
  BasicBlock *Plain = callWithoutForm(*F, Name, Runtime);
  B.CreateCondBr(B.CreateIsNotNull(Named), Form, Plain);
  return true;
}

// What the pass itself makes calls of must be the runtime's, and so is what it
// has of the C++ library's.
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
  const bool HasOwn[] = {definesOperators(Runtime.M, /*ForAligned=*/false),
                         definesOperators(Runtime.M, /*ForAligned=*/true)};
  bool Changed = false;
  for (StringRef Name : Intercepted) {
    if (isOperator(Name) && HasOwn[isForAligned(Name)]) {
      Changed |= leadToOperator(Runtime, Name);
      continue;
    }
    Changed |= announceOwn(Runtime, Name);
    Changed |= rename(Runtime, Name, Name);
    // The same, named by an assembler label.
    Changed |= rename(Runtime, ("\1" + Name).str(), Name);
  }
  return Changed;
}

} // namespace spillway
