#include "server/memcache/result.h"

#include <gtest/gtest.h>

namespace server::memcache {
namespace {

constexpr Result kResults[] = {Result::kDone,      Result::kCreated,  Result::kNotStored,
                               Result::kExists,    Result::kNotFound, Result::kBadData,
                               Result::kNotNumber, Result::kTooLarge, Result::kNoMemory};

Command command_of(Protocol protocol, Verb verb, bool is_quiet = true) {
  return {.protocol = protocol, .verb = verb, .is_quiet = is_quiet};
}

TEST(Result, ErrorsAreTheLast) {
  for (const Result result : kResults) EXPECT_EQ(is_error(result), result >= Result::kBadData);
  EXPECT_FALSE(is_error(Result::kNotFound));
}

TEST(Result, CommandsThatAreNotQuietAreAnswered) {
  for (const Protocol protocol : {Protocol::kClassic, Protocol::kMeta, Protocol::kBinary})
    for (const Verb verb : {Verb::kGet, Verb::kSet, Verb::kDelete, Verb::kIncr})
      for (const Result result : kResults) EXPECT_TRUE(is_sent(command_of(protocol, verb, false), result));
}

TEST(Result, NoreplyMeansNone) {
  for (const Verb verb : {Verb::kSet, Verb::kCas, Verb::kDelete, Verb::kIncr, Verb::kTouch, Verb::kFlushAll})
    for (const Result result : kResults) EXPECT_FALSE(is_sent(command_of(Protocol::kClassic, verb), result));
}

TEST(Result, QuietGetsAreQuietAboutMisses) {
  for (const Protocol protocol : {Protocol::kMeta, Protocol::kBinary})
    for (const Result result : kResults)
      EXPECT_EQ(is_sent(command_of(protocol, Verb::kGet), result), result != Result::kNotFound);
  for (const Result result : kResults)
    EXPECT_EQ(is_sent(command_of(Protocol::kBinary, Verb::kGat), result), result != Result::kNotFound);
}

TEST(Result, OtherQuietOnesAreQuietAboutWhatTheyHaveDone) {
  for (const Verb verb : {Verb::kSet, Verb::kAppend, Verb::kCas, Verb::kDelete, Verb::kIncr, Verb::kDecr}) {
    for (const Result result : kResults) {
      EXPECT_EQ(is_sent(command_of(Protocol::kMeta, verb), result), result != Result::kDone);
      EXPECT_EQ(is_sent(command_of(Protocol::kBinary, verb), result),
                result != Result::kDone && result != Result::kCreated);
    }
  }
  EXPECT_FALSE(is_sent(command_of(Protocol::kBinary, Verb::kFlushAll), Result::kDone));
  EXPECT_FALSE(is_sent(command_of(Protocol::kBinary, Verb::kQuit), Result::kDone));
}

TEST(Result, NoopsAreAlwaysAnswered) {
  EXPECT_TRUE(is_sent(command_of(Protocol::kMeta, Verb::kNoop), Result::kDone));
  EXPECT_TRUE(is_sent(command_of(Protocol::kBinary, Verb::kNoop), Result::kDone));
}

}  // namespace
}  // namespace server::memcache
