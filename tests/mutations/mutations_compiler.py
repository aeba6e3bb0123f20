"""Breakages of compiler/: the protocol of a translation, its reuse, page edges, loops, lanes, what is lowered."""

ABI = "compiler/Abi.cpp"
ACCESSES = "compiler/Accesses.cpp"
ALIGNED = "compiler/Aligned.cpp"
FLOW = "compiler/Flow.cpp"
GLOBALS = "compiler/Globals.cpp"
HELD = "compiler/Held.cpp"
INSTRUMENT = "compiler/Instrument.cpp"
INTRINSICS = "compiler/Intrinsics.cpp"
KILLS = "compiler/Kills.cpp"
LANES = "compiler/Lanes.cpp"
PLAIN = "compiler/PlainPointers.cpp"
PLAN = "compiler/LoopPlan.cpp"
REUSE = "compiler/Reuse.cpp"
SITES = "compiler/Sites.cpp"
SLOTS = "compiler/Slots.cpp"
SPLIT = "compiler/LoopSplit.cpp"
TRANSLATE = "compiler/Translate.cpp"
FLUSH_ASSEMBLY = "compiler/FlushAssembly.cpp"
DIRECT = "compiler/Direct.cpp"
PERSIST = "compiler/Persist.cpp"
STORES = "compiler/Stores.cpp"

# Programs over the strict runtime of tests/ir, and random ones.
KERNELS = "^ir_program_kernels.c_O2$"
CORNERS = "^ir_program_corners.c_O2$"
RANDOM = "^ir_random_[1-6]$"
WALKS = "^ir_random_1[3-8]$"


def mutation(name, pattern, *patches):
    return {"name": name, "test": ("ctest", pattern), "patches": list(patches)}


SLOT_STORE = ("  B.CreateAlignedStore(Address, SlotPointer, Align(8))\n"
              "      ->setAtomic(AtomicOrdering::Release);\n")

