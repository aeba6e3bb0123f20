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
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_SITES_H
#define SPILLWAY_COMPILER_SITES_H

#include "Accesses.h"
#include "Translate.h"

namespace spillway {

class SiteRewriter {
public:
  explicit SiteRewriter(Translator &T) : T(T) {}

  void rewrite(const Site &S);

private:
  llvm::Instruction *splitCrossing(const Site &S);
  void bounce(const Site &S, llvm::Instruction *ColdEnd,
              llvm::Instruction *HotEnd);
  llvm::Value *bounceLoad(const Site &S, llvm::IRBuilderBase &B);
  void bounceStore(const Site &S, llvm::IRBuilderBase &B);
  void bounceCopy(const Site &S, llvm::IRBuilderBase &B);
  void bounceSet(const Site &S, llvm::IRBuilderBase &B);
  void redirectNative(const Site &S, const Access &A, unsigned Slot,
                      SlotSet Live);

  Translator &T;
};

} // namespace spillway

#endif
