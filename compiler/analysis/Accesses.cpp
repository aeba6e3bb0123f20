//===- Accesses.cpp - Which instructions touch which memory ---------------===//
#include "analysis/Accesses.h"
#include "Abi.h"
#include "Options.h"
#include "analysis/Address.h"
#include "analysis/Provenance.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/Regex.h"

using namespace llvm;

namespace spillway {

static constexpr StringLiteral AlignedKind = "spill.aligned";

namespace {

class Collector {
public:
  Collector(Function &F, const SmallPtrSetImpl<Instruction *> &InPage,
            const SmallPtrSetImpl<Instruction *> &Anchors)
      : DL(F.getDataLayout()), InPage(InPage), Anchors(Anchors) {}

  void visit(Instruction &I);

  SmallVector<Site, 0> Sites;

private:
  void add(Instruction &I, SiteKind Kind, unsigned Operand, uint64_t Size,
           Align Alignment);
  void add(Instruction &I, SiteKind Kind, unsigned Operand, Type *T,
           Align Alignment);
  void addAsmOperands(CallBase &Call);
  void addMemIntrinsic(MemIntrinsic &MI);

  const DataLayout &DL;
  const SmallPtrSetImpl<Instruction *> &InPage;
  const SmallPtrSetImpl<Instruction *> &Anchors;
};

} // namespace

void Collector::add(Instruction &I, SiteKind Kind, unsigned Operand,
                    uint64_t Size, Align Alignment) {
  if (Size == 0 || isPlain(I.getOperand(Operand)))
    return;
  // A lane of a vector access, whose page is translated instead.
  if (auto *GEP = dyn_cast<GetElementPtrInst>(I.getOperand(Operand));
      GEP && isa<GetElementPtrInst>(GEP->getPointerOperand()) &&
      InPage.contains(cast<Instruction>(GEP->getPointerOperand())))
    return;
  if (Sites.empty() || Sites.back().Inst != &I)
    Sites.push_back({&I, Kind, {}});
  // Atomics of up to eight bytes work at any address on x86-64, and only their
  // type says that they are aligned.
  bool AnyAddress = Kind == SiteKind::Native && I.isAtomic() && Size <= 8;
  uint64_t Aligned =
      isKnownAligned(I) ||
              ((options::AssumeAligned || Kind == SiteKind::Native) &&
               !AnyAddress)
          ? Alignment.value()
          : 1;
  // If an atomic access is known to be aligned, alignment to more than its size
  // is still only claimed by its type.
  if (I.isAtomic() && !options::AssumeAligned)
    Aligned = std::min(Aligned, Size);
  bool MayCross =
      Size > std::min(Aligned, abi::PageSize) && !InPage.contains(&I);
  Sites.back().Accesses.push_back(
      {Operand, Size, MayCross, Align(Aligned), Alignment});
}

void Collector::add(Instruction &I, SiteKind Kind, unsigned Operand, Type *T,
                    Align Alignment) {
  TypeSize Size = DL.getTypeStoreSize(T);
  if (!Size.isScalable())
    add(I, Kind, Operand, Size.getFixedValue(), Alignment);
}

static StringRef textOf(const CallBase &Assembly) {
  return cast<InlineAsm>(Assembly.getCalledOperand())->getAsmString();
}

// Whether the text has an instruction whose mnemonic matches Pattern, with any
// suffix for its size. What follows may depend on the dialect, as in
// bts{q %1, %0|%0, %1}, or need no blank, as in call*%0.
static bool hasMnemonic(const CallBase &Assembly, StringRef Pattern) {
  return Regex(("(^|[^[:alnum:]_.%$])(" + Pattern +
                ")[wlq]?([[:space:]*]|[$][(])")
                   .str(),
               Regex::IgnoreCase)
      .match(textOf(Assembly));
}

// Whether assembly may do more with an operand in memory than access it:
//   - lea computes the operand's address, which must be the program's;
//   - 8+%0, 0xc%0, (2*8)%0 and %c1%0, and %0+8 or %0[8] in Intel's dialect, lie
//     beyond it;
//   - bt, bts, btr and btc treat it as the first of many words if the bit
//     number is in a register;
//   - a called function uses the slots, and the operand may be accessed after
//   it.
static bool mayLeaveOperands(const CallBase &Assembly) {
  auto IsNumber = [](const Use &U) {
    auto *C = dyn_cast<ConstantInt>(U);
    return U->getType()->isIntegerTy() && (!C || C->getValue().ugt(15));
  };
  const Regex DistanceBefore(
      "([[:alnum:]_)}]|[+-][[:space:]]*)[$]([0-9]|[{][0-9])");
  const Regex DistanceBehind(
      "(^|[^$])[$]([0-9]+|[{][^}]*[}])[[:space:]]*[[+-]");
  return hasMnemonic(Assembly, "lea|call") ||
         DistanceBefore.match(textOf(Assembly)) ||
         DistanceBehind.match(textOf(Assembly)) ||
         (hasMnemonic(Assembly, "bt[src]?") &&
          any_of(Assembly.args(), IsNumber));
}

static bool usesVectors(const CallBase &Assembly) {
  auto IsVector = [](const Type *T) {
    return T->isVectorTy() || T->isFloatingPointTy();
  };
  const Type *Result = Assembly.getType();
  return textOf(Assembly).contains_insensitive("mm") || IsVector(Result) ||
         any_of(Result->subtypes(), IsVector) ||
         any_of(Assembly.args(),
                [&](const Use &U) { return IsVector(U->getType()); });
}

// How many bytes assembly may access at an operand in memory whose type has
// Size bytes. Much code declares one byte whatever its instructions access.
static uint64_t bytesTaken(const CallBase &Assembly, uint64_t Size) {
  constexpr uint64_t Register = 8, Vector = 64, BothHalves = 16;
  static constexpr struct {
    StringLiteral Mnemonic;
    uint64_t Bytes;
  } Larger[] = {{"f(ld|stp)t", 10},
                {"fn?stenv|fldenv", 28},
                {"fn?save|frstor", 108},
                {"fx(save|rstor)(64)?", 512},
                {"x(save|rstor)[a-z]*(64)?", 4 * abi::PageSize}};
  for (const auto &[Mnemonic, Bytes] : Larger)
    if (hasMnemonic(Assembly, Mnemonic))
      Size = std::max(Size, Bytes);
  if (usesVectors(Assembly))
    Size = std::max(Size, Vector);
  // %H0: eight bytes after the operand's begin.
  if (textOf(Assembly).contains(":H}"))
    Size = std::max(Size, BothHalves);
  return Size < 4 ? Register : Size;
}

SmallVector<OperandGroup, 4> groupOperands(const Site &Assembly) {
  SmallVector<OperandGroup, 4> Groups;
  SmallVector<Address, 4> Firsts; // of each group
  auto Join = [&](const Access &A, const Address &Where) {
    for (auto [Group, First] : zip(Groups, Firsts)) {
      bool IsSame =
          Assembly.pointer(A) == Assembly.pointer(*Group.Members.front().A);
      if (!IsSame && (Where.Terms != First.Terms || Where.Extent != 0 ||
                      First.Extent != 0))
        continue;
      int64_t Offset = Where.Offset - First.Offset;
      int64_t Low = std::min(Group.Low, Offset);
      int64_t High = std::max(Group.High, Offset + int64_t(A.Size));
      bool Grows = Low < Group.Low || High > Group.High;
      if (Grows && High - Low > int64_t(options::ReuseWindow))
        continue;
      Group.Low = Low;
      Group.High = High;
      Group.Members.push_back({&A, Offset});
      return true;
    }
    return false;
  };
  for (const Access &A : Assembly.Accesses) {
    Address Where =
        decompose(Assembly.pointer(A), Assembly.Inst->getDataLayout());
    if (Join(A, Where))
      continue;
    Groups.push_back({{{&A, 0}}, /*Low=*/0, /*High=*/int64_t(A.Size)});
    Firsts.push_back(std::move(Where));
  }
  return Groups;
}

// How many general registers assembly uses besides those for addresses.
static unsigned registersTaken(const CallBase &Assembly) {
  const Regex General("^([rqQRl]|[{]([re]?[abcd]x|[abcd][lh]|[re]?(si|di|bp)l?|"
                      "r(8|9|1[0-5])[dwb]?)[}])$");
  unsigned Count = 0;
  for (const InlineAsm::ConstraintInfo &C :
       cast<InlineAsm>(Assembly.getCalledOperand())->ParseConstraints())
    Count += !C.isIndirect && !C.Codes.empty() &&
             all_of(C.Codes, [&](const std::string &Code) {
               return General.match(Code);
             });
  return Count;
}

// Assembly accesses the objects that its "m" operands name. What it accesses by
// addresses in registers is left to the fault path.
void Collector::addAsmOperands(CallBase &Call) {
  // A prefetch accesses nothing: its address may be anything, and it waits for
  // no page.
  if (mayLeaveOperands(Call) || hasMnemonic(Call, "prefetch[[:alnum:]]*"))
    return;
  for (unsigned Arg = 0; Arg < Call.arg_size(); ++Arg) {
    Type *T = Call.getParamElementType(Arg);
    if (!T || !T->isSized())
      continue;
    TypeSize Size = DL.getTypeStoreSize(T);
    if (!Size.isScalable() && !Size.isZero())
      add(Call, SiteKind::Native, Arg, bytesTaken(Call, Size.getFixedValue()),
          Align(1));
  }
  // Each group needs a slot and a register until the instruction is done. One
  // register is the stack's, and a frame may take two more.
  constexpr size_t Registers = 16 - 3;
  static_assert(Registers <= abi::SlotCount);
  if (!Sites.empty() && Sites.back().Inst == &Call &&
      groupOperands(Sites.back()).size() + registersTaken(Call) > Registers)
    Sites.pop_back();
}

void Collector::addMemIntrinsic(MemIntrinsic &MI) {
  auto *Length = dyn_cast<ConstantInt>(MI.getLength());
  if (!Length || Length->getZExtValue() > MaxInlineBytes)
    return;
  auto *Transfer = dyn_cast<MemTransferInst>(&MI);
  // Only code generation can copy to or from another address space.
  if (Transfer &&
      (MI.getDestAddressSpace() != 0 || Transfer->getSourceAddressSpace() != 0))
    return;
  SiteKind Kind = Transfer ? SiteKind::Copy : SiteKind::Set;
  add(MI, Kind, 0, Length->getZExtValue(), MI.getDestAlign().valueOrOne());
  if (Transfer)
    add(MI, Kind, 1, Length->getZExtValue(),
        Transfer->getSourceAlign().valueOrOne());
}

void Collector::visit(Instruction &I) {
  if (callsAtomicLibrary(I))
    return;
  if (auto *Load = dyn_cast<LoadInst>(&I)) {
    add(I, Load->isAtomic() ? SiteKind::Native : SiteKind::Load,
        Load->getPointerOperandIndex(), Load->getType(), Load->getAlign());
  } else if (auto *Store = dyn_cast<StoreInst>(&I)) {
    add(I, Store->isAtomic() ? SiteKind::Native : SiteKind::Store,
        Store->getPointerOperandIndex(), Store->getValueOperand()->getType(),
        Store->getAlign());
  } else if (auto *RMW = dyn_cast<AtomicRMWInst>(&I)) {
    add(I, SiteKind::Native, RMW->getPointerOperandIndex(),
        RMW->getValOperand()->getType(), RMW->getAlign());
  } else if (auto *CX = dyn_cast<AtomicCmpXchgInst>(&I)) {
    add(I, SiteKind::Native, CX->getPointerOperandIndex(),
        CX->getCompareOperand()->getType(), CX->getAlign());
  } else if (auto *MI = dyn_cast<MemIntrinsic>(&I)) {
    addMemIntrinsic(*MI);
  } else if (auto *II = dyn_cast<IntrinsicInst>(&I)) {
    // Lowered to fast paths that are known to lie in one page.
    if (!InPage.contains(&I))
      return;
    if (II->getIntrinsicID() == Intrinsic::masked_load)
      add(I, SiteKind::Native, 0, II->getType(), Align(1));
    else if (II->getIntrinsicID() == Intrinsic::masked_store)
      add(I, SiteKind::Native, 1, II->getArgOperand(0)->getType(), Align(1));
  } else if (isa<GetElementPtrInst>(I)) {
    // The page in which the lanes of a vector access lie (Lanes.cpp).
    if (InPage.contains(&I))
      add(I, SiteKind::Native, 0, /*Size=*/1, Align(1));
  } else if (auto *Call = dyn_cast<CallBase>(&I)) {
    if (Call->isInlineAsm())
      addAsmOperands(*Call);
  } else if (Anchors.contains(&I)) {
    add(I, SiteKind::Anchor, 0, /*Size=*/1, Align(1));
  }
}

SmallVector<Site, 0>
collectSites(Function &F, const SmallPtrSetImpl<Instruction *> &InPage,
             const SmallPtrSetImpl<Instruction *> &Anchors) {
  Collector C(F, InPage, Anchors);
  for (Instruction &I : instructions(F))
    C.visit(I);
  return std::move(C.Sites);
}

void markAligned(Instruction &I) {
  I.setMetadata(AlignedKind, MDNode::get(I.getContext(), {}));
}

bool isKnownAligned(const Instruction &I) { return I.hasMetadata(AlignedKind); }

bool callsAtomicLibrary(const Instruction &I) {
  if (!I.isAtomic())
    return false;
  auto IsLarger = [&](Type *T, Align Claimed) {
    return I.getDataLayout().getTypeStoreSize(T).getFixedValue() >
           Claimed.value();
  };
  if (auto *Load = dyn_cast<LoadInst>(&I))
    return IsLarger(Load->getType(), Load->getAlign());
  if (auto *Store = dyn_cast<StoreInst>(&I))
    return IsLarger(Store->getValueOperand()->getType(), Store->getAlign());
  if (auto *RMW = dyn_cast<AtomicRMWInst>(&I))
    return IsLarger(RMW->getValOperand()->getType(), RMW->getAlign());
  if (auto *CX = dyn_cast<AtomicCmpXchgInst>(&I))
    return IsLarger(CX->getCompareOperand()->getType(), CX->getAlign());
  return false;
}

bool storesPastCaches(const CallBase &Assembly) {
  return textOf(Assembly).contains_insensitive("movnt");
}

// Lets the operands of each group be computed from the first one.
static void sinkOperands(const Site &Assembly) {
  Instruction *I = Assembly.Inst;
  IRBuilder<> B(I);
  for (const OperandGroup &Group : groupOperands(Assembly)) {
    Value *First = Assembly.pointer(*Group.Members.front().A);
    for (auto [A, Offset] : Group.Members)
      I->setOperand(A->Operand, Offset == 0
                                    ? First
                                    : B.CreateConstGEP1_64(B.getInt8Ty(), First,
                                                           uint64_t(Offset)));
  }
}

void sinkPointers(MutableArrayRef<Site> Sites) {
  DenseMap<std::pair<BasicBlock *, Value *>, Value *> Sunk;
  for (Site &S : Sites) {
    if (auto *Call = dyn_cast<CallBase>(S.Inst); Call && Call->isInlineAsm()) {
      sinkOperands(S);
      continue;
    }
    for (Access &A : S.Accesses) {
      auto *Pointer = dyn_cast<GetElementPtrInst>(S.pointer(A));
      BasicBlock *BB = S.Inst->getParent();
      // A leader needs the address itself, unless it has a Reference instead.
      if (!Pointer || Pointer->getParent() == BB || !A.Shared ||
          (S.leads(A) && !A.Shared->Reference))
        continue;
      APInt Offset;
      Value *Base = baseOf(Pointer, S.Inst->getDataLayout(), Offset);
      if (Base == Pointer)
        continue;
      // The first use in the block comes before the others.
      Value *&Here = Sunk[{BB, Pointer}];
      if (!Here) {
        IRBuilder<> B(S.Inst);
        Here = B.CreateGEP(B.getInt8Ty(), Base, B.getInt(Offset),
                           Pointer->getName());
      }
      S.Inst->setOperand(A.Operand, Here);
    }
  }
}

} // namespace spillway
