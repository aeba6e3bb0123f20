//===- Instrument.cpp - Instruments a module ------------------------------===//
//
//   1  What must be left alone is collected: what runs before the runtime, what
//      the program has annotated, what uses slots already.
//   2  Functions of the C library are renamed (Rename.h), and globals that are
//      to be spilled get pages of their own (Globals.h).
//   3  Arguments and results that are plain in all calls are marked
//      (PlainPointers.h).
//   4  Each function: a second body, if it is to have one (Bodies.h); loops
//      look ahead (Prefetch.h); whatever is not a plain access is lowered
//      (Intrinsics.h); loops are copied and split (Aligned.h, LoopSplit.h);
//      sites are collected (Accesses.h), share translations (Reuse.h, Held.h)
//      and get slots (Slots.h); their code is emitted (Segments.h, Sites.h).
//   5  The two bodies of functions are connected.
//
//===----------------------------------------------------------------------===//
#include "Instrument.h"
#include "Abi.h"
#include "Functions.h"
#include "Options.h"
#include "analysis/Accesses.h"
#include "analysis/Cold.h"
#include "analysis/PlainPointers.h"
#include "bodies/Bodies.h"
#include "loops/Aligned.h"
#include "loops/Held.h"
#include "loops/LoopSplit.h"
#include "loops/Prefetch.h"
#include "module/Globals.h"
#include "module/Rename.h"
#include "translation/BenchCalls.h"
#include "translation/Intrinsics.h"
#include "translation/Reuse.h"
#include "translation/Satc.h"
#include "translation/Segments.h"
#include "translation/Sites.h"
#include "translation/Slots.h"
#include "translation/Translate.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace spillway {

namespace {

struct Counters {
  unsigned Functions = 0, Sites = 0, Accesses = 0, Followers = 0, Checks = 0;
  unsigned Pointers = 0;   // translated ahead of loops
  unsigned Copies = 0;     // of functions, for plain arguments
  unsigned LookAheads = 0; // loops

  void add(const Site &S) {
    for (const Access &A : S.Accesses) {
      ++Accesses;
      bool Follows = A.Shared && !S.leads(A);
      Followers += Follows;
      Checks += !Follows && (A.Shared ? A.Shared->MayCross : A.MayCross);
    }
  }
};

class ModuleInstrumenter {
public:
  ModuleInstrumenter(Module &M, FunctionAnalysisManager &FAM)
      : M(M), FAM(FAM), Runtime(M) {}

  bool run();

private:
  void collectEarly();
  void collectAnnotated();
  void collectInlined();
  bool isExempt(const Function &F) const;
  SmallVector<Site, 0>
  chosenSites(Function &F, const Chunks &Loops,
              const SmallPtrSetImpl<Instruction *> &InPage);
  void instrument(Function &F);
  void translate(Function &F);
  void printStats(const GlobalCounters &Globals) const;

  Module &M;
  FunctionAnalysisManager &FAM;
  Abi Runtime;
  SmallPtrSet<const GlobalValue *, 8> Exempt;
  SmallVector<Bodies, 0> TwoBodies;
  Counters Count;
};

} // namespace

static constexpr StringLiteral DoneAttribute = "spillway";

