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

GlobalVariable *Abi::slotsVariable() { return threadVariable(abi::Slots, Ptr); }

GlobalVariable *Abi::threadVariable(StringRef Symbol, Type *Kind) {
  if (auto *Existing = M.getNamedGlobal(Symbol))
    return Existing;
  return new GlobalVariable(M, Kind, /*isConstant=*/false,
                            GlobalValue::ExternalLinkage, nullptr, Symbol,
                            nullptr, GlobalValue::InitialExecTLSModel);
}

Value *Abi::persistCountdown(IRBuilderBase &B) {
  return B.CreateThreadLocalAddress(
      threadVariable(abi::PersistCountdown, B.getInt32Ty()));
}

Value *Abi::persistThread(IRBuilderBase &B, uint64_t Offset) {
  Value *Variable = B.CreateThreadLocalAddress(threadVariable(
      abi::PersistThread, ArrayType::get(I64, abi::PersistThreadWords)));
  return B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Variable, Offset);
}

Value *Abi::satcThread(IRBuilderBase &B) {
  return B.CreateThreadLocalAddress(threadVariable(
      abi::SatcThread, ArrayType::get(I64, abi::SatcThreadWords)));
}

static constexpr StringLiteral StubPrefix = "__spillway_", StubEnding = "_stub";

bool isStub(const Function &F) {
  return F.getName().starts_with(StubPrefix) &&
         F.getName().ends_with(StubEnding);
}

void leaveOut(Instruction *I) {
  I->setMetadata(LLVMContext::MD_nosanitize, MDNode::get(I->getContext(), {}));
}

// A naked function of the object, merged with those of other objects. ${0:P} in
// Code is Target.
Function *Abi::makeStub(const Twine &Symbol, FunctionType *Kind,
                        const Twine &Code, Function *Target) {
  std::string Name = (Symbol + Twine(StubEnding)).str();
  if (Function *Existing = M.getFunction(Name))
    return Existing;
  auto *F = Function::Create(Kind, GlobalValue::LinkOnceODRLinkage, Name, M);
  F->setVisibility(GlobalValue::HiddenVisibility);
  F->setDSOLocal(true);
  F->setComdat(M.getOrInsertComdat(Name));
  F->setUWTableKind(UWTableKind::Async);
  for (Attribute::AttrKind Property :
       {Attribute::Cold, Attribute::Naked, Attribute::NoInline,
        Attribute::NoUnwind})
    F->addFnAttr(Property);
  IRBuilder<> B(BasicBlock::Create(M.getContext(), "", F));
  SmallVector<llvm::Type *, 1> Types;
  SmallVector<Value *, 1> Operands;
  if (Target) {
    Types.push_back(Ptr);
    Operands.push_back(Target);
  }
  B.CreateCall(InlineAsm::get(FunctionType::get(B.getVoidTy(), Types, false),
                              Code.str(), Target ? "i" : "",
                              /*hasSideEffects=*/true),
               Operands);
  B.CreateUnreachable();
  return F;
}

Function *Abi::translateStub(StringRef Symbol) {
  // The stack may have any alignment here.
  constexpr StringLiteral Code = "pushq %rdi\n"
                                 ".cfi_adjust_cfa_offset 8\n"
                                 "pushq %rsi\n"
                                 ".cfi_adjust_cfa_offset 8\n"
                                 "pushq %rbp\n"
                                 ".cfi_adjust_cfa_offset 8\n"
                                 ".cfi_rel_offset rbp, 0\n"
                                 "movq %rsp, %rbp\n"
                                 ".cfi_def_cfa_register rbp\n"
                                 "andq $$-16, %rsp\n"
                                 "movq %r11, %rdi\n"
                                 "movq %rax, %rsi\n"
                                 "callq *";
  return makeStub(Symbol,
                  FunctionType::get(Type::getVoidTy(M.getContext()), false),
                  Code + Symbol +
                      "@GOTPCREL(%rip)\n"
                      "movq %rbp, %rsp\n"
                      "popq %rbp\n"
                      ".cfi_def_cfa rsp, 24\n"
                      "popq %rsi\n"
                      ".cfi_adjust_cfa_offset -8\n"
                      "popq %rdi\n"
                      ".cfi_adjust_cfa_offset -8\n"
                      "retq");
}

