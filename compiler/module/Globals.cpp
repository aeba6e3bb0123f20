//===- Globals.cpp - Globals in spilled memory ----------------------------===//
#include "module/Globals.h"
#include "Abi.h"
#include "Options.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace spillway {

// Marks a definition that was given pages of its own; survives in bitcode.
static constexpr StringLiteral DoneAttribute = "spillway";

bool mayBeSpilled(const GlobalVariable &G) {
  if (G.hasAttribute(DoneAttribute))
    return true;
  if (options::SpillGlobals == 0 || G.isConstant() || G.isThreadLocal() ||
      !G.isDeclarationForLinker())
    return false;
  // The size of an array without bounds is zero, or not known.
  Type *T = G.getValueType();
  if (!T->isSized())
    return true;
  uint64_t Size = G.getDataLayout().getTypeAllocSize(T);
  return Size == 0 || Size >= options::SpillGlobals;
}

namespace {

class GlobalSpiller {
public:
  GlobalSpiller(Module &M,
                const SmallPtrSetImpl<const GlobalValue *> &Annotated)
      : M(M), DL(M.getDataLayout()), Annotated(Annotated),
        Ptr(PointerType::get(M.getContext(), 0)),
        I64(Type::getInt64Ty(M.getContext())) {}

  GlobalCounters run();

private:
  bool isChosen(const GlobalVariable &G);
  void giveOwnPages(GlobalVariable *Old);
  void record(GlobalVariable *G, uint64_t Size);
  Constant *boundary(StringRef Symbol);
  void callRuntime(StringRef Symbol, bool AtStart);

  Module &M;
  const DataLayout &DL;
  const SmallPtrSetImpl<const GlobalValue *> &Annotated;
  PointerType *Ptr;
  IntegerType *I64;
  GlobalCounters Count;
};

} // namespace

bool GlobalSpiller::isChosen(const GlobalVariable &G) {
  if (G.isDeclarationForLinker() || G.getName().starts_with("llvm.") ||
      G.hasAppendingLinkage() || G.getAddressSpace() != 0 ||
      G.hasAttribute(DoneAttribute))
    return false;
  unsigned *Reason = nullptr;
  if (DL.getTypeAllocSize(G.getValueType()) < options::SpillGlobals)
    Reason = &Count.Small;
  else if (G.isConstant())
    Reason = &Count.Constant;
  else if (G.isThreadLocal())
    Reason = &Count.ThreadLocal;
  else if (Annotated.contains(&G))
    Reason = &Count.Annotated;
  else if (G.hasSection() || G.hasImplicitSection())
    Reason = &Count.Placed;
  else if (G.hasCommonLinkage())
    Reason = &Count.Replaceable;
  ++(Reason ? *Reason : Count.Spilled);
  return !Reason;
}

// Nothing else may lie on pages that leave memory: the object begins at the
// beginning of an OS page, and is lengthened to the end of its last one.
void GlobalSpiller::giveOwnPages(GlobalVariable *Old) {
  Type *T = Old->getValueType();
  Align Alignment =
      std::max(Old->getAlign().value_or(DL.getPreferredAlign(Old)),
               Align(abi::PageSize));
  uint64_t Size = DL.getTypeAllocSize(T);
  uint64_t Whole = alignTo(Size, abi::PageSize);
  Type *Rest = ArrayType::get(Type::getInt8Ty(M.getContext()), Whole - Size);
  auto *Longer = StructType::get(M.getContext(), {T, Rest}, /*isPacked=*/true);
  // Zeros, so that a zeroed object still takes no room in the file.
  Constant *Content = Old->getInitializer();
  if (isa<UndefValue>(Content))
    Content = Constant::getNullValue(T);
  auto *G = new GlobalVariable(
      M, Longer, /*isConstant=*/false, Old->getLinkage(),
      ConstantStruct::get(Longer, {Content, Constant::getNullValue(Rest)}), "",
      Old);
  G->copyAttributesFrom(Old);
  G->copyMetadata(Old, 0);
  G->setComdat(Old->getComdat());
  G->setAlignment(Alignment);
  G->addAttribute(DoneAttribute);
  G->takeName(Old);
  Old->replaceAllUsesWith(G);
  Old->eraseFromParent();
  record(G, Whole);
}

