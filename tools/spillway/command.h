// What the subcommands of the `spillway` program share.
//
// To add a subcommand: 1) `int NAME(Arguments arguments);` below, 2) define it in NAME.cc beside this
// file and name that file in CMakeLists.txt, 3) a row in main.cc's table, 4) its cases in
// tests/cli/cli_test.py.
#pragma once
#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/options.h"

namespace tools {

// The words after the subcommand's name.
using Arguments = std::span<char* const>;

// Wrong input. main prints "spillway: <what>" in one line and exits with kWrongInput.
class WrongInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
inline constexpr int kWrongInput = 2;
// The message for std::bad_alloc, whose own text means nothing to a user.
inline constexpr const char* kNoMemory = "there is not enough memory; end other programs, or raise ulimit -v";

// Subcommands return the exit status.
int run(Arguments arguments);
int budget(Arguments arguments);
int top(Arguments arguments);
int info(Arguments arguments);
int docs(Arguments arguments);
int bench(Arguments arguments);
int dump(Arguments arguments);
int kv(Arguments arguments);
int persist(Arguments arguments);
int serve(Arguments arguments);
int check(Arguments arguments);

// The parts as one text, each as an ostream prints it.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

// The text with control characters, which would break the one line of an error, shown as \xNN.
std::string printable(std::string_view text);

// A row of the table of `spillway`, or of a subcommand that has subcommands.
struct Subcommand {
  std::string_view name;
  const char* arguments;
  const char* doc;
  int (*function)(Arguments);
};

bool asks_for_help(std::string_view subcommand);

// The row that the first argument names; null: help is asked for. `of`: whose subcommands they are. Throws WrongInput.
template <class Row, size_t kRows>
const Row* find_subcommand(const Row (&table)[kRows], Arguments arguments, std::string_view of) {
  if (arguments.empty()) throw WrongInput(concat(of, ": no subcommand given; see spillway ", of, " --help"));
  const std::string_view name = arguments[0];
  if (asks_for_help(name)) return nullptr;
  const auto found = std::ranges::find(table, name, &Row::name);
  if (found == std::end(table))
    throw WrongInput(concat(of, " has no subcommand '", printable(name), "'; see spillway ", of, " --help"));
  return &*found;
}

// The flag and the environment variable of what a data file of options calls min_alloc: --min-alloc, SPILLWAY_MIN_ALLOC.
std::string flag_name(std::string_view option);
std::string variable_name(std::string_view prefix, std::string_view option);
// The same for an option of base/options.inc.
std::string flag_name(const base::OptionInfo& option);
std::string flag_with_argument(const base::OptionInfo& option);  // --min-alloc SIZE
std::string variable_name(const base::OptionInfo& option);
// Its default as a user would write it, "" for an empty text.
std::string default_of(const base::OptionInfo& option);

// Options in front of a program: [--NAME[=VALUE] | --NAME VALUE]... [--] [PROGRAM [ARGUMENT]...]
class LeadingOptions {
 public:
  explicit LeadingOptions(Arguments arguments) : arguments_(arguments) {}

  // The next option, "--NAME", or "-h"; empty: there is none, and rest() is the program.
  std::string_view next();
  bool has_value() const { return value_.has_value(); }
  // What stands behind "=", or the next word. Throws WrongInput if there is none or it is "--": the message says that the option `needs` it, and
  // `help`.
  std::string value(std::string_view needs, std::string_view help);
  Arguments rest() const { return arguments_.subspan(at_); }
  // Did "--" come before it?
  bool is_rest_marked() const { return is_marked_; }

 private:
  Arguments arguments_;
  size_t at_ = 0;
  std::string_view name_;
  std::optional<std::string_view> value_;
  bool is_marked_ = false;
};

// The argument of the option `who`, which begins the message about a wrong one: "kv make: --spare". They throw WrongInput.
uint64_t number_argument(std::string_view who, std::string_view text, uint64_t least, uint64_t most);
uint64_t size_argument(std::string_view who, std::string_view text);

// One line for each option: flag, argument, doc, default, variable.
std::string options_help();

// 24.6 GiB; small numbers exactly.
std::string readable_bytes(uint64_t bytes);

// Can lines that are shown there be redrawn? It is a terminal, and TERM does not say that it is a dumb one.
bool is_terminal(int descriptor);

}  // namespace tools