// The protocol of abi.inc, as Translator::lookUp emits it, for the address in
// r11. The entry is in rdi afterwards; if it cannot be used, control goes to
// label 1.
static std::string findEntry(unsigned Slot) {
  // A table beyond a displacement's reach needs a register for its base.
  const std::string Base = std::to_string(abi::TableBase);
  const std::string LoadEntry = isInt<32>(abi::TableBase)
                                    ? "movq " + Base + "(,%rdi,8), %rdi\n"
                                    : "pushq %rax\n"
                                      ".cfi_adjust_cfa_offset 8\n"
                                      "movabsq $$" +
                                          Base +
                                          ", %rax\n"
                                          "movq (%rax,%rdi,8), %rdi\n"
                                          "popq %rax\n"
                                          ".cfi_adjust_cfa_offset -8\n";
  return (Twine("movq ") + abi::Slots +
          "@GOTTPOFF(%rip), %rdi\n"
          "movq %fs:(%rdi), %rdi\n"
          "movq %r11, " +
          Twine(Slot * 8) +
          "(%rdi)\n"
          "movq %r11, %rdi\n"
          "shrq $$" +
          Twine(abi::TableShift) + ", %rdi\n" + LoadEntry +
          "testq %rdi, %rdi\n"
          "jle 1f\n")
      .str();
}

Function *Abi::aloneStub(unsigned Slot) {
  return makeStub(abi::Translate + Twine("_alone") + Twine(Slot),
                  FunctionType::get(Type::getVoidTy(M.getContext()), false),
                  "pushq %rdi\n"
                  ".cfi_adjust_cfa_offset 8\n" +
                      findEntry(Slot) +
                      "movq %rdi, %rax\n"
                      "popq %rdi\n"
                      ".cfi_adjust_cfa_offset -8\n"
                      "retq\n"
                      "1: popq %rdi\n"
                      "jmp ${0:P}",
                  translateStub());
}

// Wraps code that calls the runtime for a stub, which has pushed rdi: the stack
// may have any alignment there.
static std::string aligned(const std::string &Code) {
  return "pushq %rsi\n"
         ".cfi_adjust_cfa_offset 8\n"
         "pushq %rdx\n"
         ".cfi_adjust_cfa_offset 8\n"
         "pushq %rcx\n"
         ".cfi_adjust_cfa_offset 8\n"
         "pushq %rbp\n"
         ".cfi_adjust_cfa_offset 8\n"
         ".cfi_rel_offset rbp, 0\n"
         "movq %rsp, %rbp\n"
         ".cfi_def_cfa_register rbp\n"
         "subq $$16, %rsp\n"
         "andq $$-16, %rsp\n" +
         Code +
         "movq %rbp, %rsp\n"
         "popq %rbp\n"
         ".cfi_def_cfa rsp, 40\n"
         "popq %rcx\n"
         ".cfi_adjust_cfa_offset -8\n"
         "popq %rdx\n"
         ".cfi_adjust_cfa_offset -8\n"
         "popq %rsi\n"
         ".cfi_adjust_cfa_offset -8\n"
         "popq %rdi\n"
         ".cfi_adjust_cfa_offset -8\n"
         "retq";
}

// Label 2 of a stub: the bytes lie in two OS pages, and go through a buffer on
// the stack.
static std::string crossing(uint64_t Size, bool IsStore,
                            const std::string &LoadFromBuffer) {
  return "2: " + aligned((IsStore ? "movq %r10, (%rsp)\n" : "") +
                         std::string("movq %r11, %rdi\n"
                                     "movl $$") +
                         std::to_string(Size) +
                         ", %esi\n"
                         "movq %rsp, %rdx\n"
                         "movq %rax, %rcx\n"
                         "callq *" +
                         (IsStore ? abi::CrossStore : abi::CrossLoad).str() +
                         "@GOTPCREL(%rip)\n" + LoadFromBuffer);
}

