//===- Rename.h - Uses of intercepted functions -----------------*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_RENAME_H
#define SPILLWAY_COMPILER_RENAME_H

#include "Abi.h"

namespace spillway {

/// Replaces every use, in code and in initialisers, of a function in
/// interceptors.inc that the module declares and does not define, by the
/// runtime's function. One that the module defines is found by the program's
/// other modules. Where it defines operators new or delete of C++, these and the
/// forms of them that the C++ library has are the program's, in all modules.
/// Returns whether there was any.
bool renameIntercepted(Abi &Runtime);

} // namespace spillway

#endif
