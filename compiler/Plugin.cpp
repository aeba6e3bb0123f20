//===- Plugin.cpp - Where the pass enters LLVM's pipelines ----------------===//
//
//   start of the pipeline   HidePass, OncePass
//   its last point          PersistPass, InstrumentPass, DirectPass
//
// HidePass and OncePass recognise functions by their names, so they run before
// anything is inlined. Translation runs last, so that the optimiser and the
// vectoriser see the program's own accesses. PersistPass runs just before it,
// since it needs the program's own addresses, and DirectPass after it, since it
// accesses only memory of the runtime. With -fno-spill -fspill-persist only
// these two run.
//
// Without link-time optimisation, and in ThinLTO's back ends, the last point is
// "optimizer last"; full link-time optimisation has a point of its own. The
// compile steps of both come too early for translation: there spillcc loads the
// plugin of HidePlugin.cpp instead of this one.
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
