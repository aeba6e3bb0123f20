//===- Rename.h - Uses of intercepted functions -----------------*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_RENAME_H
#define SPILLWAY_COMPILER_RENAME_H

#include "Abi.h"

namespace spillway {

/// Replaces every use, in code and in initialisers, of a function in
/// interceptors.inc that the module declares and does not define, by the
/// runtime's function. One that the module defines is made known to the
/// program's other modules. If it defines C++'s operators new or delete, all
/// modules use the program's operators, also through the C++ library's forms of
/// them. Returns whether anything changed.
bool renameIntercepted(Abi &Runtime);

} // namespace spillway

#endif
