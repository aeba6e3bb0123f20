// spillway persist: programs that make memory durable by flushes and fences.
#include "persist.h"

#include <algorithm>
#include <cstdio>

namespace tools {
namespace {

struct Subcommand {
  std::string_view name;
  const char* words;
  const char* doc;
  int (*function)(Arguments);
};

// persist.h says how to add one.
constexpr Subcommand kSubcommands[] = {
    {"run", "[OPTION]... -- PROGRAM [ARGUMENT]...", "run a program over libpmem through the runtime",
     persist_run},
    {"check", "[OPTION]... -- PROGRAM [ARGUMENT]...", "what a crash of a program could leave", persist_check},
};

void print_help() {
  std::puts("usage: spillway persist SUBCOMMAND ...\n");
  for (const Subcommand& subcommand : kSubcommands)
    std::printf("  spillway persist %-6s %-38s %s\n", subcommand.name.data(), subcommand.words,
                subcommand.doc);
  std::puts("\n'spillway persist SUBCOMMAND --help' lists a subcommand's options.");
}

}  // namespace

int persist(Arguments arguments) {
  if (arguments.empty()) throw WrongInput("persist: no subcommand given; see spillway persist --help");
  const std::string_view name = arguments[0];
  if (name == "--help" || name == "-h" || name == "help") {
    print_help();
    return 0;
  }
  const auto found = std::ranges::find(kSubcommands, name, &Subcommand::name);
  if (found == std::end(kSubcommands))
    throw WrongInput(
        concat("persist has no subcommand '", printable(name), "'; see spillway persist --help"));
  return found->function(arguments.subspan(1));
}

}  // namespace tools
