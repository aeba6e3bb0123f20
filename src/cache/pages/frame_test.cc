#include "cache/pages/frame.h"

#include <gtest/gtest.h>

namespace cache {
namespace {

using Edge = uint32_t (*)(Frame&);

struct NamedEdge {
  const char* name;
  State from;
  bool io_before;
  State to;
  bool io_after;
  Edge take;
};

// The diagram in frame.h, one line an edge.
constexpr NamedEdge kEdges[] = {
    {"add", State::kAbsent, false, State::kFree, false, [](Frame& f) { return f.add(); }},
    {"claim", State::kFree, false, State::kLoading, false, [](Frame& f) { return f.claim(); }},
    {"loaded", State::kLoading, false, State::kResident, false, [](Frame& f) { return f.loaded(); }},
    {"load_failed", State::kLoading, false, State::kFree, false, [](Frame& f) { return f.load_failed(); }},
    {"lock", State::kResident, false, State::kEvicting, false, [](Frame& f) { return f.lock(); }},
    {"unchanged", State::kEvicting, false, State::kFree, false, [](Frame& f) { return f.unchanged(); }},
    {"discarded", State::kEvicting, false, State::kFree, false, [](Frame& f) { return f.discarded(); }},
    {"changed", State::kEvicting, false, State::kWriting, true, [](Frame& f) { return f.changed(); }},
    {"written", State::kWriting, true, State::kFree, false, [](Frame& f) { return f.written(); }},
    {"write_failed", State::kWriting, true, State::kResident, false,
     [](Frame& f) { return f.write_failed(); }},
    {"rescue", State::kEvicting, false, State::kResident, false, [](Frame& f) { return f.rescue(); }},
    {"rescue", State::kWriting, true, State::kResident, true, [](Frame& f) { return f.rescue(); }},
    {"clean", State::kResident, false, State::kResident, true, [](Frame& f) { return f.clean(); }},
    {"done", State::kResident, true, State::kResident, false, [](Frame& f) { return f.done(); }},
};

// Brings a new frame into the state.
void reach(Frame& frame, State state, bool io) {
  if (state == State::kAbsent) return;
  frame.add();
  if (state == State::kFree) return;
  frame.claim();
  if (state == State::kLoading) return;
  frame.loaded();
  if (state == State::kResident) {
    if (io) frame.clean();
    return;
  }
  frame.lock();
  if (state == State::kWriting) frame.changed();
}

TEST(Frame, EveryEdgeLeadsWhereTheDiagramSaysAndRaisesTheVersion) {
  for (const NamedEdge& edge : kEdges) {
    SCOPED_TRACE(edge.name);
    Frame frame;
    reach(frame, edge.from, edge.io_before);
    ASSERT_EQ(frame.state(), edge.from);
    ASSERT_EQ(frame.io(), edge.io_before);
    const uint32_t before = frame.version();
    const uint32_t after = edge.take(frame);
    EXPECT_EQ(frame.state(), edge.to);
    EXPECT_EQ(frame.io(), edge.io_after);
    EXPECT_EQ(after, before + 1);
    EXPECT_TRUE(frame.is(edge.to, after));
    EXPECT_FALSE(frame.is(edge.to, before));
    EXPECT_FALSE(frame.is(edge.from, before));
  }
}

TEST(FrameDeathTest, EveryOtherEdgeDies) {
  constexpr struct {
    State state;
    bool io;
  } kStates[] = {{State::kAbsent, false},   {State::kFree, false},    {State::kLoading, false},
                 {State::kResident, false}, {State::kResident, true}, {State::kEvicting, false},
                 {State::kWriting, true}};
  for (const auto& from : kStates) {
    for (const NamedEdge& edge : kEdges) {
      bool legal = false;
      for (const NamedEdge& other : kEdges)
        legal |= edge.name == other.name && other.from == from.state && other.io_before == from.io;
      if (legal) continue;
      SCOPED_TRACE(testing::Message()
                   << edge.name << " from state " << static_cast<int>(from.state) << " io " << from.io);
      EXPECT_DEATH(
          {
            Frame frame;
            reach(frame, from.state, from.io);
            edge.take(frame);
          },
          "does not hold");
    }
  }
}

TEST(Frame, PinsAreCountedAndSurviveTheEndOfAnIo) {
  Frame frame;
  reach(frame, State::kResident, true);
  frame.pin();
  frame.pin();
  EXPECT_EQ(frame.pins(), 2u);
  frame.done();
  EXPECT_EQ(frame.pins(), 2u);
  EXPECT_EQ(frame.state(), State::kResident);
  frame.unpin();
  frame.unpin();
  EXPECT_EQ(frame.pins(), 0u);
  frame.lock();
}

// 128 threads, each in a call with 512 OS pages of one page.
TEST(Frame, ManyThreadsInLargeSystemCallsHaveRoomForTheirPins) {
  constexpr uint32_t kPins = 128 * 512;
  Frame frame;
  reach(frame, State::kResident, true);
  const uint32_t version = frame.version();
  for (uint32_t i = 0; i < kPins; ++i) frame.pin();
  EXPECT_EQ(frame.pins(), kPins);
  EXPECT_TRUE(frame.is(State::kResident, version));
  EXPECT_TRUE(frame.io());
  frame.done();
  EXPECT_EQ(frame.pins(), kPins);
  EXPECT_EQ(frame.version(), version + 1);
  frame.forget_pins();
  EXPECT_EQ(frame.pins(), 0u);
  EXPECT_TRUE(frame.is(State::kResident, version + 1));
}

TEST(Frame, ThePinThatKeepsAPageIsNobodysWhoStores) {
  Frame frame;
  reach(frame, State::kResident, false);
  frame.pin();
  EXPECT_EQ(frame.storing_pins(), 1u);
  frame.stays = true;
  EXPECT_EQ(frame.storing_pins(), 0u);
  frame.pin();
  EXPECT_EQ(frame.storing_pins(), 1u);
  EXPECT_EQ(frame.pins(), 2u);
  frame.forget_pins();
  EXPECT_EQ(frame.storing_pins(), 0u);
  EXPECT_FALSE(frame.stays);
}

TEST(FrameDeathTest, APinForbidsLockAndClean) {
  Frame frame;
  reach(frame, State::kResident, false);
  frame.pin();
  EXPECT_DEATH(frame.lock(), "pins\\(\\) == 0u");
  EXPECT_DEATH(frame.clean(), "pins\\(\\) == 0u");
}

TEST(FrameDeathTest, PinsNeedAResidentFrameAndBalance) {
  Frame frame;
  reach(frame, State::kEvicting, false);
  EXPECT_DEATH(frame.pin(), "kResident");
  frame.rescue();
  EXPECT_DEATH(frame.unpin(), "pins\\(\\) > 0u");
  for (uint32_t i = 0; i < Frame::kMaxPins; ++i) frame.pin();
  EXPECT_DEATH(frame.pin(), "pins\\(\\) < kMaxPins");
  EXPECT_EQ(frame.state(), State::kResident) << "a full count must not run into the version";
}

}  // namespace
}  // namespace cache
