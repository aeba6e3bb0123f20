//===- Rename.h - Uses of intercepted functions -----------------*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_RENAME_H
#define SPILLWAY_COMPILER_RENAME_H

#include "Abi.h"

namespace spillway {

/// Replaces every use of the functions in interceptors.inc that M only
/// declares, in code and in initialisers, by the runtime's. Returns whether
/// there was any.
bool renameIntercepted(Abi &Runtime);

} // namespace spillway

#endif
