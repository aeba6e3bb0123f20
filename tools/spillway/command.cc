#include "command.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iomanip>

namespace tools {
namespace {

constexpr size_t kHelpColumn = 26;

}  // namespace

bool asks_for_help(std::string_view subcommand) {
  return subcommand == "--help" || subcommand == "-h" || subcommand == "help";
}

std::string flag_name(std::string_view option) {
  std::string flag = "--";
  for (char c : option) flag += c == '_' ? '-' : c;
  return flag;
}

std::string variable_name(std::string_view prefix, std::string_view option) {
  std::string variable(prefix);
  for (char c : option) variable += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return variable;
}

std::string flag_name(const base::OptionInfo& option) { return flag_name(option.name); }

std::string flag_with_argument(const base::OptionInfo& option) {
  return *option.argument != 0 ? concat(flag_name(option), ' ', option.argument) : flag_name(option);
}

std::string variable_name(const base::OptionInfo& option) {
  return variable_name(base::kVariablePrefix, option.name);
}

std::string default_of(const base::OptionInfo& option) {
  std::string_view text = option.default_text;
  // For a text option the data file holds a quoted literal.
  if (option.kind == base::OptionKind::kText) text = text.substr(1, text.size() - 2);
  return std::string(text);
}

uint64_t number_argument(std::string_view who, std::string_view text, uint64_t least, uint64_t most) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most)
    throw WrongInput(
        concat(who, ": '", printable(text), "' is not a whole number from ", least, " to ", most));
  return number;
}

uint64_t size_argument(std::string_view who, std::string_view text) {
  const auto size = base::parse_size(text);
  if (!size) throw WrongInput(concat(who, ": ", printable(size.error().message)));
  return *size;
}

std::string options_help() {
  std::string help;
  for (size_t i = 0; i < base::option_count(); ++i) {
    const base::OptionInfo& option = base::option_info(i);
    std::string value = default_of(option);
    if (option.kind == base::OptionKind::kFlag) value = value == "0" ? "off" : "on";
    std::string flag = flag_with_argument(option);
    flag.resize(std::max(kHelpColumn, flag.size() + 1), ' ');
    help += concat("  ", flag, option.doc, "\n  ", std::string(kHelpColumn, ' '), "default ",
                   value.empty() ? "empty" : value, ", variable ", variable_name(option), "\n");
  }
  return help;
}

std::string readable_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return concat(bytes, " bytes");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << value << ' ' << kUnits[unit];
  return text.str();
}

bool is_terminal(int descriptor) {
  const char* const kind = std::getenv("TERM");
  return isatty(descriptor) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

std::string printable(std::string_view text) {
  std::string result;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      result += concat("\\x", "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]);
    else
      result += c;
  }
  return result;
}

std::string_view LeadingOptions::next() {
  if (at_ == arguments_.size()) return {};
  const std::string_view word = arguments_[at_];
  is_marked_ = word == "--";
  if (is_marked_) ++at_;
  if (is_marked_ || !word.starts_with('-')) return {};
  ++at_;
  const size_t equals = word.find('=');
  name_ = word.substr(0, equals);
  value_.reset();
  if (equals != std::string_view::npos) value_ = word.substr(equals + 1);
  return name_;
}

std::string LeadingOptions::value(std::string_view needs, std::string_view help) {
  if (value_) return std::string(*value_);
  if (at_ == arguments_.size() || std::string_view(arguments_[at_]) == "--")
    throw WrongInput(concat(name_, " needs ", needs, "; see ", help));
  return arguments_[at_++];
}

}  // namespace tools
