//===- Translate.h - The code of one translation ----------------*- C++ -*-===//
//
// The numbered protocol of abi.inc, and nothing else: which accesses share a
// translation and which slot it takes is decided elsewhere.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_TRANSLATE_H
#define SPILLWAY_COMPILER_TRANSLATE_H

#include "Abi.h"

namespace spillway {

class Translator {
public:
  Translator(llvm::Function &F, Abi &Runtime) : Runtime(Runtime), F(F) {}

  /// The address in Pointer, as an integer.
  llvm::Value *address(llvm::IRBuilderBase &B, llvm::Value *Pointer);

  /// Whether Size bytes at Address reach into another OS page.
  llvm::Value *crossesPage(llvm::IRBuilderBase &B, llvm::Value *Address,
                           uint64_t Size);

  /// The same, or something cheaper: if the bytes' type claims enough
  /// alignment, whether the address lacks it. True whenever the bytes do reach
  /// into another page; otherwise true only if the claim is wrong.
  llvm::Value *mayCross(llvm::IRBuilderBase &B, llvm::Value *Address,
                        uint64_t Size, llvm::Align Claimed);

  /// Whether the table says identity for Address: not spilled, or currently
  /// mapped there.
  llvm::Value *isIdentity(llvm::IRBuilderBase &B, llvm::Value *Address);

  struct Lookup {
    llvm::Value *Entry; // of Address in the table
    llvm::Value *Slow;  // whether the slow path is needed
  };
  /// Emits steps 1 to 3 of the protocol, which suffice if the page is in
  /// memory. REQUIRES: !isBySatc().
  Lookup lookUp(llvm::Instruction *Before, llvm::Value *Address, unsigned Slot);

  /// Emits a translation of Address in Slot before the instruction Before,
  /// whose block is split. Live: the slots that must stay protected while the
  /// slow path waits; Slot is added. Returns the table entry, which is
  /// positive.
  llvm::Value *translate(llvm::Instruction *Before, llvm::Value *Address,
                         unsigned Slot, SlotSet Live);

  /// Where the bytes of Pointer are if Entry is its table entry.
  static llvm::Value *redirect(llvm::IRBuilderBase &B, llvm::Value *Pointer,
                               llvm::Value *Entry);

  /// Memory on the stack for one access of up to Size bytes through a buffer.
  llvm::Value *buffer(uint64_t Size);

  /// To be called when everything is translated: moves the load of the thread's
  /// slots down to where all paths need it, so that other paths skip it.
  void sinkSlots();

  /// Chooses whether further translations use software caches (Satc.h). Each of
  /// those must be used before the next one is made.
  void setBySatc(bool IsBySatc) { BySatc = IsBySatc; }
  bool isBySatc() const { return BySatc; }

  Abi &Runtime;

private:
  llvm::Value *slots();
  llvm::Value *loadEntry(llvm::IRBuilderBase &B, llvm::Value *Address);

  llvm::Function &F;
  llvm::LoadInst *Slots = nullptr;
  llvm::AllocaInst *Buffer = nullptr;
  bool BySatc = false;
};

/// A builder before I that always has a debug location if I's function has
/// debug information.
class BuilderBefore : public llvm::IRBuilder<> {
public:
  explicit BuilderBefore(llvm::Instruction *I);
};

} // namespace spillway

#endif
