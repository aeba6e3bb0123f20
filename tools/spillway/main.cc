// spillway: runs programs whose data exceeds their memory, keeps and serves stores, and shows what is running.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>

#include "command.h"

namespace {

// command.h says how to add one.
constexpr tools::Subcommand kSubcommands[] = {
    {"run", "[OPTION]... -- PROGRAM [ARGUMENT]...", "run a program within a memory budget", tools::run},
    {"kv", "SUBCOMMAND DEVICE ...", "the key-value store", tools::kv},
    {"check", "DEVICE", "verify a store", tools::check},
    {"persist", "SUBCOMMAND ...", "programs with persistent memory", tools::persist},
    {"serve", "--storage DEVICE [OPTION]...", "a store for clients of memcached and Redis", tools::serve},
    {"bench", "NAME|all [OPTION]...", "measure Spillway beside its peers", tools::bench},
    {"dump", "PID|COREFILE ADDRESS LENGTH [--raw]", "what a running program's spilled memory holds",
     tools::dump},
    {"budget", "PID SIZE", "change the memory budget of a running program", tools::budget},
    {"top", "[PID|HOST:PORT...] [OPTION]...", "live counters of programs and servers", tools::top},
    {"info", "[--json] [DEVICE]", "what this machine or a device offers, what stands in the way",
     tools::info},
    {"docs", "options|statistics|probes", "print a reference page in Markdown", tools::docs},
};

void print_help() {
  std::puts(
      "usage: spillway SUBCOMMAND ...\n\nRuns programs, and keeps stores, with more data than memory.\n");
  for (const auto& subcommand : kSubcommands)
    std::printf("  spillway %-7s %-38s %s\n", subcommand.name.data(), subcommand.arguments, subcommand.doc);
  std::puts(
      "  spillway --version\n"
      "  spillway --help\n\n"
      "'spillway SUBCOMMAND --help' says more; 'spillway run --help' lists all options.");
}

// No file or socket may take the number of a standard stream that is closed: messages would be written there. Using such a stream
// fails as before.
void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(open("/dev/null", (stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC));
}

int dispatch(tools::Arguments arguments) {
  if (arguments.empty()) throw tools::WrongInput("no subcommand given; see spillway --help");
  std::string_view name = arguments[0];
  if (tools::asks_for_help(name)) {
    print_help();
    return 0;
  }
  if (name == "--version") {
    std::puts("spillway " SPILLWAY_VERSION);
    return 0;
  }
  for (const auto& subcommand : kSubcommands)
    if (name == subcommand.name) return subcommand.function(arguments.subspan(1));
  throw tools::WrongInput(
      tools::concat("no subcommand is called '", tools::printable(name), "'; see spillway --help"));
}

}  // namespace

int main(int count, char** arguments) {
  reserve_standard_streams();
  try {
    int status = dispatch({arguments + 1, static_cast<size_t>(count > 0 ? count - 1 : 0)});
    // What was too large for the buffer was written earlier, and ferror() says whether that failed.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw std::runtime_error("cannot write to standard output");
    return status;
  } catch (const tools::WrongInput& error) {
    std::fprintf(stderr, "spillway: %s\n", error.what());
    return tools::kWrongInput;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "spillway: %s\n", tools::kNoMemory);
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "spillway: %s\n", error.what());
    return 1;
  }
}
