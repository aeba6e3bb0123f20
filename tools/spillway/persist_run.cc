// spillway persist run: turns its flags into SPILLWAY_PERSIST_ variables, preloads the library that takes libpmem's calls, and becomes the program.
//
// 1 everything that can be found wrong is reported in one line, before the program starts
// 2 the process becomes the program (execve): its exit status, signals and descriptors are its own
// 3 variables and library are inherited by what the program starts
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "persist.h"
#include "persist/own/options.h"
#include "program.h"

namespace tools {
namespace {

std::string flag_of(const persist::OptionInfo& option) { return flag_name(option.name); }

std::string variable_of(std::string_view option) { return variable_name(persist::kVariablePrefix, option); }

// An option that is on or off, and is on when it has no value.
bool is_switch(const persist::OptionInfo& option) { return option.argument == std::string_view("0|1"); }

// As in a process with the preload library (persist::own::default_options).
std::string default_of(const persist::OptionInfo& option) {
  if (option.name == std::string_view("domain")) return persist::name_of(persist::DomainKind::kMemory);
  return option.default_text;
}

void print_help() {
  std::puts(
      "usage: spillway persist run [OPTION]... -- PROGRAM [ARGUMENT]...\n\n"
      "Runs PROGRAM with the calls of libpmem and libpmem2, its own and those of libraries such as "
      "libpmemobj, through the\n"
      "persistence runtime (docs/persist.md). The exit status is the program's; 2 says that it was not "
      "started.\n");
  for (const persist::OptionInfo& option : persist::kOptions) {
    const std::string flag =
        is_switch(option) ? flag_of(option) : concat(flag_of(option), ' ', option.argument);
    const std::string value = default_of(option);
    std::printf("  %-20s  %s\n  %-20s  default %s, variable %s\n", flag.c_str(), option.doc, "",
                value.empty() ? "empty" : value.c_str(), variable_of(option.name).c_str());
  }
}

std::optional<ProgramOption> find_option(std::string_view flag) {
  const auto option = std::ranges::find(persist::kOptions, flag, flag_of);
  if (option == std::end(persist::kOptions)) return std::nullopt;
  return ProgramOption{.name = option->name, .needs = option->argument, .is_switch = is_switch(*option)};
}

[[noreturn]] void refuse(const base::Error& error) {
  throw WrongInput(concat("persist run: ", printable(error.message)));
}

// A file that is written when the program ends, which may have changed its directory by then.
void name_absolutely(const char* option, std::string_view file) {
  if (file.empty()) return;
  check_pattern_to_write(concat("persist run: ", option), file);
  setenv(variable_of(option).c_str(), std::filesystem::absolute(file).c_str(), 1);
}

// Throws WrongInput where the loader would preload nothing.
void prepare(const std::string& path) {
  const Kind kind = kind_of_program(path);
  if (kind == Kind::kStatic)
    throw WrongInput(concat("'", printable(path),
                            "' is linked statically, so nothing can take libpmem's place; build it with "
                            "spillcc -fspill-persist"));
  if (kind == Kind::kForeign || kind == Kind::k32Bit)
    throw WrongInput(
        concat("'", printable(path), "' is not for 64-bit glibc, which the library to preload is for"));
  if (const std::string privilege = privilege_of(path); !privilege.empty())
    throw WrongInput(concat("'", printable(path), "' is ", privilege,
                            ", and the loader preloads nothing into it; run it as its owner"));
  preload_into_children("libspillway_persist_preload.so", "");
}

}  // namespace

int persist_run(Arguments arguments) {
  const ProgramLine line = parse_program_line("persist run", arguments, find_option);
  if (line.help) {
    print_help();
    return 0;
  }
  if (line.program.empty())
    throw WrongInput(
        "persist run: no program to run; write spillway persist run [OPTION]... -- PROGRAM [ARGUMENT]...");
  // The environment's own variables count too; flags override them.
  for (const auto& [name, value] : line.values) setenv(variable_of(name).c_str(), value.c_str(), 1);
  const auto options = persist::read_environment(environ);
  if (!options) refuse(options.error());
  if (const auto plan = persist::plan(*options); !plan) refuse(plan.error());
  // Copies: the environment, which the options lie in, changes.
  const std::string stats(options->stats), record(options->record);
  name_absolutely("stats", stats);
  name_absolutely("record", record);
  become_prepared(line.program, prepare);
}

}  // namespace tools
