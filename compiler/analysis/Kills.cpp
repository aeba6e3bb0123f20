//===- Kills.cpp - Where translations end ---------------------------------===//
#include "analysis/Kills.h"
#include "analysis/Accesses.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace spillway {

// Whether I is compiled for processors that have the instructions of Set, for
// instance "+fma".
static bool isFor(StringRef Set, const Instruction &I) {
  return I.getFunction()
      ->getFnAttribute("target-features")
      .getValueAsString()
      .contains(Set);
}

// Whether code generation calls a function of the mathematical library for II.
// The program may have defined that function itself. Functions that access no
// memory in any library (floor, sqrt, round) are left out.
static bool isMathematics(const IntrinsicInst &II) {
  const Type *T = II.getType()->getScalarType();
  bool HasInstructions = T->isFloatTy() || T->isDoubleTy();
  switch (II.getIntrinsicID()) {
  case Intrinsic::fma:
  case Intrinsic::experimental_constrained_fma:
    return !HasInstructions || !isFor("+fma", II);
  case Intrinsic::nearbyint:
  case Intrinsic::experimental_constrained_nearbyint:
    return !HasInstructions || !isFor("+sse4.1", II);
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
  case Intrinsic::llround:
  case Intrinsic::log:
  case Intrinsic::log10:
  case Intrinsic::log2:
  case Intrinsic::lround:
  case Intrinsic::pow:
  case Intrinsic::sin:
  case Intrinsic::sinh:
  case Intrinsic::tan:
  case Intrinsic::tanh:
  // The same where rounding modes and exceptions matter (-frounding-math).
  case Intrinsic::experimental_constrained_acos:
  case Intrinsic::experimental_constrained_asin:
  case Intrinsic::experimental_constrained_atan:
  case Intrinsic::experimental_constrained_cos:
  case Intrinsic::experimental_constrained_cosh:
  case Intrinsic::experimental_constrained_exp:
  case Intrinsic::experimental_constrained_exp2:
  case Intrinsic::experimental_constrained_frem:
  case Intrinsic::experimental_constrained_ldexp:
  case Intrinsic::experimental_constrained_llround:
  case Intrinsic::experimental_constrained_log:
  case Intrinsic::experimental_constrained_log10:
  case Intrinsic::experimental_constrained_log2:
  case Intrinsic::experimental_constrained_lround:
  case Intrinsic::experimental_constrained_pow:
  case Intrinsic::experimental_constrained_sin:
  case Intrinsic::experimental_constrained_sinh:
  case Intrinsic::experimental_constrained_tan:
  case Intrinsic::experimental_constrained_tanh:
    return true;
  default:
    return false;
  }
}

bool becomesCall(const Instruction &I) {
  // fmod, which no processor has an instruction for.
  if (I.getOpcode() == Instruction::FRem)
    return true;
  auto *II = dyn_cast<IntrinsicInst>(&I);
  return II && isMathematics(*II);
}

bool endsTranslations(const Instruction &I) {
  if (becomesCall(I) || callsAtomicLibrary(I))
    return true;
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return false;
  // Assembly that only computes, such as the check for a page's edge.
  if (Call->isInlineAsm() && Call->doesNotAccessMemory())
    return false;
  auto *II = dyn_cast<IntrinsicInst>(Call);
  if (!II)
    return !Call->hasFnAttr(KeepsTranslations);
  // The others may become calls of the C library's function, or of one of that
  // name in the program.
  if (isa<MemIntrinsic>(II))
    return !isa<MemCpyInlineInst>(II) && !isa<MemSetInlineInst>(II);
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
  // A volatile struct is loaded by a copy.
  if (auto *Copy = dyn_cast<MemTransferInst>(&I))
    return Copy->isVolatile();
  auto *Load = dyn_cast<LoadInst>(&I);
  return Load && (Load->isAtomic() || Load->isVolatile());
}

} // namespace spillway