Function *Abi::accessStub(uint64_t Size, bool IsStore) {
  unsigned Width = Log2_64(Size);
  static const char *const Loads[] = {"movzbl %s, %eax\n", "movzwl %s, %eax\n",
                                      "movl %s, %eax\n", "movq %s, %rax\n"};
  static const char *const Stores[] = {"movb %r10b, %s\n", "movw %r10w, %s\n",
                                       "movl %r10d, %s\n", "movq %r10, %s\n"};
  auto Access = [&](StringRef Where) {
    auto [Before, After] =
        StringRef((IsStore ? Stores : Loads)[Width]).split("%s");
    return (Before + Where + After).str();
  };
  std::string Check;
  if (Size > 1)
    Check = "imull $$" + std::to_string(abi::EdgeUnit) +
            ", %r11d, %edi\n"
            "cmpl $$" +
            std::to_string(abi::lastOffset(Size)) +
            ", %edi\n"
            "ja 2f\n";
  const std::string End = "popq %rdi\n"
                          ".cfi_adjust_cfa_offset -8\n"
                          "retq\n"
                          ".cfi_adjust_cfa_offset 8\n";
  return makeStub(
      Twine(StubPrefix) + (IsStore ? "store" : "load") + Twine(Size),
      FunctionType::get(Type::getVoidTy(M.getContext()), false),
      "pushq %rdi\n"
      ".cfi_adjust_cfa_offset 8\n" +
          Check + findEntry(/*Slot=*/0) + Access("-1(%r11,%rdi)") + End +
          "1: pushq %r11\n"
          ".cfi_adjust_cfa_offset 8\n"
          "callq ${0:P}\n"
          "popq %r11\n"
          ".cfi_adjust_cfa_offset -8\n" +
          Access("-1(%r11,%rax)") + End +
          (Size > 1 ? crossing(Size, IsStore, IsStore ? "" : Access("(%rsp)"))
                    : ""),
      translateStub());
}

Function *Abi::copyStub(uint64_t Size) {
  return makeStub(Twine(StubPrefix) + "copy" + Twine(Size),
                  FunctionType::get(Type::getVoidTy(M.getContext()), false),
                  "pushq %rdi\n"
                  ".cfi_adjust_cfa_offset 8\n" +
                      aligned("movq %r11, %rdi\n"
                              "movq %r10, %rsi\n"
                              "movl $$" +
                              std::to_string(Size) +
                              ", %edx\n"
                              "movq %rax, %rcx\n"
                              "callq *" +
                              abi::CrossCopy.str() + "@GOTPCREL(%rip)\n"));
}

// A stub with the set of live slots built in, for the most common sets: calling
// it takes a third fewer bytes.
Function *Abi::withLive(Function *Stub, SlotSet Live) {
  constexpr SlotSet Most = 7;
  if (Live > Most)
    return Stub;
  return makeStub(Stub->getName().drop_back(StubEnding.size()) + "_live" +
                      Twine(Live),
                  Stub->getFunctionType(),
                  "movl $$" + Twine(Live) + ", %eax\njmp ${0:P}", Stub);
}

// Calls a stub so that code generation does not see a call (Abi.h).
// What: a value for r10, if the stub takes one.
Value *Abi::callQuietly(IRBuilderBase &B, Function *Stub, Value *Address,
                        SlotSet Live, Value *What) {
  slotsVariable();
  auto *Result = StructType::get(I64, I64);
  SmallVector<Type *, 4> Types = {I64, Ptr};
  SmallVector<Value *, 4> Operands = {Address, withLive(Stub, Live)};
  std::string Constraints = "={rax},={r11},1,i,";
  auto Add = [&](Value *Operand, StringRef Constraint) {
    Types.push_back(I64);
    Operands.push_back(Operand);
    Constraints += Constraint;
  };
  if (What)
    Add(What, "{r10},");
  if (Operands[1] == Stub)
    Add(B.getInt64(Live), "0,");
  auto *Assembly =
      InlineAsm::get(FunctionType::get(Result, Types, false), "callq ${3:P}",
                     Constraints + "~{memory},~{dirflag},~{fpsr},~{flags}",
                     /*hasSideEffects=*/true);
  CallInst *Call = B.CreateCall(Assembly, Operands);
  Call->setDoesNotThrow();
  return B.CreateExtractValue(Call, 0);
}

Value *Abi::translate(IRBuilderBase &B, Value *Address, SlotSet Live) {
  return callQuietly(B, translateStub(), Address, Live);
}

