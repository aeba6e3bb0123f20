//===- Plugin.cpp - Where the pass enters LLVM's pipelines ----------------===//
//
// What is hidden is hidden first, and what is marked (Once.h) is marked. Translation comes last, after vectorisation:
// the optimiser sees the program's own accesses; just before it what concerns
// persistent memory (Persist.h), which may be all there is to do, and after it what
// of that needs no call (Direct.h). Without link-time
// optimisation, and in ThinLTO's back ends, that is the "optimizer last" point.
// Full link-time optimisation has its own; its compile step and ThinLTO's come
// too early, so spillcc does not load us there.
//
//===----------------------------------------------------------------------===//
#include "Instrument.h"
#include "Options.h"
#include "module/Hide.h"
#include "module/Once.h"
#include "persist/Direct.h"
#include "persist/Persist.h"

#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"

using namespace llvm;

static void registerCallbacks(PassBuilder &PB) {
  // Once: ThinLTO builds a pipeline per module, in several threads.
  [[maybe_unused]] static const bool Read =
      (spillway::options::readEnvironment(), true);
  static constexpr auto AddFirst = [](ModulePassManager &MPM,
                                      OptimizationLevel) {
    if (!spillway::options::Translate)
      return;
    MPM.addPass(spillway::HidePass());
    MPM.addPass(spillway::OncePass());
  };
  static constexpr auto AddLast = [](ModulePassManager &MPM,
                                     OptimizationLevel) {
    MPM.addPass(spillway::PersistPass());
    if (spillway::options::Translate)
      MPM.addPass(spillway::InstrumentPass());
    MPM.addPass(spillway::DirectPass());
  };
  PB.registerPipelineStartEPCallback(AddFirst);
  PB.registerOptimizerLastEPCallback(AddLast);
  PB.registerFullLinkTimeOptimizationLastEPCallback(AddLast);
  PB.registerPipelineParsingCallback(
      [](StringRef Name, ModulePassManager &MPM,
         ArrayRef<PassBuilder::PipelineElement>) {
        if (Name != "spillway")
          return false;
        AddFirst(MPM, OptimizationLevel::O2);
        AddLast(MPM, OptimizationLevel::O2);
        return true;
      });
}

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "spillway", "0.1", registerCallbacks};
}
