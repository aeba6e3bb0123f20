#include "persist/own/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <iterator>
#include <string>
#include <vector>

namespace persist {
namespace {

base::Expected<Plan> plan_of(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  const auto options = read_environment(environment.data());
  if (!options) return std::unexpected(options.error());
  return plan(*options);
}

TEST(PersistOptions, HaveDefaults) {
  const auto plan = plan_of({"HOME=/", "SPILLWAY_MEMORY=4G"});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->settings.way, Way::kAuto);
  EXPECT_EQ(plan->settings.instruction, sys::best_line_flush());
  EXPECT_EQ(plan->settings.flushers.least, 1u);
  EXPECT_EQ(plan->settings.flushers.most, 0u);  // as many as processors, and nobody has said so
  EXPECT_FALSE(plan->found);
  EXPECT_TRUE(plan->stats.empty());
}

TEST(PersistOptions, OfTheEnvironmentGoBeforeOthers) {
  const char* const environment[] = {"SPILLWAY_PERSIST_POLICY=epoch", nullptr};
  const auto options = read_environment(environment, {.policy = "inline", .domain = "memory"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->policy, "epoch");
  EXPECT_EQ(options->domain, "memory");
}

TEST(PersistOptions, AreThereWithoutAnEnvironment) {
  const auto options = read_environment(nullptr, {.policy = "inline"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->policy, "inline");
}

TEST(PersistOptions, AreReadFromTheEnvironment) {
  const auto plan = plan_of({"SPILLWAY_PERSIST_POLICY=decoupled", "SPILLWAY_PERSIST_INSTRUCTION=clflush",
                             "SPILLWAY_PERSIST_FLUSHERS=2-5", "SPILLWAY_PERSIST_DOMAIN=file",
                             "SPILLWAY_PERSIST_SAMPLE=1000", "SPILLWAY_PERSIST_STATS=/tmp/x=y",
                             "SPILLWAY_PERSIST_GROUP=1", "SPILLWAY_PERSIST_DIRTINESS=1"});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->settings.way, Way::kDecoupled);
  EXPECT_EQ(plan->settings.instruction, sys::LineFlush::kClflush);
  EXPECT_EQ(plan->settings.flushers.least, 2u);
  EXPECT_EQ(plan->settings.flushers.most, 5u);
  EXPECT_NE(plan->settings.flushers.period_ns, 0u);
  EXPECT_EQ(plan->found, DomainKind::kFile);
  EXPECT_EQ(plan->settings.sample_stores, 1000u);
  EXPECT_EQ(plan->stats, "/tmp/x=y");
  EXPECT_TRUE(plan->counts_dirtiness);
  EXPECT_TRUE(plan->settings.shares_syncs);
  EXPECT_EQ(plan_of({"SPILLWAY_PERSIST_FLUSHERS=3"})->settings.flushers.period_ns, 0u);
}

TEST(PersistOptions, WordsOfArgumentsAreTaken) {
  size_t count = 0;
  for (const OptionInfo& info : kOptions) {
    std::string_view words = info.argument;
    if (words.find('|') == std::string_view::npos) continue;
    std::string name = "SPILLWAY_PERSIST_";
    for (const char* c = info.name; *c != 0; ++c) name += static_cast<char>(std::toupper(*c));
    while (!words.empty()) {
      const std::string_view word = words.substr(0, words.find('|'));
      const std::string variable = name + '=' + std::string(word);
      words.remove_prefix(std::min(words.size(), word.size() + 1));
      const auto plan = plan_of({variable.c_str()});
      // This CPU may lack an instruction.
      EXPECT_TRUE(plan || plan.error().number == ENOTSUP) << variable;
      ++count;
    }
  }
  // Ways, instructions and best, kinds of domains and none, three switches.
  EXPECT_EQ(count, std::size(kWays) + std::size(sys::kLineFlushes) + 1 + 4 + 3 * 2);
}

TEST(PersistOptions, WhatIsWrongIsSaidWithItsName) {
  for (const auto& [variable, name] : std::initializer_list<std::pair<const char*, const char*>>{
           {"SPILLWAY_PERSIST_POLICY=fast", "policy: 'fast'"},
           {"SPILLWAY_PERSIST_POLICY=", "policy: ''"},
           {"SPILLWAY_PERSIST_INSTRUCTION=sfence", "instruction: 'sfence'"},
           {"SPILLWAY_PERSIST_FLUSHERS=0", "flushers: '0'"},
           {"SPILLWAY_PERSIST_FLUSHERS=65", "flushers: '65'"},
           {"SPILLWAY_PERSIST_FLUSHERS=4-2", "flushers: '4-2'"},
           {"SPILLWAY_PERSIST_FLUSHERS=-", "flushers: '-'"},
           {"SPILLWAY_PERSIST_SAMPLE=0", "sample: '0'"},
           {"SPILLWAY_PERSIST_SAMPLE=99999999999999999999", "sample: '9"},
           {"SPILLWAY_PERSIST_DOMAIN=disk", "domain: 'disk'"},
           {"SPILLWAY_PERSIST_DIRTINESS=yes", "dirtiness: 'yes'"},
           {"SPILLWAY_PERSIST_COMPARE=2", "compare: '2'"},
           {"SPILLWAY_PERSIST_GROUP=all", "group: 'all'"},
           {"SPILLWAY_PERSIST_POLICE=auto", "SPILLWAY_PERSIST_POLICE: there is no such option"}}) {
    const auto plan = plan_of({variable});
    ASSERT_FALSE(plan) << variable;
    EXPECT_NE(std::string_view(plan.error().message).find(name), std::string_view::npos)
        << plan.error().message;
  }
  EXPECT_FALSE(plan_of({"SPILLWAY_PERSIST_RECORD=/tmp/x", "SPILLWAY_PERSIST_DIRTINESS=1"}));
}

}  // namespace
}  // namespace persist