MUTATIONS = [
    # Loops that exist for aligned data too
    mutation("bases believed to be aligned", "^e2e_walks$",
             (ALIGNED, "B.CreateAnd(Address, Size - 1)", "B.CreateAnd(Address, 0)")),
    mutation("scale that does not divide taken for aligned", "^ir_aligned$",
             (ALIGNED, "            Log2_64(Size))\n          return false;", "            Log2_64(Size))\n          continue;")),
    # Globals
    mutation("spilled global shares its last page", "^ir_globals$",
             (GLOBALS, "  uint64_t Whole = alignTo(Size, abi::PageSize);", "  uint64_t Whole = Size;")),
    mutation("global of another object taken for plain memory", "^ir_globals$",
             (GLOBALS, "  return Size == 0 || Size >= options::SpillGlobals;", "  return Size == ~uint64_t(0);")),
    mutation("record of another object's global", "^ir_globals$",
             (GLOBALS, "  if (!G->hasLocalLinkage())\n", "  if (G->isDeclaration())\n")),
    mutation("annotated global spilled", "^ir_globals$",
             (GLOBALS, "  else if (Annotated.contains(&G))", "  else if (Annotated.contains(nullptr))")),

    # The protocol
    mutation("hazard store removed from compiled code", CORNERS, (TRANSLATE, SLOT_STORE, "  (void)SlotPointer;\n")),
    mutation("hazard store after the table load", "^ir_load_store$",
             (TRANSLATE, SLOT_STORE, ""),
             (TRANSLATE, "  Entry->setAtomic(AtomicOrdering::Acquire);\n", "  Entry->setAtomic(AtomicOrdering::Acquire);\n" + SLOT_STORE)),
    mutation("hazard store is not a release", "^ir_load_store$",
             (TRANSLATE, "->setAtomic(AtomicOrdering::Release);", "->setAtomic(AtomicOrdering::Monotonic);")),
    mutation("compiler fence removed", "^ir_load_store$",
             (TRANSLATE, "  B.CreateFence(AtomicOrdering::SequentiallyConsistent,\n                SyncScope::SingleThread);\n", "")),
    mutation("entry loaded without acquire", "^ir_load_store$",
             (TRANSLATE, "Entry->setAtomic(AtomicOrdering::Acquire);", "Entry->setAtomic(AtomicOrdering::Monotonic);")),
    mutation("unknown entry taken for a translation", KERNELS,
             (TRANSLATE, "Value *Slow = B.CreateICmpSLE(Entry", "Value *Slow = B.CreateICmpSLT(Entry")),
    mutation("unknown entry taken for a translation out of line", RANDOM, (ABI, '"jle 1f\\n"', '"js 1f\\n"')),
    mutation("access out of line does not look at the edge", RANDOM,
             (ABI, "  if (Size > 1)\n    Check =", "  if (Size > 8)\n    Check =")),
    mutation("access out of line is not told of the live slots", "^ir_crossing_live$",
             (ABI, "  return callQuietly(B, accessStub(Size, /*IsStore=*/false), Address, Live | 1);",
              "  return callQuietly(B, accessStub(Size, /*IsStore=*/false), Address, 1);")),
    mutation("what is stored across an edge is lost", RANDOM,
             (ABI, 'std::string(IsStore ? "movq %r10, (%rsp)\\n" : "")', 'std::string()')),
    mutation("translation moved between slots", CORNERS,
             (TRANSLATE, "  Entry->setAtomic(AtomicOrdering::Acquire);\n",
              "  Entry->setAtomic(AtomicOrdering::Acquire);\n"
              "  B.CreateAlignedStore(Address, B.CreateConstInBoundsGEP1_64(Runtime.I64, Base, Slot ^ 8), Align(8));\n"
              "  B.CreateAlignedStore(B.getInt64(0), SlotPointer, Align(8));\n")),
    mutation("slow path is not told of its own slot", CORNERS,
             (TRANSLATE, "Runtime.translate(SlowB, Address, Live | SlotSet(1) << Slot)", "Runtime.translate(SlowB, Address, Live)")),
    mutation("slow path is not told of the live slots", RANDOM,
             (TRANSLATE, "Runtime.translate(SlowB, Address, Live | SlotSet(1) << Slot)",
              "Runtime.translate(SlowB, Address, SlotSet(1) << Slot)")),
    mutation("crossing is not told of the live slots", "^ir_crossing_live$",
             (SITES, "T.Runtime.crossLoad(B, T.address(B, S.pointer(A)), A.Size, Buffer, S.Live);",
              "T.Runtime.crossLoad(B, T.address(B, S.pointer(A)), A.Size, Buffer, 0);")),
    mutation("red zone under the slow path's stub", "^ir_load_store$",
             (INSTRUMENT, "  F.addFnAttr(Attribute::NoRedZone); // Abi.h, translate\n", "")),
    mutation("load may move because memory was constant", "^ir_load_store$",
             (SITES, "LLVMContext::MD_invariant_load, LLVMContext::MD_invariant_group,", "LLVMContext::MD_invariant_group,")),
    mutation("non-temporal store kept", "^ir_load_store$",
             (SITES, "LLVMContext::MD_invariant_load, LLVMContext::MD_invariant_group,\n        LLVMContext::MD_nontemporal}",
              "LLVMContext::MD_invariant_load, LLVMContext::MD_invariant_group}")),
    mutation("function still said to write nothing", "^ir_calls$",
             (INSTRUMENT, "{Attribute::Memory, Attribute::Speculatable, Attribute::NoSync}", "{Attribute::Speculatable, Attribute::NoSync}")),

    # Pointers that are plain across calls
    mutation("argument taken for plain although the address of its function is taken", "^ir_plain_calls$",
             (PLAIN, "         !F.use_empty() &&\n         all_of(F.uses(), [&](const Use &U) { return directCall(U, F); });",
              "         !F.use_empty();")),
    mutation("argument taken for plain although others may call its function", "^ir_plain_calls$",
             (PLAIN, "  return F.hasLocalLinkage() && !F.isDeclaration()", "  return !F.isDeclaration()")),
    mutation("argument taken for plain because one call passes a plain pointer", "^ir_plain_calls$",
             (PLAIN, "if (isMarkedPlain(A) && !all_of(F.uses()", "if (isMarkedPlain(A) && none_of(F.uses()")),
    mutation("result of a function that may be replaced taken for plain", "^ir_plain_calls$",
             (PLAIN, "isPointer(F.getReturnType()) && F.hasExactDefinition()", "isPointer(F.getReturnType()) && !F.isDeclaration()")),
    mutation("result taken for plain although memory is returned too", "^ir_plain_calls$",
             (PLAIN, "          Return && !isPlain(Return->getReturnValue())) {", "          Return && !Return->getReturnValue()) {")),

    # Pages that loops hold
    mutation("page held over a call", "^ir_held$",
             (HELD, "All == MaxPerFunction || hasCall(L))", "All == MaxPerFunction)")),
    mutation("page held over a call of an outer loop", "^ir_held$",
             (HELD, "      if (Further == Course::Wild || hasCall(Outer))", "      if (Further == Course::Wild)")),
    mutation("page held from the last time that the loop ran", WALKS,
             (HELD, "    B.SetInsertPoint(Pred->getTerminator());", "    B.SetInsertPoint(F.getEntryBlock().getTerminator());")),
    mutation("held page reaches too far", WALKS,
             (SITES, '                        B.getInt64(abi::PageSize - Size), "spill.elsewhere");', '                        B.getInt64(abi::PageSize - 1), "spill.elsewhere");')),
    mutation("slot of a held page is another's too", WALKS,
             (SLOTS, "  SlotSet Used = slotsOfHeld(T);\n", "  SlotSet Used = (SlotSet(1) << ScratchSlots) - 1;\n")),
    mutation("slot of a held page is live behind its leader only", WALKS,
             (SLOTS, "    Range.LiveIn.insert(T.HeldIn.begin(), T.HeldIn.end());\n", "")),
    mutation("held page begins where it was met", WALKS,
             (SITES, "EndB.CreateAnd(Begin, EndB.getInt64(-abi::PageSize))", "EndB.CreateAnd(Begin, EndB.getInt64(-1))")),

    # Reuse
    mutation("translation kept over a call", "^ir_reuse$", (KILLS, "  if (!II)\n    return true;", "  if (!II)\n    return Call->isInlineAsm();")),
    mutation("translation kept over a free", "^ir_kills$",
             (KILLS, "  if (!II)\n    return true;",
              "  if (!II)\n    return !Call->getCalledFunction() || !Call->getCalledFunction()->getName().contains(\"free\");")),
    mutation("translation kept over inline assembly", "^ir_reuse$",
             (KILLS, "  if (!II)\n    return true;", "  if (!II)\n    return !Call->isInlineAsm();")),
    mutation("assembly that accesses memory taken for a computation", "^ir_kills$",
             (KILLS, "  if (Call->isInlineAsm() && Call->doesNotAccessMemory())", "  if (Call->isInlineAsm())")),
    mutation("translation kept over the C library's memcpy", "^ir_kills$",
             (KILLS, "    return !isa<MemCpyInlineInst>(II) && !isa<MemSetInlineInst>(II);", "    return false;")),
    mutation("call on one of two paths overlooked", "^ir_reuse$",
             (FLOW, "      if (hasCall(Pred) || Seen.size() > MaxBlocks)", "      if (Seen.size() > MaxBlocks)")),
    mutation("call behind the leader overlooked", "^ir_kills$",
             (FLOW, "  if (hasCallBefore(To) || hasCallAfter(From))", "  if (hasCallBefore(To))")),
    mutation("call before the follower overlooked", "^ir_kills$",
             (FLOW, "  if (hasCallBefore(To) || hasCallAfter(From))", "  if (hasCallAfter(From))")),
    mutation("path around the leader overlooked", "^ir_reuse$",
             (REUSE, "    if (!Dominators.dominates(C.T->Leader->getParent(), S.Inst->getParent()))\n      continue;\n", "")),
    mutation("window does not grow with its followers", RANDOM, (REUSE, "    C.T->High = High;\n", "    (void)High;\n")),
    mutation("window does not grow downwards", RANDOM, (REUSE, "    C.T->Low = Low;\n", "")),
    mutation("reuse window too large", "^ir_reuse$",
             (REUSE, "High - Low > int64_t(options::ReuseWindow) || C.T->Leader", "High - Low > int64_t(abi::PageSize) || C.T->Leader")),
    mutation("leader's alignment believed of the bytes below it", "^ir_kills$",
             (REUSE, "C.T->MayCross = Low < 0 || High > Unit;", "C.T->MayCross = High > Unit;")),
    mutation("spread of the leader's index ignored", "^ir_reuse_index$",
             (REUSE, "Where.Offset - C.LeaderOffset - C.LeaderExtent;", "Where.Offset - C.LeaderOffset;")),
    mutation("spread of the follower's index ignored", "^ir_reuse_index$",
             (REUSE, "Where.Offset - C.LeaderOffset + int64_t(Where.Extent);", "Where.Offset - C.LeaderOffset;")),
    mutation("index that may wrap taken apart", "^ir_reuse$",
             ("compiler/Address.cpp", "    if (!Safe)\n      return;\n", "    (void)Safe;\n")),
    mutation("follower uses a leader that crossed", RANDOM,
             (SITES, "    return B.CreateICmpEQ(Shared->Entry, B.getInt64(0), \"spill.crossed\");", "    return nullptr;")),
    mutation("colours ignore what is live", RANDOM,
             (SLOTS, "  for (Translation *Other : Active)\n    Used |= SlotSet(1) << Other->Slot;\n", "")),
    mutation("live range ends with its block", RANDOM,
             (SLOTS, "    return Range.LiveIn.contains(Next);", "    return Range.LiveIn.empty() && Next;")),
    mutation("live range forgotten where it enters a block", RANDOM,
             (SLOTS, "    if (!isDropped(T))\n      Active.push_back(T);\n", "    (void)T;\n")),
    mutation("slots of a site do not include what is live", RANDOM,
             (SLOTS, "      S.Live |= SlotSet(1) << T->Slot;", "      S.Live |= SlotSet(0) << T->Slot;")),
    mutation("both sides of a copy in one slot of compiled code", "^ir_crossing$",
             (SITES, "A.Shared ? A.Shared->Slot : Scratch++;", "A.Shared ? A.Shared->Slot : Scratch;")),

    # Page edges
    mutation("edge check a byte too late", KERNELS,
             (TRANSLATE, "B.getInt32(abi::lastOffset(Size)),", "B.getInt32(abi::lastOffset(Size - 1)),")),
    mutation("edge check a byte too early", "^ir_crossing$",
             (TRANSLATE, "  return B.CreateICmpUGT(Offset,", "  return B.CreateICmpUGE(Offset,")),
    mutation("edge check compares as a signed number", "^ir_crossing$",
             (TRANSLATE, "  return B.CreateICmpUGT(Offset,", "  return B.CreateICmpSGT(Offset,")),
    mutation("alignment of a type believed", "^ir_misaligned$",
             (ACCESSES, "((options::AssumeAligned || Kind == SiteKind::Native) &&\n               !AnyAddress)", "!AnyAddress")),
    mutation("atomic load bounced at an edge", "^ir_atomics$",
             (ACCESSES, "Load->isAtomic() ? SiteKind::Native : SiteKind::Load", "SiteKind::Load")),
    mutation("atomic store bounced at an edge", "^ir_atomics$",
             (ACCESSES, "Store->isAtomic() ? SiteKind::Native : SiteKind::Store", "SiteKind::Store")),
    mutation("alignment of an atomic's type believed", "^ir_atomics$",
             (ACCESSES, "bool AnyAddress = Kind == SiteKind::Native && I.isAtomic() && Size <= 8;", "bool AnyAddress = false;")),
    mutation("crossing copy stores what it did not load", KERNELS,
             (SITES, "  if (HasSource)\n    T.Runtime.crossLoad", "  if (HasSource && !HasDest)\n    T.Runtime.crossLoad")),

    # Loops
    mutation("chunk of a loop one iteration too long", KERNELS,
             (SPLIT, "    More = B.CreateAdd(More, B.getInt64(1));", "    More = B.CreateAdd(More, B.getInt64(2));")),
    mutation("chunk of a downward loop one iteration too long", KERNELS,
             (SPLIT, "    More = B.CreateUDiv(Offset, B.getInt64(-P.Step));",
              "    More = B.CreateAdd(B.CreateUDiv(Offset, B.getInt64(-P.Step)), B.getInt64(1));")),
    mutation("only the first pointer bounds a chunk", KERNELS,
             (SPLIT, "    Chunk = B.CreateBinaryIntrinsic(Intrinsic::umin, Chunk,\n                                    iterationsInPage(P, First, B));",
              "    if (Firsts.size() == 1)\n      Chunk = B.CreateBinaryIntrinsic(Intrinsic::umin, Chunk,\n"
              "                                    iterationsInPage(P, First, B));")),
    mutation("iterations left not counted down by a chunk", KERNELS,
             (SPLIT, "Value *NowLeft = B.CreateSub(Left, Chunk);", "Value *NowLeft = B.CreateSub(Left, B.CreateSub(Chunk, B.getInt64(1)));")),
    mutation("trip count one too many", KERNELS,
             (PLAN, "B.CreateAdd(Count, B.getInt64(1), \"spill.trips\")", "B.CreateAdd(Count, B.getInt64(2), \"spill.trips\")")),
    mutation("member of a loop's pointer does not widen its window", KERNELS,
             (PLAN, "    P.Low = Low;\n    P.High = High;\n", "")),
    mutation("conditional access translated ahead of its loop", "^ir_loops$",
             (PLAN, "join(Plan, *S, A, *Step) || !Always ||", "join(Plan, *S, A, *Step) ||")),
    mutation("loop with a call split", "^ir_loops$",
             (PLAN, "      if (endsTranslations(I) || isa<AllocaInst>(I) ||", "      if (isa<AllocaInst>(I) ||")),

    # Lanes
    mutation("masked access translated though all lanes are off", "^ir_vectors$",
             (LANES, "SplitBlockAndInsertIfThen(B.CreateOrReduce(A.Mask), &II, false)", "SplitBlockAndInsertIfThen(B.getTrue(), &II, false)")),
    mutation("lane accessed though its mask is off", "^ir_vectors$",
             (LANES, "  bool All = isAllActive(A);\n  Value *First = All ? B.getInt64(0) : bitsOf(A, B);",
              "  bool All = true;\n  Value *First = B.getInt64(0);")),
    mutation("masked access may cross a page's edge", "^ir_program_kernels.c_wide$",
             (LANES, "T.crossesPage(B, T.address(B, A.Memory),\n                                   II.getDataLayout().getTypeStoreSize(A.Type));",
              "T.crossesPage(B, T.address(B, A.Memory), 1);")),
    mutation("packed lanes do not advance", "^ir_vectors$",
             (LANES, "LoopB.CreateConstGEP1_64(Lane, Pointer, 1)", "LoopB.CreateConstGEP1_64(Lane, Pointer, 0)")),
    mutation("packed lane accessed though none is on", "^ir_vectors$", (LANES, "  if (A.Packed && !All)\n", "  if (false)\n")),
    mutation("lanes that are off lose their value", "^ir_vectors$",
             (LANES, "    Result = inMemory(A.PassThru, \"spill.lanes\", B);\n",
              "    Result = inMemory(PoisonValue::get(A.Type), \"spill.lanes\", B);\n")),
    mutation("lanes taken to lie in the first one's page", "^ir_vectors$",
             (LANES, "  L.Apart = B.CreateOrReduce(Outside);", "  L.Apart = B.getFalse();")),
    mutation("lane in the page may cross its edge", "^ir_vectors$",
             (LANES, "ConstantInt::get(Words, abi::PageSize - Size)", "ConstantInt::get(Words, abi::PageSize - 1)")),
    mutation("address of a lane looked at though its mask is off", "^ir_vectors$",
             (LANES, "  if (!All)\n    Outside = B.CreateSelect", "  if (false)\n    Outside = B.CreateSelect")),
    mutation("page of a lane that is off translated", "^ir_vectors$",
             (LANES, "  Value *First = All ? B.getInt64(0) : lowestBit(bitsOf(A, B), B);", "  Value *First = B.getInt64(0);")),
    mutation("each lane translated though all lie in one page", "^ir_vectors$", (LANES, "    InPage.insert(Frame);\n", "")),
    mutation("lanes translated after their page", "^ir_vectors$",
             (ACCESSES, "      InPage.contains(cast<Instruction>(GEP->getPointerOperand())))\n    return;\n",
              "      InPage.contains(cast<Instruction>(GEP->getPointerOperand())))\n    (void)GEP;\n")),
    mutation("vector of addresses on the stack translated", "^ir_vectors$",
             (LANES, "  while (auto *GEP = dyn_cast<GEPOperator>(Base))\n", "  if (auto *GEP = dyn_cast<GEPOperator>(Base))\n")),
    mutation("gather taken for a call", "^ir_kills$", (KILLS, "  case Intrinsic::masked_gather:\n", "")),

    # What is lowered, renamed, left alone
    mutation("argument by value left to code generation", "^ir_calls$",
             (INTRINSICS, "if (!Call.isByValArgument(Arg) || isPlain(Pointer))", "if (true || !Call.isByValArgument(Arg) || isPlain(Pointer))")),
    mutation("jump in line does not leave its handler", "^ir_calls$",
             (INTRINSICS, "    if (ID == Intrinsic::eh_sjlj_longjmp) {", "    if (false) {")),
    mutation("copy of a variable argument list too short", CORNERS,
             (INTRINSICS, "VaListSize = 24;", "VaListSize = 16;")),
    mutation("small comparison in the machine's byte order", CORNERS,
             (INTRINSICS, "      W = B.CreateUnaryIntrinsic(Intrinsic::bswap, W);", "      (void)W;")),
    mutation("small comparison the wrong way round", CORNERS,
             (INTRINSICS, "Result = B.CreateSub(More, Less);", "Result = B.CreateSub(Less, More);")),
    mutation("small copy left to the C library", "^ir_crossing$",
             (INTRINSICS, "B.CreateMemCpyInline(MI.getRawDest(), MI.getDestAlign(),\n                         Transfer->getRawSource(), Transfer->getSourceAlign(),\n                         Length);",
              "B.CreateMemCpy(MI.getRawDest(), MI.getDestAlign(),\n                         Transfer->getRawSource(), Transfer->getSourceAlign(),\n                         Length);")),
    mutation("large copy left to the C library", "^ir_crossing$",
             (INTRINSICS, "    if (!Plain)\n      callRuntime(MI);\n    return;", "    return;")),
    mutation("move left to code generation, which calls a function", "^ir_crossing$",
             (INTRINSICS, "isa<AnyMemMoveInst>(MI) ? MaxMoveInlineBytes", "isa<AnyMemMoveInst>(MI) ? MaxInlineBytes")),
    mutation("copy on the stack left to code generation", "^ir_kills$", (INTRINSICS, ": Plain                 ? MaxPlainInlineBytes", ": Plain                 ? 0")),
    mutation("function named by an assembler label not renamed", "^ir_calls$",
             ("compiler/Rename.cpp", "    Changed |= rename(Runtime, (\"\\1\" + Name).str(), Name);\n", "")),
    mutation("program's own function renamed", "^ir_calls$",
             ("compiler/Rename.cpp", "if (!Old || !Old->isDeclaration() || Old->isIntrinsic())", "if (!Old || Old->isIntrinsic())")),
    mutation("renamed malloc still known as malloc", "^ir_calls$",
             ("compiler/Rename.cpp", "  F.removeFnAttr(\"alloc-family\");\n", "")),
    mutation("pointer to the stack or the heap taken for one to the stack", "^ir_either$",
             ("compiler/Provenance.cpp", "!Objects.empty() && all_of(Objects, Plain)", "!Objects.empty() && any_of(Objects, Plain)")),

    # Persistent memory
    mutation("clflush taken for clwb", "^ir_persist_flush$",
             (PERSIST, "Step.Kind == FlushKind::Clflush ? abi::PersistFlushOrdered", "Step.Kind == FlushKind::Fence ? abi::PersistFlushOrdered")),
    mutation("clflushopt with a prefix taken for clflush", "^ir_persist_assembly$",
             (FLUSH_ASSEMBLY, ' || (Mnemonic == "clflush" && Prefixed)', "")),
    mutation("register taken for an operand in memory", "^ir_persist_assembly_mixed$",
             (FLUSH_ASSEMBLY, "C.isIndirect != InMemory || ", "")),
    mutation("assembly with other instructions replaced", "^ir_persist_assembly_mixed$",
             (FLUSH_ASSEMBLY, "      if (!parseStatement(Statement.trim()))\n        return false;", "      parseStatement(Statement.trim());")),
    mutation("mfence lost with its assembly", "^ir_persist_assembly$",
             (PERSIST, "    if (Step.Kind != FlushKind::FullFence) {", "    if (true) {")),
    mutation("flushes put off past a locked instruction", "^ir_persist_order$",
             (PERSIST, "  if (isa<AtomicRMWInst, AtomicCmpXchgInst>(I))\n    return true;", "  if (isa<AtomicRMWInst>(I))\n    return true;")),
    mutation("flushes put off past an xchg", "^ir_persist_order$",
             (PERSIST, "(S->getOrdering() == AtomicOrdering::SequentiallyConsistent ||", "(")),
    mutation("flushes put off past a lock of the C library", "^persist_cc$",
             (PERSIST, "    return callsLock(*Call);", "    return false;")),
    mutation("flushes executed for nothing but the compiler", "^ir_persist_order$",
             (PERSIST, " &&\n           Fence->getSyncScopeID() != SyncScope::SingleThread", "")),
    mutation("function done again for persistent memory", "^ir_persist_once$",
             (PERSIST, "        !F.hasFnAttribute(DoneAttribute) && ", "        ")),
    mutation("addresses of translations told to the persistence runtime", "^ir_persist_spill$",
             ("compiler/Plugin.cpp", "    MPM.addPass(spillway::PersistPass());\n    if (spillway::options::Translate)\n      MPM.addPass(spillway::InstrumentPass());",
              "    if (spillway::options::Translate)\n      MPM.addPass(spillway::InstrumentPass());\n    MPM.addPass(spillway::PersistPass());")),
    mutation("fence executed where flushes are pending", "^persist_cc$",
             (DIRECT, "B.CreateICmpNE(Pending, B.getInt32(0))", "B.getFalse()")),
    mutation("fences that nobody granted", "^persist_cc$",
             (DIRECT, "B.CreateICmpSLE(Left, B.getInt32(0))", "B.CreateICmpEQ(Left, B.getInt32(0))")),
    mutation("line behind a range flushed without a call", "^persist_cc$",
             (DIRECT, "B.CreateICmpULT(B.CreateSub(Page, First), Count)", "B.CreateICmpULE(B.CreateSub(Page, First), Count)")),
    mutation("range of another instruction", "^persist_cc$",
             (DIRECT, 'Name == "clflushopt" ? 1 : 2', 'Name == "clflushopt" ? 0 : 2')),
    mutation("line taken for another that is put off", "^persist_cc$",
             (DIRECT, "B.CreateOr(B.CreateShl(Line, abi::PersistPutOffShift), Mark)", "B.CreateOr(B.CreateShl(B.CreateAnd(Line, 0xff), abi::PersistPutOffShift), Mark)")),
    mutation("clflush put off", "^ir_persist_direct$",
             (DIRECT, '  if (Name == "clflush")\n    return Call->moveBefore(Otherwise);\n', "")),
    mutation("store told of before it", "^persist_cc$",
             (STORES, "    return S.Inst->getNextNode();", "    return S.Inst;")),
    mutation("failed exchange told of as a store", "^ir_persist_record$",
             (STORES, "B.CreateSelect(B.CreateExtractValue(S.Inst, 1), Bytes, None)", "Bytes")),
    mutation("all of a string told of after an append", "^ir_persist_record$",
             (STORES, "OldLength ? B.CreatePtrAdd(S.Address, OldLength) : S.Address", "S.Address")),
    mutation("string told of without its end", "^ir_persist_record$",
             (STORES, "B.CreateAdd(callStringLength(B, Begin), B.getInt64(1))", "callStringLength(B, Begin)")),
    mutation("lanes told of one after the other where they are not", "^ir_persist_record_lanes$",
             (STORES, "Lane * S.Bytes", "Lane")),
    mutation("globals told of as persistent memory", "^ir_persist_record$",
             ("compiler/Provenance.cpp", "    return AllGlobals || isPlainGlobal(*Global);", "    return !AllGlobals && isPlainGlobal(*Global);")),
]
