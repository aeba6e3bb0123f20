//===- Sites.h - Rewriting one site ------------------------------*- C++
//-*-===//
//
// Turns an instruction that accesses memory which may be spilled into
//
//     if (it crosses an OS page's edge)   bounce through a buffer; atomics and
//                                         assembly: map the pages natively
//     else                                translate, then the instruction on
//                                         translated pointers
//
// Where translations are shared, "it" is the window of the translation: the
// leader checks the window, a follower takes its cold path if the leader did.
// The cold path works for any address, so it is the same for both.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_SITES_H
#define SPILLWAY_COMPILER_SITES_H

#include "Accesses.h"
#include "Translate.h"

namespace spillway {

class SiteRewriter {
public:
  explicit SiteRewriter(Translator &T) : T(T) {}

  /// Sites that lead must be rewritten before those that follow them.
  void rewrite(const Site &S);

private:
  llvm::Value *coldCondition(const Site &S, const Access &A,
                             llvm::IRBuilderBase &B);
  void bounce(const Site &S, llvm::Instruction *ColdEnd,
              llvm::Instruction *HotEnd);
  llvm::Value *bounceLoad(const Site &S, llvm::IRBuilderBase &B);
  void bounceStore(const Site &S, llvm::IRBuilderBase &B);
  void bounceCopy(const Site &S, llvm::IRBuilderBase &B);
  void bounceSet(const Site &S, llvm::IRBuilderBase &B);
  void rewriteAnchor(const Site &S);
  void rewriteNative(const Site &S);
  llvm::Value *enterNative(const Site &S, const Access &A, unsigned Slot,
                           SlotSet Live);
  llvm::Value *mapOrTranslate(const Site &S, const Access &A, unsigned Slot,
                              SlotSet Live);

  Translator &T;
};

} // namespace spillway

#endif
