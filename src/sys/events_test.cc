#include "sys/events.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "sys/files.h"
#include "sys/kernel.h"

namespace sys {
namespace {

using base::Quiet;

bool is_readable(int descriptor) {
  pollfd look = {descriptor, POLLIN, 0};
  return ::poll(&look, 1, 0) == 1;
}

class EventsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (Event& event : events) ASSERT_TRUE(event.open());
    ASSERT_TRUE(set.open());
  }
  void TearDown() override {
    set.close();
    for (Event& event : events) event.close();
  }
  static uint64_t in_ms(uint64_t ms) { return monotonic_ns() + ms * 1'000'000; }

  Event events[2];
  EventSet set;
};

TEST_F(EventsTest, ReadableFromSetToClear) {
  EXPECT_FALSE(is_readable(events[0].descriptor()));
  events[0].set();
  events[0].set();
  EXPECT_TRUE(is_readable(events[0].descriptor()));
  EXPECT_FALSE(is_readable(events[1].descriptor()));
  events[0].clear();
  EXPECT_FALSE(is_readable(events[0].descriptor()));
  events[0].clear();  // again: does not block
}

TEST_F(EventsTest, ASetIsReadableWhileAMemberIs) {
  for (Event& event : events) ASSERT_TRUE(set.add(event.descriptor()));
  EXPECT_FALSE(is_readable(set.descriptor()));
  events[1].set();
  EXPECT_TRUE(is_readable(set.descriptor()));
  set.wait_until(Quiet::kForever);
  set.wait_until(Quiet::kForever);
  EXPECT_TRUE(is_readable(set.descriptor()));
  events[1].clear();
  EXPECT_FALSE(is_readable(set.descriptor()));
  events[0].set();
  set.remove(events[0].descriptor());
  EXPECT_FALSE(is_readable(set.descriptor()));
}

TEST_F(EventsTest, ASetMayBeAMember) {
  EventSet outer;
  ASSERT_TRUE(outer.open());
  ASSERT_TRUE(set.add(events[0].descriptor()));
  ASSERT_TRUE(outer.add(set.descriptor()));
  std::thread other([&] { events[0].set(); });
  outer.wait_until(Quiet::kForever);
  other.join();
  EXPECT_TRUE(is_readable(outer.descriptor()));
  outer.close();
}

TEST_F(EventsTest, EachSetWakesOnce) {
  ASSERT_TRUE(set.add(events[0].descriptor(), EventSet::Wakes::kWhenItBecomesReadable));
  for (int i = 0; i < 3; ++i) {
    events[0].set();
    set.wait_until(Quiet::kForever);
    const uint64_t until_ns = in_ms(3);
    set.wait_until(until_ns);  // not again
    EXPECT_GE(monotonic_ns(), until_ns);
  }
}

struct Hears final : EventSet::Listener {
  void changed(EventSet::Change change) override {
    ++count;
    last = change;
  }
  int count = 0;
  EventSet::Change last = {};
};

TEST_F(EventsTest, ListenersAreToldOfEachChangeOnce) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  Hears hears;
  EXPECT_FALSE(set.has_listeners());
  ASSERT_TRUE(set.add(ends[0], hears));
  ASSERT_TRUE(set.add(events[0].descriptor()));
  EXPECT_TRUE(set.has_listeners());
  set.wait_until(Quiet::kForever);  // there is room to write
  EXPECT_EQ(hears.count, 1);
  EXPECT_FALSE(hears.last.readable);
  EXPECT_TRUE(hears.last.writable);
  EXPECT_FALSE(hears.last.ended);
  set.look();
  events[0].set();
  set.wait_until(Quiet::kForever);  // of members without a listener nobody is told
  events[0].clear();
  EXPECT_EQ(hears.count, 1);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  set.wait_until(1);  // that time has passed, but listeners are told
  EXPECT_EQ(hears.count, 2);
  EXPECT_TRUE(hears.last.readable);
  EXPECT_FALSE(hears.last.ended);
  set.look();
  EXPECT_EQ(hears.count, 2);
  close(ends[1]);
  set.look();
  EXPECT_EQ(hears.count, 3);
  EXPECT_TRUE(hears.last.readable);
  EXPECT_TRUE(hears.last.ended);
  set.remove(ends[0], hears);
  EXPECT_FALSE(set.has_listeners());
  close(ends[0]);
  set.look();
  EXPECT_EQ(hears.count, 3);
}

TEST_F(EventsTest, SleepsUntilItsTime) {
  ASSERT_TRUE(set.add(events[0].descriptor()));
  const uint64_t until_ns = in_ms(5);
  set.wait_until(until_ns);
  EXPECT_GE(monotonic_ns(), until_ns);
  set.wait_until(until_ns);  // has passed: returns at once
  events[0].set();
  set.wait_until(in_ms(1'000'000));
}

TEST_F(EventsTest, WhatCannotBeWaitedForIsSaid) {
  auto added = set.add(12345);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().number, EBADF);
  EXPECT_NE(std::string_view(added.error().message).find("12345"), std::string_view::npos);
}

TEST_F(EventsTest, DescriptorsAreOwnAndGivenBack) {
  int before[256], after[256];
  EXPECT_TRUE(is_own_descriptor(set.descriptor()));
  EXPECT_TRUE(is_own_descriptor(events[0].descriptor()));
  const size_t count = own_descriptors(before);
  set.close();
  set.close();  // again: nothing
  events[0].close();
  EXPECT_EQ(own_descriptors(after), count - 2);
  EXPECT_EQ(events[0].descriptor(), -1);
}

}  // namespace
}  // namespace sys
