//===- Hide.h - Copies of the C++ library's functions -----------*- C++ -*-===//
//
// Strings and string streams, and what reads and writes strings, are compiled
// anew in each object (tools/spillcc/instantiated.tcc.in), though the C++
// library holds them compiled, so that their accesses are translated. Other
// libraries call the same symbols, and would get the program's: their strings
// would be spilled, and strings that the kernel should read with them. So these
// copies are seen by the program, or the shared library, only that they are
// linked into.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_HIDE_H
#define SPILLWAY_COMPILER_HIDE_H

namespace llvm {
class Module;
}

namespace spillway {

/// Makes the module's implicit instantiations of these hidden: functions,
/// virtual tables, thunks. Type information stays common. Returns
/// whether there are any.
bool hideLibraryCopies(llvm::Module &M);

} // namespace spillway

#endif
