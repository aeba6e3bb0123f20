// spillway top: counters of running programs and servers, again and again, or once.
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "command.h"
#include "process.h"
#include "top_view.h"

namespace tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kInterval = std::chrono::seconds(1);

struct Request {
  pid_t pid = 0;                     // 0: all
  std::vector<std::string> servers;  // these instead
  bool once = false;
  bool json = false;
  bool prometheus = false;
};

// On a terminal, replaces what was there, cut at its edges.
void show(const std::string& text, bool on_terminal) {
  winsize size = {};
  if (!on_terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row < 2) {
    std::fputs(text.c_str(), stdout);
    return;
  }
  std::istringstream lines(text);
  std::string screen = "\x1b[H\x1b[2J";
  std::string line;
  for (int row = 0; row + 1 < size.ws_row && std::getline(lines, line); ++row)
    screen += line.substr(0, size.ws_col) + '\n';
  std::fputs(screen.c_str(), stdout);
}

std::string compose(TopView& view, bool json) {
  if (!json) return view.table();
  Json all;
  all["time_s"] = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  all.update(view.json());
  return all.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Request parse(Arguments arguments, bool& help) {
  Request request;
  for (std::string_view word : arguments) {
    if (word == "--help" || word == "-h") {
      help = true;
    } else if (word == "--once") {
      request.once = true;
    } else if (word == "--json") {
      request.json = true;
    } else if (word == "--prometheus") {
      request.prometheus = true;
    } else if (word.starts_with('-')) {
      throw WrongInput(
          concat("top has no option '", printable(word), "'; it takes --once, --json and --prometheus"));
    } else if (word.contains(':')) {
      request.servers.emplace_back(word);
    } else if (request.pid != 0) {
      throw WrongInput("top takes one process id, or none for all programs");
    } else {
      request.pid = parse_process_id(word);
    }
  }
  if (request.pid != 0 && !request.servers.empty())
    throw WrongInput("top takes a process id or addresses of servers, not both");
  if (request.prometheus && request.json)
    throw WrongInput("top prints JSON or what Prometheus reads; give it --json or --prometheus, not both");
  if (request.prometheus && !request.servers.empty())
    throw WrongInput(
        "top --prometheus is of programs; Prometheus itself asks a server, where --metrics listens");
  return request;
}

}  // namespace

std::string padded(std::string text, size_t width, bool right) {
  if (text.size() < width) text.insert(right ? 0 : text.size(), width - text.size(), ' ');
  return text;
}

std::string count_text(std::optional<double> value) {
  return value ? concat(static_cast<uint64_t>(*value + 0.5)) : "";
}

std::string bytes_text(std::optional<double> value) {
  return value ? readable_bytes(static_cast<uint64_t>(*value + 0.5)) : "";
}

int top(Arguments arguments) {
  bool help = false;
  const Request request = parse(arguments, help);
  if (help) {
    std::puts(
        "usage: spillway top [PID | HOST:PORT...] [--once] [--json]\n"
        "       spillway top [PID] --prometheus\n\n"
        "Shows each second what running programs do with their budget: one line for each program,\n"
        "or, given a PID, all statistics of that process. Given addresses of --metrics, shows\n"
        "those servers: HOST:PORT, :PORT on this machine, or tls:HOST:PORT by TLS.\n\n"
        "  --once         one table, after a second\n"
        "  --json         a line of JSON instead of a table\n"
        "  --prometheus   prints once what programs do now, in the format of Prometheus, for a file\n"
        "                 that node_exporter collects (docs/operations.md)");
    return 0;
  }
  if (request.prometheus) {
    std::fputs(metrics_of_programs(request.pid).c_str(), stdout);
    return 0;
  }
  const std::unique_ptr<TopView> view =
      request.servers.empty() ? watch_programs(request.pid) : watch_servers(request.servers);
  const bool on_terminal = !request.once && !request.json && is_terminal(STDOUT_FILENO);
  view->look();
  // A table of rates needs two looks.
  if (!request.json && view->problem().empty()) {
    std::this_thread::sleep_for(request.once || !on_terminal ? kInterval : kInterval / 10);
    view->look();
  }
  bool was_there = false;
  for (;;) {
    const std::string problem = view->problem();
    if (problem.empty()) {
      was_there = true;
      show(compose(*view, request.json), on_terminal);
      if (request.once) return 0;
    } else if (request.once || (view->may_come_back() && !was_there)) {
      throw std::runtime_error(problem);
    } else if (!view->may_come_back()) {
      return 0;
    } else {
      show(request.json ? compose(*view, true) : problem + '\n', on_terminal);
    }
    if (std::fflush(stdout) != 0) return 0;  // main says that it cannot write
    std::this_thread::sleep_for(kInterval);
    view->look();
  }
}

}  // namespace tools
