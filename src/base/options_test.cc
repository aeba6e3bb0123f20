#include "base/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace base {
namespace {

uint64_t size_of(std::string_view text) {
  auto size = parse_size(text);
  EXPECT_TRUE(size.has_value()) << text;
  return size.value_or(~uint64_t{0});
}

TEST(ParseSize, TakesPowersOf1024InEitherCase) {
  EXPECT_EQ(size_of("0"), 0u);
  EXPECT_EQ(size_of("12"), 12u);
  EXPECT_EQ(size_of("12B"), 12u);
  EXPECT_EQ(size_of("64K"), uint64_t{64} << 10);
  EXPECT_EQ(size_of("64k"), uint64_t{64} << 10);
  EXPECT_EQ(size_of("64KB"), uint64_t{64} << 10);
  EXPECT_EQ(size_of("64KiB"), uint64_t{64} << 10);
  EXPECT_EQ(size_of("192m"), uint64_t{192} << 20);
  EXPECT_EQ(size_of("4Gib"), uint64_t{4} << 30);
  EXPECT_EQ(size_of("3T"), uint64_t{3} << 40);
  EXPECT_EQ(size_of("007"), 7u);
}

TEST(ParseSize, TakesWhatFits64BitsAndNoMore) {
  EXPECT_EQ(size_of("16777215T"), uint64_t{16777215} << 40);
  EXPECT_FALSE(parse_size("16777216T"));
  EXPECT_EQ(size_of("9999999999999999999"), 9999999999999999999u);
  EXPECT_FALSE(parse_size("99999999999999999999"));
  EXPECT_FALSE(parse_size("18446744073709551616"));
}

TEST(ParseSize, RefusesEverythingElseAndShowsIt) {
  for (std::string_view bad :
       {"",   " ",  "K",   "B",   "iB",   "1iB", "4 G", " 4G", "4G ",  "1.5G", "-1",
        "+1", "4X", "4GG", "4KM", "0x10", "G4",  "4Gi", "4iG", "four", "4G\n", "\xff"}) {
    auto size = parse_size(bad);
    ASSERT_FALSE(size.has_value()) << '\'' << bad << '\'';
    EXPECT_EQ(size.error().number, EINVAL);
    EXPECT_NE(std::string_view(size.error().message).find(bad), std::string_view::npos)
        << size.error().message;
  }
}

TEST(ParseSize, StopsAtAnEmbeddedZero) { EXPECT_FALSE(parse_size(std::string_view("4\0G", 3))); }

TEST(SetOption, SetsTheNamedFieldOnly) {
  Options options;
  ASSERT_TRUE(set_option(options, "memory", "192M"));
  EXPECT_EQ(options.memory, uint64_t{192} << 20);
  ASSERT_TRUE(set_option(options, "storage", "/mnt/nvme"));
  EXPECT_EQ(options.storage.view(), "/mnt/nvme");
  ASSERT_TRUE(set_option(options, "spill_all", "1"));
  EXPECT_EQ(options.spill_all, 1u);
  ASSERT_TRUE(set_option(options, "chaos", "7"));
  EXPECT_EQ(options.chaos, 7u);
  EXPECT_EQ(options.page, 4096u);
  EXPECT_EQ(options.policy.view(), "clock");
  EXPECT_EQ(options.verbose, 0u);
}

TEST(SetOption, NamesOptionAndValueWhenItRefuses) {
  Options options;
  auto refused = [&](std::string_view name, std::string_view value, std::string_view part) {
    auto set = set_option(options, name, value);
    ASSERT_FALSE(set.has_value()) << name << '=' << value;
    EXPECT_EQ(set.error().number, EINVAL);
    std::string_view message = set.error().message;
    EXPECT_NE(message.find(name), std::string_view::npos) << message;
    EXPECT_NE(message.find(part), std::string_view::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string_view::npos) << message;
  };
  refused("memory", "lots", "lots");
  refused("memory", "", "not a size");
  refused("spill_all", "2", "0 or 1");
  refused("spill_all", "yes", "0 or 1");
  refused("chaos", "4K", "whole number");
  refused("chaos", "", "whole number");
  refused("no_such_option", "1", "no option");
  refused("Memory", "1", "no option");
  refused("", "1", "no option");
  EXPECT_EQ(options.memory, 0u);
  EXPECT_EQ(options.spill_all, 0u);
}

TEST(SetOption, TextKeepsItsLimit) {
  Options options;
  std::string longest(kOptionTextBytes - 1, 'x');
  ASSERT_TRUE(set_option(options, "stats", longest));
  EXPECT_EQ(options.stats.view(), longest);
  EXPECT_FALSE(set_option(options, "stats", longest + "x"));
  EXPECT_EQ(options.stats.view(), longest);
  ASSERT_TRUE(set_option(options, "stats", ""));
  EXPECT_EQ(options.stats.view(), "");
}

TEST(CheckOptions, HoldsTheLimits) {
  constexpr uint64_t kMachine = uint64_t{1} << 30;
  auto message = [&](std::string_view name, std::string_view value) {
    Options options;
    EXPECT_TRUE(set_option(options, name, value)) << name << value;
    auto checked = check_options(options, kMachine);
    return checked ? std::string() : std::string(checked.error().message);
  };
  EXPECT_TRUE(check_options({}, kMachine));
  EXPECT_EQ(message("memory", "1M"), "");
  EXPECT_EQ(message("memory", "1G"), "");
  EXPECT_EQ(message("memory", "1048575"), "memory: 1048575 is below the least budget; give at least 1M");
  EXPECT_EQ(message("memory", "2G"), "memory: 2G is more than the machine's 1024M; give less");
  for (const char* good : {"4K", "16K", "2M"}) EXPECT_EQ(message("page", good), "") << good;
  for (const char* bad : {"0", "2K", "12K", "4M", "5000"})
    EXPECT_NE(message("page", bad).find("power of two"), std::string::npos) << bad;
  EXPECT_NE(message("policy", "belady")
                .find("'belady' is not known; give auto, clock, lru, 2q, random, s3fifo or nrlfu"),
            std::string::npos);
  EXPECT_NE(message("policy", "").find("not known"), std::string::npos);
  EXPECT_EQ(message("policy", "auto"), "");
  EXPECT_EQ(message("log_format", "json"), "");
  for (const std::string bad : {"", "JSON", "xml"})
    EXPECT_EQ(message("log_format", bad), "log_format: '" + bad + "' is not known; give text or json");
}

TEST(CheckOptions, TheBudgetIsNoMoreThanItMayBeRaisedTo) {
  Options options;
  EXPECT_EQ(default_memory_bytes(options, 1000), 500u);
  options.memory_most = 400;
  EXPECT_EQ(default_memory_bytes(options, 1000), 400u);
  EXPECT_EQ(default_memory_bytes(options, 600), 300u);
  const auto is_good = [](uint64_t memory, uint64_t most) {
    Options asked;
    asked.memory = memory;
    asked.memory_most = most;
    return check_options(asked, uint64_t{1} << 30).has_value();
  };
  EXPECT_TRUE(is_good(0, kMinMemoryBytes));
  EXPECT_FALSE(is_good(0, kMinMemoryBytes - 1));
  EXPECT_TRUE(is_good(2 * kMinMemoryBytes, 2 * kMinMemoryBytes));
  EXPECT_FALSE(is_good(2 * kMinMemoryBytes, kMinMemoryBytes));
  EXPECT_FALSE(is_good(0, uint64_t{2} << 30));
}

TEST(CheckOptions, PagesAreBounded) {
  const std::pair<const char*, uint64_t> bounds[] = {{"read_ahead", kMaxReadAheadPages},
                                                     {"prefetch", kMaxPrefetchPages},
                                                     {"mapped_pages", kMaxMappedPages},
                                                     {"satc_private", kMaxSatcPages}};
  for (const auto& [name, most] : bounds) {
    Options options;
    ASSERT_TRUE(set_option(options, name, std::to_string(most)));
    EXPECT_TRUE(check_options(options, ~uint64_t{0})) << name;
    ASSERT_TRUE(set_option(options, name, std::to_string(most + 1)));
    auto checked = check_options(options, ~uint64_t{0});
    ASSERT_FALSE(checked) << name;
    EXPECT_TRUE(std::string_view(checked.error().message).starts_with(name)) << checked.error().message;
  }
}

TEST(CheckOptions, ServersAreANumberOrByProcessors) {
  const auto count = [](std::string_view value, uint64_t cpus) {
    Options options;
    EXPECT_TRUE(set_option(options, "servers", value)) << value;
    EXPECT_TRUE(check_options(options, ~uint64_t{0})) << value;
    return server_count(options, cpus);
  };
  EXPECT_EQ(count("3", 1), 3u);
  EXPECT_EQ(count("0", 64), 0u);
  EXPECT_EQ(count("auto", 2), 0u);
  EXPECT_EQ(count("auto", 15), 0u);
  EXPECT_EQ(count("auto", 16), 2u);
  EXPECT_EQ(count("auto", 1000), kMaxServers);
  EXPECT_EQ(server_count(Options{}, 1000), 0u);  // the default: nobody has measured servers on such machines
  for (const char* bad : {"", "-1", "17", "two"}) {
    Options options;
    EXPECT_TRUE(set_option(options, "servers", bad));
    auto checked = check_options(options, ~uint64_t{0});
    ASSERT_FALSE(checked) << bad;
    EXPECT_NE(std::string(checked.error().message).find("servers"), std::string::npos);
  }
}

TEST(OptionInfo, DefaultsSayWhatTheFieldsHold) {
  for (size_t i = 0; i < option_count(); ++i) {
    const OptionInfo& info = option_info(i);
    std::string text = info.default_text;
    if (info.kind == OptionKind::kText) {
      ASSERT_GE(text.size(), 2u);
      text = text.substr(1, text.size() - 2);
    }
    Options options;
    EXPECT_TRUE(set_option(options, info.name, text)) << info.name;
    EXPECT_EQ(info.kind == OptionKind::kFlag, std::string_view(info.argument).empty()) << info.name;
    EXPECT_FALSE(std::string_view(info.doc).empty()) << info.name;
  }
}

TEST(OptionInfo, WordsOfArgumentsAreAllThatAreTaken) {
  size_t count = 0;
  for (size_t i = 0; i < option_count(); ++i) {
    const OptionInfo& info = option_info(i);
    std::string_view words = info.argument;
    if (words.find('|') == std::string_view::npos) continue;
    while (!words.empty()) {
      const std::string_view word = words.substr(0, words.find('|'));
      words.remove_prefix(std::min(words.size(), word.size() + 1));
      Options options;
      ASSERT_TRUE(set_option(options, info.name, word));
      EXPECT_TRUE(check_options(options, uint64_t{1} << 40)) << info.name << '=' << word;
      ++count;
    }
  }
  // Policies and auto, the levels of SATC, its policies, the formats of the log.
  EXPECT_EQ(count, std::size(kPolicyKinds) + 1 + 4 + 3 + 2);
}

TEST(Environment, ReadsUpperCaseNamesAndLeavesOthersAlone) {
  const char* environment[] = {"PATH=/bin",
                               "SPILLWAY_MEMORY=64M",
                               "SPILLWAY_SPILL_ALL=1",
                               "spillway_page=8K",
                               "SPILLWAY_STORAGE=/a=b",
                               "MEMORY=1",
                               nullptr};
  Options options;
  ASSERT_TRUE(read_options_from_environment(options, environment));
  EXPECT_EQ(options.memory, uint64_t{64} << 20);
  EXPECT_EQ(options.spill_all, 1u);
  EXPECT_EQ(options.storage.view(), "/a=b");
  EXPECT_EQ(options.page, 4096u);
}

TEST(Environment, RefusesUnknownAndBadValues) {
  auto message = [](const char* entry) {
    const char* environment[] = {entry, nullptr};
    Options options;
    auto read = read_options_from_environment(options, environment);
    return read ? std::string() : std::string(read.error().message);
  };
  EXPECT_NE(message("SPILLWAY_MEMROY=64M").find("SPILLWAY_MEMROY"), std::string::npos);
  EXPECT_NE(message("SPILLWAY_MEMORY=much").find("much"), std::string::npos);
  EXPECT_NE(message("SPILLWAY_memory=64M").find("no option"), std::string::npos);
  EXPECT_NE(message("SPILLWAY_=1").find("no option"), std::string::npos);
  EXPECT_EQ(message("SPILLWAY_NOT_A_SETTING"), "");
}

// A server's password or the tests' seed does not keep a program from starting.
TEST(Environment, PassesOverWhatIsOthers) {
  const auto reads = [](const std::string& entry) {
    const char* environment[] = {entry.c_str(), "SPILLWAY_MEMORY=64M", nullptr};
    Options options;
    return read_options_from_environment(options, environment).has_value() && options.memory == 64 << 20;
  };
  for (const char* others :
       {"SPILLWAY_PASSWORD=secret", "SPILLWAY_SERVE=--storage x", "SPILLWAY_PREFIX=/opt",
        "SPILLWAY_TEST_SEED=3", "SPILLWAY_COMPILER_OPTIONS=-report", "SPILLWAY_PERSIST_STATS=x"})
    EXPECT_TRUE(reads(others)) << others;
  for (const char* unknown : {"SPILLWAY_PASSWORDS=secret", "SPILLWAY_PASSWORD_FILE=x", "SPILLWAY_SEED=3",
                              "SPILLWAY_TEST=1", "SPILLWAY_COMPILER=x"})
    EXPECT_FALSE(reads(unknown)) << unknown;
}

TEST(Environment, LosesSettingsAndNothingElse) {
  char home[] = "HOME=/", memory[] = "SPILLWAY_MEMORY=64M", stats[] = "SPILLWAY_PERSIST_STATS=/x",
       other[] = "SPILLWAYS=1";
  char* environment[] = {memory, home, stats, other, memory, nullptr};
  forget_settings(environment);
  EXPECT_EQ(environment[0], home);
  EXPECT_EQ(environment[1], other);
  EXPECT_EQ(environment[2], nullptr);
}

TEST(Environment, NoOptionIsOthers) {
  for (const OthersVariable& others : others_variables()) {
    std::string name;
    for (const char c : others.name) name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    for (size_t i = 0; i < option_count(); ++i) {
      const std::string_view option = option_info(i).name;
      EXPECT_FALSE(name.ends_with('_') ? option.starts_with(name) : option == name) << option;
    }
  }
}

}  // namespace
}  // namespace base
