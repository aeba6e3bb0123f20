#include "server/clients/metrics.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "server/items/test_items.h"

namespace server {
namespace {

class MetricsTest : public ItemsTest {
 protected:
  void SetUp() override {
    ItemsTest::SetUp();
    settings.version = "1.2.3";
    settings.memory_bytes = 1000;
  }
  std::string text() {
    Hub hub(settings, shared);
    return metrics_text(hub);
  }
  // The metric's value; empty: it has no line.
  std::string value_of(const std::string& metric) {
    std::istringstream lines(text());
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(metric + " ")) return line.substr(metric.size() + 1);
    return "";
  }
  Settings settings;
};

TEST_F(MetricsTest, EachHasHelpAndTypeOnceAndItsLinesBehindThem) {
  const std::regex comment("# (HELP|TYPE) (spillway_[a-z_]+) .+");
  const std::regex sample("(spillway_[a-z_]+)(\\{[a-z]+=\"[^\"]+\"(,[a-z]+=\"[^\"]+\")*\\})? ([0-9.e+-]+)");
  std::set<std::string> helped, typed, samples;
  std::string current;
  std::istringstream lines(text());
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, found, comment)) {
      current = found[2];
      EXPECT_TRUE((found[1] == "HELP" ? helped : typed).insert(current).second) << line;
      continue;
    }
    ASSERT_TRUE(std::regex_match(line, found, sample)) << line;
    EXPECT_TRUE(std::string(found[1]).starts_with(current)) << line;
    EXPECT_TRUE(samples.insert(std::string(found[1]) + std::string(found[2])).second) << line;
  }
  EXPECT_EQ(helped, typed);
  EXPECT_GT(samples.size(), 80u);
}

TEST_F(MetricsTest, SayWhatHasHappened) {
  set("a", "value");
  get("a");
  get("a");
  get("none");
  of(items.remove("none"));
  EXPECT_EQ(value_of("spillway_item_calls_total{call=\"get\",result=\"hit\"}"), "2");
  EXPECT_EQ(value_of("spillway_item_calls_total{call=\"get\",result=\"miss\"}"), "1");
  EXPECT_EQ(value_of("spillway_item_calls_total{call=\"delete\",result=\"miss\"}"), "1");
  EXPECT_EQ(value_of("spillway_item_sets_total"), "1");
  EXPECT_EQ(value_of("spillway_store_keys"), "1");
  EXPECT_EQ(value_of("spillway_store_error"), "0");
  EXPECT_EQ(value_of("spillway_device_ios_total{for=\"gets\",io=\"read\"}"), "2");
  EXPECT_EQ(value_of("spillway_store_call_seconds_count{call=\"put\"}"), "1");
  EXPECT_EQ(value_of("spillway_info{version=\"1.2.3\"}"), "1");
  EXPECT_EQ(value_of("spillway_memory_bytes"), "1000");
  EXPECT_GT(std::stoull(value_of("spillway_resident_bytes")), 1u << 20);
}

TEST_F(MetricsTest, KeysAreAskedForByChangesToo) {
  const auto asked = [&] { return std::stoull(value_of("spillway_store_asked_keys_total")); };
  set("a", "value");
  const uint64_t before = asked();
  get("a");
  of(items.add_integer("n", 1));
  EXPECT_EQ(asked() - before, 2u);
}

// A sum computed from the mean, which is in whole ns, would sometimes decrease: Prometheus takes that for a restart.
TEST_F(MetricsTest, TheSumOfTimesIsExact) {
  set("a", "value");
  for (int i = 0; i < 1000; ++i) get("a");
  const kv::Latency latency = store->counts().use.latency(kv::CallKind::kGet);
  EXPECT_GE(latency.count, 1000u);
  EXPECT_EQ(std::stod(value_of("spillway_store_call_seconds_sum{call=\"get\"}")),
            static_cast<double>(latency.sum_ns) / 1e9);
}

}  // namespace
}  // namespace server
