// spillway persist check: runs a program that records its stores, flushes and fences, and says what a crash could have left of its memory.
//
// Everything lies in the folder of --out: `log` and `log.1` and so on, the record; `image`, `image2`, what the recovery works on meanwhile;
// `bug-1.image`, `bug-1.txt`, an image that it does not recover, and its output; `report.json`.
#include <signal.h>
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
#include <iterator>

#include "persist.h"
#include "program.h"
#include "progress.h"
#include "tools/persist_check/report.h"
#include "tools/persist_check/trial.h"

namespace tools {
namespace {

constexpr const char* kRecordVariable = "SPILLWAY_PERSIST_RECORD";
// Makes mappings known that the program does not announce.
constexpr const char* kDomainVariable = "SPILLWAY_PERSIST_DOMAIN";

struct CommandLine {
  persist_check::CheckOptions check;
  std::string recover;
  std::chrono::milliseconds timeout{10'000};
  std::string out = "persist-check";
  std::vector<std::string> ignored;
  std::string log;
  bool is_log_given = false;
  Arguments program;
  bool help = false;
};

void print_help() {
  std::puts(
      "usage: spillway persist check [OPTION]... -- PROGRAM [ARGUMENT]...\n"
      "       spillway persist check [OPTION]... --log LOG\n\n"
      "Runs PROGRAM, and records what it stores to its persistence domains, flushes and fences; or reads\n"
      "the LOG of an earlier run. Says which flushes and fences are missing or wasted, and, with --recover,\n"
      "which contents of memory a crash could have left that CMD cannot recover from.\n\n"
      "  --recover CMD         run by a shell on each of these contents: exit status 0 says that all is "
      "well. {} is "
      "the file;\n"
      "                        {2}, {3} the program's other files; {marker} the last text that it marked\n"
      "  --crash-points NUMBER a crash at this many points at most, default 1000\n"
      "  --images NUMBER       this many contents of each point at most, default 100\n"
      "  --seed NUMBER         chooses which ones if there are more; default 1\n"
      "  --bugs NUMBER         ends when this many were found; default 20\n"
      "  --timeout SECONDS     a CMD that takes longer has failed; default 10\n"
      "  --ignore NAME         says nothing of flushes and fences in functions, files or libraries whose "
      "name contains NAME;\n"
      "                        may be repeated\n"
      "  --log LOG             instead of PROGRAM: what an earlier run has recorded\n"
      "  --out DIR             folder for logs, images and report.json, default persist-check\n\n"
      "Exit status: 0 no bugs; 1 bugs, or the system failed; 2 wrong input.");
}

constexpr std::string_view kNames[] = {"--recover", "--crash-points", "--images", "--seed", "--bugs",
                                       "--timeout", "--ignore",       "--out",    "--log"};

bool is_option(std::string_view word) {
  return std::ranges::find(kNames, word.substr(0, word.find('='))) != std::end(kNames);
}

CommandLine parse(Arguments arguments) {
  CommandLine line;
  LeadingOptions options(arguments);
  for (std::string_view name; !(name = options.next()).empty();) {
    if (name == "--help" || name == "-h") {
      line.help = true;
      return line;
    }
    if (!is_option(name))
      throw WrongInput(
          concat("persist check has no option '", printable(name), "'; see spillway persist check --help"));
    const std::string value = options.value("an argument", "spillway persist check --help");
    const std::string who = concat("persist check: ", name);
    if (name == "--recover") line.recover = value;
    if (name == "--crash-points") line.check.crash_points_max = number_argument(who, value, 1, 1'000'000'000);
    if (name == "--images") line.check.images_max = number_argument(who, value, 2, 1'000'000);
    if (name == "--seed") line.check.seed = number_argument(who, value, 0, ~uint64_t{0});
    if (name == "--bugs") line.check.bugs_max = number_argument(who, value, 1, 1'000'000);
    if (name == "--timeout") line.timeout = std::chrono::seconds(number_argument(who, value, 1, 1'000'000));
    if (name == "--ignore") line.ignored.emplace_back(value);
    // The empty text is in every name: all findings would be left out.
    if (name == "--ignore" && value.empty())
      throw WrongInput(concat(who, ": it names nothing; leave it out"));
    if (name == "--out") line.out = value;
    if (name == "--out" && value.empty()) throw WrongInput(concat(who, ": it names no folder"));
    if (name == "--log") line.log = value;
    if (name == "--recover" && line.recover.find("{}") == std::string::npos &&
        line.recover.find("{1}") == std::string::npos)
      throw WrongInput(
          "persist check: --recover looks at no image: its CMD has no {}, which stands for the image's path");
  }
  line.is_log_given = !line.log.empty();
  line.program = options.rest();
  for (size_t i = 1; i < line.program.size() && !options.is_rest_marked(); ++i)
    if (is_option(line.program[i]))
      throw WrongInput(concat("persist check: ", printable(line.program[i]),
                              " stands behind PROGRAM; options come before it, and -- between them"));
  if (line.log.empty() == line.program.empty())
    throw WrongInput(
        "persist check: give either a program to run or the --log of one; see spillway persist check --help");
  return line;
}

// Removes the record that an earlier check left.
void remove_record(const std::string& log) {
  std::filesystem::remove(log);
  for (size_t i = 1; std::filesystem::remove(log + "." + std::to_string(i)); ++i) {
  }
}

void remove_bugs(const std::string& out) {
  std::filesystem::remove(out + "/report.json");
  for (size_t i = 1;; ++i) {
    const std::string bug = out + "/bug-" + std::to_string(i);
    std::filesystem::remove(bug + ".txt");
    if (!std::filesystem::remove(bug + ".image")) return;
    for (size_t file = 2; std::filesystem::remove(bug + ".image" + std::to_string(file)); ++file) {
    }
  }
}

std::string ending_of(int status) {
  if (WIFEXITED(status)) return concat("exit status ", std::to_string(WEXITSTATUS(status)));
  return concat("signal ", std::to_string(WTERMSIG(status)), " (", strsignal(WTERMSIG(status)), ")");
}

// The signals by which a terminal ends what runs there.
constexpr int kOfTerminal[] = {SIGINT, SIGQUIT};

// Runs the program, which records, and returns its status. Ctrl-C meanwhile is for the program alone, since that is how a server is ended: what it
// did until then is checked.
int run_recorded(std::vector<char*>& words) {
  struct sigaction ignored = {};
  struct sigaction before[std::size(kOfTerminal)] = {};
  ignored.sa_handler = SIG_IGN;
  sigset_t of_program;
  sigemptyset(&of_program);
  for (size_t i = 0; i < std::size(kOfTerminal); ++i) {
    sigaction(kOfTerminal[i], &ignored, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaddset(&of_program, kOfTerminal[i]);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &of_program);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int error = posix_spawnp(&child, words[0], nullptr, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  int status = 0;
  while (error == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  for (size_t i = 0; i < std::size(kOfTerminal); ++i) sigaction(kOfTerminal[i], &before[i], nullptr);
  if (error != 0) throw WrongInput(concat("cannot run '", printable(words[0]), "': ", std::strerror(error)));
  return status;
}

// The program's exit status does not matter: if it fails, or is killed, that is a crash like any other.
void record(Arguments program, const std::string& log) {
  setenv(kRecordVariable, std::filesystem::absolute(log).c_str(), 1);
  setenv(kDomainVariable, "memory", 0);
  std::vector<char*> words(program.begin(), program.end());
  words.push_back(nullptr);
  const int status = run_recorded(words);
  unsetenv(kRecordVariable);
  const std::string ended = concat("'", printable(words[0]), "' ended with ", ending_of(status));
  if (!std::filesystem::exists(log))
    throw WrongInput(concat(
        status == 0 ? concat("'", printable(words[0]), "'") : ended, status == 0 ? "" : " and",
        " recorded nothing: it was not compiled by spillcc -fspill-persist=record, or it flushes no shared "
        "mapping of a file; over libpmem: spillway persist check -- spillway persist run PROGRAM"));
  if (status != 0) std::fprintf(stderr, "spillway: %s; what it did before is checked\n", ended.c_str());
}

persist_check::History read(const CommandLine& line) {
  try {
    return persist_check::read_history(line.log);
  } catch (const std::runtime_error& error) {
    if (!line.is_log_given) throw;
    throw WrongInput(concat("persist check: ", error.what()));
  }
}

// Otherwise CMD would get the words in braces literally, and fail on every image.
void require_files(const std::string& recover, const persist_check::History& history) {
  const size_t file_count = history.files.size();
  if (file_count == 0 && history.damage.empty())
    throw WrongInput(
        "persist check: no mapping was recorded, so there is no image for --recover; look at what the "
        "program said, or leave --recover out");
  for (size_t number = file_count + 1; number < 100; ++number)
    if (const std::string word = concat("{", std::to_string(number), "}"); recover.contains(word))
      throw WrongInput(concat("persist check: --recover has ", word, ", but the program mapped ",
                              std::to_string(file_count), file_count == 1 ? " file" : " files"));
}

// The first line of the command's output.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return printable(text.substr(0, 200));
}

// How far the check has come, on a terminal's last line; erased when it is over.
class CheckProgress {
 public:
  ~CheckProgress() {
    if (is_shown_) erase_line();
  }
  void show(const persist_check::CheckResult& so_far, size_t crash_points) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_terminal_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    is_shown_ = true;
    show_line(concat(so_far.crash_points, " of ", crash_points, " crash points, ", so_far.images, " images, ",
                     so_far.bugs.size(), " bugs"));
  }

 private:
  const bool is_terminal_ = is_terminal(STDERR_FILENO);
  bool is_shown_ = false;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
};

persist_check::CheckResult check_recovery(const CommandLine& line, const persist_check::History& history) {
  using Content = std::vector<std::vector<persist_check::Units>>;
  require_files(line.recover, history);
  persist_check::Trial trial(history, {line.recover, line.out, line.timeout});
  CheckProgress progress;
  persist_check::CheckOptions options = line.check;
  options.on_progress = [&](const auto& so_far, size_t points) { progress.show(so_far, points); };
  bool is_first = true;
  return persist_check::check(
      history, options,
      [&](const Content& content, const std::string& marker) {
        const persist_check::Outcome outcome = trial.run(content, marker);
        // The statuses by which a shell says that there is no such command, or that it cannot be executed.
        if (is_first && (outcome.text == "exit status 127" || outcome.text == "exit status 126"))
          throw WrongInput(
              concat("persist check: --recover cannot be run: ", first_line(line.out + "/recovery.txt")));
        is_first = false;
        return outcome;
      },
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
  line.out = std::filesystem::absolute(line.out);  // so that printed paths are right in other folders, too
  std::error_code error;
  std::filesystem::create_directories(line.out, error);
  if (error)
    throw WrongInput(
        concat("persist check: cannot make the folder '", printable(line.out), "': ", error.message()));
  const std::string json_path = line.out + "/report.json";
  check_file_to_write("persist check: --out", json_path);
  remove_bugs(line.out);
  if (!line.is_log_given) {
    line.log = line.out + "/log";
    remove_record(line.log);
    record(line.program, line.log);
  }
  const persist_check::History history = read(line);
  persist_check::Report report;
  report.history = &history;
  report.options = line.check;
  report.findings = persist_check::without(line.ignored, history, persist_check::find_static(history));
  report.has_recovery = !line.recover.empty();
  if (report.has_recovery) report.checked = check_recovery(line, history);
  std::fputs(persist_check::as_text(report).c_str(), stdout);
  std::ofstream json(json_path, std::ios::binary);
  json << persist_check::as_json(report);
  json.close();
  if (!json) throw std::runtime_error(concat("cannot write '", printable(json_path), "'"));
  return report.has_bugs() ? 1 : 0;
}

}  // namespace tools
