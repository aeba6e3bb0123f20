// What `spillway run` and `spillway persist run` share: the command line, and starting the program, which is found as the shell finds it, and named in
// every message.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "command.h"

namespace tools {

// [OPTION]... -- PROGRAM [ARGUMENT]...
struct ProgramLine {
  std::map<std::string, std::string> values;  // by option name, as written
  Arguments program;
  bool help = false;  // is asked for; then there is nothing else
};
// An option that a flag stands for.
struct ProgramOption {
  std::string name;
  std::string needs;            // what is missing where it has no value
  bool is_switch = false;       // without a value it is on, "1"
  std::string_view twice = {};  // the message if it is given again; empty: the last one counts
};
// Nothing: there is no such flag.
using FindProgramOption = std::function<std::optional<ProgramOption>(std::string_view flag)>;

// Takes the command line of `spillway SUBCOMMAND` apart. Throws WrongInput.
ProgramLine parse_program_line(std::string_view subcommand, Arguments arguments,
                               const FindProgramOption& find);

// Becomes the program (execve); its name is program[0], looked for in PATH when it has no '/'. A program that does not
// use the runtime gets the library of preload mode. If `preload` is false, or the kernel does not let a process supply
// its own pages, it gets none, and one line on standard error says that the budget only holds for what it starts.
// Throws WrongInput when it cannot be started, or preload mode cannot work in it. REQUIRES: program is not empty.
[[noreturn]] void become(Arguments program, bool preload);

// The same with another preparation: called with the path of each file that is tried and may be executed. It throws WrongInput if the program must
// not start.
using Prepare = std::function<void(const std::string& path)>;
[[noreturn]] void become_prepared(Arguments program, const Prepare& prepare);

// Adds a library, which lies beside this program as it was built or installed, to LD_PRELOAD, in front of what is there already. Throws WrongInput if
// it is not there, or if the loader cannot take its path; `instead` ends the line with what else the user can do.
void preload_into_children(std::string_view name, std::string_view instead);
// The property of the file that makes the loader ignore LD_PRELOAD: "setuid" and such; empty: nothing.
std::string privilege_of(const std::string& path);

// Checks now whether something can be written there later. Throws WrongInput, whose text begins with the option.
void check_file_to_write(std::string_view option, const std::string& path);
// The same, where %p is the process id of the writer.
void check_pattern_to_write(std::string_view option, std::string_view pattern);

// How the program in a file gets its memory.
enum class Kind {
  kUnknown,   // cannot be read or understood
  kCompiled,  // by the runtime: spillcc built it
  kDynamic,   // by the C library that preload mode knows
  kStatic,    // the same, but linked into it
  kForeign,   // by another C library
  k32Bit,
};
// A script counts as its interpreter.
Kind kind_of_program(const std::string& path);

}  // namespace tools
