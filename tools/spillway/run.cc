// spillway run: turns its flags into SPILLWAY_ variables and becomes the program.
//
// 1 everything that can be found wrong is reported in one line, before the program starts
// 2 the process becomes the program (execve): its exit status, signals and descriptors are its own
// 3 the variables are inherited, so that `spillway run -- make test` reaches the programs that make starts
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/json_log.h"
#include "command.h"
#include "program.h"
#include "storage/opening/device_string.h"
#include "sys/memory.h"

namespace tools {
namespace {

std::optional<ProgramOption> find_option(std::string_view flag) {
  for (size_t i = 0; i < base::option_count(); ++i) {
    const base::OptionInfo& option = base::option_info(i);
    if (flag_name(option) != flag) continue;
    ProgramOption found = {.name = option.name,
                           .needs = concat("a ", option.argument),
                           .is_switch = option.kind == base::OptionKind::kFlag};
    if (flag == "--storage")
      found.twice = "--storage is given twice; give one device, spilled pages go to one";
    return found;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const base::Error& error) { throw WrongInput(printable(error.message)); }

}  // namespace

int run(Arguments arguments) {
  const ProgramLine line = parse_program_line("run", arguments, find_option);
  if (line.help) {
    std::printf(
        "usage: spillway run [OPTION]... -- PROGRAM [ARGUMENT]...\n\n"
        "Runs PROGRAM within a memory budget; it is fastest when spillcc compiled it. The exit status is the "
        "program's;\n"
        "2 says that it was not started. SIZE takes K, M, G, T (powers of 1024).\n\n%s",
        options_help().c_str());
    return 0;
  }
  if (line.program.empty())
    throw WrongInput("no program to run; write spillway run [OPTION]... -- PROGRAM [ARGUMENT]...");

  // The environment's own variables count too; flags override them.
  for (const auto& [name, value] : line.values) {
    base::Options scratch;
    if (auto set = base::set_option(scratch, name, value); !set) refuse(set.error());
    for (size_t i = 0; i < base::option_count(); ++i)
      if (base::option_info(i).name == name)
        setenv(variable_name(base::option_info(i)).c_str(), value.c_str(), 1);
  }
  base::Options options;
  if (auto read = base::read_options_from_environment(options, environ); !read) refuse(read.error());
  if (auto checked = base::check_options(options, sys::machine_memory_bytes()); !checked)
    refuse(checked.error());
  if (options.log_format.view() == "json") base::set_log_writer(base::write_json_log<base::kJsonLogBytes>);
  // The program may change its directory before a file is written, and start others elsewhere. A path that would become too long
  // stays as it is.
  const auto name_absolutely = [](const char* variable, std::string_view path) {
    std::error_code error;
    const std::string whole = std::filesystem::absolute(path, error);
    if (!error && whole.size() < base::kOptionTextBytes) setenv(variable, whole.c_str(), 1);
  };
  if (const std::string_view device = options.storage.view(); !device.empty()) {
    const auto parsed = storage::parse_device_string(device);
    if (!parsed) refuse(parsed.error());
    const bool is_path = parsed->nodes[0].path == device;
    if (is_path) name_absolutely("SPILLWAY_STORAGE", device);
  }
  if (!options.stats.view().empty()) {
    check_pattern_to_write("stats", options.stats.view());
    name_absolutely("SPILLWAY_STATS", options.stats.view());
  }

  become(line.program, options.preload != 0);
}

}  // namespace tools
