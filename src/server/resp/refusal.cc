#include "server/resp/refusal.h"

#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "server/resp/words.h"

namespace server::resp {
namespace {

constexpr std::string_view kTexts[] = {
#define PROBLEM(id, text) text,
#include "server/resp/problems.inc"
#undef PROBLEM
};

using ErrorText = base::Text<kMaxErrorBytes - 3>;  // without the reply's "-" and line end, with a zero

std::string_view shown(std::string_view text, size_t bytes_max = kMaxShownBytes) {
  return text.substr(0, bytes_max).substr(0, text.find('\0'));
}

void compose_unknown_command(Arguments arguments, ErrorText& error) {
  error << "ERR unknown command '" << shown(arguments[0]) << "', with args beginning with: ";
  size_t bytes = 0;
  for (const std::string_view argument : arguments.subspan(1)) {
    if (bytes >= kMaxShownBytes) break;
    const std::string_view part = shown(argument, kMaxShownBytes - bytes);
    error << '\'' << part << "' ";
    bytes += part.size() + 3;
  }
}

void compose_unknown_subcommand(Arguments arguments, ErrorText& error) {
  error << "ERR unknown subcommand '" << shown(arguments[1]) << "'. Try ";
  for (const char c : shown(arguments[0])) error << to_upper(c);
  error << " HELP.";
}

}  // namespace

void write_refusal(ReplyWriter& reply, const Refusal& refusal, Arguments arguments) {
  ErrorText error;
  switch (refusal.problem) {
    case Problem::kUnknownCommand:
      CHECK_GE(arguments.size(), 1u);
      compose_unknown_command(arguments, error);
      break;
    case Problem::kUnknownSubcommand:
      CHECK_GE(arguments.size(), 2u);
      compose_unknown_subcommand(arguments, error);
      break;
    default: {
      const std::string_view text = kTexts[std::to_underlying(refusal.problem)];
      const size_t mark = text.find('%');
      error << text.substr(0, mark);
      if (mark != std::string_view::npos) error << shown(refusal.what) << text.substr(mark + 1);
      break;
    }
  }
  reply.error(error.view());
}

}  // namespace server::resp
