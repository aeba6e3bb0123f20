//===- Sites.h - Rewriting one site -----------------------------*- C++ -*-===//
//
// Turns an instruction that may access spilled memory into
//
//     if (it crosses an OS page's edge)   do all of it out of line, or bounce
//                                         through a buffer; for atomics and
//                                         assembly, map the pages at their own
//                                         addresses
//     else                                translate, then the instruction on
//                                         translated pointers
//
// One that shares a translation becomes
//
//     if (the window crosses an edge)     the above on a copy of the
//                                         instruction, which shares nothing
//     else                                the instruction on pointers that the
//                                         leader has translated
//
// The leader checks the window; a follower checks whether the leader has an
// entry. A leader that holds its page first checks whether the window lies in
// it (Held.h).
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_SITES_H
#define SPILLWAY_COMPILER_SITES_H

#include "analysis/Accesses.h"
#include "translation/Segments.h"
#include "translation/Translate.h"

namespace spillway {

class SiteRewriter {
public:
  explicit SiteRewriter(Translator &T) : T(T) {}

  /// Sites that lead must be rewritten before those that follow them.
  void perform(const Step &S);

private:
  void rewrite(const Site &S);
  void rewriteAccesses(const Site &S, bool OutOfLine);
  void rewriteAlone(const Site &S);
  void rewriteHolder(const Site &S);
  void holdOr(llvm::BranchInst *Cold, const Site &S);
  llvm::BasicBlock *holdPlain(const Translation &Shared, llvm::Value *Begin,
                              uint64_t Size, llvm::BasicBlock *Alone,
                              llvm::BasicBlock *Hot);
  void publish(const Site &S, const Access &A, llvm::Value *Entry);
  llvm::Value *coldCondition(const Site &S, const Access &A,
                             llvm::IRBuilderBase &B);
  llvm::PHINode *split(llvm::Value *Cold, const Site &S,
                       llvm::Instruction *&ColdEnd, llvm::Instruction *&HotEnd);
  llvm::Value *windowBegin(const Site &S, const Access &A,
                           llvm::IRBuilderBase &B);
  llvm::BranchInst *shareNothingIf(llvm::Value *Cold, const Site &S);
  void bounceIf(llvm::Value *Crosses, const Site &S);
  llvm::Value *accessOutOfLine(const Site &S, llvm::IRBuilderBase &B);
  llvm::Value *bounceLoad(const Site &S, llvm::IRBuilderBase &B);
  void bounceStore(const Site &S, llvm::IRBuilderBase &B);
  void copyOutOfLine(const Site &S, llvm::IRBuilderBase &B);
  void bounceSet(const Site &S, llvm::IRBuilderBase &B);
  void rewriteAnchor(const Site &S);
  void rewriteNative(const Site &S);
  llvm::Value *enterNative(const Site &S, const Access &A, unsigned Slot,
                           SlotSet Live);
  llvm::Value *mapOrTranslate(const Site &S, const Access &A, unsigned Slot,
                              SlotSet Live);
  llvm::Value *mapIf(llvm::Value *Crosses, const Site &S, llvm::Value *Address,
                     uint64_t Size, Translation *Led, unsigned Slot,
                     SlotSet Live);
  void rewriteAssembly(const Site &S);

  Translator &T;
};

} // namespace spillway

#endif
