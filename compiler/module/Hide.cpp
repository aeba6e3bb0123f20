//===- Hide.cpp - What other libraries must not get -----------------------===//
#include "module/Hide.h"
#include "Functions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace spillway {

// Classes that the library instantiates, as mangled.
static constexpr StringLiteral Classes[] = {
    "St7__cxx1112basic_stringI", "St7__cxx1115basic_stringbufI",
    "St7__cxx1118basic_stringstreamI", "St7__cxx1119basic_istringstreamI",
    "St7__cxx1119basic_ostringstreamI"};
static constexpr StringLiteral Arguments[] = {"cSt11char_traitsIcESaIcEE",
                                              "wSt11char_traitsIwESaIwEE"};
static constexpr StringLiteral Buffers[] = {
    "St15basic_streambufIcSt11char_traitsIcEE",
    "St15basic_streambufIwSt11char_traitsIwEE"};

// Function templates of strings, and inserters into streams.
static constexpr StringLiteral Functions[] = {"St7getlineI", "StrsI", "StlsI"};
static constexpr StringLiteral Inserters[] = {
    "St16__ostream_insertIcSt11char_traitsIcEE",
    "St16__ostream_insertIwSt11char_traitsIwEE",
    "St15__ostream_writeIcSt11char_traitsIcEE",
    "St15__ostream_writeIwSt11char_traitsIwEE"};

static constexpr StringLiteral Heap[] = {
    "malloc_usable_size",
#define SPILLWAY_INTERCEPT(Name)
#define SPILLWAY_HEAP(Name) #Name,
#include "spillway/interceptors.inc"
};

static bool beginsWithArguments(StringRef Name) {
  return any_of(Arguments, [&](StringRef A) { return Name.starts_with(A); });
}

// Whether the name of a scope or type begins with one of the classes.
static bool beginsWithClass(StringRef Name) {
  if (any_of(Buffers, [&](StringRef B) { return Name.starts_with(B); }))
    return true;
  for (StringRef Class : Classes) {
    StringRef Rest = Name;
    if (Rest.consume_front(Class))
      return beginsWithArguments(Rest);
  }
  return false;
}

static bool isFunction(StringRef Name) {
  if (any_of(Inserters, [&](StringRef I) { return Name.starts_with(I); }))
    return true;
  for (StringRef Function : Functions)
    if (Name.consume_front(Function))
      return beginsWithArguments(Name);
  return false;
}

// Thunks: _ZTh and _ZTv with offsets, and then what they lead to.
static StringRef withoutThunk(StringRef Name) {
  if (!Name.consume_front("_ZTh") && !Name.consume_front("_ZTv"))
    return Name.starts_with("_Z") ? Name.drop_front(2) : "";
  size_t Target = Name.find("_N");
  return Target == StringRef::npos ? "" : Name.drop_front(Target + 1);
}

static bool isLibraryCopy(StringRef Symbol) {
  StringRef Name = withoutThunk(Symbol);
  // A virtual table or its parts for construction; a member, const or not.
  bool Table = Name.consume_front("TV") || Name.consume_front("TT") ||
               Name.consume_front("TC");
  bool Nested = Name.consume_front("NK") || Name.consume_front("N");
  if (Nested && !Name.consume_front("R"))
    Name.consume_front("O");
  return Table || Nested ? beginsWithClass(Name) : isFunction(Name);
}

bool hideLibraryCopies(Module &M) {
  bool Changed = false;
  for (GlobalObject &G : M.global_objects()) {
    if (!G.hasLinkOnceODRLinkage() || !G.hasDefaultVisibility() ||
        !isLibraryCopy(G.getName()))
      continue;
    G.setVisibility(GlobalValue::HiddenVisibility);
    Changed = true;
  }
  return Changed;
}

// Turns Alias, another name for what Common stands for, into a function that
// calls Common: an alias cannot refer to another object's function.
static void leadTo(Function *Common, GlobalAlias *Alias) {
  Function *F = Function::Create(cast<FunctionType>(Alias->getValueType()),
                                 Alias->getLinkage(), "", *Alias->getParent());
  F->setVisibility(Alias->getVisibility());
  F->setDSOLocal(Alias->isDSOLocal());
  F->takeName(Alias);
  callInstead(*F, Common);
  Alias->replaceAllUsesWith(F);
  Alias->eraseFromParent();
}

bool disownHeap(Module &M) {
  bool Changed = false;
  for (StringRef Name : Heap) {
    GlobalValue *Own = M.getNamedValue(Name);
    if (!Own || Own->isDeclarationForLinker() || Own->hasLocalLinkage() ||
        !isa<FunctionType>(Own->getValueType()))
      continue;
    Own->setName("own." + Name);
    Own->setVisibility(GlobalValue::DefaultVisibility);
    Own->setLinkage(GlobalValue::InternalLinkage);
    if (auto *Object = dyn_cast<GlobalObject>(Own))
      Object->setComdat(nullptr);
    Function *Common = Function::Create(cast<FunctionType>(Own->getValueType()),
                                        GlobalValue::ExternalLinkage, Name, M);
    for (User *U : make_early_inc_range(Own->users()))
      if (auto *Alias = dyn_cast<GlobalAlias>(U))
        leadTo(Common, Alias);
    Own->replaceAllUsesWith(Common);
    Changed = true;
  }
  return Changed;
}

} // namespace spillway
