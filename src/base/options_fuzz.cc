// Fuzzes the boundary through which every option enters: parse_size, set_option and the environment.
// What is accepted must mean what it says; nothing may crash.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/options.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  if (auto parsed = base::parse_size(input)) {
    // An accepted size printed as a plain number is the same size.
    auto again = base::parse_size(std::to_string(*parsed));
    if (*parsed < 10'000'000'000'000'000'000u) CHECK(again.has_value() && *again == *parsed);
    CHECK(input[0] >= '0' && input[0] <= '9');
  }

  // Lines are environment entries; each also goes to every option directly.
  std::vector<std::string> entries;
  for (size_t at = 0; at <= input.size();) {
    size_t end = input.find('\n', at);
    if (end == std::string_view::npos) end = input.size();
    entries.emplace_back(input.substr(at, end - at));
    at = end + 1;
  }
  std::vector<const char*> environment;
  for (const auto& entry : entries) environment.push_back(entry.c_str());
  environment.push_back(nullptr);
  base::Options options;
  if (auto read = base::read_options_from_environment(options, environment.data()); !read)
    CHECK(std::string_view(read.error().message).size() > 0);
  for (size_t i = 0; i < base::option_count(); ++i) {
    for (const auto& entry : entries) {
      auto set = base::set_option(options, base::option_info(i).name, entry);
      if (set && base::option_info(i).kind == base::OptionKind::kFlag)
        CHECK(entry.find_first_not_of("01") == std::string::npos);
    }
  }
  CHECK(options.spill_all <= 1 && options.verbose <= 1);
  return 0;
}
