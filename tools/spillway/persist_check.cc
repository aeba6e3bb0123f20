// spillway persist check: runs a program that records its stores, flushes and fences, and says what a crash could have left of its memory.
//
// Everything lies in the folder of --out: `log` and `log.1` and so on, the record; `image`, `image2`, what the recovery works on meanwhile;
// `bug-1.image`, `bug-1.txt`, an image that it does not come back from, and what it said; `report.json`.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "persist.h"
#include "tools/persist_check/report.h"
#include "tools/persist_check/trial.h"

namespace tools {
namespace {

constexpr const char* kRecordVariable = "SPILLWAY_PERSIST_RECORD";

struct CommandLine {
  persist_check::CheckOptions check;
  std::string recover;
  std::chrono::milliseconds timeout{10'000};
  std::string out = "persist-check";
  std::string log;
  Arguments program;
  bool help = false;
};

void print_help() {
  std::puts(
      "usage: spillway persist check [OPTION]... -- PROGRAM [ARGUMENT]...\n"
      "       spillway persist check [OPTION]... --log LOG\n\n"
      "Runs PROGRAM, which records what it stores to its persistence domains, flushes and fences; or reads\n"
      "the LOG of one that did. Says which flushes and fences are missing or wasted, and with --recover "
      "which\n"
      "contents of memory a crash could have left that CMD does not come back from.\n\n"
      "  --recover CMD         run by a shell on each of them: exit status 0 says that all is well. {} is "
      "the file;\n"
      "                        {2}, {3} the program's other files; {marker} the last text that it marked\n"
      "  --crash-points NUMBER at so many points at most, default 1000\n"
      "  --images NUMBER       at each of them so many at most, default 100\n"
      "  --seed NUMBER         which ones, where there are more; default 1\n"
      "  --timeout SECONDS     a CMD that takes longer has failed; default 10\n"
      "  --out DIR             for logs, images and report.json, default persist-check\n\n"
      "Exit status: 0 no bugs; 1 bugs, or the system failed; 2 wrong input.");
}

CommandLine parse(Arguments arguments) {
  CommandLine line;
  size_t at = 0;
  for (; at < arguments.size(); ++at) {
    const std::string_view word = arguments[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (!word.starts_with('-')) break;
    if (word == "--help" || word == "-h") {
      line.help = true;
      return line;
    }
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    constexpr std::string_view kNames[] = {"--recover", "--crash-points", "--images", "--seed",
                                           "--timeout", "--out",          "--log"};
    if (std::ranges::find(kNames, name) == std::end(kNames))
      throw WrongInput(
          concat("persist check has no option '", printable(name), "'; see spillway persist check --help"));
    if (equals == std::string_view::npos && ++at == arguments.size())
      throw WrongInput(concat("persist check: ", name, " needs an argument"));
    const std::string_view value = equals == std::string_view::npos ? arguments[at] : word.substr(equals + 1);
    const std::string who = concat("persist check: ", name);
    if (name == "--recover") line.recover = value;
    if (name == "--crash-points") line.check.crash_points_max = number_argument(who, value, 1, 1'000'000'000);
    if (name == "--images") line.check.images_max = number_argument(who, value, 2, 1'000'000);
    if (name == "--seed") line.check.seed = number_argument(who, value, 0, ~uint64_t{0});
    if (name == "--timeout") line.timeout = std::chrono::seconds(number_argument(who, value, 1, 1'000'000));
    if (name == "--out") line.out = value;
    if (name == "--log") line.log = value;
  }
  line.program = arguments.subspan(at);
  if (line.log.empty() == line.program.empty())
    throw WrongInput(
        "persist check: give either a program to run or the --log of one; see spillway persist check --help");
  return line;
}

// Removes what an earlier check left of a record: a log that is there is another's.
void remove_record(const std::string& log) {
  std::filesystem::remove(log);
  for (size_t i = 1; std::filesystem::remove(log + "." + std::to_string(i)); ++i) {
  }
}

// The program's exit status does not matter: that it fails, or is killed, is a crash like another.
void record(Arguments program, const std::string& log) {
  setenv(kRecordVariable, std::filesystem::absolute(log).c_str(), 1);
  std::vector<char*> words(program.begin(), program.end());
  words.push_back(nullptr);
  pid_t child = 0;
  if (const int error = posix_spawnp(&child, words[0], nullptr, nullptr, words.data(), environ); error != 0)
    throw WrongInput(concat("cannot run '", printable(words[0]), "': ", std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  unsetenv(kRecordVariable);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    std::fprintf(stderr, "spillway: '%s' ended with %s %d\n", printable(words[0]).c_str(),
                 WIFEXITED(status) ? "exit status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  if (!std::filesystem::exists(log))
    throw WrongInput(
        concat("'", printable(words[0]),
               "' recorded nothing: it maps no persistent memory that Spillway knows of, or was not "
               "compiled to record"));
}

persist_check::CheckResult check_recovery(const CommandLine& line, const persist_check::History& history) {
  using Content = std::vector<std::vector<persist_check::Units>>;
  persist_check::Trial trial(history, {line.recover, line.out, line.timeout});
  return persist_check::check(
      history, line.check,
      [&](const Content& content, const std::string& marker) { return trial.run(content, marker); },
      [&](const Content& content, const std::string& marker, size_t bug) {
        return trial.keep(content, marker, "bug-" + std::to_string(bug + 1));
      },
      trial.needs_marker());
}

}  // namespace

int persist_check(Arguments arguments) {
  CommandLine line = parse(arguments);
  if (line.help) {
    print_help();
    return 0;
  }
  line.out = std::filesystem::absolute(line.out);  // what is printed holds in other folders, too
  std::error_code error;
  std::filesystem::create_directories(line.out, error);
  if (error)
    throw WrongInput(
        concat("persist check: cannot make the folder '", printable(line.out), "': ", error.message()));
  if (line.log.empty()) {
    line.log = line.out + "/log";
    remove_record(line.log);
    record(line.program, line.log);
  }
  const persist_check::History history = persist_check::read_history(line.log);
  persist_check::Report report;
  report.history = &history;
  report.options = line.check;
  report.findings = persist_check::find_static(history);
  report.has_recovery = !line.recover.empty();
  if (report.has_recovery) report.checked = check_recovery(line, history);
  std::fputs(persist_check::as_text(report).c_str(), stdout);
  const std::string path = line.out + "/report.json";
  std::ofstream json(path, std::ios::binary);
  json << persist_check::as_json(report);
  json.close();
  if (!json) throw std::runtime_error("cannot write '" + path + "'");
  return report.has_bugs() ? 1 : 0;
}

}  // namespace tools
