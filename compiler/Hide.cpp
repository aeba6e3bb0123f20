//===- Hide.cpp - Copies of the C++ library's functions -------------------===//
#include "Hide.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace spillway {

// Classes that the library instantiates, as mangled.
static constexpr StringLiteral Classes[] = {
    "St7__cxx1112basic_stringI",       "St7__cxx1115basic_stringbufI",
    "St7__cxx1118basic_stringstreamI", "St7__cxx1119basic_istringstreamI",
    "St7__cxx1119basic_ostringstreamI"};
static constexpr StringLiteral Arguments[] = {"cSt11char_traitsIcESaIcEE",
                                              "wSt11char_traitsIwESaIwEE"};
static constexpr StringLiteral Buffers[] = {
    "St15basic_streambufIcSt11char_traitsIcEE",
    "St15basic_streambufIwSt11char_traitsIwEE"};

// Whether the name of a scope or type begins with one of the classes.
static bool beginsWithClass(StringRef Name) {
  if (any_of(Buffers, [&](StringRef B) { return Name.starts_with(B); }))
    return true;
  for (StringRef Class : Classes) {
    StringRef Rest = Name;
    if (Rest.consume_front(Class))
      return any_of(Arguments, [&](StringRef A) { return Rest.starts_with(A); });
  }
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
  return (Table || Nested) && beginsWithClass(Name);
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

} // namespace spillway
