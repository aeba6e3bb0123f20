//===- HidePlugin.cpp - What comes before link-time optimisation ----------===//
//
// A plugin of its own, for compilation to bitcode (-flto). The linker decides
// which symbols other libraries see before it optimises: Plugin.cpp, which then
// runs in the linker, would hide them too late. And the functions that OncePass
// marks would have been inlined by then.
//
//===----------------------------------------------------------------------===//
#include "module/Hide.h"
#include "module/Once.h"

#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"

using namespace llvm;

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "spillway-hide", "0.1", [](PassBuilder &PB) {
            PB.registerPipelineStartEPCallback(
                [](ModulePassManager &MPM, OptimizationLevel) {
                  MPM.addPass(spillway::HidePass());
                  MPM.addPass(spillway::OncePass());
                });
          }};
}
