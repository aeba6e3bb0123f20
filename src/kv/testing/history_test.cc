#include "kv/testing/history.h"

#include <gtest/gtest.h>

#include <vector>

namespace kv {
namespace {

using Outcome = Changed::Outcome;

// What a call says; of the key 0 unless told.
Call got(uint64_t value, uint64_t version) { return {.value = value, .version = version}; }
Call got_nothing() { return {.outcome = Outcome::kAbsent}; }
Call put(uint64_t value, uint64_t version) {
  return {.kind = Call::Kind::kPut, .value = value, .version = version};
}
Call put_if_absent(uint64_t value, uint64_t version) {
  return {.kind = Call::Kind::kPut, .when = When::kIfAbsent, .value = value, .version = version};
}
Call put_if_version(uint64_t if_version, uint64_t value, uint64_t version) {
  return {.kind = Call::Kind::kPut,
          .when = When::kIfVersion,
          .if_version = if_version,
          .value = value,
          .version = version};
}
Call removed() { return {.kind = Call::Kind::kRemove}; }
Call not_done(Call call, Outcome outcome, uint64_t version) {
  call.outcome = outcome;
  call.version = version;
  return call;
}
Call error(Call call) {
  call.is_known = false;
  call.version = 0;
  return call;
}

class HistoryTest : public testing::Test {
 protected:
  void add(uint64_t began, uint64_t ended, Call call, uint32_t key = 0) {
    call.began = began;
    call.ended = ended;
    call.key = key;
    calls.push_back(call);
  }
  // With the calls so far; which are forgotten.
  bool is_right() {
    const bool right = is_linearizable(calls);
    calls.clear();
    return right;
  }
  std::vector<Call> calls;
};

TEST_F(HistoryTest, OneAfterTheOther) {
  EXPECT_TRUE(is_right());
  add(1, 2, got_nothing());
  add(3, 4, put(1, 7));
  add(5, 6, got(1, 7));
  add(7, 8, not_done(put_if_absent(2, 0), Outcome::kPresent, 7));
  add(9, 10, not_done(put_if_version(6, 3, 0), Outcome::kVersion, 7));
  add(11, 12, put_if_version(7, 4, 9));
  add(13, 14, got(4, 9));
  add(15, 16, removed());
  add(17, 18, not_done(removed(), Outcome::kAbsent, 0));
  add(19, 20, not_done(put_if_version(9, 5, 0), Outcome::kAbsent, 0));
  add(21, 22, put_if_absent(6, 12));
  add(23, 24, got(6, 12));
  EXPECT_TRUE(is_right());
}

TEST_F(HistoryTest, AtTheSameTime) {
  // Either order of the puts, and the get before, between or after.
  for (const Call& seen : {got_nothing(), got(1, 5), got(2, 6)}) {
    add(1, 10, put(1, 5));
    add(2, 9, put(2, 6));
    add(3, 8, seen);
    EXPECT_TRUE(is_right());
  }
  // Gets that see both, one after the other, say what the order was.
  add(1, 20, put(1, 5));
  add(2, 19, put(2, 6));
  add(3, 4, got(1, 5));
  add(5, 6, got(2, 6));
  EXPECT_TRUE(is_right());
  // A put that has not ended is seen, and a remove that has not ended, and both have.
  add(1, 20, put(1, 5));
  add(2, 19, removed());
  add(3, 4, got(1, 5));
  add(5, 6, got_nothing());
  add(21, 22, got_nothing());
  EXPECT_TRUE(is_right());
  // The keys have no order among each other.
  add(1, 2, put(1, 5), 0);
  add(3, 4, put(2, 6), 1);
  add(5, 6, got(1, 5), 0);
  add(7, 8, got(2, 6), 1);
  EXPECT_TRUE(is_right());
}

TEST_F(HistoryTest, WhatNoRegisterSays) {
  add(1, 2, put(1, 5));
  add(3, 20, put(2, 6));
  add(4, 5, got(2, 6));
  add(6, 7, got(1, 5));
  EXPECT_FALSE(is_right()) << "a get that goes back";
  add(1, 2, put(1, 5));
  add(3, 4, put(2, 6));
  add(5, 6, got(1, 5));
  EXPECT_FALSE(is_right()) << "a put that is lost";
  add(1, 2, put(1, 5));
  add(3, 4, got_nothing());
  EXPECT_FALSE(is_right()) << "a put that is lost";
  add(1, 2, put(1, 5));
  add(3, 4, removed());
  add(5, 6, got(1, 5));
  EXPECT_FALSE(is_right()) << "a remove that is lost";
  add(1, 2, put(1, 5));
  add(3, 4, got(2, 5));
  EXPECT_FALSE(is_right()) << "a value that nobody has put";
  add(1, 2, put(1, 5));
  add(3, 4, got(1, 6));
  EXPECT_FALSE(is_right()) << "another version";
  add(1, 2, got(1, 5));
  add(3, 4, put(1, 5));
  EXPECT_FALSE(is_right()) << "a get of what comes later";
  add(1, 10, put_if_absent(1, 5));
  add(2, 9, put_if_absent(2, 6));
  EXPECT_FALSE(is_right()) << "two that were first";
  add(1, 2, put(1, 5));
  add(3, 4, put(2, 6));
  add(5, 6, put_if_version(5, 3, 7));
  EXPECT_FALSE(is_right()) << "an old version that was taken for the present one";
  add(1, 2, put(1, 5));
  add(3, 10, put_if_version(5, 2, 6));
  add(4, 9, put_if_version(5, 3, 7));
  EXPECT_FALSE(is_right()) << "one version that two have replaced";
  add(1, 2, put(1, 5));
  add(3, 4, not_done(put_if_version(5, 2, 0), Outcome::kVersion, 5));
  EXPECT_FALSE(is_right()) << "the version that is there refused";
  add(1, 2, put(1, 5));
  add(3, 4, not_done(put_if_absent(2, 0), Outcome::kPresent, 4));
  EXPECT_FALSE(is_right()) << "what is there has another version";
  add(1, 2, not_done(put_if_absent(2, 0), Outcome::kPresent, 4));
  EXPECT_FALSE(is_right()) << "there is nothing";
  add(1, 2, removed());
  EXPECT_FALSE(is_right()) << "there is nothing";
  add(1, 2, put(1, 6));
  add(3, 4, put(2, 5));
  EXPECT_FALSE(is_right()) << "a version that goes back";
  add(1, 2, put(1, 5), 0);
  add(3, 4, got(1, 5), 1);
  EXPECT_FALSE(is_right()) << "another key's value";
}

TEST_F(HistoryTest, CallsThatEndedWithAnError) {
  add(1, 2, put(1, 5));
  add(3, Call::kNever, error(put(2, 0)));
  add(5, 6, got(1, 5));
  EXPECT_TRUE(is_right()) << "never done";
  for (const uint64_t version : {7, 8}) {
    add(1, 2, put(1, 5));
    add(3, Call::kNever, error(put(2, 0)));
    add(5, 6, got(1, 5));
    add(7, 8, got(2, 7));
    add(9, 10, got(2, version));
    EXPECT_EQ(is_right(), version == 7) << "done late; its version is what the first get says";
  }
  add(1, 2, put(1, 5));
  add(3, Call::kNever, error(put(2, 0)));
  add(5, 6, got(2, 4));
  EXPECT_FALSE(is_right()) << "a version below that of before";
  add(1, Call::kNever, error(put(2, 0)));
  add(2, 3, got(2, 7));
  add(4, 5, put(1, 8));
  add(6, 7, got(2, 7));
  EXPECT_FALSE(is_right()) << "done twice";
  add(1, 2, put(1, 5));
  add(3, Call::kNever, error(removed()));
  add(4, 5, got_nothing());
  add(6, 7, put_if_absent(2, 6));
  EXPECT_TRUE(is_right());
  add(1, 2, put(1, 5));
  add(3, Call::kNever, error(put_if_version(4, 2, 0)));
  add(4, 5, got(2, 6));
  EXPECT_FALSE(is_right()) << "a condition that never was true";
  // A crash at 6.
  for (const uint64_t end : {uint64_t{6}, Call::kNever}) {
    add(1, 2, put(1, 5));
    add(3, end, error(put(2, 0)));
    add(7, 8, got(1, 5));
    add(9, 10, got(2, 6));
    EXPECT_EQ(is_right(), end == Call::kNever) << "what a crash has left undone stays undone";
  }
  add(1, 2, put(1, 5));
  add(3, 6, error(put(2, 0)));
  add(4, 6 + 1, error(put(3, 0)));
  add(8, 9, got(3, 7));
  EXPECT_TRUE(is_right());
}

TEST_F(HistoryTest, SaysWhy) {
  add(1, 2, put(1, 5), 9);
  add(3, 4, put(2, 6), 9);
  add(5, 8, got(1, 5), 9);
  add(6, 7, put_if_version(6, 3, 7), 9);
  add(10, 11, put(4, 9), 3);
  EXPECT_EQ(
      violation_of(calls),
      "key 9: no order; after 3 of 4 calls there is value 3, version 7, and none of these can be next:\n"
      "  [5, 8] get: done, value 1, version 5\n"
      "the last in the order were:\n"
      "  [1, 2] put value 1: done, version 5\n"
      "  [3, 4] put value 2: done, version 6\n"
      "  [6, 7] put if version 6 value 3: done, version 7\n");
}

}  // namespace
}  // namespace kv
