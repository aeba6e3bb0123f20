// spillway persist: programs that make memory durable by flushes and fences.
#include "persist.h"

#include <cstdio>

namespace tools {
namespace {

// persist.h says how to add one.
constexpr Subcommand kSubcommands[] = {
    {"run", "[OPTION]... -- PROGRAM [ARGUMENT]...", "run a program over libpmem through the runtime",
     persist_run},
    {"check", "[OPTION]... -- PROGRAM [ARGUMENT]...", "what a crash of a program could leave", persist_check},
};

void print_help() {
  std::puts("usage: spillway persist SUBCOMMAND ...\n");
  for (const Subcommand& subcommand : kSubcommands)
    std::printf("  spillway persist %-6s %-38s %s\n", subcommand.name.data(), subcommand.arguments,
                subcommand.doc);
  std::puts("\n'spillway persist SUBCOMMAND --help' lists a subcommand's options.");
}

}  // namespace

int persist(Arguments arguments) {
  const Subcommand* const subcommand = find_subcommand(kSubcommands, arguments, "persist");
  if (subcommand != nullptr) return subcommand->function(arguments.subspan(1));
  print_help();
  return 0;
}

}  // namespace tools
