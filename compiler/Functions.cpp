//===- Functions.cpp - What several passes do to functions ----------------===//
#include "Functions.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Regex.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace spillway {

bool isForDevice(const Module &M) {
  Triple::ArchType Arch = Triple(M.getTargetTriple()).getArch();
  return Arch != Triple::x86_64 && Arch != Triple::UnknownArch;
}

void gatherStaticAllocas(Function &F) {
  BasicBlock &Entry = F.getEntryBlock();
  Instruction *Front = &*Entry.begin();
  SmallVector<AllocaInst *, 16> Late;
  for (Instruction &I : Entry)
    if (auto *A = dyn_cast<AllocaInst>(&I); A && A->isStaticAlloca())
      Late.push_back(A);
  for (AllocaInst *A : Late)
    if (A == Front)
      Front = A->getNextNode();
    else
      A->moveBefore(Front);
}

// Numeric labels, and labels with a unique number (%=), may occur any number of
// times. Code that tests for a symbol (.ifndef) expects to be duplicated.
static bool definesSymbols(const CallBase &Assembly) {
  const Regex Label("(^|[\n;])[[:space:]]*[[:alpha:]_.][[:alnum:]_.$]*:");
  StringRef Text = cast<InlineAsm>(Assembly.getCalledOperand())->getAsmString();
  return !Text.contains(".ifndef") && Label.match(Text);
}

bool isUnique(const Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  return Call && (Call->cannotDuplicate() ||
                  (Call->isInlineAsm() && definesSymbols(*Call)));
}

bool canCopyLocally(const Function &F) {
  return none_of(F,
                 [](const BasicBlock &BB) { return BB.hasAddressTaken(); }) &&
         none_of(instructions(F), isUnique);
}

Function *copyLocally(Function &F, StringRef Ending) {
  ValueToValueMapTy Values;
  Function *Copy = CloneFunction(&F, Values);
  Copy->setLinkage(GlobalValue::InternalLinkage);
  Copy->setVisibility(GlobalValue::DefaultVisibility);
  Copy->setComdat(nullptr);
  Copy->setName(F.getName() + Ending);
  return Copy;
}

void returnResult(IRBuilderBase &B, CallInst &Call) {
  if (Call.getType()->isVoidTy())
    B.CreateRetVoid();
  else
    B.CreateRet(&Call);
}

BasicBlock *callInstead(Function &F, Value *Callee) {
  IRBuilder<> B(BasicBlock::Create(F.getContext(), "", &F));
  SmallVector<Value *, 3> Arguments;
  for (Argument &A : F.args())
    Arguments.push_back(&A);
  CallInst *Call = B.CreateCall(F.getFunctionType(), Callee, Arguments);
  Call->setTailCallKind(CallInst::TCK_MustTail);
  returnResult(B, *Call);
  return B.GetInsertBlock();
}

void dropMemoryAttributes(Function &F) {
  if (F.isIntrinsic())
    return;
  for (Attribute::AttrKind Kind :
       {Attribute::Memory, Attribute::Speculatable, Attribute::NoSync})
    F.removeFnAttr(Kind);
  for (Argument &A : F.args())
    for (Attribute::AttrKind Kind : {Attribute::ReadNone, Attribute::ReadOnly})
      A.removeAttr(Kind);
  for (BasicBlock &BB : F)
    for (Instruction &I : BB) {
      auto *Call = dyn_cast<CallBase>(&I);
      if (!Call || isa<IntrinsicInst>(Call) || Call->isInlineAsm())
        continue;
      for (Attribute::AttrKind Kind : {Attribute::Memory, Attribute::NoSync})
        Call->removeFnAttr(Kind);
    }
}

} // namespace spillway
