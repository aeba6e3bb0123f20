//===- Abi.cpp - The runtime's symbols, as a module sees them -------------===//
#include "Abi.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace spillway {

Abi::Abi(Module &M)
    : M(M), I64(Type::getInt64Ty(M.getContext())),
      Ptr(PointerType::get(M.getContext(), 0)),
      ColdWeights(MDBuilder(M.getContext()).createBranchWeights(1, 1 << 20)) {}

GlobalVariable *Abi::slotsVariable() {
  if (auto *Existing = M.getNamedGlobal(abi::Slots))
    return Existing;
  return new GlobalVariable(M, Ptr, /*isConstant=*/false,
                            GlobalValue::ExternalLinkage, nullptr, abi::Slots,
                            nullptr, GlobalValue::InitialExecTLSModel);
}

Function *Abi::stub(StringRef Symbol, FunctionType *Type) {
  std::string Name = (Symbol + "_stub").str();
  if (Function *Existing = M.getFunction(Name))
    return Existing;
  auto *F = Function::Create(Type, GlobalValue::LinkOnceODRLinkage, Name, M);
  F->setVisibility(GlobalValue::HiddenVisibility);
  F->setDSOLocal(true);
  F->setComdat(M.getOrInsertComdat(Name));
  F->setCallingConv(CallingConv::PreserveAll);
  F->setUWTableKind(UWTableKind::Async);
  for (Attribute::AttrKind Kind : {Attribute::Cold, Attribute::Naked,
                                   Attribute::NoInline, Attribute::NoUnwind})
    F->addFnAttr(Kind);
  IRBuilder<> B(BasicBlock::Create(M.getContext(), "", F));
  auto *Void = FunctionType::get(B.getVoidTy(), false);
  B.CreateCall(InlineAsm::get(
      Void, ("jmpq *" + Symbol + "@GOTPCREL(%rip)").str(), "", true));
  B.CreateUnreachable();
  return F;
}

CallInst *Abi::callSlowPath(IRBuilderBase &B, StringRef Symbol,
                            ArrayRef<Value *> Arguments) {
  SmallVector<Type *, 4> Types;
  for (Value *Argument : Arguments)
    Types.push_back(Argument->getType());
  Function *Callee = stub(Symbol, FunctionType::get(I64, Types, false));
  CallInst *Call = B.CreateCall(Callee, Arguments);
  Call->setCallingConv(CallingConv::PreserveAll);
  Call->setDoesNotThrow();
  return Call;
}

Value *Abi::translate(IRBuilderBase &B, Value *Address, SlotSet Live) {
  return callSlowPath(B, abi::Translate, {Address, B.getInt64(Live)});
}

void Abi::crossLoad(IRBuilderBase &B, Value *Address, uint64_t Size,
                    Value *Buffer, SlotSet Live) {
  callSlowPath(B, abi::CrossLoad,
               {Address, B.getInt64(Size), Buffer, B.getInt64(Live)});
}

void Abi::crossStore(IRBuilderBase &B, Value *Address, uint64_t Size,
                     Value *Buffer, SlotSet Live) {
  callSlowPath(B, abi::CrossStore,
               {Address, B.getInt64(Size), Buffer, B.getInt64(Live)});
}

Value *Abi::crossMap(IRBuilderBase &B, Value *Address, uint64_t Size,
                     SlotSet Live) {
  return callSlowPath(B, abi::CrossMap,
                      {Address, B.getInt64(Size), B.getInt64(Live)});
}

FunctionCallee Abi::intercepted(StringRef Name, FunctionType *Type) {
  return M.getOrInsertFunction((Twine(abi::InterceptPrefix) + Name).str(),
                               Type);
}

void Abi::requireVersion() {
  constexpr StringLiteral Name = "__spillway_abi_reference";
  if (M.getNamedGlobal(Name))
    return;
  Constant *Table =
      M.getOrInsertGlobal(abi::AbiTable, Type::getInt8Ty(M.getContext()));
  auto *Reference =
      new GlobalVariable(M, Ptr, /*isConstant=*/true,
                         GlobalValue::LinkOnceODRLinkage, Table, Name);
  Reference->setVisibility(GlobalValue::HiddenVisibility);
  Reference->setComdat(M.getOrInsertComdat(Name));
  appendToUsed(M, {Reference});
}

} // namespace spillway
