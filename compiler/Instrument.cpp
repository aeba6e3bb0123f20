//===- Instrument.cpp - Instruments a module ------------------------------===//
#include "Instrument.h"
#include "Abi.h"
#include "Accesses.h"
#include "Intrinsics.h"
#include "Options.h"
#include "Rename.h"
#include "Sites.h"
#include "Translate.h"

#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace spillway {

namespace {

struct Counters {
  unsigned Functions = 0, Sites = 0, Accesses = 0, Crossing = 0;
};

class ModuleInstrumenter {
public:
  explicit ModuleInstrumenter(Module &M) : M(M), Runtime(M) {}

  bool run();

private:
  void collectExempt();
  bool isExempt(const Function &F) const;
  void instrument(Function &F);
  void dropMemoryAttributes(Function &F);

  Module &M;
  Abi Runtime;
  SmallPtrSet<const Function *, 8> Exempt;
  Counters Count;
};

} // namespace

static constexpr StringLiteral DoneAttribute = "spillway";

// Resolvers of indirect functions run before the C library is ready. Functions
// annotated "spill_none" are left alone at the program's wish.
void ModuleInstrumenter::collectExempt() {
  for (GlobalIFunc &I : M.ifuncs())
    if (Function *Resolver = I.getResolverFunction())
      Exempt.insert(Resolver);
  GlobalVariable *Annotations = M.getNamedGlobal("llvm.global.annotations");
  if (!Annotations || !Annotations->hasInitializer())
    return;
  for (const Use &Entry : Annotations->getInitializer()->operands()) {
    auto *S = dyn_cast<ConstantStruct>(Entry);
    if (!S || S->getNumOperands() < 2)
      continue;
    auto *F = dyn_cast<Function>(S->getOperand(0)->stripPointerCasts());
    auto *Text =
        dyn_cast<GlobalVariable>(S->getOperand(1)->stripPointerCasts());
    if (!F || !Text || !Text->hasInitializer())
      continue;
    auto *String = dyn_cast<ConstantDataArray>(Text->getInitializer());
    if (String && String->isCString() && String->getAsCString() == "spill_none")
      Exempt.insert(F);
  }
}

static bool matches(StringRef Pattern, StringRef Name) {
  return Regex(Pattern).match(Name);
}

bool ModuleInstrumenter::isExempt(const Function &F) const {
  if (F.isDeclaration() || F.hasAvailableExternallyLinkage() ||
      F.hasFnAttribute(Attribute::Naked) || F.hasFnAttribute(DoneAttribute) ||
      Exempt.contains(&F))
    return true;
  if (!options::OnlyFunction.empty() &&
      !matches(options::OnlyFunction, F.getName()))
    return true;
  return !options::SkipFunction.empty() &&
         matches(options::SkipFunction, F.getName());
}

// Blocks are split at every translation: static allocas must not end up outside
// the entry block, where they would become dynamic.
static void gatherStaticAllocas(Function &F) {
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

void ModuleInstrumenter::instrument(Function &F) {
  F.addFnAttr(DoneAttribute);
  gatherStaticAllocas(F);
  SmallPtrSet<Instruction *, 8> InPage;
  lowerIntrinsics(F, Runtime, InPage);
  SmallVector<Site, 0> Sites = collectSites(F, InPage);
  if (Sites.empty())
    return;
  Translator T(F, Runtime);
  SiteRewriter Rewriter(T);
  ++Count.Functions;
  for (const Site &S : Sites) {
    unsigned Number = Count.Sites++;
    if (Number < options::First || Number > options::Last)
      continue;
    Count.Accesses += S.Accesses.size();
    Count.Crossing +=
        count_if(S.Accesses, [](const Access &A) { return A.MayCross; });
    Rewriter.rewrite(S);
  }
}

// A function that only read its argument's memory writes hazard slots now, and
// so does whoever calls it.
void ModuleInstrumenter::dropMemoryAttributes(Function &F) {
  if (F.isIntrinsic())
    return;
  for (Attribute::AttrKind Kind :
       {Attribute::Memory, Attribute::Speculatable, Attribute::NoSync})
    F.removeFnAttr(Kind);
  for (BasicBlock &BB : F)
    for (Instruction &I : BB) {
      auto *Call = dyn_cast<CallBase>(&I);
      if (!Call || isa<IntrinsicInst>(Call) || Call->isInlineAsm())
        continue;
      for (Attribute::AttrKind Kind : {Attribute::Memory, Attribute::NoSync})
        Call->removeFnAttr(Kind);
    }
}

bool ModuleInstrumenter::run() {
  collectExempt();
  SmallVector<Function *, 0> Work;
  for (Function &F : M)
    if (!isExempt(F))
      Work.push_back(&F);
  bool Renamed = renameIntercepted(Runtime);
  if (Work.empty() && !Renamed)
    return false;
  for (Function *F : Work)
    instrument(*F);
  for (Function &F : M)
    dropMemoryAttributes(F);
  Runtime.requireVersion();
  if (options::Stats)
    errs() << "spillway: " << M.getSourceFileName() << ": " << Count.Functions
           << " functions, " << Count.Sites << " sites, " << Count.Accesses
           << " accesses, " << Count.Crossing << " with a check for the edge\n";
  return true;
}

PreservedAnalyses InstrumentPass::run(Module &M, ModuleAnalysisManager &) {
  return ModuleInstrumenter(M).run() ? PreservedAnalyses::none()
                                     : PreservedAnalyses::all();
}

} // namespace spillway
