//===- Options.h - Knobs of the plugin --------------------------*- C++ -*-===//
//
// Users give them to spillcc as `-mllvm -spill-...`. spillcc passes them on in
// the environment, since LLVM may parse its options before it loads a plugin,
// as lld always does. opt takes them as ordinary options.
//
// The first group narrows down what is instrumented, to find the access that a
// miscompilation comes from. Code that is left alone still works, by the
// runtime's fault path.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_OPTIONS_H
#define SPILLWAY_COMPILER_OPTIONS_H

#include "llvm/Support/CommandLine.h"

namespace spillway::options {

extern llvm::cl::opt<std::string> OnlyFunction;
extern llvm::cl::opt<std::string> SkipFunction;
extern llvm::cl::opt<unsigned> First;
extern llvm::cl::opt<unsigned> Last;
extern llvm::cl::opt<bool> Stats;
extern llvm::cl::opt<bool> Verify;

extern llvm::cl::opt<bool> AssumeAligned;
extern llvm::cl::opt<bool> PlainCalls;
extern llvm::cl::opt<bool> Reuse;
extern llvm::cl::opt<unsigned> ReuseWindow;
extern llvm::cl::opt<bool> Held;
extern llvm::cl::opt<bool> Segments;
extern llvm::cl::opt<unsigned> Cold;
extern llvm::cl::opt<bool> Loops;
extern llvm::cl::opt<bool> CopyAligned;
extern llvm::cl::opt<bool> Prefetch;

extern llvm::cl::opt<uint64_t> SpillGlobals;

/// How many bodies functions have: 1 or 2 (Bodies.h).
extern llvm::cl::opt<unsigned> Bodies;

/// How accesses are translated: by the table, or by software caches (Satc.h).
extern llvm::cl::opt<bool> Satc;

/// Whether accesses are translated at all: spillcc -fno-spill -fspill-persist.
extern llvm::cl::opt<bool> Translate;

enum class PersistMode { Off, Flush, Sample, Record };
extern llvm::cl::opt<PersistMode> Persist;
extern llvm::cl::opt<bool> PersistDirect;

/// Takes options from SPILLWAY_COMPILER_OPTIONS, separated by blanks. Ends the
/// compiler if one is unknown or has a wrong value.
void readEnvironment();

} // namespace spillway::options

#endif
