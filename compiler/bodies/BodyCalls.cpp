//===- BodyCalls.cpp - How bodies begin, and call each other --------------===//
#include "bodies/Bodies.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace spillway {

// Replaces Call by a call of Spill, which may have one more parameter, for the
// cargo, after all others.
static void callSpillBody(CallBase &Call, Function &Spill) {
  if (Call.getFunctionType() == Spill.getFunctionType()) {
    Call.setCalledFunction(&Spill);
    return;
  }
  LLVMContext &Context = Call.getContext();
  auto *Pointer = PointerType::getUnqual(Context);
  SmallVector<Value *, 8> Arguments(Call.args());
  Arguments.push_back(ConstantPointerNull::get(Pointer));
  SmallVector<OperandBundleDef, 1> Bundles;
  Call.getOperandBundlesAsDefs(Bundles);
  CallBase *New;
  if (auto *Invoke = dyn_cast<InvokeInst>(&Call)) {
    New = InvokeInst::Create(&Spill, Invoke->getNormalDest(),
                             Invoke->getUnwindDest(), Arguments, Bundles, "",
                             Call.getIterator());
  } else {
    auto *Plain =
        CallInst::Create(&Spill, Arguments, Bundles, "", Call.getIterator());
    Plain->setTailCallKind(cast<CallInst>(Call).getTailCallKind());
    New = Plain;
  }
  New->setCallingConv(Call.getCallingConv());
  New->setAttributes(Call.getAttributes().addParamAttribute(
      Context, Arguments.size() - 1, Attribute::Nest));
  New->copyMetadata(Call);
  New->takeName(&Call);
  Call.replaceAllUsesWith(New);
  Call.eraseFromParent();
}

// The function that is called, if the linked program is certain to use this
// definition; else null. If several objects define a function, the linker may
// take another object's, and drop this one with its other body.
static Function *calledHere(const CallBase &Call) {
  Function *F = Call.getCalledFunction();
  return F && F->getFunctionType() == Call.getFunctionType() &&
                 !F->isInterposable() && !F->hasComdat()
             ? F
             : nullptr;
}

namespace {

class Connector {
public:
  Connector(ArrayRef<Bodies> All, Abi &Runtime) : All(All), Runtime(Runtime) {
    for (auto [Index, B] : enumerate(All))
      Numbers[B.Native] = Index;
  }

  void callAmongSpillBodies();
  void findCallers();
  void breakCircles();
  void lookAtEntries();

private:
  ArrayRef<Bodies> All;
  Abi &Runtime;
  DenseMap<const Function *, unsigned> Numbers; // of native bodies
  /// By number: whether the native body checks the byte when it begins.
  SmallVector<bool, 0> Looks;
  /// By number: the native bodies it calls that do not check.
  SmallVector<SmallVector<unsigned, 4>, 0> Callees;
};

} // namespace

void Connector::callAmongSpillBodies() {
  for (const Bodies &B : All)
    for (Instruction &I : make_early_inc_range(instructions(B.Spill))) {
      auto *Call = dyn_cast<CallBase>(&I);
      auto Found = Numbers.find(Call ? calledHere(*Call) : nullptr);
      if (Found == Numbers.end())
        continue;
      Function *Spill = All[Found->second].Spill;
      bool Fits = Spill->getFunctionType() == Call->getFunctionType();
      if (Fits || !Call->isMustTailCall())
        callSpillBody(*Call, *Spill);
    }
}

// Finds the native bodies that only native bodies call, and their callers.
void Connector::findCallers() {
  Looks.assign(All.size(), true);
  Callees.resize(All.size());
  for (auto [Index, B] : enumerate(All)) {
    if (!B.Native->hasLocalLinkage())
      continue;
    SmallVector<unsigned, 8> Callers;
    Looks[Index] = !all_of(B.Native->uses(), [&](const Use &U) {
      auto *Call = dyn_cast<CallBase>(U.getUser());
      if (!Call || !Call->isCallee(&U))
        return false;
      auto Found = Numbers.find(Call->getFunction());
      if (Found == Numbers.end())
        return false;
      Callers.push_back(Found->second);
      return true;
    });
    if (!Looks[Index])
      for (unsigned Caller : Callers)
        Callees[Caller].push_back(Index);
  }
}

// Depth-first along calls: a body that is reached again while its own callees
// are visited is in a cycle, and checks.
void Connector::breakCircles() {
  enum class State : uint8_t { New, Open, Done };
  SmallVector<State, 0> States(All.size(), State::New);
  SmallVector<std::pair<unsigned, unsigned>, 32> Down; // and the next callee
  for (unsigned Root = 0; Root < All.size(); ++Root) {
    if (States[Root] != State::New || Looks[Root])
      continue;
    States[Root] = State::Open;
    Down.push_back({Root, 0});
    while (!Down.empty()) {
      auto &[Caller, Next] = Down.back();
      if (Next == Callees[Caller].size()) {
        States[Caller] = State::Done;
        Down.pop_back();
        continue;
      }
      unsigned Callee = Callees[Caller][Next++];
      if (States[Callee] == State::Open) {
        Looks[Callee] = true;
      } else if (States[Callee] == State::New) {
        States[Callee] = State::Open;
        Down.push_back({Callee, 0});
      }
    }
  }
}

void Connector::lookAtEntries() {
  for (auto [Index, B] : enumerate(All)) {
    if (!Looks[Index])
      continue;
    BasicBlock &Entry = B.Native->getEntryBlock();
    BasicBlock *Start = Entry.getSingleSuccessor();
    auto *Over =
        BasicBlock::Create(Entry.getContext(), "spill.instrumented", B.Native);
    Instruction *Old = Entry.getTerminator();
    IRBuilder<> Builder(Old);
    Builder.CreateCondBr(isOver(Builder, Runtime), Over, Start,
                         Runtime.ColdWeights);
    Old->eraseFromParent();
    SmallVector<Value *, 8> Arguments;
    for (Argument &A : B.Native->args())
      Arguments.push_back(&A);
    goOver(Over, B, Arguments, /*Cargo=*/nullptr);
  }
}

void connectBodies(ArrayRef<Bodies> All, Abi &Runtime) {
  Connector C(All, Runtime);
  C.callAmongSpillBodies();
  C.findCallers();
  C.breakCircles();
  C.lookAtEntries();
}

} // namespace spillway
