#include "server/clients/metrics_page.h"

#include <gtest/gtest.h>

namespace server {
namespace {

TEST(MetricsPage, SamplesStandBehindHelpAndType) {
  MetricsPage page;
  page.counter("reads_total", "Reads.", 7);
  page.begin("call_seconds", "summary", "Times.");
  page.add({{"call", "get"}, {"quantile", "0.5"}}, 0.25);
  page.add({{"call", "get"}}, 1u, "_count");
  page.gauge("most", "All that there may be.", UINT64_MAX);
  EXPECT_EQ(
      page.take(),
      "# HELP spillway_reads_total Reads.\n# TYPE spillway_reads_total counter\nspillway_reads_total 7\n"
      "# HELP spillway_call_seconds Times.\n# TYPE spillway_call_seconds summary\n"
      "spillway_call_seconds{call=\"get\",quantile=\"0.5\"} 0.25\n"
      "spillway_call_seconds_count{call=\"get\"} 1\n"
      "# HELP spillway_most All that there may be.\n# TYPE spillway_most gauge\n"
      "spillway_most 18446744073709551615\n");
}

TEST(MetricsPage, WithoutASampleNothingIsTold) {
  MetricsPage page;
  page.begin("none", "gauge", "Nothing.");
  EXPECT_EQ(page.take(), "");
}

TEST(MetricsPage, WhatHasAMeaningIsEscaped) {
  MetricsPage page;
  page.begin("x", "gauge", "A \"quoted\" \\ of two\nlines.");
  page.add({{"name", "a \"quoted\" \\ of two\nlines, \t\xc3\xa9"}}, 1);
  EXPECT_EQ(page.take(),
            "# HELP spillway_x A \"quoted\" \\\\ of two\\nlines.\n# TYPE spillway_x gauge\n"
            "spillway_x{name=\"a \\\"quoted\\\" \\\\ of two\\nlines, \t\xc3\xa9\"} 1\n");
}

TEST(MetricsPage, WhatIsNoCharacterIsReplaced) {
  MetricsPage page;
  page.begin("x", "gauge", "X.");
  // Half a character, and a byte from the middle of one, which would swallow what follows.
  page.add({{"name", "a\xc3"}, {"other", "\xa9\""}}, 1);
  EXPECT_TRUE(page.take().ends_with("x{name=\"a\xef\xbf\xbd\",other=\"\xef\xbf\xbd\\\"\"} 1\n"));
}

}  // namespace
}  // namespace server
