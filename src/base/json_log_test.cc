#include "base/json_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace base {
namespace {

using Json = nlohmann::ordered_json;

template <size_t kBytes = kJsonLogBytes>
std::string composed(const LogEvent& event, std::string_view text, uint64_t now_ms = 0) {
  Text<kBytes> line;
  compose_json_log({event, text}, now_ms, line);
  return std::string(line.view());
}

template <size_t kBytes = kJsonLogBytes>
Json parsed(const LogEvent& event, std::string_view text) {
  const std::string line = composed<kBytes>(event, text);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  return Json::parse(line);
}

TEST(JsonLog, HasTimeLevelEventFieldsAndMessage) {
  EXPECT_EQ(composed({.name = "started",
                      .level = LogLevel::kInfo,
                      .fields = {{"addresses", "a, b"}, {"items", uint64_t{1} << 63}, {"is_cache", true}}},
                     "serve: a, b", 1'795'940'666'007),
            "{\"time\":\"2026-11-29T08:24:26.007Z\",\"level\":\"info\",\"event\":\"started\",\"addresses\":"
            "\"a, b\","
            "\"items\":9223372036854775808,\"is_cache\":1,\"message\":\"serve: a, b\"}\n");
}

TEST(JsonLog, TimesOfAllKinds) {
  const auto time = [](uint64_t ms) { return composed({}, "", ms).substr(9, 24); };
  EXPECT_EQ(time(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(time(951'782'399'999), "2000-02-28T23:59:59.999Z");
  EXPECT_EQ(time(951'782'400'000), "2000-02-29T00:00:00.000Z");
  EXPECT_EQ(time(4'102'444'800'050), "2100-01-01T00:00:00.050Z");
}

TEST(JsonLog, TextsOfAnyBytes) {
  const std::string text = "\"quoted\" \\ \t\n\x01 \xc3\xa9 \xf0\x9f\x98\x80";
  const Json line = parsed({.name = "x", .fields = {{"field", text}}}, text);
  EXPECT_EQ(line["message"].get<std::string>(), text);
  EXPECT_EQ(line["field"].get<std::string>(), text);
  // A first byte alone, an overlong form, half of a surrogate pair, above U+10FFFF, a continuation byte, a byte that UTF-8 never has, two bytes of three.
  for (const char* wrong :
       {"\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xa9", "\xff", "\xe2\x82"}) {
    const std::string message = parsed({}, std::string("a") + wrong + "b")["message"];
    EXPECT_TRUE(message.starts_with("a\xef\xbf\xbd") && message.ends_with("b")) << message;
  }
}

TEST(JsonLog, WhatIsLongIsALineAllTheSame) {
  const std::string message(kLogTextBytes - 1, '\x01'), field(3000, '\x02');
  const Json line = parsed({.name = "long", .fields = {{"one", field}, {"two", "2"}}}, message);
  EXPECT_EQ(line["message"].get<std::string>(), message);
  EXPECT_FALSE(line.contains("one"));
  EXPECT_EQ(line["two"], "2");
}

TEST(JsonLog, LinesOfProgramsHaveRoomForOrdinaryTexts) {
  const std::string message(kLogTextBytes - 1, 'm'), device(255, 'd');
  const Json line = parsed<kProgramJsonLogBytes>(
      {.name = "write_failed", .fields = {{"device", device}, {"error", 28}}}, message);
  EXPECT_EQ(line["message"].get<std::string>(), message);
  EXPECT_EQ(line["device"].get<std::string>(), device);
  EXPECT_EQ(line["error"].get<int>(), 28);
}

TEST(JsonLog, ALineIsWholeInAnyRoom) {
  const std::string message =
      std::string(200, 'm') + "\"\\\x01 \xff\xc3\xa9\xf0\x9f\x98\x80" + std::string(20, '\x02');
  const std::string field(30, '"');
  const std::string whole = parsed({}, message)["message"];
  const auto compose = [&](const LogEvent& event, TextRef& to) { compose_json_log({event, message}, 0, to); };
  size_t with_field_count = 0, cut_count = 0;
  for (size_t room_bytes = kMinJsonLogBytes; room_bytes < 700; ++room_bytes) {
    std::string buffer(room_bytes, 'x');
    TextRef line(buffer.data(), buffer.size());
    compose({.name = "x", .fields = {{"field", field}}}, line);
    EXPECT_TRUE(line.view().ends_with("\"}\n")) << line.view();
    const Json object = Json::parse(std::string(line.view()));
    const std::string told = object["message"];
    EXPECT_TRUE(whole.starts_with(told)) << told;
    if (told.size() < whole.size()) {
      ++cut_count;
      EXPECT_GE(line.size() + 6, room_bytes) << "there was room for more";
    }
    if (!object.contains("field")) continue;
    ++with_field_count;
    EXPECT_EQ(object["field"].get<std::string>(), field);
    EXPECT_EQ(told, whole);
  }
  EXPECT_GT(cut_count, 100u);
  EXPECT_GT(with_field_count, 50u);
}

TEST(JsonLog, EventsWithoutAName) {
  const Json line = parsed({}, "text");
  EXPECT_EQ(line["event"], "message");
  EXPECT_EQ(line["level"], "warning");
}

}  // namespace
}  // namespace base
