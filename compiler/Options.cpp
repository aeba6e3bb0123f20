//===- Options.cpp - Knobs of the plugin ----------------------------------===//
#include "Options.h"

#include <climits>

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

cl::opt<bool> AssumeAligned(
    "spill-assume-aligned", cl::init(true),
    cl::desc("Believe the alignment of types. Off: every access larger than a "
             "byte checks for the page's edge, for programs that access "
             "misaligned objects against the rules of C"));

} // namespace spillway::options
