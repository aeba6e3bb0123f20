// Lanes: all work is done once, in order, and on the thread of its lane; if opening one lane fails, all end.
#include "task/lanes.h"

#include <thread>
#include <vector>

#include "task/test_tasks.h"

namespace task {
namespace {

constexpr uint32_t kLanes = 3;

struct Numbered : Work {
  uint32_t number = 0;
  sys::Latch* done = nullptr;
};

// Records what each lane has done.
class Recorder final : public LaneUser {
 public:
  base::Expected<void> open_lane(uint32_t lane) override {
    if (lane == fails) return base::failure(ENOSPC, "lane ", lane, " is full");
    threads[lane] = std::this_thread::get_id();
    ++open_count;
    return {};
  }
  void perform(uint32_t lane, Work& work) override {
    auto& numbered = static_cast<Numbered&>(work);
    EXPECT_EQ(std::this_thread::get_id(), threads[lane]);
    numbers[lane].push_back(numbered.number);
    if (numbered.number % 3 == 0) yield();  // other work is carried out meanwhile
    numbered.done->count_down();
  }
  void close_lane(uint32_t lane) override {
    EXPECT_EQ(std::this_thread::get_id(), threads[lane]);
    --open_count;
  }

  uint32_t fails = kLanes;
  std::atomic<int> open_count{0};
  std::thread::id threads[kLanes];
  std::vector<uint32_t> numbers[kLanes];
};

LanesParameters lanes_of(uint32_t tasks) {
  return {.name = "test", .lane_count = kLanes, .tasks_each = tasks, .stack_bytes = kTestStackBytes};
}

TEST(LanesTest, DoWhatTheyAreGivenInItsOrder) {
  Recorder recorder;
  Lanes lanes;
  ASSERT_TRUE(lanes.open(lanes_of(4), recorder));
  EXPECT_EQ(recorder.open_count, 3);
  constexpr uint32_t kCount = 300;
  sys::Latch done(kCount);
  std::vector<Numbered> all(kCount);
  WorkList together;
  for (uint32_t i = 0; i < kCount; ++i) {
    all[i].number = i;
    all[i].done = &done;
    // Lane 0 gets them one by one, lane 1 in lists of 10, lane 2 gets none.
    if (i % 2 == 0)
      lanes.give(0, all[i]);
    else
      together.append(all[i]);
    if (together.count() == 10) lanes.give(1, together);
  }
  EXPECT_TRUE(together.empty());
  done.wait();
  lanes.close();
  EXPECT_EQ(recorder.open_count, 0);
  for (uint32_t lane = 0; lane < 2; ++lane) {
    ASSERT_EQ(recorder.numbers[lane].size(), kCount / 2);
    for (uint32_t i = 0; i < kCount / 2; ++i) ASSERT_EQ(recorder.numbers[lane][i], 2 * i + lane);
  }
  EXPECT_TRUE(recorder.numbers[2].empty());
}

// Three pieces of work are given together: is there more to begin while each of them is carried out?
TEST(LanesTest, TellWhetherThereIsMoreToBegin) {
  struct Looker final : LaneUser {
    base::Expected<void> open_lane(uint32_t) override { return {}; }
    void perform(uint32_t lane, Work& work) override {
      seen.push_back(lanes->is_to_begin(lane));
      static_cast<Numbered&>(work).done->count_down();
    }
    void close_lane(uint32_t) override {}
    Lanes* lanes = nullptr;
    std::vector<bool> seen;
  };
  for (const uint32_t tasks : {1u, 2u}) {
    Looker looker;
    Lanes lanes;
    looker.lanes = &lanes;
    ASSERT_TRUE(lanes.open(
        {.name = "test", .lane_count = 1, .tasks_each = tasks, .stack_bytes = kTestStackBytes}, looker));
    sys::Latch done(3);
    Numbered all[3];
    WorkList list;
    for (Numbered& one : all) {
      one.done = &done;
      list.append(one);
    }
    lanes.give(0, list);
    done.wait();
    lanes.close();
    const bool has_another_task = tasks > 1;
    EXPECT_EQ(looker.seen, (std::vector<bool>{has_another_task, has_another_task, false}));
  }
}

TEST(LanesTest, ManyThreadsGiveThemWork) {
  Recorder recorder;
  Lanes lanes;
  ASSERT_TRUE(lanes.open(lanes_of(8), recorder));
  constexpr uint32_t kThreads = 4, kRounds = 200, kEach = 16;
  std::vector<std::thread> threads;
  for (uint32_t self = 0; self < kThreads; ++self)
    threads.emplace_back([&, self] {
      std::vector<Numbered> all(kEach);
      for (uint32_t round = 0; round < kRounds; ++round) {
        sys::Latch done(kEach);
        WorkList works[kLanes];
        for (uint32_t i = 0; i < kEach; ++i) {
          all[i].number = i;
          all[i].done = &done;
          works[(self + i) % kLanes].append(all[i]);
        }
        for (uint32_t lane = 0; lane < kLanes; ++lane) lanes.give(lane, works[lane]);
        done.wait();
      }
    });
  for (std::thread& thread : threads) thread.join();
  lanes.close();
  size_t count = 0;
  for (const auto& numbers : recorder.numbers) count += numbers.size();
  EXPECT_EQ(count, kThreads * kRounds * kEach);
}

TEST(LanesTest, OneThatDoesNotOpenClosesTheOthers) {
  Recorder recorder;
  recorder.fails = 1;
  Lanes lanes;
  auto opened = lanes.open(lanes_of(4), recorder);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number, ENOSPC);
  EXPECT_STREQ(opened.error().message, "lane 1 is full");
  EXPECT_EQ(recorder.open_count, 0);
}

}  // namespace
}  // namespace task
