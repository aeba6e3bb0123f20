// What spillcc makes of a command line: a pure function from arguments to clang's arguments, so that it can
// be tested without running anything.
//
//   compile, no LTO    the plugin instruments in the compiler, after optimisation
//   compile, C++       the same, and our versions of some of libstdc++'s headers are found first
//                      (instantiated.tcc.in)
//   compile, LTO       nothing is instrumented yet: the linker does it. The functions that our headers have objects
//                      compile are hidden now (compiler/module/Hide.h), by a plugin that does only this
//   link               the runtime comes first, so that its symbols precede the C library's; lld, whenever
//                      it is the linker, gets the plugin for whatever bitcode it meets
//   link, -static      the runtime as one object, and the linker options that redirect calls of the C library
//                      to it (src/spill/static); lld
//   -fspill-persist    the same plugin, and a second runtime is linked. With -fno-spill only that runtime is linked,
//                      our headers are not used, and nothing is hidden
//
// Everything else is passed on as it came.
#pragma once

#include <expected>
#include <string>
#include <vector>

namespace spillcc {

// What --help says before clang's own help.
inline constexpr char kHelp[] =
    "OVERVIEW: clang 19 for programs whose data may exceed their memory (spillway run)\n\n"
    "OPTIONS of spillcc:\n"
    "  -fno-spill                plain clang\n"
    "  -fspill                   cancels -fno-spill; the default\n"
    "  -fspill-globals[=SIZE]    spill static and global variables of SIZE and more; without =SIZE of 64K "
    "and more\n"
    "  -fno-spill-globals        leave them in plain memory; the default\n"
    "  -fspill-bodies=1|2        2: functions run as clang compiles them until memory is short; default "
    "1\n"
    "  -fspill-translation=table|satc  table, the default: translate by one table; satc: by caches of each "
    "thread, as TriCache does\n"
    "  -fspill-persist           let the runtime flush cache lines of persistent memory, also with "
    "-fno-spill\n"
    "  -fspill-persist=sample    also clean lines ahead of their flushes, by samples of the program's "
    "stores\n"
    "  -fspill-persist=record    also record stores, so that it can be checked that all are flushed, "
    "docs/persist-check.md\n"
    "  -fno-spill-persist        leave flushes as they are; the default\n"
    "  -mllvm -spill-...         knobs of the plugin, docs/spill.md\n\n";

struct Toolchain {
  std::string clang;   // clang or clang++
  std::string plugin;  // libspillway-compiler.so
  // Directory of libspillway.so, libspillway_persist.so, spillway-static.o, libspillway-hide.so and spillway-c++/.
  std::string libraries;
};

struct Plan {
  std::vector<std::string> arguments;  // clang's, without its name
  // The plugin's options (-mllvm -spill-...), separated by blanks. They travel in the environment variable
  // SPILLWAY_COMPILER_OPTIONS, since lld parses such options before it loads plugins.
  std::string plugin_options;
};

// Returns what to run, or a one-line message for wrong input (exit status 2). `arguments` has response files
// expanded.
std::expected<Plan, std::string> plan(const std::vector<std::string>& arguments, const Toolchain& toolchain);

}  // namespace spillcc
