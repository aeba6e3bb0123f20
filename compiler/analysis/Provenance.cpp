//===- Provenance.cpp - What provably is not spill memory -----------------===//
#include "analysis/Provenance.h"
#include "analysis/PlainPointers.h"
#include "module/Globals.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace spillway {

// C library functions whose result points to static or thread-local memory.
static bool returnsPlainPointer(const CallBase &Call) {
  const Function *Callee = Call.getCalledFunction();
  if (!Callee)
    return false;
  if (isMarkedPlain(*Callee))
    return true;
  switch (Callee->getIntrinsicID()) {
  case Intrinsic::threadlocal_address:
  case Intrinsic::frameaddress:
  case Intrinsic::addressofreturnaddress:
  case Intrinsic::sponentry:
  case Intrinsic::stacksave:
    return true;
  default:
    break;
  }
  static const StringSet<> Names = {"__errno_location", "__ctype_b_loc",
                                    "__ctype_tolower_loc",
                                    "__ctype_toupper_loc"};
  return Callee->isDeclaration() && Names.contains(Callee->getName());
}

static bool isPlainGlobal(const GlobalValue &Global) {
  auto *G = dyn_cast_or_null<GlobalVariable>(Global.getAliaseeObject());
  return !G || !mayBeSpilled(*G);
}

// AllGlobals: globals count as plain, even those that may be spilled.
static bool isPlainObject(const Value *Object, bool AllGlobals) {
  if (isa<AllocaInst, Function, GlobalIFunc, BlockAddress>(Object))
    return true;
  if (auto *Global = dyn_cast<GlobalValue>(Object))
    return AllGlobals || isPlainGlobal(*Global);
  if (isa<ConstantPointerNull, UndefValue>(Object))
    return true;
  // The memory of a swifterror argument is a register.
  if (const auto *A = dyn_cast<Argument>(Object))
    return A->hasByValAttr() || A->hasSwiftErrorAttr() || isMarkedPlain(*A);
  if (const auto *Call = dyn_cast<CallBase>(Object))
    return returnsPlainPointer(*Call);
  if (const auto *Load = dyn_cast<LoadInst>(Object))
    return isMarkedPlain(*Load);
  return false;
}

static bool isPlain(const Value *Pointer, bool AllGlobals) {
  if (!Pointer->getType()->isPointerTy() ||
      Pointer->getType()->getPointerAddressSpace() != 0)
    return true;
  auto Plain = [=](const Value *Object) {
    return isPlainObject(Object, AllGlobals);
  };
  if (Plain(getUnderlyingObject(Pointer, /*MaxLookup=*/32)))
    return true;
  SmallVector<const Value *, 8> Objects;
  getUnderlyingObjects(Pointer, Objects, /*LI=*/nullptr, /*MaxLookup=*/32);
  return !Objects.empty() && all_of(Objects, Plain);
}

bool isPlain(const Value *Pointer) {
  return isPlain(Pointer, /*AllGlobals=*/false);
}

bool mayPersist(const Value *Pointer) {
  return !isPlain(Pointer, /*AllGlobals=*/true);
}

} // namespace spillway
