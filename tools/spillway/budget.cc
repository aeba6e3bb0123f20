// spillway budget: changes the budget of a running program (src/spill/budget.h says how the program is asked).
#include <cstdio>

#include "command.h"
#include "process.h"

namespace tools {

int budget(Arguments arguments) {
  constexpr const char* kUsage = "usage: spillway budget PID SIZE";
  std::vector<std::string_view> words;
  for (std::string_view word : arguments) {
    if (word == "--help" || word == "-h") {
      std::printf(
          "%s\n\n"
          "Changes the memory budget of one running process, which `spillway run --memory` has set. "
          "SIZE takes K, M, G, T (powers of 1024).\n"
          "What exceeds a smaller budget leaves memory within seconds; a larger one is used as pages come. "
          "It can be raised up\n"
          "to --memory-most.\n",
          kUsage);
      return 0;
    }
    if (word.starts_with('-'))
      throw WrongInput(concat("budget has no option '", printable(word), "'; ", kUsage));
    words.push_back(word);
  }
  if (words.size() != 2) throw WrongInput(kUsage);
  const pid_t pid = parse_process_id(words[0]);
  auto bytes = base::parse_size(words[1]);
  if (!bytes) throw WrongInput(printable(bytes.error().message));
  Process process(pid);
  const spill::BudgetAnswer answer = process.ask_for_budget(*bytes);
  if (answer.error != 0) throw WrongInput(concat(process.description(), ": ", printable(answer.message)));
  std::printf("%s: budget %s, before %s\n", process.description().c_str(),
              readable_bytes(answer.bytes).c_str(), readable_bytes(answer.was_bytes).c_str());
  return 0;
}

}  // namespace tools