Value *Abi::satcTranslate(IRBuilderBase &B, Value *Address) {
  return callQuietly(B, translateStub(abi::SatcTranslate), Address, /*Live=*/0);
}

Value *Abi::translateAlone(IRBuilderBase &B, Value *Address, unsigned Slot,
                           SlotSet Live) {
  return callQuietly(B, aloneStub(Slot), Address, Live | SlotSet(1) << Slot);
}

Value *Abi::load(IRBuilderBase &B, Value *Address, uint64_t Size,
                 SlotSet Live) {
  return callQuietly(B, accessStub(Size, /*IsStore=*/false), Address, Live | 1);
}

void Abi::store(IRBuilderBase &B, Value *Address, Value *What, SlotSet Live) {
  uint64_t Size = What->getType()->getIntegerBitWidth() / 8;
  callQuietly(B, accessStub(Size, /*IsStore=*/true), Address, Live | 1,
              B.CreateZExt(What, I64));
}

CallInst *Abi::callCrossing(IRBuilderBase &B, StringRef Symbol,
                            ArrayRef<Value *> Arguments) {
  SmallVector<Type *, 4> Types;
  for (Value *Argument : Arguments)
    Types.push_back(Argument->getType());
  Function *Callee = makeStub(Symbol, FunctionType::get(I64, Types, false),
                              "jmpq *" + Symbol + "@GOTPCREL(%rip)");
  Callee->setCallingConv(CallingConv::PreserveAll);
  CallInst *Call = B.CreateCall(Callee, Arguments);
  Call->setCallingConv(CallingConv::PreserveAll);
  Call->setDoesNotThrow();
  return Call;
}

void Abi::crossLoad(IRBuilderBase &B, Value *Address, uint64_t Size,
                    Value *Buffer, SlotSet Live) {
  callCrossing(B, abi::CrossLoad,
               {Address, B.getInt64(Size), Buffer, B.getInt64(Live)});
}

void Abi::crossStore(IRBuilderBase &B, Value *Address, uint64_t Size,
                     Value *Buffer, SlotSet Live) {
  callCrossing(B, abi::CrossStore,
               {Address, B.getInt64(Size), Buffer, B.getInt64(Live)});
}

void Abi::crossCopy(IRBuilderBase &B, Value *To, Value *From, uint64_t Size,
                    SlotSet Live) {
  callQuietly(B, copyStub(Size), To, Live, From);
}

Value *Abi::crossMap(IRBuilderBase &B, Value *Address, uint64_t Size,
                     SlotSet Live) {
  return callCrossing(B, abi::CrossMap,
                      {Address, B.getInt64(Size), B.getInt64(Live)});
}

FunctionCallee Abi::intercepted(StringRef Name, FunctionType *Type) {
  return M.getOrInsertFunction((Twine(abi::InterceptPrefix) + Name).str(),
                               Type);
}

// Both linkers reject a name that is thread-local in one object and not in
// another.
static void declareTranslation(Module &M, bool BySatc) {
  auto *Byte = Type::getInt8Ty(M.getContext());
  auto *Mark = new GlobalVariable(
      M, Byte, /*isConstant=*/!BySatc, GlobalValue::LinkOnceODRLinkage,
      ConstantInt::get(Byte, 1), abi::OneTranslation, nullptr,
      BySatc ? GlobalValue::LocalExecTLSModel : GlobalValue::NotThreadLocal);
  Mark->setVisibility(GlobalValue::HiddenVisibility);
  Mark->setComdat(M.getOrInsertComdat(abi::OneTranslation));
  appendToUsed(M, {Mark});
}

void Abi::requireVersion(bool BySatc) {
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
  declareTranslation(M, BySatc);
}

void Abi::announceNativeBodies() {
  if (M.getNamedGlobal(abi::HasNativeBodies))
    return;
  auto *Byte = Type::getInt8Ty(M.getContext());
  auto *Mark = new GlobalVariable(
      M, Byte, /*isConstant=*/true, GlobalValue::WeakODRLinkage,
      ConstantInt::get(Byte, 1), abi::HasNativeBodies);
  Mark->setComdat(M.getOrInsertComdat(abi::HasNativeBodies));
  appendToUsed(M, {Mark});
}

} // namespace spillway
