//===- Abi.h - The runtime's symbols, as a module sees them -----*- C++ -*-===//
//
// abi.inc as constants, and as code and declarations that are created on
// demand.
//
// Compiled code enters the runtime through stubs, which each object has and
// linkers merge:
//
//   translate    takes the address in r11 and the live slots in rax; returns
//                the entry in rax. It is called by inline assembly, so that
//                code generation does not see a call: functions that call
//                nothing else remain leaves, and no argument registers are
//                cleared. In return such functions have no red zone.
//   alone k      the whole translation of an address in slot k, out of line
//   load n,      a whole access of n bytes in slot 0, wherever they lie. Called
//   store n      like translate; the value is returned in rax, or given in r10
//   copy n       copies n bytes from the address in r10. Called like translate
//   ... live m   one of these, with the set m of live slots built in
//   cross ...    one jump through the GOT. A call of the symbol itself would go
//                through a PLT stub, which clobbers r10 when it is bound
//                lazily, although preserve_allcc promises to keep it; or the
//                address would be hoisted into a register that the hot path
//                then lacks. Even those that return nothing are declared to
//                return i64, so that LLVM never assumes that rax is kept.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_ABI_H
#define SPILLWAY_COMPILER_ABI_H

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace spillway {

namespace abi {
#define SPILLWAY_NUMBER(Name, Value, Doc) constexpr uint64_t Name = Value;
#define SPILLWAY_SYMBOL(Name, Symbol, Doc)                                     \
  constexpr llvm::StringLiteral Name = Symbol;
#define SPILLWAY_PERSIST_SYMBOL(Name, Symbol, Doc)                             \
  constexpr llvm::StringLiteral Name = Symbol;
#include "spillway/abi.inc"
constexpr uint64_t PageSize = 1ull << TableShift;
/// The table entry of memory that is not spilled, or mapped at its own address.
constexpr int64_t Identity = 1;
/// Multiplies an address so that its offset in its OS page fills the upper end
/// of 32 bits. A mask or a shift would need a copy of the address.
constexpr uint64_t EdgeUnit = 1ull << (32 - TableShift);
/// The last offset, multiplied in this way, from which Size bytes stay in the
/// OS page.
constexpr uint32_t lastOffset(uint64_t Size) {
  return uint32_t((PageSize - Size) * EdgeUnit);
}
} // namespace abi

/// Bit set of hazard slots.
using SlotSet = uint32_t;

class Abi {
public:
  explicit Abi(llvm::Module &M);

  /// The thread-local variable that points to the thread's slots.
  llvm::GlobalVariable *slotsVariable();

  /// The slow path of the translation of Address, which is stored in one of the
  /// slots of Live. Returns the entry.
  llvm::Value *translate(llvm::IRBuilderBase &B, llvm::Value *Address,
                         SlotSet Live);
  /// The thread's SatcThread; and the slow path of a translation by it
  /// (Satc.h).
  llvm::Value *satcThread(llvm::IRBuilderBase &B);
  llvm::Value *satcTranslate(llvm::IRBuilderBase &B, llvm::Value *Address);
  /// All of a translation of Address in Slot, where code should be small.
  llvm::Value *translateAlone(llvm::IRBuilderBase &B, llvm::Value *Address,
                              unsigned Slot, SlotSet Live);
  /// A whole load or store of an integer of 1, 2, 4 or 8 bytes.
  llvm::Value *load(llvm::IRBuilderBase &B, llvm::Value *Address, uint64_t Size,
                    SlotSet Live);
  void store(llvm::IRBuilderBase &B, llvm::Value *Address, llvm::Value *What,
             SlotSet Live);
  void crossLoad(llvm::IRBuilderBase &B, llvm::Value *Address, uint64_t Size,
                 llvm::Value *Buffer, SlotSet Live);
  void crossStore(llvm::IRBuilderBase &B, llvm::Value *Address, uint64_t Size,
                  llvm::Value *Buffer, SlotSet Live);
  /// A copy of Size bytes between any two addresses.
  void crossCopy(llvm::IRBuilderBase &B, llvm::Value *To, llvm::Value *From,
                 uint64_t Size, SlotSet Live);
  llvm::Value *crossMap(llvm::IRBuilderBase &B, llvm::Value *Address,
                        uint64_t Size, SlotSet Live);

  /// The runtime's replacement of the C library function Name.
  llvm::FunctionCallee intercepted(llvm::StringRef Name,
                                   llvm::FunctionType *Type);

  /// The thread's PersistCountdown, and its PersistThread at this offset.
  llvm::Value *persistCountdown(llvm::IRBuilderBase &B);
  llvm::Value *persistThread(llvm::IRBuilderBase &B, uint64_t Offset);

  /// Makes the object refer to the runtime's version symbol, permanently, and
  /// refuse to link with objects that translate in the other way.
  void requireVersion(bool BySatc);

  /// Tells the runtime that the object has native bodies.
  void announceNativeBodies();

  llvm::Module &M;
  llvm::IntegerType *const I64;
  llvm::PointerType *const Ptr;
  llvm::MDNode *const ColdWeights;

private:
  llvm::GlobalVariable *threadVariable(llvm::StringRef Symbol,
                                       llvm::Type *Kind);
  llvm::Function *makeStub(const llvm::Twine &Symbol, llvm::FunctionType *Type,
                           const llvm::Twine &Code,
                           llvm::Function *Target = nullptr);
  llvm::Function *translateStub(llvm::StringRef Symbol = abi::Translate);
  llvm::Function *aloneStub(unsigned Slot);
  llvm::Function *accessStub(uint64_t Size, bool IsStore);
  llvm::Function *copyStub(uint64_t Size);
  llvm::Function *withLive(llvm::Function *Stub, SlotSet Live);
  llvm::Value *callQuietly(llvm::IRBuilderBase &B, llvm::Function *Stub,
                           llvm::Value *Address, SlotSet Live,
                           llvm::Value *What = nullptr);
  llvm::CallInst *callCrossing(llvm::IRBuilderBase &B, llvm::StringRef Symbol,
                               llvm::ArrayRef<llvm::Value *> Arguments);
};

/// Whether F is a stub, of this module or of one that was merged into it. All
/// code that translates refers to some.
bool isStub(const llvm::Function &F);

/// Marks I as an access of ours: sanitizers, which run later, are to check the
/// program's accesses only.
void leaveOut(llvm::Instruction *I);

} // namespace spillway

#endif