// Resolvers of indirect functions and functions of .preinit_array run before
// the runtime has started, and so do the functions that they call: all of these
// are exempt. The callees are copied for this, since the rest of the program
// may call them later, where they must translate.
void ModuleInstrumenter::collectEarly() {
  SmallVector<Function *, 4> Early;
  DenseMap<Function *, Function *> Copies;
  auto Add = [&](Function *F) {
    if (Exempt.insert(F).second)
      Early.push_back(F);
  };
  for (GlobalIFunc &I : M.ifuncs())
    if (Function *Resolver = I.getResolverFunction())
      Add(Resolver);
  for (GlobalVariable &G : M.globals()) {
    if (!G.hasInitializer() || !G.getSection().starts_with(".preinit_array"))
      continue;
    SmallVector<Value *, 4> Entries(G.getInitializer()->operand_values());
    Entries.push_back(G.getInitializer());
    for (Value *Entry : Entries)
      if (auto *F = dyn_cast<Function>(Entry->stripPointerCasts()))
        Add(F);
  }
  while (!Early.empty())
    for (Instruction &I : instructions(*Early.pop_back_val())) {
      auto *Call = dyn_cast<CallBase>(&I);
      auto *Called =
          Call ? dyn_cast<GlobalValue>(Call->getCalledOperand()) : nullptr;
      auto *Callee =
          Called ? dyn_cast_or_null<Function>(Called->getAliaseeObject())
                 : nullptr;
      if (!Callee || Callee->isDeclaration() || Exempt.contains(Callee) ||
          Callee->hasFnAttribute(Attribute::Naked) ||
          GlobalValue::isInterposableLinkage(Called->getLinkage()))
        continue;
      if (canCopyLocally(*Callee)) {
        Function *&Copy = Copies[Callee];
        if (!Copy)
          Copy = copyLocally(*Callee, ".early");
        Call->setCalledOperand(Copy);
        Callee = Copy;
      }
      Add(Callee);
    }
}

// Functions and variables annotated "spill_none" are left alone, as the program
// asked.
void ModuleInstrumenter::collectAnnotated() {
  GlobalVariable *Annotations = M.getNamedGlobal("llvm.global.annotations");
  if (!Annotations || !Annotations->hasInitializer())
    return;
  for (const Use &Entry : Annotations->getInitializer()->operands()) {
    auto *S = dyn_cast<ConstantStruct>(Entry);
    if (!S || S->getNumOperands() < 2)
      continue;
    auto *Named = dyn_cast<GlobalValue>(S->getOperand(0)->stripPointerCasts());
    auto *Text =
        dyn_cast<GlobalVariable>(S->getOperand(1)->stripPointerCasts());
    if (!Named || !Text || !Text->hasInitializer())
      continue;
    auto *String = dyn_cast<ConstantDataArray>(Text->getInitializer());
    if (String && String->isCString() && String->getAsCString() == "spill_none")
      Exempt.insert(Named);
  }
}

// Tells code generation what is special about a function with translations.
static void adaptToTranslations(Function &F) {
  F.addFnAttr(Attribute::NoRedZone); // Abi.h, translate
  // It must not turn a chain of comparisons into a call of memcmp: translations
  // may be live there, and the function may be the program's own.
  F.addFnAttr("no-builtin-memcmp");
}

// Bitcode of -emit-llvm is instrumented. If it is optimised again, with that of
// -flto for instance, its functions are inlined into others. The inlined code
// already uses slots, which would be assigned a second time; and the function
// that now contains it must be treated as an instrumented one.
void ModuleInstrumenter::collectInlined() {
  for (Function &Stub : M) {
    if (!isStub(Stub))
      continue;
    for (User *U : Stub.users())
      if (auto *I = dyn_cast<Instruction>(U); I && !isStub(*I->getFunction())) {
        Function &F = *I->getFunction();
        Exempt.insert(&F);
        adaptToTranslations(F);
      }
  }
}

