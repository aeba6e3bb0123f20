//===- Kills.cpp - Where translations end ---------------------------------===//
#include "analysis/Kills.h"
#include "analysis/Accesses.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace spillway {

// Whether code generation calls the mathematical library's function for it,
// which the program may have itself. Those that some processors have an
// instruction for (floor, fma) are left out: none has a reason to use memory.
static bool isMathematics(Intrinsic::ID ID) {
  switch (ID) {
  case Intrinsic::acos:
  case Intrinsic::asin:
  case Intrinsic::atan:
  case Intrinsic::cos:
  case Intrinsic::cosh:
  case Intrinsic::exp:
  case Intrinsic::exp10:
  case Intrinsic::exp2:
  case Intrinsic::frexp:
  case Intrinsic::ldexp:
  case Intrinsic::log:
  case Intrinsic::log10:
  case Intrinsic::log2:
  case Intrinsic::pow:
  case Intrinsic::sin:
  case Intrinsic::sinh:
  case Intrinsic::tan:
  case Intrinsic::tanh:
    return true;
  default:
    return false;
  }
}

bool endsTranslations(const Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return false;
  // Assembly that only computes, such as the check for a page's edge.
  if (Call->isInlineAsm() && Call->doesNotAccessMemory())
    return false;
  auto *II = dyn_cast<IntrinsicInst>(Call);
  if (!II)
    return !Call->hasFnAttr(KeepsTranslations);
  // What is not expanded in line is a call of the C library's function, or of one
  // of the program's own with its name.
  if (isa<MemIntrinsic>(II))
    return !isa<MemCpyInlineInst>(II) && !isa<MemSetInlineInst>(II);
  if (isMathematics(II->getIntrinsicID()))
    return true;
  switch (II->getIntrinsicID()) {
  case Intrinsic::masked_gather:
  case Intrinsic::masked_load:
  case Intrinsic::masked_scatter:
  case Intrinsic::masked_store:
  case Intrinsic::prefetch:
  case Intrinsic::stackrestore:
  case Intrinsic::stacksave:
    return false;
  default:
    return !II->doesNotAccessMemory() && !II->onlyAccessesArgMemory() &&
           !II->onlyAccessesInaccessibleMemory();
  }
}

bool awaitsOthers(const Instruction &I) {
  auto *Load = dyn_cast<LoadInst>(&I);
  return Load && (Load->isAtomic() || Load->isVolatile());
}

} // namespace spillway
