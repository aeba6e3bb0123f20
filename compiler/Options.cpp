//===- Options.cpp - Knobs of the plugin ----------------------------------===//
#include "Options.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <climits>
#include <cstdlib>

using namespace llvm;

namespace spillway::options {

cl::opt<std::string>
    OnlyFunction("spill-only-function", cl::value_desc("regex"),
                 cl::desc("Instrument only functions with a matching name"));
cl::opt<std::string>
    SkipFunction("spill-skip-function", cl::value_desc("regex"),
                 cl::desc("Leave functions with a matching name alone"));
cl::opt<unsigned>
    First("spill-first", cl::init(0),
          cl::desc("Leave sites of the module before this number alone"));
cl::opt<unsigned>
    Last("spill-last", cl::init(UINT_MAX),
         cl::desc("Leave sites of the module after this number alone"));
cl::opt<bool> Stats("spill-stats",
                    cl::desc("Print what was instrumented in each module"));

cl::opt<bool> Verify("spill-verify",
                     cl::desc("Check what was made of each module"));

cl::opt<bool> AssumeAligned(
    "spill-assume-aligned", cl::init(false),
    cl::desc("Believe the alignment of types. Programs that access misaligned "
             "objects against the rules of C then read and write other "
             "memory at a page's edge"));

cl::opt<bool>
    PlainCalls("spill-plain-calls", cl::init(true),
               cl::desc("Find pointers across calls that need no translation"));

cl::opt<bool> Reuse("spill-reuse", cl::init(true),
                    cl::desc("Let accesses share translations"));
cl::opt<unsigned> ReuseWindow(
    "spill-reuse-window", cl::init(256),
    cl::desc("Bytes that one shared translation may cover at most"));

cl::opt<bool> Held("spill-held", cl::init(true),
                   cl::desc("Hold the pages that loops stay in"));

cl::opt<bool> Segments(
    "spill-segments", cl::init(true),
    cl::desc("Duplicate straight code whose accesses share translations"));

cl::opt<unsigned>
    Cold("spill-cold", cl::init(1000), cl::value_desc("N"),
         cl::desc("Code that runs once in N calls of its function, or less "
                  "often, is cold: small before it is fast; 0: no code is"));

cl::opt<bool> Loops("spill-loops", cl::init(true),
                    cl::desc("Split loops at page edges"));
cl::opt<bool> CopyAligned("spill-copy-aligned", cl::init(true),
                          cl::desc("Copy loops that ask less if their data is "
                                   "aligned"));

cl::opt<bool> Prefetch("spill-prefetch", cl::init(true),
                       cl::desc("Let loops look ahead to what they will load"));

cl::opt<uint64_t> SpillGlobals(
    "spill-globals", cl::init(0),
    cl::desc("Spill globals of at least that many bytes; 0: none"));

cl::opt<unsigned> Bodies(
    "spill-bodies", cl::init(1),
    cl::desc("2: functions have a native body too, for as long as nothing is "
             "evicted"));

cl::opt<bool> Satc("spill-satc", cl::init(false),
                   cl::desc("Translate each access by the thread's software "
                            "caches, and not by the table"));

cl::opt<bool> Translate("spill-translate", cl::init(true),
                        cl::desc("Translate accesses to spilled memory"));

cl::opt<PersistMode> Persist(
    "spill-persist", cl::init(PersistMode::Off),
    cl::desc("Leave flushes of persistent memory to the runtime"),
    cl::values(clEnumValN(PersistMode::Off, "off", "No"),
               clEnumValN(PersistMode::Flush, "flush", "Flushes and fences"),
               clEnumValN(PersistMode::Sample, "sample",
                          "and tell it of some stores"),
               clEnumValN(PersistMode::Record, "record",
                          "and tell it of all stores")));

cl::opt<bool> PersistDirect(
    "spill-persist-direct", cl::init(true),
    cl::desc("Flush and fence without a call where the runtime allows it"));

void readEnvironment() {
  const char *Text = std::getenv("SPILLWAY_COMPILER_OPTIONS");
  if (!Text)
    return;
  SmallVector<StringRef, 8> Words;
  SplitString(Text, Words);
  StringMap<cl::Option *> &Known = cl::getRegisteredOptions();
  for (StringRef Word : Words) {
    auto [Name, Value] = Word.ltrim('-').split('=');
    auto Found = Known.find(Name);
    if (!Name.starts_with("spill-") || Found == Known.end() ||
        Found->second->addOccurrence(0, Name, Value))
      report_fatal_error("-mllvm " + Word +
                             ": Spillway's plugin has no such option, or it "
                             "takes no such value; see docs/spill.md",
                         /*gen_crash_diag=*/false);
  }
}

} // namespace spillway::options