// A record shares its global's fate: when the linker drops the global, as a
// duplicate or as unused, it drops the record. The record refers to this
// object's definition, even if the symbol resolves to another object's.
void GlobalSpiller::record(GlobalVariable *G, uint64_t Size) {
  Constant *Address = G;
  if (!G->hasLocalLinkage())
    Address =
        GlobalAlias::create(G->getValueType(), 0, GlobalValue::PrivateLinkage,
                            "__spillway_" + G->getName(), G, &M);
  auto *Kind = StructType::get(M.getContext(), {Ptr, I64});
  auto *Record = new GlobalVariable(
      M, Kind, /*isConstant=*/false, GlobalValue::PrivateLinkage,
      ConstantStruct::get(Kind, {Address, ConstantInt::get(I64, Size)}),
      "__spillway_global");
  Record->setSection(abi::Globals);
  Record->setAlignment(Align(16));
  Record->setComdat(G->getComdat());
  Record->setMetadata(LLVMContext::MD_associated,
                      MDNode::get(M.getContext(), ValueAsMetadata::get(G)));
  appendToCompilerUsed(M, {Record});
}

Constant *GlobalSpiller::boundary(StringRef Symbol) {
  auto *G = cast<GlobalVariable>(
      M.getOrInsertGlobal(Symbol, Type::getInt8Ty(M.getContext())));
  G->setLinkage(GlobalValue::ExternalWeakLinkage);
  G->setVisibility(GlobalValue::HiddenVisibility);
  return G;
}

// Emits one call for all records of a program or library, which linkers merge
// with those of its other objects. It runs before all other constructors, or
// after all other destructors.
void GlobalSpiller::callRuntime(StringRef Symbol, bool AtStart) {
  std::string Name = (Symbol + "_call").str();
  if (M.getFunction(Name))
    return;
  LLVMContext &C = M.getContext();
  Type *Void = Type::getVoidTy(C);
  auto *F = Function::Create(FunctionType::get(Void, false),
                             GlobalValue::LinkOnceODRLinkage, Name, M);
  F->setVisibility(GlobalValue::HiddenVisibility);
  F->setDSOLocal(true);
  F->setComdat(M.getOrInsertComdat(Name));
  F->addFnAttr(DoneAttribute);
  IRBuilder<> B(BasicBlock::Create(C, "", F));
  B.CreateCall(M.getOrInsertFunction(Symbol, Void, Ptr, Ptr),
               {boundary("__start_" + abi::Globals.str()),
                boundary("__stop_" + abi::Globals.str())});
  B.CreateRetVoid();
  constexpr int Outermost = 0;
  (AtStart ? appendToGlobalCtors : appendToGlobalDtors)(M, F, Outermost, F);
}

GlobalCounters GlobalSpiller::run() {
  SmallVector<GlobalVariable *, 8> Chosen;
  for (GlobalVariable &G : M.globals())
    if (isChosen(G))
      Chosen.push_back(&G);
  for (GlobalVariable *G : Chosen)
    giveOwnPages(G);
  if (!Chosen.empty()) {
    callRuntime(abi::RegisterGlobals, /*AtStart=*/true);
    callRuntime(abi::UnregisterGlobals, /*AtStart=*/false);
  }
  return Count;
}

GlobalCounters
spillGlobals(Module &M, const SmallPtrSetImpl<const GlobalValue *> &Annotated) {
  if (options::SpillGlobals == 0)
    return {};
  return GlobalSpiller(M, Annotated).run();
}

} // namespace spillway
