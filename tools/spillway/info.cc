// spillway info: what this machine offers, as text or JSON.
#include <cstdio>

#include "command.h"
#include "probe.h"

namespace tools {
namespace {

std::string readable(const std::string& key, const nlohmann::ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number() && key.ends_with("_bytes")) return readable_bytes(value.get<uint64_t>());
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string words;
  for (const auto& word : value) words += (words.empty() ? "" : " ") + readable(key, word);
  return words;
}

void print(const nlohmann::ordered_json& machine) {
  for (const auto& [section, facts] : machine.items()) {
    if (!facts.is_object()) continue;
    std::printf("%s\n", section.c_str());
    for (const auto& [key, value] : facts.items()) {
      std::string name = key.ends_with("_bytes") ? key.substr(0, key.size() - 6) : key;
      for (char& c : name)
        if (c == '_') c = ' ';
      std::printf("  %-30s %s\n", name.c_str(), readable(key, value).c_str());
    }
  }
  std::puts("");
  if (machine["problems"].empty()) std::puts("Nothing stands in the way.");
  for (const auto& problem : machine["problems"])
    std::printf("problem: %s\n", problem.get<std::string>().c_str());
}

}  // namespace

int info(Arguments arguments) {
  bool json = false;
  for (std::string_view word : arguments) {
    if (word == "--help" || word == "-h") {
      std::puts(
          "usage: spillway info [--json]\n\nShows what this machine offers and what stands in Spillway's "
          "way.");
      return 0;
    }
    if (word != "--json") throw WrongInput(concat("info takes --json only, not '", printable(word), "'"));
    json = true;
  }
  auto machine = probe_machine();
  if (json)
    std::puts(machine.dump(2).c_str());
  else
    print(machine);
  return 0;
}

}  // namespace tools
