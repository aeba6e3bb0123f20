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

// Removes from F what LLVM knows about a C library function by its name: for
// instance, that malloc's counterpart is free does not hold under another name.
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

// C++'s operators new and delete that a program may replace. The C++ library
// has plain ones, others for more than the default alignment, and forms of
// these (for arrays, with a size, that return null), which call them.
static bool isOperator(StringRef Name) {
  return Name.starts_with("_Zn") || Name.starts_with("_Zd");
}

// What the C++ library's form Name calls: the same without std::nothrow or the
// size, else the one for single objects. A plain operator: itself.
static std::string withoutForm(StringRef Name) {
  std::string Result = Name.str();
  if (size_t Nothrow = Name.find("RKSt9nothrow_t"); Nothrow != StringRef::npos)
    Result.erase(Nothrow);
  else if (size_t Block = Name.find("Pvm"); Block != StringRef::npos)
    Result.erase(Block + 2, 1);
  else
    Result[3] = Name[2] == 'n' ? 'w' : 'l';
  return Result;
}

// Whether M defines the operator Name, or one that the C++ library's version of
// it calls.
static bool hasOperator(const Module &M, StringRef Name) {
  const GlobalValue *Own = M.getNamedValue(Name);
  if (Own && !Own->isDeclarationForLinker())
    return true;
  const std::string Other = withoutForm(Name);
  return Other != Name && hasOperator(M, Other);
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

// Adds to F, which stands for the form Name of an operator, a block that calls
// the operator without that form.
static BasicBlock *callWithoutForm(Function &F, StringRef Name, Abi &Runtime) {
  const std::string Other = withoutForm(Name);
  FunctionType *T = typeOfOperator(Other, Runtime);
  SmallVector<Value *, 3> Arguments;
  for (Argument &A : F.args())
    Arguments.push_back(&A);
  if (Name.contains("Pvm"))
    Arguments.erase(Arguments.begin() + 1);
  Arguments.truncate(T->getNumParams());
  IRBuilder<> B(BasicBlock::Create(F.getContext(), "", &F));
  returnResult(B, *B.CreateCall(Runtime.intercepted(Other, T), Arguments));
  return B.GetInsertBlock();
}

// Makes the program's own operator known to its other modules under the name
// that they call, weak and hidden as below. A form that is not defined here is
// another module's, or the C++ library's. If nobody defines it, since nothing
// else refers to it, or to the library at all, the operator without the form
// will do.
static bool leadToOperator(Abi &Runtime, StringRef Name) {
  FunctionType *T = typeOfOperator(Name, Runtime);
  auto *F = dyn_cast<Function>(Runtime.intercepted(Name, T).getCallee());
  if (!F || !F->isDeclaration())
    return false;
  F->setLinkage(GlobalValue::WeakAnyLinkage);
  F->setVisibility(GlobalValue::HiddenVisibility);
  if (GlobalValue *Named = Runtime.M.getNamedValue(Name)) {
    callInstead(*F, Named);
    return true;
  }
  auto *Named =
      Function::Create(T, GlobalValue::ExternalWeakLinkage, Name, Runtime.M);
  IRBuilder<> B(BasicBlock::Create(F->getContext(), "", F));
  BasicBlock *Form = callInstead(*F, Named);
  BasicBlock *Other = callWithoutForm(*F, Name, Runtime);
  B.CreateCondBr(B.CreateIsNotNull(Named), Form, Other);
  return true;
}

// Functions to which the pass itself emits calls must be the runtime's, and so
// must the C++ library's that the runtime has.
static bool isRuntimesAlone(StringRef Name) {
  static const StringSet<> MadeUp = {"bcmp", "memcmp", "memcpy", "memmove",
                                     "memset"};
  return Name.starts_with("_Z") || MadeUp.contains(Name);
}

// Makes the program's own function known to its other modules under the name
// that they call: weak, since a static program has the runtime's function of
// that name, too, and hidden, since other libraries and the runtime call the
// latter.
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
    if (isOperator(Name) && hasOperator(Runtime.M, Name)) {
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
