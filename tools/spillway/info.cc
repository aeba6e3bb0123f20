// spillway info: what this machine offers, or what a storage device is, as text or JSON.
#include <cstdio>
#include <optional>

#include "command.h"
#include "info.h"

namespace tools {
namespace {

std::string readable(const std::string& key, const nlohmann::ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number() && key.ends_with("_bytes")) return readable_bytes(value.get<uint64_t>());
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  if (value.empty()) return "none";
  std::string words;
  for (const auto& word : value) words += (words.empty() ? "" : " ") + readable(key, word);
  return words;
}

std::string words_of(std::string key) {
  if (key.ends_with("_bytes")) key.resize(key.size() - 6);
  for (char& c : key)
    if (c == '_') c = ' ';
  return key;
}

void print(const nlohmann::ordered_json& machine) {
  for (const auto& [section, facts] : machine.items()) {
    if (!facts.is_object()) continue;
    std::printf("%s\n", words_of(section).c_str());
    for (const auto& [key, value] : facts.items())
      std::printf("  %-30s %s\n", words_of(key).c_str(), printable(readable(key, value)).c_str());
  }
  std::puts("");
  if (machine["problems"].empty()) std::puts("Nothing stands in the way.");
  for (const auto& problem : machine["problems"])
    std::printf("problem: %s\n", printable(problem.get<std::string>()).c_str());
}

}  // namespace

int info(Arguments arguments) {
  bool json = false;
  std::optional<std::string_view> device;
  for (std::string_view word : arguments) {
    if (word == "--help" || word == "-h") {
      std::puts(
          "usage: spillway info [--json] [DEVICE]\n\n"
          "Shows what this machine offers and what stands in Spillway's way; with DEVICE, a path\n"
          "or device string, shows what it would be like as --storage DEVICE. Writes nothing there.\n\n"
          "  --json   the same as one JSON object");
      return 0;
    }
    if (word == "--json") {
      json = true;
    } else if (word.starts_with("-") || device) {
      throw WrongInput(concat("info takes --json and one device, not '", printable(word), "' as well"));
    } else {
      device = word;
    }
  }
  auto machine = device ? device_info(*device) : machine_info();
  if (json)
    std::puts(machine.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  else
    print(machine);
  return 0;
}

}  // namespace tools