// Removes from F what types claim about the alignment of its pointers. If the
// bitcode were optimised again, that would be believed, and the checks for a
// page's edge would be removed as needless.
static void forgetAlignment(Function &F) {
  if (F.isIntrinsic())
    return;
  F.removeRetAttr(Attribute::Alignment);
  for (Argument &A : F.args())
    if (!A.hasPointeeInMemoryValueAttr())
      A.removeAttr(Attribute::Alignment);
  for (Instruction &I : instructions(F)) {
    I.setMetadata(LLVMContext::MD_align, nullptr);
    if (auto *Call = dyn_cast<CallBase>(&I); Call && !isa<IntrinsicInst>(Call))
      Call->removeRetAttr(Attribute::Alignment);
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

// Orders sites so that each block comes after its dominators. Unreachable sites
// are left out.
static SmallVector<Site, 0> inDominanceOrder(Function &F,
                                             SmallVector<Site, 0> Sites) {
  DenseMap<BasicBlock *, SmallVector<Site, 4>> InBlock;
  for (Site &S : Sites)
    InBlock[S.Inst->getParent()].push_back(std::move(S));
  SmallVector<Site, 0> Ordered;
  for (BasicBlock *BB : ReversePostOrderTraversal<Function *>(&F))
    if (auto Found = InBlock.find(BB); Found != InBlock.end())
      Ordered.append(std::make_move_iterator(Found->second.begin()),
                     std::make_move_iterator(Found->second.end()));
  return Ordered;
}

// Whether a translation may serve several accesses.
static bool sharesTranslations() {
  return !options::Satc && !emitsBenchCalls();
}

// Whether F may become larger than its translations make it.
static bool mayGrow(const Function &F) {
  return sharesTranslations() && !F.hasOptNone() && !F.hasMinSize();
}

// All loops are chosen before any is changed: the analyses describe the
// unchanged function.
static Chunks splitLoops(Function &F, FunctionAnalysisManager &FAM,
                         SmallPtrSetImpl<Instruction *> &InPage) {
  Chunks Result;
  if (!mayGrow(F))
    return Result;
  auto Changed = [&] { FAM.invalidate(F, PreservedAnalyses::none()); };
  Changed();
  if (options::CopyAligned && !F.hasOptSize() &&
      copyForAlignment(F, FAM, InPage))
    Changed();
  if (options::Loops) {
    for (const LoopPlan &Plan : planLoops(F, FAM, InPage))
      splitLoop(Plan, Result, InPage);
    Changed();
  }
  // Loops that were prepared for copying pass their values on through
  // single-entry phis: after the loop the same address would be another value.
  for (BasicBlock &BB : F)
    if (BB.getSinglePredecessor())
      FoldSingleEntryPHINodes(&BB);
  return Result;
}

SmallVector<Site, 0>
ModuleInstrumenter::chosenSites(Function &F, const Chunks &Loops,
                                const SmallPtrSetImpl<Instruction *> &InPage) {
  SmallPtrSet<Instruction *, 8> Anchors;
  for (const Translation &T : Loops.Translations)
    Anchors.insert(T.Leader);
  SmallVector<Site, 0> Sites = collectSites(F, InPage, Anchors);
  erase_if(Sites, [&](const Site &S) {
    if (S.Kind == SiteKind::Anchor)
      return false;
    unsigned Number = Count.Sites++;
    return Number < options::First || Number > options::Last;
  });
  for (Site &S : Sites)
    for (Access &A : S.Accesses)
      A.Shared = Loops.Shared.lookup({S.Inst, A.Operand});
  return inDominanceOrder(F, std::move(Sites));
}

void ModuleInstrumenter::instrument(Function &F) {
  F.addFnAttr(DoneAttribute);
  gatherStaticAllocas(F);
  Function *Spill = options::Bodies == 1 || !sharesTranslations()
                        ? nullptr
                        : addSpillBody(F, Runtime, FAM);
  if (Spill)
    TwoBodies.push_back({&F, Spill});
  translate(Spill ? *Spill : F);
}

void ModuleInstrumenter::translate(Function &F) {
  if (options::Prefetch && mayGrow(F))
    Count.LookAheads += lookAhead(F, FAM, Runtime);
  SmallPtrSet<Instruction *, 8> InPage;
  lowerIntrinsics(F, Runtime, InPage);
  if (options::Satc)
    splitCopies(F, Runtime);
  Chunks Loops = splitLoops(F, FAM, InPage);
  SmallVector<Site, 0> Sites = chosenSites(F, Loops, InPage);
  redirectPrefetches(F, Runtime);
  if (sharesTranslations()) {
    const ColdCode Cold(F, FAM);
    for (Site &S : Sites)
      S.IsCold = Cold.contains(*S.Inst->getParent());
  }
  if (Sites.empty())
    return;
  ++Count.Functions;
  adaptToTranslations(F);
  Count.Pointers += Loops.Translations.size();
  if (emitsBenchCalls()) {
    for (const Site &S : Sites)
      emitBenchCalls(S, Runtime);
    return;
  }
  if (options::Reuse && sharesTranslations())
    shareTranslations(F, FAM, Sites, Loops.Translations);
  assignSlots(Sites, Loops.Translations);
  if (!F.hasOptNone())
    sinkPointers(Sites);
  Translator T(F, Runtime);
  SiteRewriter Rewriter(T);
  for (const Site &S : Sites)
    Count.add(S);
  bool Duplicates = options::Segments && mayGrow(F);
  for (const Step &S : arrangeSteps(Sites, Duplicates)) {
    T.setBySatc(options::Satc && S.S.Accesses.size() == 1);
    Rewriter.perform(S);
  }
  keepCallsInPlace(F);
  promoteHeldPages(F, Loops.Translations);
  if (!F.hasOptNone())
    T.sinkSlots();
}

void ModuleInstrumenter::printStats(const GlobalCounters &Globals) const {
  auto Line = [&]() -> raw_ostream & {
    return errs() << "spillway: " << M.getSourceFileName() << ": ";
  };
  Line() << Count.Functions << " functions, " << Count.Sites << " sites, "
         << Count.Accesses << " accesses, " << Count.Followers
         << " share a translation, " << Count.Checks << " checks for the edge, "
         << Count.Pointers << " pointers ahead of loops, " << Count.LookAheads
         << " loops look ahead, " << Count.Copies
         << " functions copied for plain pointers\n";
  if (options::Bodies != 1)
    Line() << TwoBodies.size() << " functions with two bodies\n";
  if (options::SpillGlobals != 0)
    Line() << Globals.Spilled << " globals spilled; left are " << Globals.Small
           << " small, " << Globals.Constant << " constant, "
           << Globals.ThreadLocal << " thread-local, " << Globals.Annotated
           << " annotated, " << Globals.Placed << " in sections of their own, "
           << Globals.Replaceable << " common\n";
}

bool ModuleInstrumenter::run() {
  collectEarly();
  collectAnnotated();
  collectInlined();
  bool Renamed = renameIntercepted(Runtime);
  GlobalCounters Globals = spillGlobals(M, Exempt);
  if (options::PlainCalls && sharesTranslations())
    Count.Copies = findPlainPointers(
        M, FAM, [this](const Function &F) { return isExempt(F); });
  SmallVector<Function *, 0> Work;
  for (Function &F : M)
    if (!isExempt(F))
      Work.push_back(&F);
  if (Work.empty() && !Renamed && Globals.Spilled == 0)
    return false;
  for (Function *F : Work)
    instrument(*F);
  connectBodies(TwoBodies, Runtime);
  for (Function &F : M) {
    dropMemoryAttributes(F);
    if (!options::AssumeAligned)
      forgetAlignment(F);
  }
  Runtime.requireVersion(options::Satc);
  if (!TwoBodies.empty())
    Runtime.announceNativeBodies();
  if (options::Verify && verifyModule(M, &errs()))
    report_fatal_error("spillway: instrumentation broke the module");
  if (options::Stats)
    printStats(Globals);
  return true;
}

PreservedAnalyses InstrumentPass::run(Module &M, ModuleAnalysisManager &MAM) {
  if (isForDevice(M))
    return PreservedAnalyses::all();
  auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
  return ModuleInstrumenter(M, FAM).run() ? PreservedAnalyses::none()
                                          : PreservedAnalyses::all();
}

} // namespace spillway
